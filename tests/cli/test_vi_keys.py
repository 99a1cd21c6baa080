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
    vi = ViKeys(editor)
    editor.set_text(text)
    vi.press("escape")
    for key in keys:
        name = {" ": "space", "\x1b": "escape"}.get(key, key)
        if vi.is_normal and not vi.is_pending and key in "jk":
            (editor.line_up if key == "k" else editor.line_down)()
            vi.settle()
        elif not vi.press(name):
            editor.insert(key)
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}", vi


@pytest.mark.parametrize(
    ("text", "keys", "result"),
    [
        ("one two three", "0wx", "one |wo three"),
        ("one two three", "02wD", "one two| "),
        ("one two three", "0dw", "|two three"),
        ("one two three", "0d2w", "|three"),
        ("one two three", "0wcwTWO", "one TWO| three"),
        ("one two three", "0wde", "one | three"),
        ("one two", "dd", "|"),
        ("one two", "0ywP", "one| one two"),
        ("one two", "0iX", "X|one two"),
        ("one two", "0aX", "oX|ne two"),
        ("one two", "0AX", "one twoX|"),
        ("one two", "bC!", "one !|"),
        ("one two", "0xxu", "|ne two"),
        ("one", "q", "on|e"),
        ("one", "0oX", "one\nX|"),
        ("a.b", "0dw", "|.b"),
        ("a.b c", "0dW", "|c"),
        ("foo bar-baz qux", "0WW", "foo bar-baz |qux"),
        ("foo bar-baz qux", "BB", "foo |bar-baz qux"),
        ("foo_bar baz", "bb", "|foo_bar baz"),
        ("--opt=val", "bb", "--opt|=val"),
        ("abc", "ll", "ab|c"),
        ("abc", "x", "a|b"),
        ("foo bar", "$", "foo ba|r"),
        ("foo bar-baz qux", "0fa", "foo b|ar-baz qux"),
        ("foo bar-baz qux", "0fa;", "foo bar-b|az qux"),
        ("foo bar-baz qux", "0fa;,", "foo b|ar-baz qux"),
        ("foo bar-baz qux", "02fa", "foo bar-b|az qux"),
        ("foo bar-baz qux", "0tb", "foo| bar-baz qux"),
        ("foo bar-baz qux", "0dfb", "|ar-baz qux"),
        ("foo bar-baz qux", "0ct-new", "new|-baz qux"),
        ("foo bar-baz qux", "Ta", "foo bar-ba|z qux"),
        ("foo bar", "0fzx", "|oo bar"),
        ("foo bar", "0cfzx", "|oo bar"),
        ("foo bar", "0rX", "|Xoo bar"),
        ("foo bar", "03rX", "XX|X bar"),
        ("foo bar", "09rX", "|foo bar"),
        ("foo bar", "04~", "FOO |bar"),
        ("foo bar", "0Rab", "ab|o bar"),
        ("foo bar", "0xp", "o|fo bar"),
        ("foo bar", "0x3p", "off|fo bar"),
        ("foo bar", "02sX", "X|o bar"),
        ("one two three", "0dw.", "|three"),
        ("one two three", "0x3.", "|two three"),
        ("one two three", "0cwX\x1bw.", "X |X three"),
        ("one two three", "0AX\x1b0.", "one two threeX|X"),
        ("one two three", "0wdwu", "one |two three"),
        ("one two", "0cwX Y\x1bu", "|one two"),
        ("one two", "0xxU", "|one two"),
        ("a (b [c] d) e", "0%", "a (b [c] d|) e"),
        ("a (b [c] d) e", "0fcdi(", "a (|) e"),
        ("a (b [c] d) e", "0fbda(", "a | e"),
        ('a "b c" d', '0fbci"X', 'a "X|" d'),
        ("one two three", "0wdiw", "one | three"),
        ("one two three", "0wdaw", "one |three"),
        ("one two three", "daw", "one tw|o"),
        ("one two three", "05|", "one |two three"),
        ("foo   bar", "0cwX", "X|   bar"),
        ("foo   bar", "0whcwX", "foo  X|bar"),
        ("foo bar baz", "02cwX", "X| baz"),
        ("foo bar", "0ge", "|foo bar"),
        ("foo bar", "ge", "fo|o bar"),
        ("one\ntwo\nthree", "kdd", "one\n|three"),
        ("one\ntwo\nthree", "dd", "one\n|two"),
        ("one\ntwo\nthree", "kddp", "one\nthree\n|two"),
        ("one\ntwo", "kyyP", "|one\none\ntwo"),
        ("one\ntwo\nthree", "ggdG", "|"),
        ("one\ntwo\nthree", "ggdj", "|three"),
        ("one\ntwo", "k0dw", "|\ntwo"),
        ("one\ntwo", "kJ", "one| two"),
        ("one\ntwo", "kccX", "X|\ntwo"),
        ("नमस्ते दुनिया", "bdw", "नमस्ते| "),
        ("", "dwx~rXdi(p%", "|"),
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


@pytest.mark.anyio
async def test_a_letter_right_behind_esc_is_a_command(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, settings=ScreenSettings(vi_keys=True)) as driven:
        await driven.type("one two\x1bb")
        await driven.type("x")
        assert "› one wo" in driven.terminal.text
        await driven.type("fk")
        assert "› one wo" in driven.terminal.text, "the k is what is looked for"
        await driven.type("A\r")
        assert driven.sent() == [LineSubmitted("one wo")]


@pytest.mark.anyio
async def test_k_goes_up_in_the_text_and_then_in_the_history(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, settings=ScreenSettings(vi_keys=True)) as driven:
        await driven.type("earlier\r")
        await driven.type("one\x0atwo")
        driven.screen.input.press("escape")
        await driven.type("kx")
        assert "› on" in driven.terminal.text
        await driven.type("kx")
        assert "› earlie" in driven.terminal.text
