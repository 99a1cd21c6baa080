"""Permission modes have one set of words: the status line's, with the flag's values beside them."""

from __future__ import annotations

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.source_code import ROOT
from weft.app import App
from weft.cli.help import main_help
from weft.cli.options import MODE_WORDS
from weft.config.setting_keys import KEYS
from weft.permissions import MODES
from weft.view import NoteBlock


def test_every_mode_has_words() -> None:
    assert set(MODE_WORDS) == set(MODES)


@pytest.mark.parametrize(("value", "words"), MODE_WORDS.items())
def test_help_and_docs_name_a_mode_as_the_chat_does(value: str, words: str) -> None:
    named = f"{value} ({words}"
    places = {
        "--help": " ".join(main_help(200).split()),
        "setting": KEYS["permissions.mode"].about,
        "cli.md": (ROOT / "docs" / "cli.md").read_text(),
        "settings.md": " ".join((ROOT / "docs" / "settings.md").read_text().split()),
        "README": " ".join((ROOT / "README.md").read_text().split()),
    }
    assert [place for place, text in places.items() if named not in text] == []


@pytest.mark.anyio
async def test_the_list_of_modes_reads_as_the_status_line(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/mode")
        question = await talk.screen.choice()
        assert [row.label for row in question.rows] == list(MODE_WORDS.values())
        assert all(
            value in row.detail for value, row in zip(MODE_WORDS, question.rows, strict=True)
        )
        # At 80 columns each stands beside its words.
        labels, details = zip(*((row.label, row.detail) for row in question.rows), strict=True)
        assert 5 + max(map(len, labels)) + 2 + max(map(len, details)) < 80
        talk.screen.answer(1)
        await talk.screen.noted("mode: edits allowed (accept_edits)")


@pytest.mark.anyio
@pytest.mark.parametrize("typed", ["auto in sandbox", "Auto in Sandbox", "auto"])
async def test_a_mode_is_set_by_its_words_or_its_value(app: App, typed: str) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed(f"/mode {typed}")
        await talk.screen.noted("mode: auto in sandbox (auto)")
        assert talk.screen.live.mode == "auto"


@pytest.mark.anyio
async def test_an_unknown_mode_is_told_the_ones_there_are(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/mode yolo")
        await talk.screen.until(lambda: talk.screen.of(NoteBlock))
        (note,) = talk.screen.of(NoteBlock)
        assert "asks first (default)" in note.text
        assert "asks nothing (bypass)" in note.text


@pytest.mark.anyio
@pytest.mark.parametrize("typed", ["acceptEdits", "accept_edits", "edits allowed"])
async def test_the_names_of_other_tools_are_understood(app: App, typed: str) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed(f"/mode {typed}")
        await talk.screen.noted("mode: edits allowed (accept_edits)")
