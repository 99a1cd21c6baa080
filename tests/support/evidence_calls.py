"""Calls with their results, as a session's line has them, for the judges of claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.evidence import EvidenceRuns, MessageCalls, Receipt, claims_in, judged_claims, runs_of
from weft.ids import CallUid, NodeId
from weft.messages import Node, ToolCall, ToolResult

NOW = "tree-now"


def call(tool: str, args: dict[str, Any], text: str = "", **data: Any) -> tuple[str, Any, str, Any]:
    """A call, what its result says, and the data of that."""
    return tool, args, text, data


def shell(
    command: str, code: int | None = 0, output: str = "", tree: str = NOW, **args: Any
) -> tuple[str, Any, str, Any]:
    """A command that ended with this code, on these files."""
    data = {} if code is None else {"exit_code": code, "tree": tree}
    return call("shell", {"command": command, **args}, output, **data)


def runs(calls: Sequence[tuple[str, Any, str, Any]], **more: Any) -> EvidenceRuns:
    """What calls show that were made one after the other, a second apart."""
    messages: list[MessageCalls] = []
    for number, (tool, args, text, data) in enumerate(calls, start=1):
        uid = CallUid(f"call_{number}")
        node = Node(
            id=NodeId(f"nod_{number}"),
            role="assistant",
            parts=(ToolCall(call_uid=uid, name=tool, args=args),),
        )
        result = ToolResult(call_uid=uid, text=text, data=data)
        messages.append((node, {uid: result}, {uid: float(number)}))
    found = runs_of(messages, "/project")
    return type(found)(**{**{f: getattr(found, f) for f in found.__struct_fields__}, **more})


def receipts(
    answer: str, *calls: tuple[str, Any, str, Any], tree: str | None = NOW, **more: Any
) -> list[Receipt]:
    """The receipts of an answer after some calls, the files being those of `tree` now."""
    return list(judged_claims(claims_in(answer), runs(calls, **more), tree))
