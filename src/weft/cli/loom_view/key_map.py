"""The keys of the view: which key does what, as it is by default and as the user has set it.

The setting `loom.keys` names actions and their keys; what it does not name stays as it is.  A key
that it takes away from another action is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weft.errors import UsageError, did_you_mean


class ViewAction(NamedTuple):
    """Something that a key does."""

    name: str
    keys: tuple[str, ...]
    about: str
    group: str


MOVES: Final = "Moving"
GROWTH: Final = "Growing"
TEXT: Final = "Text"
NODES: Final = "Nodes"
VIEWS: Final = "Views"

_SHIFTED: Final = "!@#$%^&*("
"""The digits 1 to 9 with Shift, as most keyboards have them."""

ACTIONS: Final = (
    ViewAction("parent", ("h", "left"), "to the parent", MOVES),
    ViewAction("child", ("l", "right"), "into the branch that ▸ is on", MOVES),
    ViewAction("next_sibling", ("j", "down"), "▸ to the next branch", MOVES),
    ViewAction("previous_sibling", ("k", "up"), "▸ to the branch before", MOVES),
    ViewAction("next_fork", ("J", "s-down"), "to the next fork anywhere", MOVES),
    ViewAction("previous_fork", ("K", "s-up"), "to the fork before", MOVES),
    ViewAction("first", ("home",), "to the root", MOVES),
    ViewAction("last", ("end",), "to the end of this line", MOVES),
    ViewAction("scroll_up", ("pageup",), "read further up", MOVES),
    ViewAction("scroll_down", ("pagedown",), "and down again", MOVES),
    ViewAction("generate", ("space",), "grow branches here", GROWTH),
    ViewAction("generate_short", ("s-space", "S"), "the same, 10 tokens each", GROWTH),
    *(
        ViewAction(f"generate_{number}", (str(number),), f"{number} of each model", GROWTH)
        for number in range(1, 10)
    ),
    *(
        ViewAction(f"short_{number}", (key,), f"{number} of each model, 10 tokens", GROWTH)
        for number, key in enumerate(_SHIFTED, start=1)
    ),
    ViewAction("stop", ("escape",), "stop; what has come is kept", GROWTH),
    ViewAction("word_left", ("H", "s-left"), "word cursor; then Space cuts and grows", GROWTH),
    ViewAction("word_right", ("L", "s-right"), "word cursor to the right", GROWTH),
    ViewAction("tokens", ("T",), "tokens by probability; [ ] alternative", GROWTH),
    ViewAction("models", ("m",), "models: which, how many, how long", GROWTH),
    ViewAction("edit", ("e",), "edit the text of ▸ here", TEXT),
    ViewAction("editor", ("E",), "edit the whole line in your editor", TEXT),
    ViewAction("revisions", ("R",), "earlier texts of ▸", TEXT),
    ViewAction("undo", ("u",), "undo the last change", TEXT),
    ViewAction("context", ("c",), "what models are told beside the text", TEXT),
    ViewAction("prompt", ("p",), "what each model is sent", TEXT),
    ViewAction("compare", ("=",), "mark ▸, then compare another with it", TEXT),
    ViewAction("weave", ("w",), "weave ▸ and the marked one into one", TEXT),
    ViewAction("delete", ("D",), "delete ▸ and all below (asks)", NODES),
    ViewAction("bookmark", ("b",), "bookmark ▸, or no longer", NODES),
    ViewAction("next_bookmark", ("B",), "to the next bookmark", NODES),
    ViewAction("rate", ("g",), "rate ▸: 1 to 5, 0 for none", NODES),
    ViewAction("name", ("n",), "name ▸", NODES),
    ViewAction("coding", ("x",), "make it a coding session", NODES),
    ViewAction("search", ("/",), "search", VIEWS),
    ViewAction("tree", ("v",), "the whole tree", VIEWS),
    ViewAction("hoist", ("Z",), "only what is below this node", VIEWS),
    ViewAction("reading", ("r",), "read the bookmarks in order", VIEWS),
    ViewAction("trees", ("tab",), "another tree", VIEWS),
    ViewAction("blind", ("M",), "hide or show who wrote what", VIEWS),
    ViewAction("help", ("?",), "these keys", VIEWS),
    ViewAction("quit", ("q", "c-d"), "quit", VIEWS),
)

_BY_NAME: Final = {action.name: action for action in ACTIONS}
_NAMED: Final = frozenset(
    {
        "space",
        "enter",
        "tab",
        "escape",
        "backspace",
        "delete",
        "insert",
        "home",
        "end",
        "pageup",
        "pagedown",
        "up",
        "down",
        "left",
        "right",
        "begin",
        "f1",
        "f2",
        "f4",
    }
)
_SPELLINGS: Final = {
    "ctrl": "c",
    "control": "c",
    "alt": "m",
    "meta": "m",
    "shift": "s",
    "c": "c",
    "m": "m",
    "s": "s",
}
_OTHER_NAMES: Final = {"esc": "escape", "return": "enter", "del": "delete", "ins": "insert"}
_SHOWN: Final = {
    "space": "Space",
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}
_MODIFIERS: Final = {"c": "Ctrl", "m": "Alt", "s": "Shift"}


class KeyMap:
    """What each key does."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        """`given` are actions and their keys, separated by spaces.

        Raises:
            UsageError: an action or a key is not known, or one key is to do two things.
        """
        own = {name: _keys(name, keys) for name, keys in (given or {}).items()}
        taken = _taken(own)
        self._keys: dict[str, tuple[str, ...]] = {
            action.name: own[action.name]
            if action.name in own
            else tuple(key for key in action.keys if key not in taken)
            for action in ACTIONS
        }
        self._actions = {key: name for name, keys in self._keys.items() for key in keys}

    def action(self, key: str) -> str:
        """What a key does; empty for nothing."""
        return self._actions.get(key, "")

    def shown(self, action: str) -> str:
        """The first key of an action as users know it; empty where it has none."""
        keys = self._keys[action]
        return shown_key(keys[0]) if keys else ""


def _taken(own: Mapping[str, tuple[str, ...]]) -> set[str]:
    taken: dict[str, str] = {}
    for name, keys in own.items():
        for key in keys:
            if taken.setdefault(key, name) != name:
                raise UsageError(
                    f"loom.keys: the key {key!r} is set for {taken[key]} and for {name}; choose one"
                )
    return set(taken)


def _keys(name: str, keys: str) -> tuple[str, ...]:
    if name not in _BY_NAME:
        raise UsageError(f"loom.keys: there is no action {name!r}{did_you_mean(name, _BY_NAME)}")
    return tuple(_key(name, each) for each in keys.split())


def _key(name: str, given: str) -> str:
    """A key by the name that the decoder gives it.

    Raises:
        UsageError: there is none of this name.
    """
    *modifiers, last = [given] if len(given) == 1 else _parted(given)
    folded = last.casefold()
    key = last if len(last) == 1 else _OTHER_NAMES.get(folded, folded)
    words = [_SPELLINGS.get(each.casefold(), "") for each in modifiers]
    if (len(key) != 1 and key not in _NAMED) or not all(words) or not key.isprintable():
        raise UsageError(
            f"loom.keys: {name} has the key {given!r}, which is none; "
            "keys are written as x, space, ctrl+x, alt+x or shift+tab"
        )
    if "s" in words and len(key) == 1:
        key = key.upper()
        words.remove("s")
    if "c" in words and len(key) == 1:
        key = key.lower()
    # In the order in which the decoder puts them.
    return "".join(f"{each}-" for each in "mcs" if each in words) + key


def _parted(given: str) -> list[str]:
    for mark in "+-":
        parts = given.split(mark)
        if len(parts) > 1 and all(parts):
            return parts
    return [given]


def shown_key(key: str) -> str:
    """A key as users know it: `Ctrl+D`, `Space`, `J`."""
    words = []
    while len(key) > 2 and key[1] == "-":
        words.append(_MODIFIERS[key[0]])
        key = key[2:]
    letter = key.upper() if words and len(key) == 1 else key
    return "+".join([*words, _SHOWN.get(letter, letter if len(letter) == 1 else letter.title())])
