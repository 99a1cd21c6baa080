"""The chat's view: events in, finished blocks out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from weft.events import (
    AnswerRestarted,
    ContextUsage,
    Event,
    InputPromoted,
    InputQueued,
    LlmRetry,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    SessionStatus,
    SettingChanged,
    SystemNote,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    ToolComplete,
    ToolExecuting,
    ToolOutput,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from weft.ids import CallUid, EntryId, NodeId, RequestId, SessionId, TurnId
from weft.messages import File, Node, Part, Text, ToolCall, ToolResult, Usage
from weft.view import (
    AgentEnd,
    AgentsCard,
    AnswerBlock,
    AnyBlock,
    HistoryMessage,
    LookupCard,
    NoteBlock,
    QuestionBlock,
    RetryNotice,
    SessionView,
    TaskRow,
    ThinkingBlock,
    ToolCard,
    UserBlock,
    history_blocks,
    open_calls,
    take_task_event,
)
from weft.view.card_groups import AgentGroup

NODE, CALL, TURN = NodeId("nod_1"), CallUid("cal_1"), TurnId("trn_1")


def told(story: SessionView, *events: Event) -> list[AnyBlock]:
    """All blocks of these events."""
    return [block for event in events for block in story.take(event)]


def delta(text: str, offset: int = 0) -> TextDelta:
    return TextDelta(node_id=NODE, offset=offset, text=text)


def answer(text: str, *calls: ToolCall, **metadata: Any) -> NewMessage:
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else calls
    return NewMessage(node=Node(id=NODE, role="assistant", parts=parts, metadata=metadata))


def read_call() -> ToolCall:
    return ToolCall(call_uid=CALL, name="read", args={"path": "a.py"})


def completed(**fields: Any) -> ToolComplete:
    return ToolComplete(call_uid=CALL, node=NODE, result=ToolResult(call_uid=CALL, **fields))


def test_text_is_handed_out_once_block_by_block_and_the_rest_stays_in_flight() -> None:
    story = SessionView()
    assert told(story, delta("One.\n\nTw")) == [AnswerBlock(text="One.\n\n", node_id=NODE)]
    assert story.live.text == "Tw"
    assert told(story, delta("o."), answer("One.\n\nTwo.")) == [
        AnswerBlock(text="Two.", node_id=NODE)
    ]
    assert story.live.text == ""


def test_what_the_log_has_counts_where_pieces_were_missed() -> None:
    story = SessionView()
    told(story, delta("One.\n\nTw"))
    assert told(story, answer("One.\n\nTwo and more.")) == [
        AnswerBlock(text="Two and more.", node_id=NODE)
    ]
    assert told(SessionView(), answer("Never seen in flight.")) == [
        AnswerBlock(text="Never seen in flight.", node_id=NODE)
    ]


def test_an_answer_that_begins_again_is_said_and_its_text_is_void() -> None:
    story = SessionView()
    told(story, delta("Wrong"))
    assert told(story, AnswerRestarted(node_id=NODE)) == [
        NoteBlock(text="the answer starts over", level="quiet")
    ]
    assert told(story, delta("Right"), answer("Right")) == [AnswerBlock(text="Right", node_id=NODE)]


def test_reasoning_is_shown_in_flight_and_then_as_one_thought() -> None:
    story = SessionView()
    assert told(story, ThinkingDelta(node_id=NODE, offset=0, text="Hm. ")) == []
    assert story.live.thinking == "Hm. "
    assert told(story, delta("So")) == [ThinkingBlock(text="Hm. ", node_id=NODE)]
    assert story.live.thinking == ""


def test_a_call_is_written_run_and_becomes_a_card() -> None:
    story = SessionView()
    told(story, ToolArgsDelta(node_id=NODE, index=0, tool_name="read", text="{"))
    assert story.live.preparing == "read"
    told(story, answer("", read_call()))
    told(story, ToolExecuting(call_uid=CALL, node=NODE, tool_name="read", args={"path": "a.py"}))
    told(story, ToolOutput(call_uid=CALL, chunk="a\x1b[3"), ToolOutput(call_uid=CALL, chunk="1mb"))
    assert story.live.running[CALL].name == "read a.py"
    assert story.live.running[CALL].output == "a\x1b[31mb"
    assert told(story, completed(text="x")) == [], "until something else begins"
    assert story.live.lookups is not None
    (group,) = told(story, TurnFinished(turn_id=TURN, reason="provider_error"))[:1]
    assert isinstance(group, LookupCard)
    (card,) = group.cards
    assert (card.name, card.args, card.was_shown) == ("read", {"path": "a.py"}, False)
    assert story.live.running == {}


def test_what_was_asked_about_is_not_shown_twice() -> None:
    story = SessionView()
    request = PermissionRequest(
        request_id=RequestId("req_1"), call_uid=CALL, node=NODE, tool_name="edit", preview="-a\n+b"
    )
    edit = ToolCall(call_uid=CALL, name="edit", args={"path": "a.py"})
    told(story, answer("", edit), request)
    assert list(story.live.requests) == ["req_1"]
    told(story, PermissionResolved(request_id=RequestId("req_1"), action="allow_once"))
    assert story.live.requests == {}
    (card,) = told(story, completed(text="done", data={"diff": "-a\n+b"}))
    assert isinstance(card, ToolCard)
    assert card.was_shown


@pytest.mark.parametrize(("action", "word"), [("allow_turn", "turn"), ("allow_always", "session")])
def test_an_approval_that_reaches_further_is_put_on_record(action: Any, word: str) -> None:
    """On the card of the call; an agent's own card is elsewhere, so there it is a note."""
    request = PermissionRequest(
        request_id=RequestId("r"), call_uid=CALL, node=NODE, tool_name="shell"
    )
    resolved = PermissionResolved(request_id=RequestId("r"), action=action, pattern="shell(ls)")
    shell = ToolCall(call_uid=CALL, name="shell", args={"command": "ls"})
    (card,) = told(SessionView(), answer("", shell), request, resolved, completed(text="a"))
    assert isinstance(card, ToolCard)
    assert card.allowed_for == word
    of_agent = msgspec.structs.replace(request, child=SessionId("ses_1"))
    (note,) = told(SessionView(), of_agent, resolved)
    assert isinstance(note, NoteBlock)
    assert word in note.text
    assert "shell(ls)" in note.text


