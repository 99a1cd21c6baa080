"""What a written path means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import FinalToolError
from weft.workspace.paths import WorkspacePath, WorkspaceRoots

ROOTS = WorkspaceRoots("/ws", ["/opt/added"])


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a.py", "a.py"),
        ("./a//b/../c.py", "a/c.py"),
        ("/ws/a.py", "a.py"),
        ("//ws/a.py", "a.py"),
        (".", "."),
        ("/ws", "."),
        ("src/", "src"),
        ("/opt/added/x", "/opt/added/x"),
    ],
)
def test_a_path_inside_is_shown_relative_to_the_project(path: str, shown: str) -> None:
    place = ROOTS.place(path)
    assert (ROOTS.shown(place), place.outside) == (shown, False)


@pytest.mark.parametrize(
    "path",
    ["..", "../x", "/ws_evil/x", "/wsx", "/", "/etc/passwd", "a/../../x", "/opt/added_not", "/opt"],
)
def test_a_path_outside_is_known_by_its_parts_and_shown_whole(path: str) -> None:
    place = ROOTS.place(path)
    assert place.outside
    assert ROOTS.shown(place).startswith("/")


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "a\ud800", "~", "~/x"])
def test_what_the_system_would_misread_is_refused(path: str) -> None:
    with pytest.raises(FinalToolError):
        ROOTS.place(path)


def test_a_project_named_through_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    roots = WorkspaceRoots(str(tmp_path / "link"))
    assert roots.root == str(tmp_path / "real")
    for name in ("link", "real"):
        assert roots.place(str(tmp_path / name / "f")) == WorkspacePath(roots.root, "f")


@given(st.text(alphabet="ab./~ ", max_size=20))
def test_a_place_never_holds_a_way_up(path: str) -> None:
    try:
        place = ROOTS.place(path)
    except FinalToolError:
        return
    assert ".." not in place.name.split("/")
    assert not place.name.startswith("/")
    assert ROOTS.place(place.absolute) == place
