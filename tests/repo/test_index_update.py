"""An update reads what has changed and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from weft.repo import index_update
from weft.repo.definitions import FileReading
from weft.repo.index_cache import IndexCache
from weft.repo.index_update import UpdateReport, update_index
from weft.repo.parsers import extractors, worker_pool
from weft.repo.parsers.source_reader import read_content
from weft.repo.posting_lists import PART
from weft.repo.project_files import walk_project

pytestmark = pytest.mark.process


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


def children() -> str:
    """The processes that were started here and not waited for."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


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
        cache, str(project), walk_project(str(project)), go_on=lambda: next(answers, False)
    )
    assert report.parsed == ("cart.py",)
    assert update(cache, project).parsed == ("rate.py",)


def test_an_update_that_is_stopped_ends_while_its_workers_write(
    cache: IndexCache, project: Path
) -> None:
    """Two workers with more to say than a pipe holds: each had an end of the other's."""
    for number in range(60):
        lines = (f"name_{number}_{line} = {line}\n" for line in range(1500))
        (project / f"m{number}.py").write_text("".join(lines))
    before = children()
    answers = iter([True, True])
    report = update_index(
        cache,
        str(project),
        walk_project(str(project)),
        go_on=lambda: next(answers, False),
        cores=2,
    )
    assert len(report.parsed) < 62
    assert children() == before


@pytest.mark.parametrize("count", [3, 60])
def test_a_file_that_kills_its_worker_or_takes_too_long_costs_no_other(
    cache: IndexCache, project: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(worker_pool, "CPU_SECONDS", 0.3)
    for number in range(count):
        (project / f"m{number}.py").write_text(f"def name_{number}(): ...\n")

    def fragile(content: bytes, language: str) -> FileReading:
        if b"crash" in content:
            os.kill(os.getpid(), signal.SIGKILL)
        while b"slow" in content:
            pass
        if b"raise" in content:
            raise RuntimeError
        return read_content(content, language)

    monkeypatch.setattr(index_update, "read_content", fragile)
    for name in ("crash", "slow", "raise"):
        (project / f"m_{name}.py").write_text(f"def {name}(): ...\n")
    update(cache, project, cores=2)
    assert len(paths(cache)) == count + 5
    assert len(cache.lists(PART, ["name"])["name"].ids) == count
    assert cache.definitions("m_slow.py") == []
    assert update(cache, project, cores=2) == UpdateReport()


def test_a_real_file_that_no_parser_gets_through_is_given_up(
    cache: IndexCache, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "CPU_SECONDS", 0.5)
    (project / "deep.py").write_bytes(b"(\n" * 60_000)
    update(cache, project)
    assert cache.definitions("deep.py") == []
    assert [each.name for each in cache.definitions("cart.py") or ()] == ["cart"]


def test_a_changed_file_that_cannot_be_read_has_no_definitions_any_more(
    cache: IndexCache, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(cache, project)
    (project / "cart.py").unlink()
    (project / "cart.py").write_text("def other(): ...\n")
    # Root may read everything, so it is the reading that says no.
    monkeypatch.setattr(index_update, "read_beneath", lambda *_: None)
    update(cache, project)
    assert cache.definitions("cart.py") == []
    assert update(cache, project) == UpdateReport()


def test_the_files_of_a_folder_that_a_link_took_the_place_of_are_gone(
    cache: IndexCache, project: Path
) -> None:
    for folder, name in (("d", "old"), ("e", "newer")):
        (project / folder).mkdir()
        (project / folder / "x.py").write_text(f"def {name}(): ...\n")
    update(cache, project)
    shutil.rmtree(project / "d")
    (project / "d").symlink_to("e")
    report = update_index(cache, str(project), ["cart.py", "rate.py", "d/x.py", "e/x.py"])
    assert report == UpdateReport(removed=("d/x.py",))


def test_a_file_with_the_size_and_time_of_before_is_read_all_the_same(
    cache: IndexCache, project: Path
) -> None:
    file = project / "cart.py"
    os.utime(file, (1, 1))
    update(cache, project)
    file.write_text(file.read_text().replace("cart", "tarc"))
    os.utime(file, (1, 1))
    assert update(cache, project).parsed == ("cart.py",)


def test_other_readers_read_everything_again(
    cache: IndexCache, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update(cache, project)
    monkeypatch.setattr(extractors, "READER_VERSION", 99)
    for cached in (extractors.reader_seed, extractors.readers_version):
        cached.cache_clear()
    try:
        assert update(cache, project).parsed == ("cart.py", "rate.py")
        assert update(cache, project).parsed == ()
    finally:
        for cached in (extractors.reader_seed, extractors.readers_version):
            cached.cache_clear()


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
