"""The table of files where programs keep credentials."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.example_count import cases
from weft.data_tables import read_table
from weft.workspace.sandbox import secret_names
from weft.workspace.sandbox.hidden import HiddenPaths
from weft.workspace.sandbox.secret_names import SecretNames

ROWS = read_table(secret_names.__file__, "tables/credential_files.tsv", 4)


def test_the_table_is_long_and_its_paths_are_below_the_home_folder() -> None:
    assert len(ROWS) >= 80
    assert len({path.rstrip("/") for path, *_ in ROWS}) == len(ROWS)
    for path, *_ in ROWS:
        assert not path.startswith(("/", "~"))
        assert ".." not in path.split("/")


@pytest.mark.parametrize(
    "path",
    [
        *(".codex/auth.json", ".claude/.credentials.json", ".local/share/opencode/auth.json"),
        *(
            ".aws/credentials",
            ".config/gcloud/x",
            ".azure/x",
            ".kube/config",
            ".docker/config.json",
        ),
        *(".config/google-chrome/x", ".mozilla/firefox/x", ".config/BraveSoftware/x"),
        *(".password-store/x", ".config/Bitwarden/x", ".config/op/x", ".local/share/keyrings/x"),
        *(".ssh/id_rsa", ".gnupg/x", ".netrc", ".npmrc", ".pypirc", ".git-credentials"),
        *(".config/gh/hosts.yml", ".vault-token", ".pgpass"),
    ],
)
def test_what_was_promised_by_name_is_in_the_table(path: str) -> None:
    # The other tests go over the table, and would not miss a row.
    folders = tuple(row for row, *_ in ROWS if row.endswith("/"))
    assert path in {row for row, *_ in ROWS} or path.startswith(folders)


def test_every_row_is_a_secret_in_a_project_too_and_the_files_around_it_are_not() -> None:
    names = SecretNames()
    for path, *_ in ROWS:
        held = f"{path}x" if path.endswith("/") else path
        assert names.has(held), held
        assert names.has(f"home/{held}"), held
    assert names.has("deep/id_rsa")
    assert not any(map(names.has, ["src/a.py", ".github/a.yml", "ssh/config", "env", "a.npmrc/b"]))


def laid_out(home: Path) -> None:
    """Every file and folder of the table, in this home folder."""
    for path, *_ in ROWS:
        place = home / path
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()


def test_every_row_is_hidden_and_only_what_the_user_shows_is_not(tmp_path: Path) -> None:
    home, project = str(tmp_path / "home"), str(tmp_path / "project")
    laid_out(tmp_path / "home")
    found = HiddenPaths(home).of_machine([project])
    assert {f"{home}/{path.rstrip('/')}" for path, *_ in ROWS} <= set(found)
    shown = HiddenPaths(home, shown=[f"{home}/.kube"]).of_machine([project])
    assert f"{home}/.kube" not in shown
    assert f"{home}/.ssh" in shown


@pytest.mark.parametrize("row", cases(path for path, *_ in ROWS))
def test_what_comes_later_changes_the_stamp_and_is_hidden(tmp_path: Path, row: str) -> None:
    hidden_paths = HiddenPaths(str(tmp_path))
    before = hidden_paths.stamp()
    assert hidden_paths.of_machine([]) == []
    place = tmp_path / row.rstrip("/")
    # One folder after the other, as a program makes them, each looked at in between.
    for folder in reversed(place.relative_to(tmp_path).parents[:-1]):
        (tmp_path / folder).mkdir()
        os.utime((tmp_path / folder).parent, ns=(1, before[0] + len(folder.parts)))
        hidden_paths.stamp()
    place.touch()
    os.utime(place.parent, ns=(2, 2))  # coarse clocks may give it the time that it had
    assert hidden_paths.stamp() != before
    assert str(place) in hidden_paths.of_machine([])


def test_a_path_that_is_gone_is_no_longer_named(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    hidden_paths = HiddenPaths(str(tmp_path))
    assert hidden_paths.of_machine([]) == [str(tmp_path / ".ssh")]
    (tmp_path / ".ssh").rmdir()
    os.utime(tmp_path, ns=(3, 3))
    hidden_paths.stamp()
    assert hidden_paths.of_machine([]) == []


def test_a_change_above_the_home_folder_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    hidden_paths = HiddenPaths(str(tmp_path / "home"))
    before = hidden_paths.stamp()
    os.utime(tmp_path, ns=(4, 4))
    assert hidden_paths.stamp() == before


def test_a_project_inside_such_a_folder_is_not_hidden_from_its_own_commands(
    tmp_path: Path,
) -> None:
    home = str(tmp_path)
    (tmp_path / ".chef" / "cookbook").mkdir(parents=True)
    assert f"{home}/.chef" in HiddenPaths(home).of_machine([f"{home}/elsewhere"])
    assert f"{home}/.chef" not in HiddenPaths(home).of_machine([f"{home}/.chef/cookbook"])


def test_a_project_inside_a_folder_of_ours_sees_nothing_else_of_it(tmp_path: Path) -> None:
    ours = tmp_path / "weft"
    project = ours / "workspaces" / "ses_a" / "1" / "shop"
    beside = ("server", "workspaces/ses_b", "workspaces/ses_a/made.json", "workspaces/ses_a/2")
    for folder in (project, *(ours / name for name in beside)):
        folder.mkdir(parents=True)
    (ours / "unattended.key").write_text("key")
    (ours / "here").symlink_to(project)
    hidden_paths = HiddenPaths(str(tmp_path / "home"), folders=[str(ours)])
    expected = {str(ours / name) for name in ("unattended.key", *beside)}
    assert set(hidden_paths.of_machine([str(project)])) == expected
    assert hidden_paths.of_machine([str(tmp_path)]) == [str(ours)]
    assert hidden_paths.of_machine([str(project), str(ours)]) == []
    before = hidden_paths.stamp()
    (ours / "later.key").write_text("key")
    os.utime(ours, ns=(1, 1))  # as if it were later: the clock of a disk has steps
    assert hidden_paths.stamp() != before
    assert str(ours / "later.key") in hidden_paths.of_machine([str(project)])
