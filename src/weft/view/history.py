"""A stored conversation as view blocks, for a screen that joins late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from weft.ids import CallUid
from weft.messages import ToolResult
from weft.view.blocks import (
    AnswerBlock,
    AnyBlock,
    NoteBlock,
    QuestionBlock,
    ThinkingBlock,
    ToolCard,
    UserBlock,
)
from weft.view.card_groups import LookupGroup
from weft.view.snapshot import HistoryMessage

CUT_OFF = NoteBlock(text="the answer was cut off here", level="quiet")


def history_blocks(messages: Iterable[HistoryMessage]) -> list[AnyBlock]:
    """A stored conversation as blocks."""
    lookups = LookupGroup()
    return [*lookups.pass_on(_single_blocks(messages)), *lookups.flush()]


def open_calls(messages: Iterable[HistoryMessage]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The calls that have no result yet, by id, with name and arguments."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages:
        calls |= {call["id"]: (call["name"], call["args"]) for call in message.tool_calls}
        calls.pop(message.tool_call_id or "", None)
    return calls


_STATUSES: dict[str, Literal["denied", "aborted", "interrupted"]] = {
    "Denied by the user.": "denied",
    "Denied: ": "denied",
    "Stopped while it ran.": "aborted",
    "Interrupted: ": "interrupted",
}
"""How the results begin of calls that did not come to their end; stored messages say no more."""


def _result_blocks(name: str, args: dict[str, object], message: HistoryMessage) -> list[AnyBlock]:
    """A stored result, as the chat has shown it."""
    text = message.content
    was_skipped = message.is_error and text.startswith("Not run: ")
    if name == "ask" and (was_skipped or not message.is_error):
        answer = "" if was_skipped else text
        return [QuestionBlock(text=str(args.get("question", "")), answer=answer)]
    if was_skipped:
        return []
    begun = [each for each in _STATUSES if message.is_error and text.startswith(each)]
    result = ToolResult(
        call_uid=CallUid(message.tool_call_id or ""),
        text=text,
        is_error=message.is_error,
        status=_STATUSES[begun[0]] if begun else "done",
        data={"diff": message.diff} if message.diff else {},
    )
    allowed = message.allowed
    card = ToolCard(
        name=name,
        args=args,
        result=result,
        duration_ms=message.duration_ms,
        was_shown=bool(allowed),
        allowed_for="" if allowed == "call" else allowed,
        output=message.output,
    )
    return [card]


def _single_blocks(messages: Iterable[HistoryMessage]) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    calls: dict[str, tuple[str, dict[str, object]]] = {}
    for message in messages:
        match message.role:
            case "user":
                said = message.typed or message.content
                blocks.append(UserBlock(text=said, attached=message.attached))
            case "assistant":
                if message.thinking.strip():
                    blocks.append(ThinkingBlock(text=message.thinking))
                if message.content.strip():
                    blocks.append(AnswerBlock(text=message.content))
                if message.is_partial:
                    blocks.append(CUT_OFF)
                calls |= {call["id"]: (call["name"], call["args"]) for call in message.tool_calls}
            case "tool":
                # The call may stand before the first message that is shown: a card without a name
                # would say nothing.
                if (message.tool_call_id or "") not in calls:
                    continue
                name, args = calls[message.tool_call_id or ""]
                blocks += _result_blocks(name, args, message)
            case _:
                blocks.append(NoteBlock(text=message.content))
    return blocks
