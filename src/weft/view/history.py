"""A stored conversation as view blocks, for a screen that joins late."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ids import CallUid
from weft.messages import ToolResult
from weft.view.blocks import AnswerBlock, AnyBlock, NoteBlock, ToolCard, UserBlock
from weft.view.snapshot import HistoryMessage

CUT_OFF = NoteBlock(text="the answer was cut off here", level="quiet")


def history_blocks(messages: Iterable[HistoryMessage]) -> list[AnyBlock]:
    """A stored conversation as blocks."""
    blocks: list[AnyBlock] = []
    calls: dict[str, tuple[str, dict[str, object]]] = {}
    for message in messages:
        match message.role:
            case "user":
                blocks.append(UserBlock(text=message.content))
            case "assistant":
                if message.content.strip():
                    blocks.append(AnswerBlock(text=message.content))
                if message.is_partial:
                    blocks.append(CUT_OFF)
                calls |= {call["id"]: (call["name"], call["args"]) for call in message.tool_calls}
            case "tool":
                # The call may stand before the first message that is shown: then only its result is
                # known.
                name, args = calls.get(message.tool_call_id or "", ("tool", {}))
                result = ToolResult(
                    call_uid=CallUid(message.tool_call_id or ""),
                    text=message.content,
                    is_error=message.is_error,
                )
                blocks.append(ToolCard(name=name, args=args, result=result))
            case _:
                blocks.append(NoteBlock(text=message.content))
    return blocks
