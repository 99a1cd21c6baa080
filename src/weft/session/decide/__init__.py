"""Pure decisions: what each command does to a session, as facts and an answer.

Nothing here waits, so a decision sees one state and no other command comes between.  What must
happen besides (start the turn, compact) is named in `DecidedCommand.then` and done by the actor,
after the facts are durable.  Each group of commands has a module and a closed union of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from weft.errors import UsageError
from weft.session.commands import Command
from weft.session.decide.base import DecidedCommand, DecisionContext
from weft.session.decide.boundaries import BoundaryCommand, decide_boundary
from weft.session.decide.line import LineCommand, decide_line
from weft.session.decide.prompts import PromptCommand, decide_prompt, start_follow_up
from weft.session.decide.queue import QueueCommand, decide_queue
from weft.session.decide.records import RecordCommand, decide_record
from weft.session.decide.requests import RequestCommand, decide_request
from weft.session.decide.settings import SettingCommand, decide_setting
from weft.state import SessionState

__all__ = ["DECIDERS", "DecidedCommand", "DecisionContext", "decide", "start_follow_up"]

DECIDERS: Final[
    Mapping[type[Command[Any]], Callable[[Any, SessionState, DecisionContext], DecidedCommand]]
] = {
    **dict.fromkeys(get_args(PromptCommand), decide_prompt),
    **dict.fromkeys(get_args(QueueCommand), decide_queue),
    **dict.fromkeys(get_args(RequestCommand), decide_request),
    **dict.fromkeys(get_args(SettingCommand), decide_setting),
    **dict.fromkeys(get_args(LineCommand), decide_line),
    **dict.fromkeys(get_args(BoundaryCommand), decide_boundary),
    **dict.fromkeys(get_args(RecordCommand), decide_record),
}
"""Which function decides which command; the actor's own commands (abort, stop, …) are not here."""


def decide(command: Command[Any], state: SessionState, context: DecisionContext) -> DecidedCommand:
    """What `command` does to a session in this state.

    Raises:
        SessionBusy, NoPendingRequest, UsageError: it cannot be done; nothing happens.
    """
    decider = DECIDERS.get(type(command))
    if decider is None:
        raise UsageError(f"no session knows the command {type(command).__name__}")
    return decider(command, state, context)
