"""The id of a project: kept with our data, and found again when the folder was moved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from weft.config.project_ids import MOST_RELATED, ProjectIds
from weft.ids import ProjectId


@pytest.fixture
def ids(tmp_path: Path) -> ProjectIds:
    return ProjectIds(tmp_path / "home" / "projects")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def test_a_folder_keeps_its_id_and_nothing_is_written_into_it(ids: ProjectIds, shop: Path) -> None:
    assert ids.find(str(shop)) is None
    made = ids.make(str(shop), 1.0)
    assert made.startswith("prj_")
    assert ids.make(str(shop), 2.0) == ids.find(str(shop)) == made
    assert list(shop.iterdir()) == []


def test_two_folders_are_two_projects(ids: ProjectIds, shop: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert ids.make(str(shop), 1.0) != ids.make(str(tmp_path / "other"), 1.0)


def test_a_folder_that_was_moved_is_the_same_project(
    ids: ProjectIds, shop: Path, tmp_path: Path
) -> None:
    made = ids.make(str(shop), 1.0)
    shop.rename(tmp_path / "store")
    assert ids.find(str(tmp_path / "store")) == made
    assert ids.make(str(tmp_path / "store"), 2.0) == made
    # What is put in its old place later is another one.
    shop.mkdir()
    assert ids.make(str(shop), 3.0) != made
    assert ids.find(str(tmp_path / "store")) == made


def change_row(home: Path, **changes: int | None) -> None:
    """Edit the one project that is written down; None takes a field out."""
    [file] = (home / "projects").glob("*.json")
    row = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({name: it for name, it in row.items() if it is not None}))


def test_a_new_folder_with_the_inode_of_a_deleted_project_is_another_project(
    ids: ProjectIds, shop: Path, tmp_path: Path
) -> None:
    made = ids.make(str(shop), 1.0)
    shop.rmdir()
    other = tmp_path / "other"
    other.mkdir()
    # As ext4 does by itself, at once; other file systems reuse a number later, or never. And the
    # clock of the file system ticks in milliseconds, in which both may have been made.
    change_row(tmp_path / "home", inode=other.stat().st_ino, born=1)
    assert ids.find(str(other)) is None
    assert ids.make(str(other), 2.0) != made
    shop.mkdir()
    assert ids.find(str(shop)) == made


def test_a_project_without_a_known_birth_time_is_found_by_its_path_alone(
    ids: ProjectIds, shop: Path, tmp_path: Path
) -> None:
    made = ids.make(str(shop), 1.0)
    change_row(tmp_path / "home", born=None)
    assert ids.find(str(shop)) == made
    shop.rename(tmp_path / "store")
    assert ids.find(str(tmp_path / "store")) is None
    assert ids.make(str(tmp_path / "store"), 2.0) != made


def test_a_copy_is_a_project_of_its_own(ids: ProjectIds, shop: Path, tmp_path: Path) -> None:
    made = ids.make(str(shop), 1.0)
    shutil.copytree(shop, tmp_path / "copy")
    assert ids.make(str(tmp_path / "copy"), 2.0) != made
    assert ids.find(str(shop)) == made


def test_what_is_put_at_a_known_path_is_the_same_project(ids: ProjectIds, shop: Path) -> None:
    made = ids.make(str(shop), 1.0)
    (shop.parent / "clone").mkdir()
    shop.rmdir()
    (shop.parent / "clone").rename(shop)
    assert ids.find(str(shop)) == made


def test_a_link_to_a_folder_is_the_folder(ids: ProjectIds, shop: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(shop)
    assert ids.make(str(tmp_path / "link"), 1.0) == ids.make(str(shop), 2.0)


def test_those_who_make_an_id_at_the_same_moment_get_the_same_one(
    ids: ProjectIds, shop: Path
) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = set(pool.map(lambda place: ids.make(str(shop), float(place)), range(64)))
    assert len(made) == 1


def test_a_damaged_file_hides_no_other_project(ids: ProjectIds, shop: Path, tmp_path: Path) -> None:
    made = ids.make(str(shop), 1.0)
    (tmp_path / "home" / "projects" / "0.json").write_text("{")
    shop.rename(tmp_path / "store")
    assert ids.find(str(tmp_path / "store")) == made


def test_a_moved_project_knows_where_it_was_and_is_found_from_there(
    ids: ProjectIds, shop: Path, tmp_path: Path
) -> None:
    made = ids.make(str(shop), 1.0)
    assert ids.place_of(made, str(shop)) == str(shop)
    store = shop.rename(tmp_path / "store")
    # Nobody has looked at the new place yet.
    assert ids.place_of(made, str(shop)) == str(shop)
    assert ids.place_of(made, str(shop), perhaps=str(store)) == str(store)
    known = ids.known(str(store))
    assert known is not None
    assert known.former == (str(shop),)
    shop.mkdir()
    ids.make(str(shop), 2.0)
    assert ids.place_of(made, str(shop)) == str(store), "another one is there now"
    back = store.rename(tmp_path / "third")
    known = ids.known(str(back))
    assert known is not None
    assert known.former == (str(shop), str(store))


def test_the_project_of_a_damaged_file_gets_one_new_id_and_a_word_is_said(
    ids: ProjectIds, shop: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = ids.make(str(shop), 1.0)
    [file] = (tmp_path / "home" / "projects").glob("*.json")
    file.write_text("{")
    again = ids.make(str(shop), 2.0)
    assert again != made
    assert ids.make(str(shop), 3.0) == ids.find(str(shop)) == again
    [said] = caplog.messages
    assert "is damaged" in said
    assert file.name in said
    assert file.with_name(f"{file.name}.damaged").read_text() == "{"


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "-C", str(folder), *identity, *args], check=True, capture_output=True)


def related(ids: ProjectIds, folder: Path) -> dict[ProjectId, str]:
    return {each.id: each.inside for each in ids.related(str(folder))}


@pytest.fixture
def repository(shop: Path) -> Path:
    git(shop, "init", "-q")
    git(shop, "commit", "-qm", "one", "--allow-empty")
    return shop


def notes(tmp_path: Path) -> list[Path]:
    roots = tmp_path / "home" / "projects" / "roots"
    return sorted(path for path in roots.rglob("*") if path.is_file())


@pytest.mark.process
def test_worktrees_that_were_removed_hide_no_living_one(
    ids: ProjectIds, repository: Path, tmp_path: Path
) -> None:
    top = ids.make(str(repository), 0.0)
    for number in range(MOST_RELATED + 2):
        gone = tmp_path / f"gone{number}"
        git(repository, "worktree", "add", "-q", "--detach", str(gone))
        ids.make(str(gone), float(number))
        shutil.rmtree(gone)
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", "--detach", str(tree))
    made = ids.make(str(tree), 1_000.0)
    (repository / "src").mkdir()
    src = ids.make(str(repository / "src"), 2_000.0)
    assert list(related(ids, repository)) == [src, made]
    assert list(related(ids, repository / "src")) == [top, made]
    paths = {os.fsdecode(note.read_bytes()) for note in notes(tmp_path)}
    assert len(paths) == MOST_RELATED + 2, "the notes do not grow without end"
    assert not {str(tmp_path / "gone0"), str(tmp_path / "gone1")} & paths


@pytest.mark.process
def test_only_the_newest_projects_of_a_repository_are_related(
    ids: ProjectIds, repository: Path
) -> None:
    made = []
    for number in range(MOST_RELATED + 3):
        folder = repository / f"part{number}"
        folder.mkdir()
        made.append(ids.make(str(folder), float(number)))
    assert list(related(ids, repository)) == made[:2:-1]


@pytest.mark.process
def test_a_folder_that_comes_back_is_related_again(ids: ProjectIds, repository: Path) -> None:
    src = repository / "src"
    src.mkdir()
    made = ids.make(str(src), 1.0)
    src.rmdir()
    assert related(ids, repository) == {}
    src.mkdir()
    assert related(ids, repository) == {made: "src"}


@pytest.mark.process
def test_a_project_that_was_moved_in_its_repository_is_related_where_it_is(
    ids: ProjectIds, repository: Path, tmp_path: Path
) -> None:
    src = repository / "src"
    src.mkdir()
    made = ids.make(str(src), 1.0)
    lib = src.rename(repository / "lib")
    assert ids.make(str(lib), 2.0) == made
    assert related(ids, repository) == {made: "lib"}
    # A look is enough.
    moved = lib.rename(repository / "core")
    assert ids.find(str(moved)) == made
    assert related(ids, repository) == {made: "core"}
    assert [note.name for note in notes(tmp_path)] == [made]


@pytest.mark.process
def test_a_note_that_cannot_be_read_hides_no_other(
    ids: ProjectIds, repository: Path, tmp_path: Path
) -> None:
    src = repository / "src"
    src.mkdir()
    made = ids.make(str(src), 1.0)
    [note] = notes(tmp_path)
    note.with_name("prj_0").mkdir()
    assert related(ids, repository) == {made: "src"}
