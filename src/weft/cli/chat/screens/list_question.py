"""A list to pick from, as data: one shape for models, conversations, messages and the tree."""

from __future__ import annotations

import msgspec

from weft.view import AnyBlock


class ListRow(msgspec.Struct, frozen=True):
    """One thing to pick."""

    label: str
    details: tuple[str, ...] = ()
    """What stands behind the label, a column each."""
    margin: str = ""
    """What stands before the label as it is; never foreign words."""
    is_current: bool = False
    """What holds now: it is marked, and picking it changes nothing."""
    is_dim: bool = False
    words: str = ""
    """More words that typing finds it by."""
    levels: tuple[str, ...] = ()
    """What Left and Right go through while the row is picked."""
    level: str = ""
    """The one of them that holds at first."""


class ListKey(msgspec.Struct, frozen=True):
    """A key that does something with the picked row, other than Enter."""

    key: str
    """As the decoder names it: `c-d`, `space`, `tab`, `delete`."""
    does: str
    """`also as default`"""
    word: str = ""
    """The word that means it where lines are typed; else the first of what it does."""
    needs_row: bool = True
    others: tuple[str, ...] = ()
    """Keys that do the same, for hands that know them; no list names them."""

    @property
    def typed(self) -> str:
        """The word that means it where lines are typed."""
        return self.word or self.does.split()[0].casefold()


class ListQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something to pick one of.

    Typing narrows it down; so a key that does something is never a letter.
    """

    title: str
    rows: tuple[ListRow, ...]
    picked: int = 0
    words: str = ""
    """What has been typed already, when a list is opened again."""
    enter: str = ""
    """What Enter does, where that is not plain."""
    keys: tuple[ListKey, ...] = ()
    keeps: tuple[int, ...] = ()
    """Columns of the details, the one first that is the last to go when room is short; those that
    are not named go first, from the right.
    """
    about: str = ""
    """What is said of the whole list, to the right of its title."""
    empty: str = ""
    """What a list without rows says."""
    levels_label: str = ""
    """What the levels of the rows are: `Effort`."""
    peek: tuple[AnyBlock, ...] = ()
    """What the picked row holds, shown in the place of the rows; Esc and Space go back to them."""


class ListAnswer(msgspec.Struct, frozen=True):
    """What the user did with a list."""

    row: int
    """The row that was picked; -1 where there is none."""
    key: str = "enter"
    words: str = ""
    """What was typed to narrow it down."""
    level: str = ""
    """The level that was chosen for the row; empty when that was left alone."""


KEY_NAMES = {"space": "Space", "tab": "Tab", "delete": "Del", "enter": "Enter", "escape": "Esc"}


def key_name(key: str) -> str:
    """A key as users know it: `Ctrl+D`."""
    return f"Ctrl+{key[2:].upper()}" if key.startswith("c-") else KEY_NAMES.get(key, key)
