"""What a wait is for, in words.  Apart from the command, which loads a server: the chat needs these
with its first slash command.
"""

from __future__ import annotations

from weft.api import SessionWait
from weft.api.unattended.times import shown_duration
from weft.view import count_of


def wait_words(wait: SessionWait) -> str:
    """What a wait is for, in one line."""
    if wait.kind != "schedule":
        return wait.text
    words = wait.text
    if wait.every is not None:
        most = f" of {wait.max_rounds}" if wait.max_rounds is not None else ""
        words += f" (every {shown_duration(wait.every)}, {count_of(wait.rounds, 'round')}{most})"
    if not wait.is_sealed:
        words += " (not allowed here: cancel it, and schedule it again)"
    return words
