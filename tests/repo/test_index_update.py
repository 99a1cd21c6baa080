"""An update reads what has changed and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.repo import index_update
from weft.repo.index_cache import PART, IndexCache
from weft.repo.index_update import UpdateReport, update_index
from weft.repo.project_files import walk_project


@pytest.fixture
def cache(tmp_path: Path) -> IndexCache:
    return IndexCache(tmp_path / "cache.db", writes=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    for name in ("cart", "rate"):
        (folder / f"{name}.py").write_text(f"def {name}():\n    return 1\n")
    (folder / "notes.txt").write_text("no source\n")
    return folder


def update(cache: IndexCache, project: Path, *, cores: int = 1) -> UpdateReport:
    return update_index(cache, str(project), walk_project(str(project)), cores=cores)


def paths(cache: IndexCache) -> list[str]:
    return sorted(cache.ids())


def test_a_second_update_reads_nothing(cache: IndexCache, project: Path) -> None:
    assert update(cache, project) == UpdateReport(parsed=("cart.py", "rate.py"))
    state = cache.note("segment")
    assert update(cache, project) == UpdateReport()
    assert cache.note("segment") == state


def test_one_changed_file_is_read_alone(cache: IndexCache, project: Path) -> None:
    update(cache, project)
    (project / "cart.py").write_text("def basket(): ...\n")
    assert update(cache, project) == UpdateReport(parsed=("cart.py",))
    assert [each.name for each in cache.definitions("cart.py") or ()] == ["basket"]


def test_a_file_that_was_only_touched_is_not_parsed(cache: IndexCache, project: Path) -> None:
    update(cache, project)
    os.utime(project / "cart.py", ns=(1, 1))
    assert update(cache, project) == UpdateReport(known=("cart.py",))
    assert update(cache, project) == UpdateReport()


def test_content_of_before_is_known_again(cache: IndexCache, project: Path) -> None:
    update(cache, project)
    before = (project / "cart.py").read_text()
    (project / "cart.py").write_text("def basket(): ...\n")
    update(cache, project)
    (project / "cart.py").write_text(before)
    assert update(cache, project) == UpdateReport(known=("cart.py",))
    assert [each.name for each in cache.definitions("cart.py") or ()] == ["cart"]
    (project / "cart.py").rename(project / "moved.py")
    assert update(cache, project) == UpdateReport(known=("moved.py",), removed=("cart.py",))


def test_a_part_of_the_files_can_be_updated_alone(cache: IndexCache, project: Path) -> None:
    update(cache, project)
    (project / "cart.py").unlink()
    (project / "rate.py").write_text("def other(): ...\n")
    report = update_index(cache, str(project), ["cart.py"], is_whole=False)
    assert report == UpdateReport(removed=("cart.py",))
    assert paths(cache) == ["rate.py"]


def test_links_pipes_and_folders_with_the_name_of_a_source_are_left_out(
    cache: IndexCache, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.py").write_text("def secret(): ...\n")
    (project / "link.py").symlink_to(tmp_path / "secret.py")
    (project / "folder.py").mkdir()
    os.mkfifo(project / "pipe.py")
    names = [*walk_project(str(project)), "folder.py", "gone.py", "nul\0.py"]
    update_index(cache, str(project), names)
    assert paths(cache) == ["cart.py", "rate.py"]


def test_a_file_with_a_time_in_the_future_is_not_parsed_again(
    cache: IndexCache, project: Path
) -> None:
    future = 4_000_000_000_000_000_000
    os.utime(project / "cart.py", ns=(future, future))
    update(cache, project)
    assert update(cache, project).parsed == ()


def test_an_update_that_is_stopped_keeps_its_batches_and_goes_on_later(
    cache: IndexCache, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_update, "BATCH_FILES", 1)
    answers = iter([True, False])
    report = update_index(
        cache, str(project), walk_project(str(project)), go_on=lambda: next(answers)
    )
    assert report.parsed == ("cart.py",)
    assert update(cache, project).parsed == ("rate.py",)


@pytest.mark.process
def test_many_files_are_read_by_several_processes_with_the_same_outcome(
    cache: IndexCache, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_update, "_SHARED_FROM", 1)
    for number in range(70):
        (project / f"m{number}.py").write_text(f"def name_{number}(): ...\n")
    report = update(cache, project, cores=2)
    assert sorted(report.parsed) == paths(cache)
    assert len(report.parsed) == 72
    assert len(cache.lists(PART, ["name"])["name"].ids) == 70
    assert update(cache, project, cores=2) == UpdateReport()
