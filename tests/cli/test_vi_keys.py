"""The keys of vi in the input line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory_terminal import driven_screen
from weft.cli.chat.screens.line_input.line_editor import LineEditor
from weft.cli.chat.screens.line_input.vi_keys import ViKeys
from weft.cli.chat.screens.screen import InterruptPressed, LineSubmitted
from weft.cli.chat.screens.terminal_screen import ScreenSettings
from weft.view import LiveArea


def pressed(text: str, keys: str) -> tuple[str, ViKeys]:
    editor = LineEditor()
    editor.set_text(text)
    vi = ViKeys(editor)
    vi.press("escape")
    for key in keys:
        if not vi.press("space" if key == " " else key):
            editor.insert(key)
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}", vi


@pytest.mark.parametrize(
    ("text", "keys", "result"),
    [
        ("one two three", "0wx", "one |wo three"),
        ("one two three", "02wD", "one two |"),
        ("one two three", "0dw", "|two three"),
        ("one two three", "0d2w", "|three"),
        ("one two three", "0wcwTWO", "one TWO| three"),
        ("one two three", "0wde", "one | three"),
        ("one two", "dd", "|"),
        ("one two", "0ywP", "one |one two"),
        ("one two", "0iX", "X|one two"),
        ("one two", "0aX", "oX|ne two"),
        ("one two", "0AX", "one twoX|"),
        ("one two", "bC!", "one !|"),
        ("one two", "0xxu", "|one two"),
        ("one", "q", "on|e"),
        ("one", "0oX", "one\nX|"),
        ("a.b", "0dw", "|.b"),
    ],
)
def test_hands_that_know_vi_find_it(text: str, keys: str, result: str) -> None:
    assert pressed(text, keys)[0] == result


def test_a_change_leads_to_insert_mode_and_a_deletion_does_not() -> None:
    assert pressed("one two", "0cw")[1].is_normal is False
    assert pressed("one two", "0dw")[1].is_normal is True


@pytest.mark.anyio
async def test_esc_changes_the_mode_and_stops_a_turn_all_the_same(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, settings=ScreenSettings(vi_keys=True)) as driven:
        await driven.type("one two")
        driven.screen.input.press("escape")
        await driven.type("bdw")
        assert "› one" in driven.terminal.text
        assert "-- NORMAL --" in driven.terminal.text
        await driven.type("Ax\r")
        assert driven.sent() == [LineSubmitted("one x")]
        driven.screen.watch(LiveArea(status="thinking"))
        driven.screen.input.press("escape")
        assert driven.sent() == [InterruptPressed()]