def test_what_waits_to_be_said_is_in_flight_until_it_is_said() -> None:
    story = SessionView()
    told(story, InputQueued(entry_id=EntryId("e"), delivery="steering", parts=(Text(text="also"),)))
    assert [(each.entry_id, each.text) for each in story.live.queue] == [("e", "also")]
    said = NewMessage(node=Node(id=NODE, role="user", parts=(Text(text="also"), File(name="a.py"))))
    assert told(story, InputPromoted(entries=(EntryId("e"),)), said) == [
        UserBlock(text="also", attached=("a.py",), node_id=NODE)
    ]
    assert story.live.queue == []


@pytest.mark.parametrize(
    ("reason", "detail", "block"),
    [
        ("stop", "", None),
        ("submitted", "", None),
        ("aborted", "", NoteBlock(text="Stopped. What should it do instead?", level="stopped")),
        (
            "provider_error",
            "it is down",
            NoteBlock(
                text="It is down",
                level="error",
                advice="Your message is kept. Enter on the empty line tries again; "
                "/model picks another.",
            ),
        ),
    ],
)
def test_the_end_of_a_turn_is_reported_when_it_was_not_a_good_one(
    reason: Any, detail: str, block: AnyBlock | None
) -> None:
    story = SessionView()
    told(story, TurnStarted(turn_id=TURN), SessionStatus(status="thinking"))
    assert story.live.is_busy
    blocks = told(story, TurnFinished(turn_id=TURN, reason=reason, detail=detail))
    assert blocks == ([] if block is None else [block])


def test_the_status_follows_the_session() -> None:
    story = SessionView()
    told(
        story,
        SettingChanged(name="model", value="a:b"),
        SettingChanged(name="permission_mode", value="plan"),
        SettingChanged(name="thinking", value="high"),
        ContextUsage(used=10, window=100),
        UsageRecorded(usage=Usage(cost_usd=0.25), model="a:b"),
        LlmRetry(attempt=1, wait_ms=2000, reason="busy"),
    )
    live = story.live
    assert (live.model, live.mode, live.effort) == ("a:b", "plan", "high")
    assert (live.context_used, live.context_window, live.cost_usd) == (10, 100, 0.25)
    assert live.retry == RetryNotice(attempt=1, wait_ms=2000, reason="busy")
    told(story, UsageRecorded(usage=Usage(), model="a:b"))
    assert live.cost_usd is None, "an unknown price makes the sum unknown"


def test_notes_for_the_model_are_not_shown_to_the_user() -> None:
    assert told(SessionView(), SystemNote(text="psst", to_model=True)) == []
    assert told(SessionView(), SystemNote(text="hear")) == [NoteBlock(text="hear", level="info")]


def test_a_stored_conversation_becomes_blocks() -> None:
    messages = [
        HistoryMessage(role="user", content="hi"),
        HistoryMessage(
            role="assistant",
            content="Let me see",
            tool_calls=({"id": "c", "name": "read", "args": {"path": "a"}},),
        ),
        HistoryMessage(role="tool", content="x", tool_call_id="c"),
        HistoryMessage(role="assistant", content="half", is_partial=True),
    ]
    blocks = history_blocks(messages)
    assert [type(block) for block in blocks] == [
        UserBlock,
        AnswerBlock,
        LookupCard,
        AnswerBlock,
        NoteBlock,
    ]
    assert isinstance(blocks[2], LookupCard)
    assert [(card.name, card.args) for card in blocks[2].cards] == [("read", {"path": "a"})]


