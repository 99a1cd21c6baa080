"""Branches, side chains, rollbacks and summaries of other agents, as branches and summaries of
ours; and records that are meant to do harm.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tests.support.foreign_sessions import NOW, read_as
from weft.export import ParsedDocument, restore
from weft.export.agents import ForeignSession, foreign_tree
from weft.messages import Text, ToolCall

Json = dict[str, Any]


def lines_of(found: ForeignSession) -> dict[str, list[str]]:
    """What is said on the way to each end, by the end's name: `head`, a ref, or its last words."""
    nodes = {node.id: node for node in found.document.nodes}

    def line(node_id: Any) -> list[str]:
        said: list[str] = []
        while node_id is not None:
            node = nodes[node_id]
            said.insert(0, "".join(p.text for p in node.revisions[0].parts if isinstance(p, Text)))
            node_id = node.parent
        return said

    return {"head": line(found.document.head)} | {
        ref.name: line(ref.node) for ref in found.document.refs
    }


def claude(kind: str, key: str, parent: str | None, content: Any, **more: Any) -> Json:
    message = {"role": kind, "content": content, "model": "m", "id": f"msg_{key}"}
    about = {"type": kind, "uuid": key, "parentUuid": parent, "sessionId": "s"}
    return {**about, "message": {**message, **more.pop("message", {})}, **more}


def said(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def test_a_prompt_that_was_edited_in_claude_code_is_a_branch() -> None:
    found = read_as(
        "claude",
        [
            claude("user", "a", None, "one"),
            claude("assistant", "b", "a", said("first")),
            claude("user", "c", "b", "left"),
            claude("assistant", "d", "c", said("left answer")),
            claude("user", "e", "b", "right"),
            claude("assistant", "f", "e", said("right answer")),
        ],
    )
    assert lines_of(found)["head"] == ["one", "first", "right", "right answer"]
    assert (found.messages, found.branches) == (6, 2)


def test_parts_of_one_answer_are_one_message_and_results_in_any_order_find_their_calls() -> None:
    def use(key: str) -> list[Json]:
        return [{"type": "tool_use", "id": key, "name": "Bash", "input": {"command": key}}]

    def result(key: str) -> list[Json]:
        return [{"type": "tool_result", "tool_use_id": key, "content": f"of {key}"}]

    same = {"message": {"id": "msg_1"}}
    found = read_as(
        "claude",
        [
            claude("user", "a", None, "go"),
            claude("assistant", "b", "a", use("x"), **same),
            claude("assistant", "c", "b", use("y"), **same),
            claude("user", "e", "c", result("y")),
            claude("user", "d", "b", result("x")),
            claude("assistant", "f", "d", said("done")),
        ],
    )
    assert [len(node.results) for node in found.document.nodes] == [0, 2, 0]
    assert lines_of(found)["head"] == ["go", "", "done"]


def test_what_an_agent_of_claude_code_did_hangs_on_the_call_that_began_it() -> None:
    task = [{"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look around"}}]
    answer = [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]
    side = {"isSidechain": True, "agentId": "7"}
    found = read_as(
        "claude",
        [
            claude("user", "a", None, "go"),
            claude("assistant", "b", "a", task),
            claude("user", "c", "b", answer),
            claude("assistant", "d", "c", said("done")),
            claude("user", "s1", None, "look around", **side),
            claude("assistant", "s2", "s1", said("I looked"), **side),
            claude("user", "w", None, "Warmup", isSidechain=True, agentId="8"),
            claude("assistant", "w2", "w", said("warm"), isSidechain=True, agentId="8"),
        ],
    )
    assert lines_of(found) == {
        "head": ["go", "", "done"],
        "agent: look around": ["go", "", "look around"],
    }
    assert found.branches == 2


def test_a_summary_of_claude_code_stands_for_the_line_before_it() -> None:
    found = read_as(
        "claude",
        [
            claude("user", "a", None, "one"),
            claude("assistant", "b", "a", said("first")),
            {"type": "system", "uuid": "x", "parentUuid": None, "logicalParentUuid": "b"},
            claude("user", "c", "x", "what was done", isCompactSummary=True),
            claude("user", "d", "c", "on"),
        ],
    )
    (summary,) = found.document.compactions
    assert summary.summary == "what was done"
    assert summary.upto == found.document.nodes[1].id
    assert lines_of(found)["head"] == ["one", "first", "on"]


