"""The words of permission modes: the same in the status line, in lists, in help and in the docs.

Flags, settings and the wire have values of their own (`accept_edits`), which stay.
"""

from __future__ import annotations

from weft.cli.options import MODE_WORDS

MODE_DETAILS = {
    "default": "before edits and commands",
    "accept_edits": "asks before commands only",
    "plan": "changes nothing",
    "auto": "runs sandboxed commands without asking",
    "bypass": "never asks",
}


def described_mode(value: str) -> str:
    """`edits allowed (accept_edits)`; the value alone where it has no words."""
    return f"{MODE_WORDS[value]} ({value})" if value in MODE_WORDS else value


def mode_of_words(typed: str) -> str:
    """The value of a mode that the user names by its words; anything else as it is."""
    wanted = " ".join(typed.lower().split())
    return next((value for value, words in MODE_WORDS.items() if words == wanted), typed)