def test_stored_results_are_shown_as_they_were() -> None:
    def shown(name: str, content: str, *, is_error: bool = True) -> list[AnyBlock]:
        calls = ({"id": "c", "name": name, "args": {"question": "Which?", "command": "ls"}},)
        result = HistoryMessage(role="tool", content=content, tool_call_id="c", is_error=is_error)
        said = HistoryMessage(role="assistant", content="", tool_calls=calls)
        return history_blocks([said, result])

    for content, status in (
        ("Denied by the user. They said: no", "denied"),
        ("Stopped while it ran. It may …", "aborted"),
        ("Interrupted: the program ended", "interrupted"),
        ("cat: no such file", "done"),
    ):
        (card,) = shown("shell", content)
        assert isinstance(card, ToolCard)
        assert card.result.status == status
    assert shown("shell", "Not run: the turn was stopped before this call.") == []
    unanswered = shown("ask", "Not run: the turn was stopped before this call.")
    assert unanswered == [QuestionBlock(text="Which?")]
    (asked,) = shown("ask", "this one", is_error=False)
    assert asked == QuestionBlock(text="Which?", answer="this one")


def test_a_stopped_call_has_the_time_that_it_ran() -> None:
    running = ToolExecuting(
        call_uid=CALL, node=NODE, tool_name="shell", args={"command": "ls"}, at=100.0
    )
    stopped = msgspec.structs.replace(completed(status="aborted", is_error=True), at=106.3)
    (card,) = told(SessionView(), running, stopped)
    assert isinstance(card, ToolCard)
    assert card.duration_ms == 6300


def test_a_result_whose_call_is_not_known_has_no_card() -> None:
    """After a fork, a join or an interruption; a card without a name says nothing."""
    late = HistoryMessage(role="tool", content="x", tool_call_id="before the page")
    assert history_blocks([late]) == []
    assert told(SessionView(), completed(text="x")) == []


def test_a_reader_that_joins_late_is_told_the_calls_without_a_result() -> None:
    calls = (
        {"id": "cal_0", "name": "read", "args": {}},
        {"id": str(CALL), "name": "edit", "args": {"path": "a"}},
    )
    messages = [
        HistoryMessage(role="assistant", content="", tool_calls=calls),
        HistoryMessage(role="tool", content="x", tool_call_id="cal_0"),
    ]
    assert open_calls(messages) == {CALL: ("edit", {"path": "a"})}
    (card,) = told(SessionView(open_calls=open_calls(messages)), completed(text="edited"))
    assert isinstance(card, ToolCard)
    assert (card.name, card.args) == ("edit", {"path": "a"})


def test_what_runs_names_a_call_that_was_made_before_we_joined() -> None:
    running = ToolExecuting(call_uid=CALL, node=NODE, tool_name="shell", args={"command": "ls"})
    (card,) = told(SessionView(), running, completed(text="a", data={"exit_code": 0}))
    assert isinstance(card, ToolCard)
    assert (card.name, card.args) == ("shell", {"command": "ls"})


def test_a_request_of_a_background_agent_stays_open_when_the_turn_ends() -> None:
    view = SessionView()
    told(
        view,
        TurnStarted(turn_id=TURN),
        PermissionRequest(
            request_id=RequestId("turns"), call_uid=CALL, node=NODE, tool_name="shell"
        ),
        PermissionRequest(
            request_id=RequestId("agents"),
            call_uid=CALL,
            node=NODE,
            tool_name="reviewer ▸ shell",
            outlives_turn=True,
        ),
        TurnFinished(turn_id=TURN, reason="stop"),
    )
    assert list(view.live.requests) == ["agents"]


def test_an_agent_that_only_reads_is_seen_at_it() -> None:
    """Its calls leave no fact when they begin."""
    row = TaskRow(name="general")
    call = ToolCall(call_uid=CallUid("c"), name="grep", args={"pattern": "def add"})
    take_task_event(row, answer("I look.", call))
    assert row.doing == 'searching "def add"'
    take_task_event(
        row, UsageRecorded(usage=Usage(input_tokens=2_000, cache_read_tokens=10_000), model="m")
    )
    assert row.tally == "12.0k tokens"


def test_agents_are_listed_in_the_order_in_which_they_were_begun() -> None:
    group = AgentGroup()
    for call_uid in ("a", "b", "c"):
        group.began(call_uid)
    assert group.ended("b", AgentEnd(name="b")) == []
    assert group.ended("c", AgentEnd(name="c")) == []
    (card,) = group.ended("a", AgentEnd(name="a"))
    assert isinstance(card, AgentsCard)
    assert [agent.name for agent in card.agents] == ["a", "b", "c"]
    assert group.flush() == []


def test_what_to_do_about_a_full_window_is_said_once() -> None:
    detail = "OpenAI says that the conversation is too long (400); /compact shortens it"
    end = TurnFinished(turn_id=TURN, reason="context_overflow")
    (note,) = told(SessionView(), msgspec.structs.replace(end, detail=detail))
    assert note == NoteBlock(text=detail, level="error", advice="/rewind goes back.")
    (bare,) = told(SessionView(), end)
    assert isinstance(bare, NoteBlock)
    assert "/compact" in bare.advice
