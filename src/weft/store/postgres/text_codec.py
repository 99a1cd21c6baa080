"""Text as Postgres takes it: its `text` has no NUL, so that one is escaped in names and kinds.

Prefixes stay prefixes, and two names that differ are stored differently.
"""

from __future__ import annotations


def stored(text: str) -> str:
    """`text` without NUL."""
    if "\\" not in text and "\0" not in text:
        return text
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def loaded(text: str) -> str:
    """What was `stored`."""
    if "\\" not in text:
        return text
    # Split at escaped backslashes first: the `0` behind one is an ordinary digit.
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))
