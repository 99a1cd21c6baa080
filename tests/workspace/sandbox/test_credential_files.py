"""The table of files where programs keep credentials."""

from __future__ import annotations

from pathlib import Path

from weft.data_tables import read_table
from weft.workspace.sandbox import hidden
from weft.workspace.sandbox.hidden import HiddenPaths

ROWS = read_table(hidden.__file__, "credential_files.tsv", 4)


def test_the_table_is_long_and_its_paths_are_below_the_home_folder() -> None:
    assert len(ROWS) >= 80
    assert len({path.rstrip("/") for path, *_ in ROWS}) == len(ROWS)
    for path, *_ in ROWS:
        assert not path.startswith(("/", "~"))
        assert ".." not in path.split("/")


def test_every_row_is_hidden_and_only_what_the_user_shows_is_not(tmp_path: Path) -> None:
    home, project = str(tmp_path / "home"), str(tmp_path / "project")
    found = HiddenPaths(home).of_machine([project])
    assert {f"{home}/{path.rstrip('/')}" for path, *_ in ROWS} <= set(found)
    shown = HiddenPaths(home, shown=[f"{home}/.kube"]).of_machine([project])
    assert f"{home}/.kube" not in shown
    assert f"{home}/.ssh" in shown


def test_a_project_inside_such_a_folder_is_not_hidden_from_its_own_commands(
    tmp_path: Path,
) -> None:
    home = str(tmp_path)
    assert f"{home}/.chef" not in HiddenPaths(home).of_machine([f"{home}/.chef/cookbook"])