def test_what_codex_rolled_back_is_a_branch() -> None:
    def item(role: str, text: str) -> Json:
        content = [{"type": "input_text", "text": text}]
        payload = {"type": "message", "role": role, "content": content}
        return {"type": "response_item", "payload": payload}

    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    one, two = item("user", "one"), item("user", "two")
    found = read_as("codex", [one, item("assistant", "a"), two, back, item("user", "three")])
    assert lines_of(found)["head"] == ["one", "a", "three"]
    assert found.branches == 2


def test_the_tree_and_the_labels_of_pi_are_kept() -> None:
    def entry(key: str, parent: str | None, role: str, text: str) -> Json:
        message = {"role": role, "content": text}
        return {"type": "message", "id": key, "parentId": parent, "message": message}

    found = read_as(
        "pi",
        [
            {"type": "session", "id": "s", "version": 3, "cwd": "/x"},
            entry("a", None, "user", "one"),
            entry("b", "a", "assistant", "first"),
            {"type": "label", "id": "l", "parentId": "b", "targetId": "b", "label": "good"},
            entry("c", "l", "user", "left"),
            entry("d", "b", "user", "right"),
            {
                "type": "compaction",
                "id": "k",
                "parentId": "d",
                "summary": "short",
                "firstKeptEntryId": "d",
            },
        ],
    )
    assert lines_of(found) == {"head": ["one", "first", "right"], "good": ["one", "first"]}
    assert [each.upto for each in found.document.compactions] == [found.document.nodes[1].id]


def test_agents_of_opencode_and_what_was_taken_back_are_branches() -> None:
    def message(key: str, role: str, text: str, **more: Any) -> list[Json]:
        part = {"type": "text", "text": text}
        return [{"message": {"id": key, "role": role, **more}}, {"part": part}]

    state = {"status": "completed", "output": "seen", "metadata": {"sessionId": "ses_2"}}
    call = {"part": {"type": "tool", "tool": "task", "callID": "1", "state": state}}
    found = read_as(
        "opencode",
        [
            {"session": {"id": "ses_1", "title": "T", "revert": {"messageID": "m3"}}},
            *message("m1", "user", "go"),
            *message("m2", "assistant", "asking"),
            call,
            *message("m3", "user", "no"),
            {"session": {"id": "ses_2", "title": "helper", "parent_id": "ses_1"}},
            *message("m4", "user", "look around"),
        ],
    )
    assert lines_of(found) == {
        "head": ["go", "asking"],
        "taken back": ["go", "asking", "no"],
        "helper": ["go", "asking", "look around"],
    }


def test_a_call_without_a_result_is_said_to_be_interrupted() -> None:
    use = [{"type": "tool_use", "id": "x", "name": "Bash", "input": {"command": "make"}}]
    found = read_as("claude", [claude("user", "a", None, "go"), claude("assistant", "b", "a", use)])
    (result,) = found.document.nodes[1].results
    assert (result.status, result.is_error, found.unanswered) == ("interrupted", True, 1)


VALUES: list[Any] = [None, True, -1, 1e400, "\ud800", "x" * 10, [], [[]], {}, {"type": "text"}]


@pytest.mark.parametrize("agent", ["claude", "codex", "pi", "opencode"])
def test_no_record_is_so_odd_that_it_stops_an_import(agent: str) -> None:
    keys = ("type", "message", "payload", "content", "uuid", "id", "timestamp", "session", "part")
    kinds = ("user", "assistant", "message", "response_item", "event_msg", "session", "summary")
    odd = [{key: value} for key, value in itertools.product(keys, VALUES)]
    odd += [
        {"type": kind, key: value, "uuid": "u", "id": "u"}
        for kind, key, value in itertools.product(kinds, keys, VALUES)
    ]
    deep: Any = {"type": "message", "role": "user", "content": "deep"}
    odd += [{"type": kind, "message": deep, "payload": deep} for kind in kinds]
    found = read_as(agent, odd)
    restore(ParsedDocument(found.document, ()), "odd")


PICTURE = {
    "type": "image",
    "source": {"media_type": {}, "data": "aaaa"},
    "mimeType": [],
    "data": "aaaa",
}


@pytest.mark.parametrize(
    ("agent", "record"),
    [
        ("claude", claude("assistant", "b", "a", [{"type": "tool_use", "id": "x", "name": []}])),
        ("claude", claude("user", "b", "a", [PICTURE])),
        ("pi", {"type": "message", "id": "b", "parentId": {}, "message": {"role": "user"}}),
        ("pi", {"type": "message", "id": "b", "message": {"role": "user", "content": [PICTURE]}}),
        ("opencode", {"message": {"id": "b", "role": "user", "time": {"created": 10**400}}}),
    ],
)
def test_a_value_of_any_kind_may_stand_where_a_text_should(agent: str, record: Json) -> None:
    read_as(agent, [record])


