"""The keys of the view: defaults, and what a user sets."""

from __future__ import annotations

import pytest

from weft.cli.loom_view.key_map import ACTIONS, KeyMap, shown_key
from weft.errors import UsageError


def test_no_key_does_two_things_by_default() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


@pytest.mark.parametrize(
    ("key", "action"),
    [
        *(("h", "parent"), ("l", "child"), ("j", "next_sibling"), ("k", "previous_sibling")),
        *(("J", "next_fork"), ("K", "previous_fork"), ("space", "generate"), ("1", "generate_1")),
        *(("9", "generate_9"), ("s-space", "generate_short"), ("!", "short_1"), ("(", "short_9")),
        *(("escape", "stop"), ("H", "word_left"), ("L", "word_right"), ("T", "tokens")),
        *(("e", "edit"), ("E", "editor"), ("R", "revisions"), ("u", "undo"), ("D", "delete")),
        *(("b", "bookmark"), ("B", "next_bookmark"), ("g", "rate"), ("/", "search")),
        *(("v", "tree"), ("Z", "hoist"), ("=", "compare"), ("w", "weave"), ("m", "models")),
        *(("p", "prompt"), ("c", "context"), ("r", "reading"), ("x", "coding"), ("?", "help")),
        ("q", "quit"),
    ],
)
def test_the_keys_are_those_of_the_drawing(key: str, action: str) -> None:
    assert KeyMap().action(key) == action


def test_an_action_gets_other_keys_and_loses_its_own() -> None:
    keys = KeyMap({"next_fork": "f ctrl+n", "quit": "Q"})
    assert keys.action("f") == keys.action("c-n") == "next_fork"
    assert keys.action("J") == ""
    assert (keys.action("Q"), keys.action("q")) == ("quit", "")
    assert keys.shown("next_fork") == "f"


def test_a_key_that_is_taken_is_taken_away_from_the_action_that_had_it() -> None:
    keys = KeyMap({"tree": "j"})
    assert keys.action("j") == "tree"
    assert keys.action("down") == "next_sibling"


@pytest.mark.parametrize(
    ("written", "key"),
    [
        *(("x", "x"), ("X", "X"), ("space", "space"), ("Esc", "escape"), ("ctrl+x", "c-x")),
        *(("Ctrl+X", "c-x"), ("alt+x", "m-x"), ("shift+tab", "s-tab"), ("shift+j", "J")),
        *(("c-x", "c-x"), ("ctrl+alt+x", "m-c-x"), ("+", "+"), ("-", "-"), ("F1", "f1")),
        ("ä", "ä"),
    ],
)
def test_keys_are_written_as_users_write_them(written: str, key: str) -> None:
    assert KeyMap({"tree": written}).action(key) == "tree"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nextfork": "f"}, "no action 'nextfork'; did you mean 'next_fork'?"),
        ({"tree": "hyper+x"}, "'hyper+x', which is none"),
        ({"tree": "xy"}, "'xy', which is none"),
        ({"tree": "x", "quit": "y x"}, "'x' is set for tree and for quit"),
    ],
)
def test_a_wrong_key_or_action_is_one_sentence(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        KeyMap(given)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_action_can_be_left_without_a_key() -> None:
    keys = KeyMap({"delete": ""})
    assert keys.action("D") == ""
    assert keys.shown("delete") == ""


def test_keys_are_shown_as_they_are_labelled() -> None:
    shown = ("Space", "Ctrl+D", "Shift+Tab", "J", "PgUp", "↑")
    assert tuple(map(shown_key, ("space", "c-d", "s-tab", "J", "pageup", "up"))) == shown
