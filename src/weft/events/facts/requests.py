"""Facts of requests to the user: permission for a tool call, a question of the model."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from weft.events.base import FactBase
from weft.ids import CallUid, NodeId, RequestId, SessionId
from weft.permissions import PermissionRule

PermissionAction: TypeAlias = Literal["allow_once", "allow_turn", "allow_always", "deny"]


class PermissionRequest(FactBase, frozen=True, tag="permission_request"):
    """A tool call waits for permission."""

    # Stays open over a restart, under the same id: any client may still answer it.
    request_id: RequestId
    call_uid: CallUid
    node: NodeId
    tool_name: str
    tool_path: str = ""
    preview: str = ""
    """Exactly what the user is shown: a command, a diff."""
    # The file may change while the user reads: without this the answer would approve a change that
    # was never shown.
    shown_hash: str = ""
    """Hash of what is shown; an answer counts for that and nothing else."""
    always_pattern: str = ""
    """The rule that "always" would grant."""
    reason: str = ""
    child: SessionId | None = None
    """The child session that asks; the answer is handed on to it."""
    outlives_turn: bool = False
    """A background child asks: the request stays open when the turn ends."""
    args: dict[str, Any] | None = None
    """The input that is asked about, where no call of `node` has it: a hook changed it, or a child
    asks."""


class PermissionResolved(FactBase, frozen=True, tag="permission_resolved"):
    """The user (or a rule, an abort, the end of the turn) answered."""

    request_id: RequestId
    action: PermissionAction
    by: str = ""
    reason: str = ""
    pattern: str = ""
    """What `allow_turn` and `allow_always` grant."""
    saved: bool = False
    """It was also saved as a rule, for later sessions on the project."""
    instead: dict[str, Any] | None = None
    """Of a `deny`: another input that the call may run with, once it has been judged like any
    other."""
    rules: tuple[PermissionRule, ...] = ()
    """What the answer allows, asks or denies from now on, for the session in this process."""


class QuestionAsked(FactBase, frozen=True, tag="question_asked"):
    """The model asks the user a question."""

    request_id: RequestId
    call_uid: CallUid
    node: NodeId
    question: str
    options: tuple[str, ...] = ()
    child: SessionId | None = None
    """The child session that asks; the answer is handed on to it."""
    outlives_turn: bool = False
    """A background child asks: the question stays open when the turn ends."""


class QuestionAnswered(FactBase, frozen=True, tag="question_answered"):
    """The answer to a question."""

    request_id: RequestId
    answer: str = ""
    by: str = ""
