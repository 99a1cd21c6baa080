"""Key bindings of the chat: which keys do what, by default and as the user has set them.

The setting `chat.keys` names actions and their keys; what it does not name stays as it is.  A key
that is given to one action is taken from the others.  Keys that every input needs (Enter, Esc, the
arrows, Ctrl+C and Ctrl+D) stay what they are, and letters are for typing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.errors import UsageError, did_you_mean


class KeyAction(NamedTuple):
    """What a key can do."""

    keys: tuple[str, ...]
    """As the decoder names them."""
    shown: str
    """Its row in the list of keys."""


ACTIONS: Final[dict[str, KeyAction]] = {
    "new_line": KeyAction(("c-j", "s-enter"), "Ctrl+J, \\ Enter"),
    "send_later": KeyAction(("m-enter",), "Alt+Enter"),
    "take_back": KeyAction(("m-up",), "Alt+Up"),
    "next_mode": KeyAction(("s-tab",), "Shift+Tab"),
    "search": KeyAction(("c-r",), "Ctrl+R"),
    "editor": KeyAction(("c-g",), "Ctrl+G"),
    "unfold": KeyAction(("c-o",), "Ctrl+O"),
    "todo": KeyAction(("c-t",), "Ctrl+T"),
    "model": KeyAction(("m-p",), "Alt+P"),
    "keep": KeyAction(("m-k",), "Alt+K"),
    "effort": KeyAction(("m-t",), "Alt+T"),
    "picture": KeyAction(("c-v", "m-v"), "Ctrl+V"),
    "stash": KeyAction(("c-s",), "Ctrl+S"),
}
_FIXED: Final = frozenset({"c-c", "c-d", "c-l", "c-m", "c-i", "c-x", "c-z", "c-["})
_NAMED: Final = frozenset(
    {
        *("enter", "tab", "space", "backspace", "delete", "insert", "home", "end"),
        *("pageup", "pagedown", "up", "down", "left", "right", "f1", "f2", "f4"),
    }
)
_ALONE: Final = frozenset({"insert", "f1", "f2", "f4"})
"""Keys that do nothing in an input by themselves."""
_MODIFIERS: Final = {"alt": "m", "ctrl": "c", "shift": "s"}
"""In the order in which the decoder puts them."""
_FORM: Final = "keys are written as ctrl+x, alt+x, shift+tab or f2"


class KeyBindings:
    """Which key does what."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        """`given` are actions and their keys, with spaces between several.

        Raises:
            UsageError: an action or a key is not known, or one key is to do two things.
        """
        own = {name: _keys_of(name, keys) for name, keys in (given or {}).items()}
        self.actions: dict[str, str] = {}
        """By key."""
        for name, keys in own.items():
            for key in keys:
                if self.actions.setdefault(key, name) != name:
                    raise UsageError(
                        f"chat.keys: {shown_key(key)} is set for {self.actions[key]} and for "
                        f"{name}; choose one"
                    )
        for name, action in ACTIONS.items():
            for key in () if name in own else action.keys:
                self.actions.setdefault(key, name)
        self.names: dict[str, str] = {
            ACTIONS[name].shown: ", ".join(map(shown_key, keys)) or "–"
            for name, keys in own.items()
        }
        """What stands in place of the rows of the list of keys."""
        for name, action in ACTIONS.items():
            left = [key for key in action.keys if self.actions.get(key) == name]
            if name not in own and len(left) < len(action.keys):
                self.names[action.shown] = ", ".join(map(shown_key, left)) or "–"


def shown_key(key: str) -> str:
    """A key as users know it: `m-k` is Alt+K."""
    *modifiers, last = key.split("-") if not key.endswith("-") else [*key[:-1].split("-")[:-1], "-"]
    long = {short: name.capitalize() for name, short in _MODIFIERS.items()}
    return "+".join([*(long[each] for each in modifiers), last.capitalize()])


def _keys_of(name: str, keys: str) -> list[str]:
    if name not in ACTIONS:
        raise UsageError(f"chat.keys: there is no action {name!r}{did_you_mean(name, ACTIONS)}")
    return [_key(name, each) for each in keys.split()]


def _key(name: str, given: str) -> str:
    *words, last = given.casefold().split("+") if not given.endswith("+") else ["", ""]
    if not (last in _NAMED or (len(last) == 1 and last.isprintable())) or not (
        set(words) <= _MODIFIERS.keys()
    ):
        raise UsageError(f"chat.keys: {name} has the key {given!r}, which is none; {_FORM}")
    key = "".join(f"{short}-" for word, short in _MODIFIERS.items() if word in words) + last
    is_typed = len(last) == 1 and not {"ctrl", "alt"} & {*words}
    if key in _FIXED or is_typed or (not words and last not in _ALONE):
        raise UsageError(f"chat.keys: {given!r} cannot be the key of {name}: it has its own use")
    return key
