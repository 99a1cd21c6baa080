"""The line protocol: events to lines, lines to messages."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.weft_program import kinds
from weft.api.results import Result
from weft.errors import UsageError
from weft.events import (
    AnswerRestarted,
    Event,
    LlmRetry,
    NewMessage,
    SystemNote,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    ToolComplete,
    TurnWaiting,
    TurnWoken,
    WaitSubject,
)
from weft.events.facts import FinishReason
from weft.ids import CallUid, NodeId, SessionId, TurnId, WaitId
from weft.messages import Image, Node, Text, Thinking, ToolCall, ToolResult, Usage
from weft.protocol.stream_json import SUBTYPES, StreamJsonEncoder, parts_of, read_line

NODE, CALL = NodeId("nod_1"), CallUid("cal_1")


def encoded(*events: Event, partials: bool = True) -> list[dict[str, Any]]:
    encoder = StreamJsonEncoder("ses_1", partials=partials)
    return [line for event in events for line in encoder.lines(event)]


def answer(*parts: Any) -> NewMessage:
    return NewMessage(
        node=Node(id=NODE, role="assistant", parts=parts, model="a:b", usage=Usage(input_tokens=5))
    )


def test_a_turn_that_waits_says_so_and_what_woke_it() -> None:
    wait, turn = WaitId("wai_1"), TurnId("trn_1")
    on = WaitSubject(kind="command", name="bg_1", text="npm run dev")
    waiting, woken = encoded(
        TurnWaiting(wait_id=wait, turn_id=turn, on=on, until=9.5, node=NODE, call_uid=CALL),
        TurnWoken(wait_id=wait, turn_id=turn, by="time"),
        partials=False,
    )
    assert (waiting["type"], waiting["subtype"], waiting["wait_id"]) == (
        "system",
        "turn_waiting",
        "wai_1",
    )
    assert (waiting["on"], waiting["command"], waiting["until"]) == ("command", "bg_1", 9.5)
    assert waiting["tool_use_id"] == "cal_1"
    assert (woken["subtype"], woken["wait_id"], woken["by"]) == ("turn_woken", "wai_1", "time")


def test_an_answer_with_a_call_and_its_result_are_messages() -> None:
    call = ToolCall(call_uid=CALL, name="read", args={"path": "a"})
    said, result = encoded(
        answer(Thinking(text="hm", signature="s"), Text(text="hi"), call),
        ToolComplete(call_uid=CALL, node=NODE, result=ToolResult(call_uid=CALL, text="x")),
        partials=False,
    )
    assert said["message"]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "cal_1", "name": "read", "input": {"path": "a"}},
    ]
    assert said["message"]["stop_reason"] == "tool_use"
    assert said["message"]["usage"]["input_tokens"] == 5
    assert said["session_id"] == "ses_1"
    assert result["message"]["content"] == [
        {"type": "tool_result", "tool_use_id": "cal_1", "content": "x", "is_error": False}
    ]


def test_partials_are_a_whole_message_in_events() -> None:
    lines = encoded(
        ThinkingDelta(node_id=NODE, offset=0, text="hm"),
        TextDelta(node_id=NODE, offset=0, text="a"),
        TextDelta(node_id=NODE, offset=1, text="b"),
        ToolArgsDelta(node_id=NODE, index=0, tool_name="read", text=""),
        ToolArgsDelta(node_id=NODE, index=0, tool_name="read", text="{}"),
        answer(Text(text="ab"), ToolCall(call_uid=CALL, name="read")),
    )
    events = [line["event"] for line in lines if line["type"] == "stream_event"]
    assert [(event["type"], event.get("index")) for event in events] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert lines[-1]["type"] == "assistant", "the whole message comes behind its pieces"


def test_without_partials_pieces_say_nothing() -> None:
    assert encoded(TextDelta(node_id=NODE, offset=0, text="a"), partials=False) == []


def test_an_answer_that_begins_again_begins_a_new_message() -> None:
    lines = encoded(
        TextDelta(node_id=NODE, offset=0, text="a"),
        AnswerRestarted(node_id=NODE),
        TextDelta(node_id=NODE, offset=0, text="b"),
    )
    starts = [line for line in lines if line.get("event", {}).get("type") == "message_start"]
    assert len(starts) == 2
    assert "system/answer_restarted" in kinds(lines)


def test_retries_and_notes_are_system_lines_and_the_models_notes_are_not() -> None:
    lines = encoded(
        LlmRetry(attempt=1, wait_ms=10, reason="busy"),
        SystemNote(text="hear"),
        SystemNote(text="psst", to_model=True),
    )
    assert kinds(lines) == ["system/api_retry", "system/informational"]


def test_a_denied_call_is_in_the_result() -> None:
    encoder = StreamJsonEncoder("ses_1")
    encoder.lines(answer(ToolCall(call_uid=CALL, name="shell", args={"command": "ls"})))
    refused = ToolResult(call_uid=CALL, text="Denied.", is_error=True, status="denied")
    encoder.lines(ToolComplete(call_uid=CALL, node=NODE, result=refused))
    line = encoder.result(Result(text="", finish_reason="stop", session_id=SessionId("ses_1")))
    assert line["permission_denials"] == [
        {"tool_name": "shell", "tool_use_id": "cal_1", "tool_input": {"command": "ls"}}
    ]


# A Literal has them.
@pytest.mark.parametrize("reason", FinishReason.__args__)  # type: ignore[attr-defined]
def test_every_reason_to_end_has_its_subtype(reason: Any) -> None:
    result = Result(text="x", finish_reason=reason, session_id=SessionId("s"), detail="why")
    line = StreamJsonEncoder("s").result(result)
    assert line["subtype"] == SUBTYPES.get(reason, "error_during_execution")
    assert line["is_error"] == (reason not in ("stop", "submitted"))
    assert line["terminal_reason"] == reason
    assert ("error" in line) == line["is_error"]


def test_messages_come_in_as_text_or_blocks() -> None:
    line = read_line(b'{"type":"user","message":{"role":"user","content":"hi"}}')
    assert parts_of(line) == (Text(text="hi"),)
    line = read_line(
        b'{"type":"user","message":{"content":[{"type":"text","text":"hi"},{"type":"image",'
        b'"source":{"type":"base64","media_type":"image/png","data":"QQ=="}}]}}'
    )
    assert parts_of(line) == (Text(text="hi"), Image(media_type="image/png", data="QQ=="))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"nonsense", "not what was expected"),
        (b'{"message": 1}', "not what was expected"),
        (b"\xff", "not what was expected"),
        (b'{"type":"user","message":{"content":[{"type":"video"}]}}', "'video'"),
    ],
)
def test_what_is_not_of_the_protocol_is_refused_in_a_sentence(line: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parts_of(read_line(line))