def test_no_time_of_a_record_is_later_than_the_import() -> None:
    """A session of the year 9999 would be the newest for ever."""
    late = {"timestamp": "9999-12-30T00:00:00Z"}
    use = [{"type": "tool_use", "id": "x", "name": "Bash", "input": {"command": "make"}}]
    result = [{"type": "tool_result", "tool_use_id": "x", "content": "made"}]
    document = read_as(
        "claude",
        [
            claude("user", "a", None, "go", **late),
            claude("assistant", "b", "a", use, **late),
            claude("user", "c", "b", result, **late),
            claude("user", "d", "b", "short", isCompactSummary=True, **late),
        ],
    ).document
    times = [document.session.created, *(each.at for each in document.compactions)]
    for node in document.nodes:
        times += [node.revisions[0].at, *(each.at for each in node.results)]
    assert len(times) == 5
    assert set(times) == {NOW}


def test_an_output_of_codex_that_is_itself_json_is_kept_as_it_is() -> None:
    def item(kind: str, **more: Any) -> Json:
        return {"type": "response_item", "payload": {"type": kind, "call_id": "x", **more}}

    def text_of_output(output: str) -> str:
        call = item("function_call", name="shell", arguments="{}")
        found = read_as("codex", [call, item("function_call_output", output=output)])
        return found.document.nodes[0].results[0].text

    assert text_of_output('{"name": "notes"}') == '{"name": "notes"}'
    assert text_of_output('{"output": "seen", "metadata": {"exit_code": 0}}') == "seen"


def test_parts_and_records_without_end_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_tree, "MOST_PARTS", 50)
    monkeypatch.setattr(foreign_tree, "MOST_KEYS", 50)
    call = {"type": "tool_use", "id": "x", "name": "Bash", "input": {}}
    full = read_as("claude", [claude("assistant", "a", None, [call] * 100)])
    assert (full.calls, full.is_cut) == (50, True)
    idle = [{"type": "progress", "uuid": f"p{number}"} for number in range(100)]
    assert read_as("claude", [claude("user", "a", None, "go"), *idle]).is_cut


def test_names_of_tools_and_titles_are_made_harmless() -> None:
    use = [{"type": "tool_use", "id": "x", "name": "a\x1b]0;b\x07 c" * 40, "input": {"k": "v"}}]
    records = [
        claude("user", "a", None, "hello\x1b[2J\u202e there"),
        claude("assistant", "b", "a", use),
    ]
    found = read_as("claude", records)
    (call,) = [p for p in found.document.nodes[1].revisions[0].parts if isinstance(p, ToolCall)]
    assert len(call.name) <= 64
    assert call.name.replace("_", "").isalnum()
    assert found.document.session.title == "hello [2J there"


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = {"k": value}
    return value


@pytest.mark.parametrize("args", [nested(60), nested(400), {"n": 2**70}, {"n": float("nan")}])
def test_arguments_that_no_store_could_hold_are_not_taken(args: Json) -> None:
    use = [{"type": "tool_use", "id": "x", "name": "Strange", "input": args}]
    records = [claude("user", "a", None, "go"), claude("assistant", "b", "a", use)]
    document = read_as("claude", records).document
    (call,) = [p for p in document.nodes[1].revisions[0].parts if isinstance(p, ToolCall)]
    assert call.args == {"input": "(not taken: it cannot be kept)"}
    assert msgspec.json.decode(msgspec.json.encode(document), type=type(document)) == document


def test_ten_thousand_labels_and_empty_messages_cost_little_and_take_no_name_of_ours() -> None:
    records: list[Json] = [{"type": "session", "id": "s", "version": 3}]
    parent = None
    for number in range(10_000):
        empty = {"role": "assistant", "content": []}
        records.append(
            {"type": "message", "id": f"e{number}", "parentId": parent, "message": empty}
        )
        parent = f"e{number}"
    for number in range(5_000):
        said = {"role": "user", "content": "x"}
        records.append({"type": "message", "id": f"m{number}", "parentId": parent, "message": said})
        about = {"id": f"l{number}", "parentId": parent, "targetId": f"m{number}"}
        records.append({"type": "label", **about, "label": "main"})
    found = read_as("pi", records)
    assert found.messages == 5_000
    names = [ref.name for ref in found.document.refs]
    assert "main" not in names
    assert len(names) == 200
