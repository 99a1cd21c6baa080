"""Prompt input: the words of the command line, and what is piped in."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.app import App
from weft.cli.prompt_input import attached, compose
from weft.errors import UsageError
from weft.messages import File, Text


def test_words_are_joined_and_what_is_piped_in_comes_behind() -> None:
    composed = compose(["Explain", "this"], piped="line 1\nline 2\n")
    assert composed == (Text(text="Explain this\n\nline 1\nline 2\n"),)
    assert compose([], piped="only this") == (Text(text="only this"),)
    assert compose(["", " "], piped="\n") == ()


def test_the_text_keeps_the_words_that_name_files() -> None:
    assert compose(["Look", "@a b.txt"]) == (Text(text="Look @a b.txt"),)


def test_bytes_that_are_no_text_are_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="not UTF-8"):
        compose(["\udcff"])


@pytest.mark.anyio
async def test_each_word_may_be_the_path_of_a_file(app: App) -> None:
    project = Path(app.project_path)
    (project / "a b.txt").write_text("A")
    (project / "c.txt").write_text("C")
    files = await attached(app, ["Compare", "@a b.txt", "with @c.txt"])
    assert files == (File(name="a b.txt", text="A"), File(name="c.txt", text="C"))
