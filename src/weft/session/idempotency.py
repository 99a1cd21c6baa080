"""Idempotency: a command that comes again under the same `input_id` gets its first answer."""

from __future__ import annotations

from typing import Any

from weft.events import CommandCause
from weft.session.commands import Command, answer_of
from weft.state import InputMemory, SessionState

UNWRITTEN_REMEMBERED = 1_000
"""How many commands without a fact a session remembers; older ones are forgotten, oldest first."""


class IdempotencyCache:
    """What is remembered besides the log: commands of this life that left no fact."""

    def __init__(self) -> None:
        self._unwritten = InputMemory()

    def before(self, command: Command[Any], asked: str, state: SessionState) -> tuple[bool, Any]:
        """Whether this very command was carried out, and what it answered; `asked` is its digest.

        Raises:
            UsageError: the id belongs to another command.
        """
        # The log first: it is what other processes and later lives of this session answer from.
        for known in (state.inputs, self._unwritten):
            repeated, answer = known.earlier_answer(command.input_id, asked)
            if repeated:
                # The log keeps answers as plain data: after a restart this one has lost its type.
                return True, answer_of(command, answer)
        return False, None

    def remember(self, command: Command[Any], asked: str, answer: Any, state: SessionState) -> None:
        """Keep what a command answered that left no fact to remember it by (an abort of nothing, an
        empty queue).
        """
        # A command that left a fact is remembered by that fact, in the same append: the two cannot
        # disagree after a crash.
        if not command.input_id or command.input_id in state.inputs.causes:
            return
        known = self._unwritten.causes
        known[command.input_id] = CommandCause(
            input_id=command.input_id, digest=asked, answer=answer
        )
        # Bounded: clients give every command an id, and nearly none comes again.
        while len(known) > UNWRITTEN_REMEMBERED:
            del known[next(iter(known))]
