"""The file in which the input line is kept while a chat runs."""

from __future__ import annotations

import os
from pathlib import Path

from weft.cli.chat.screens.line_input.input_draft import LONGEST, InputDraft


def draft(folder: Path, project: str = "/p") -> InputDraft:
    return InputDraft(str(folder / "drafts"), project)


def files(folder: Path) -> list[Path]:
    return list((folder / "drafts").iterdir())


def test_what_a_chat_left_is_taken_once_by_the_next_of_its_project(tmp_path: Path) -> None:
    first = draft(tmp_path)
    first.keep("a longer text")
    first.keep("kürzer\n2")
    assert draft(tmp_path).take_left() == [], "its chat lives"
    first.close()
    assert draft(tmp_path, "/other").take_left() == []
    assert draft(tmp_path).take_left() == ["kürzer\n2"]
    assert draft(tmp_path).take_left() == []


def test_an_empty_line_leaves_no_file(tmp_path: Path) -> None:
    first = draft(tmp_path)
    first.keep("text")
    first.keep("")
    first.close()
    assert files(tmp_path) == []


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    first = draft(tmp_path)
    first.keep("text")
    (file,) = files(tmp_path)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    first.close()


def test_what_is_damaged_or_no_file_is_passed_over(tmp_path: Path) -> None:
    first = draft(tmp_path)
    first.keep("text")
    first.close()
    (file,) = files(tmp_path)
    stem = file.name.partition("-")[0]
    (file.parent / f"{stem}-1").write_bytes(b"no length")
    (file.parent / f"{stem}-2").symlink_to("/etc/hostname")
    os.mkfifo(file.parent / f"{stem}-3")
    assert draft(tmp_path).take_left() == ["text"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "drafts").write_text("a file")
    first = draft(tmp_path)
    first.keep("text")
    first.close()
    assert draft(tmp_path).take_left() == []


def test_a_very_long_draft_is_kept_in_part(tmp_path: Path) -> None:
    first = draft(tmp_path)
    first.keep("é" * LONGEST)
    first.close()
    (left,) = draft(tmp_path).take_left()
    assert left.startswith("éé")
    assert len(left.encode()) <= LONGEST + 3


def test_nothing_is_kept_where_nothing_may_be() -> None:
    first = InputDraft(None, "/p")
    first.keep("text")
    first.close()
    assert first.take_left() == []
