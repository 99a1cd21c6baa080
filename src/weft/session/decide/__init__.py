"""Pure decisions: what each command does to a session, as facts and an answer.

Nothing here waits, so a decision sees one state and no other command comes between.  What must
happen besides (start the turn, compact) is named in `DecidedCommand.then` and done by the actor,
after the facts are durable.  Each group of commands has a closed union and a module of its own,
which is loaded with the first command of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, TypeAlias, get_args

from weft.errors import UsageError
from weft.session.commands import Command
from weft.session.decide.base import (
    BoundaryCommand,
    DecidedCommand,
    DecisionContext,
    GoalCommand,
    LineCommand,
    PromptCommand,
    QueueCommand,
    RecordCommand,
    RequestCommand,
    SettingCommand,
    UnattendedCommand,
)
from weft.session.decide.prompts import start_follow_up
from weft.state import SessionState

__all__ = ["DECIDERS", "DecidedCommand", "DecisionContext", "decide", "start_follow_up"]

Decider: TypeAlias = Callable[[Any, SessionState, DecisionContext], DecidedCommand]

DECIDERS: Final[Mapping[type[Command[Any]], tuple[str, str]]] = {
    **dict.fromkeys(get_args(PromptCommand), ("prompts", "decide_prompt")),
    **dict.fromkeys(get_args(QueueCommand), ("queue", "decide_queue")),
    **dict.fromkeys(get_args(RequestCommand), ("requests", "decide_request")),
    **dict.fromkeys(get_args(SettingCommand), ("settings", "decide_setting")),
    **dict.fromkeys(get_args(LineCommand), ("line", "decide_line")),
    **dict.fromkeys(get_args(BoundaryCommand), ("boundaries", "decide_boundary")),
    **dict.fromkeys(get_args(RecordCommand), ("records", "decide_record")),
    **dict.fromkeys(get_args(UnattendedCommand), ("unattended", "decide_unattended")),
    **dict.fromkeys(get_args(GoalCommand), ("goals", "decide_goal")),
}
"""Which function of which module decides which command; the actor's own commands (abort, stop, …)
are not here.
"""


def decide(command: Command[Any], state: SessionState, context: DecisionContext) -> DecidedCommand:
    """What `command` does to a session in this state.

    Raises:
        SessionBusy, NoPendingRequest, UsageError: it cannot be done; nothing happens.
    """
    home = DECIDERS.get(type(command))
    if home is None:
        raise UsageError(f"no session knows the command {type(command).__name__}")
    # With the first command of its group: most sessions are sent prompts and little else.
    module, name = home
    decider: Decider = getattr(import_module(f"{__name__}.{module}"), name)
    return decider(command, state, context)
