"""What a rewind does to files, in rows."""

from __future__ import annotations

from weft.session import RewindPlan
from weft.view import file_rows


def _rows(*left_out: str) -> list[tuple[str, str]]:
    plan = RewindPlan(to=None, conversation=False, left_out=left_out)
    return [(name, said) for name, said, _ in file_rows(plan)]


def test_folders_of_one_name_that_are_not_tracked_share_a_row() -> None:
    caches = [f"src/p{number}/__pycache__/: ignored" for number in range(40)]
    assert _rows(".git/: its own", ".venv/: ignored", *caches, "notes.bin: too large") == [
        (".venv/", "not tracked (gitignored)"),
        ("__pycache__/ in 40 folders", "not tracked (gitignored)"),
        ("notes.bin", "not tracked (too large)"),
    ]


def test_files_of_one_name_keep_a_row_each() -> None:
    rows = _rows("a/.env: ignored", "b/.env: ignored")
    assert [name for name, _ in rows] == ["a/.env", "b/.env"]


def test_no_more_is_listed_than_leaves_the_changed_files_in_view() -> None:
    rows = _rows(*(f"f{number}: ignored" for number in range(100)))
    assert len(rows) == 11
    assert rows[-1] == ("90 more", "not tracked")
