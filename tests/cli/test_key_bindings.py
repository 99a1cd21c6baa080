"""Keys of the chat that the user has set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory_terminal import driven_screen
from weft.cli.chat.screens.screen import KeepNoted, LineSubmitted, NextMode
from weft.cli.chat.screens.terminal.key_bindings import ACTIONS, KeyBindings, shown_key
from weft.cli.chat.screens.terminal_screen import ScreenSettings
from weft.cli.keys import CHAT_KEYS
from weft.config.setting_keys import KEYS
from weft.errors import UsageError

ALT_K, ALT_N, ALT_P, CTRL_T, F2 = "\x1bk", "\x1bn", "\x1bp", "\x14", "\x1bOQ"


@pytest.mark.anyio
async def test_keys_that_are_set_do_it_and_the_list_of_keys_names_them(tmp_path: Path) -> None:
    bindings = KeyBindings({"keep": "alt+n", "model": "F2 ctrl+t", "next_mode": ""})
    settings = ScreenSettings(bindings=bindings)
    async with driven_screen(tmp_path, rows=60, settings=settings) as driven:
        await driven.type(ALT_N)
        await driven.type(F2)
        await driven.type(CTRL_T)
        assert driven.sent() == [KeepNoted(), LineSubmitted("/model"), LineSubmitted("/model")]
        await driven.type(ALT_K)
        await driven.type(ALT_P)
        await driven.type("\x1b[Z")
        assert driven.sent() == []
        await driven.type("?")
        shown = driven.terminal.text
        assert "Alt+N       keep what was noted" in shown
        assert "F2, Ctrl+T  model" in shown or "F2          model" in shown
        assert "–           to-do list" in shown
        assert driven.screen.keep_key == "Alt+N"
        assert driven.screen.key_names["Alt+P"] == "F2, Ctrl+T"


@pytest.mark.anyio
async def test_what_is_not_named_keeps_its_keys(tmp_path: Path) -> None:
    settings = ScreenSettings(bindings=KeyBindings({"keep": "alt+n"}))
    async with driven_screen(tmp_path, settings=settings) as driven:
        await driven.type("\x1b[Z")
        assert driven.sent() == [NextMode()]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"kep": "alt+n"}, "chat.keys: there is no action 'kep'; did you mean 'keep'?"),
        (
            {"keep": "hyper+n"},
            "chat.keys: keep has the key 'hyper+n', which is none; keys are written as ctrl+x, "
            "alt+x, shift+tab or f2",
        ),
        (
            {"keep": "ctrl+"},
            "chat.keys: keep has the key 'ctrl+', which is none; keys are written as ctrl+x, "
            "alt+x, shift+tab or f2",
        ),
        ({"keep": "k"}, "chat.keys: 'k' cannot be the key of keep: it has its own use"),
        ({"keep": "ctrl+c"}, "chat.keys: 'ctrl+c' cannot be the key of keep: it has its own use"),
        ({"keep": "enter"}, "chat.keys: 'enter' cannot be the key of keep: it has its own use"),
        (
            {"keep": "alt+n", "model": "Alt+N"},
            "chat.keys: Alt+N is set for keep and for model; choose one",
        ),
    ],
)
def test_what_cannot_be_a_key_is_said_in_one_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        KeyBindings(given)
    assert str(refused.value) == sentence


def test_every_action_is_in_the_list_of_keys_and_in_the_setting() -> None:
    assert {action.shown for action in ACTIONS.values()} <= {key.name for key in CHAT_KEYS}
    for name, action in ACTIONS.items():
        assert name in KEYS["chat.keys"].about
        assert action.shown.startswith(shown_key(action.keys[0]))
    assert KeyBindings().names == {}
