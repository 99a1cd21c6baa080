"""Seed messages: a conversation that a program hands in, as the facts of a new session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.errors import UsageError
from weft.events import Fact, NewMessage, ToolComplete
from weft.ids import CallUid, NodeId, new_call_uid, new_node_id
from weft.messages import Node, Part, Text, ToolCall, ToolResult, clean_text, clean_value


class _Call(msgspec.Struct):
    name: str
    args: dict[str, Any] = {}
    id: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str = ""
    tool_calls: list[_Call] = []
    tool_call_id: str | None = None
    is_error: bool = False


def seed_facts(messages: Sequence[Any], now: float) -> list[Fact]:
    """The facts that a list of messages (role, content, tool_calls, tool_call_id) becomes.

    Raises:
        UsageError: a message is not of that form, or a tool message answers no call before it.
    """
    facts: list[Fact] = []
    parent: NodeId | None = None
    calls: dict[str, tuple[CallUid, NodeId]] = {}
    for place, given in enumerate(messages):
        try:
            message = msgspec.convert(_plain(given), _Message, from_attributes=True)
        except msgspec.ValidationError as error:
            raise UsageError(f"message {place} is not right: {error}") from error
        if message.role == "tool":
            facts.append(_result(message, calls, place))
            continue
        node = _node(message, parent, now, place)
        for call, part in zip(message.tool_calls, node.calls, strict=True):
            # Under the caller's id: two vendors may use the same one, so that the log has ids of
            # its own.
            calls[call.id] = (part.call_uid, node.id)
        facts.append(NewMessage(node=node))
        parent = node.id
    return facts


def _plain(given: Any) -> Any:
    return clean_value(msgspec.to_builtins(given) if isinstance(given, msgspec.Struct) else given)


def _node(message: _Message, parent: NodeId | None, now: float, place: int) -> Node:
    if message.role not in ("user", "assistant", "system"):
        raise UsageError(f"message {place} has no role that is known: {message.role!r}")
    parts: list[Part] = [Text(text=clean_text(message.content))] if message.content else []
    parts += [
        ToolCall(call_uid=new_call_uid(now), name=call.name, args=call.args)
        for call in message.tool_calls
    ]
    return Node(
        id=new_node_id(now),
        role=message.role,  # type: ignore[arg-type]  # checked just above
        parts=tuple(parts),
        parent=parent,
        metadata={"seeded": True},
    )


def _result(
    message: _Message, calls: Mapping[str, tuple[CallUid, NodeId]], place: int
) -> ToolComplete:
    if message.tool_call_id is None or message.tool_call_id not in calls:
        raise UsageError(f"message {place} answers no call before it: {message.tool_call_id!r}")
    call_uid, node = calls[message.tool_call_id]
    result = ToolResult(
        call_uid=call_uid, text=clean_text(message.content), is_error=message.is_error
    )
    return ToolComplete(call_uid=call_uid, node=node, result=result, is_error=message.is_error)
