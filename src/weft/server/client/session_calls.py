"""The calls of a session as operations of a server: which one, under which names, and what comes
back.

Arguments are bound by the signature of `weft.Session` itself, so a call looks the same on both
sides, positional arguments and mistakes in them included.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from weft.api import Session
from weft.errors import UsageError
from weft.server.client.server_link import BY_NAME
from weft.server.operations import OPERATIONS

CALLABLES: Final = ("ask", "ask_read")
"""Arguments that cannot travel: they stay in the process that has them."""
ELSEWHERE: Final = "works in the process that has the session, and not through a server"
WITHOUT_ROUTE: Final = {
    "continue_and_wait": "does not go through a server: use continue_turn() and the events",
    **dict.fromkeys(("files_at", "write_files", "open_at"), ELSEWHERE),
}
"""Public calls of a session that no operation stands for, and what to say of them."""


def _value(answer: Any) -> Any:
    return answer.value


def _text(answer: Any) -> str:
    return str(answer.text)


def _pair(answer: Any) -> Any:
    return answer.steering, answer.follow_up


class CallShape(msgspec.Struct, frozen=True, kw_only=True):
    """How one call of a session is made."""

    operation: str
    renamed: Mapping[str, str] = {}
    """Parameters that the operation has under another name."""
    fixed: Mapping[str, str] = {}
    """What the operation needs besides."""
    answer: Callable[[Any], Any] = lambda answer: answer
    """The answer of the operation, as the API gives it."""


_QUEUED: Final = {"entry_id": "entry"}
_BRANCH: Final = {"name_or_index": "branch"}
_MESSAGE: Final = {"message_id": "node"}
_PIN: Final = {"mark": "pin"}
SHAPES: Final[dict[str, CallShape]] = {
    "branch_at": CallShape(operation="branch_at", renamed={"node_or_index": "at"}),
    "cancel_wait": CallShape(operation="cancel_wait", renamed={"id": "wait"}),
    "checkpoint": CallShape(operation="checkpoint", answer=_text),
    "cycle_model": CallShape(operation="cycle_model", answer=_value),
    "cycle_thinking_level": CallShape(operation="cycle_thinking_level", answer=_value),
    "delete_branch": CallShape(operation="delete_branch", renamed=_BRANCH),
    "edit_queued": CallShape(operation="edit_queued", renamed=_QUEUED),
    "get_commands": CallShape(operation="get_commands", answer=lambda found: found.names),
    "get_mode": CallShape(operation="get_mode", answer=_value),
    "get_provider": CallShape(operation="get_provider", answer=_value),
    "get_queued_messages": CallShape(operation="get_queued_messages", answer=_pair),
    "get_status": CallShape(operation="get_status", answer=_value),
    "kill_background": CallShape(
        operation="kill_background", renamed={"background_id": "background"}
    ),
    "list_commands": CallShape(operation="get_commands", answer=lambda found: found.markdown),
    "list_skills": CallShape(
        operation="list_skills", answer=lambda found: (found.all, found.active)
    ),
    "exclude": CallShape(operation="exclude", renamed=_MESSAGE),
    "include": CallShape(operation="include", renamed=_MESSAGE),
    "pin": CallShape(operation="mark", renamed={"message_id": "node"}, fixed=_PIN),
    "recall_queues": CallShape(operation="recall_queues", answer=_pair),
    "remove_queued": CallShape(operation="remove_queued", renamed=_QUEUED),
    "rename_branch": CallShape(operation="rename_branch", renamed={**_BRANCH, "new_name": "name"}),
    "summarize": CallShape(operation="summarize", answer=lambda made: (made.text, made.path)),
    "summarize_branch": CallShape(operation="summarize_branch", answer=_text),
    "switch_branch": CallShape(operation="switch_branch", renamed=_BRANCH),
    "toggle_all_tool_collapses": CallShape(operation="toggle_tool_collapse", answer=_value),
    "toggle_tool_collapse": CallShape(operation="toggle_tool_collapse", answer=_value),
    "unpin": CallShape(operation="unmark", renamed={"message_id": "node"}, fixed=_PIN),
}
"""Calls whose names or answers differ on the wire; the others are as the table of operations says.
"""


class BoundCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call with its arguments, sorted by where they go."""

    operation: str
    path: dict[str, str]
    body: dict[str, Any]
    query: dict[str, Any]
    nulls: tuple[str, ...]
    answer: Callable[[Any], Any]


@cache
def shape_of(name: str) -> CallShape | None:
    """How a call of a session is made; None where no operation stands for it."""
    if name in SHAPES:
        return SHAPES[name]
    called = f"session.{name}"
    found = next((each.name for each in OPERATIONS if called in each.calls), None)
    return None if found is None else CallShape(operation=found)


def bound(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> BoundCall:
    """A call of a session, ready to be sent.

    Raises:
        TypeError: the arguments are not those of the call.
        UsageError: an argument cannot travel.
    """
    shape = shape_of(name)
    assert shape is not None
    operation = BY_NAME[shape.operation]
    given = _arguments(name, args, options)
    sent = {**shape.fixed, **{shape.renamed.get(each, each): given[each] for each in given}}
    parts = re.findall(r"\{(\w+)", operation.path)
    path = {part: str(sent.pop(part)) for part in parts if part in sent}
    return BoundCall(
        operation=shape.operation,
        path=path,
        body=sent if operation.changes else {},
        query={} if operation.changes else {each: _asked(sent[each]) for each in sent},
        # Only what has no default of its own may be meant as nothing: `rewind(None)`.
        nulls=tuple(each for each in sent if sent[each] is None and _is_needed(operation, each)),
        answer=shape.answer,
    )


def _arguments(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    signature = inspect.signature(getattr(Session, name))
    try:
        found = signature.bind(None, *args, **options).arguments
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None
    found.pop("self", None)
    given = {**found, **found.pop("options", {})}
    for each in CALLABLES:
        if given.pop(each, None) is not None:
            raise UsageError(f"{each}= is a callable, which cannot travel to a server")
    return given


def _is_needed(operation: Any, name: str) -> bool:
    fields = () if operation.body is None else msgspec.structs.fields(operation.body)
    return any(field.name == name and field.required for field in fields)


def _asked(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value
