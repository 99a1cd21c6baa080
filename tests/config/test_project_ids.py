"""The id of a project: kept with our data, and found again when the folder was moved."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from weft.config.project_ids import ProjectIds


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
