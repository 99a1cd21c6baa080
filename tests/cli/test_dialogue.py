"""A program drives a session through lines of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream_json_driver import PRINT, StreamJsonDriver, answer, control, user
from tests.support.weft_program import WeftProgram, call, kinds, lines, text


def test_several_messages_are_several_turns_in_one_session(weft: WeftProgram) -> None:
    done = weft.run(*PRINT, "-m", weft.script("One.", "Two."), stdin=f"{user('a')}\n{user('b')}\n")
    told = lines(done.stdout)
    assert done.returncode == 0
    assert kinds(told) == [
        *("system/init", "assistant", "result/success"),
        *("assistant", "result/success"),
    ]
    assert [each["result"] for each in told if each["type"] == "result"] == ["One.", "Two."]
    assert len({each["session_id"] for each in told}) == 1


def test_a_line_that_is_wrong_is_reported_and_ends_nothing(weft: WeftProgram) -> None:
    wrong = [
        "nonsense",
        '{"type":"dance"}',
        '{"type":"user","message":{"content":[{"type":"video"}]}}',
        "",
    ]
    done = weft.call(*PRINT, "-m", weft.script("One."), stdin="\n".join([*wrong, user("a")]))
    told = kinds(lines(done.stdout))
    assert told.count("system/error") == 3
    assert told[-1] == "result/success"
    assert done.returncode == 0


def test_a_message_that_fails_is_a_result_and_the_next_one_works(weft: WeftProgram) -> None:
    model = weft.script([{"do": "error", "error": "RequestRefused", "message": "no"}], "Fine.")
    done = weft.call(*PRINT, "-m", model, stdin=f"{user('')}\n{user('a')}\n{user('b')}\n")
    results = [each for each in lines(done.stdout) if each["type"] == "result"]
    assert [each["is_error"] for each in results[:2]] == [True, True]
    assert "empty" in results[0]["error"]


def test_the_other_side_can_interrupt_and_go_on(weft: WeftProgram) -> None:
    model = weft.script([text("word " * 50_000, 5)], "After.", "After.", pace_seconds=0.002)
    driver = StreamJsonDriver(weft, "-m", model, "--include-partial-messages")
    driver.send(user("a"))
    driver.until("stream_event")
    driver.send(control("r1", subtype="interrupt"))
    told = driver.until("result")
    assert told[-1]["terminal_reason"] == "aborted"
    driver.send(user("b"))
    assert driver.until("result")[-1]["subtype"] == "success"
    assert driver.end() == 0


@pytest.mark.parametrize(
    ("behaviour", "made"), [("allow", True), ("deny", False), ("nonsense", False)]
)
def test_what_needs_permission_is_asked_of_the_other_side(
    weft: WeftProgram, behaviour: str, made: bool
) -> None:
    model = weft.script([call("shell", command="touch made")], "Done.")
    driver = StreamJsonDriver(weft, "-m", model, "--permission-prompt-tool", "stdio")
    driver.send(user("a"))
    asked = driver.until("control_request")[-1]
    assert asked["request"]["tool_name"] == "shell"
    assert asked["request"]["input"] == {"command": "touch made"}
    assert asked["request"]["preview"] == "touch made"
    answer = {"behavior": behaviour, "message": "because"}
    response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
    driver.send(json.dumps({"type": "control_response", "response": response}))
    driver.until("result")
    assert driver.end() == 0
    assert (weft.project / "made").exists() == made


def test_when_the_other_side_goes_away_what_it_was_asked_is_denied(weft: WeftProgram) -> None:
    model = weft.script([call("shell", command="touch made")], "Done.")
    driver = StreamJsonDriver(weft, "-m", model, "--permission-prompt-tool", "stdio")
    driver.send(user("a"))
    driver.until("control_request")
    assert driver.end() == 0
    assert not (weft.project / "made").exists()
    assert not weft.sessions()[0]["turn_open"]


def test_model_and_mode_can_be_changed_on_the_way(weft: WeftProgram) -> None:
    other = weft.script(
        [call("write", path="a.txt", content="x")], "From the other.", by="position"
    )
    driver = StreamJsonDriver(weft, "-m", weft.script("From the first."))
    driver.send(
        control("r1", subtype="set_model", model=other),
        control("r2", subtype="set_permission_mode", mode="acceptEdits"),
        control("r3", subtype="fly"),
    )
    answers = [driver.until("control_response")[-1]["response"] for _ in range(3)]
    assert [(each["request_id"], each["subtype"]) for each in answers] == [
        *(("r1", "success"), ("r2", "success")),
        ("r3", "error"),
    ]
    driver.send(user("a"))
    assert driver.until("result")[-1]["result"] == "From the other."
    assert driver.end() == 0
    assert (weft.project / "a.txt").read_text() == "x"


# --- what sessions can do besides ------------------------------------------------------------

STEP = {"action": "create", "file": "1.txt", "description": "make it", "details": "It holds 1."}
PLAN = [call("submit", summary="Make a file.", steps=[STEP])]
ASKS = ("--permission-prompt-tool", "stdio", "--permission-mode", "acceptEdits", "--architect")


def planned(weft: WeftProgram) -> tuple[StreamJsonDriver, dict[str, Any]]:
    """A driver that was just asked about a plan, and what it was asked."""
    editor = weft.script([call("write", path="1.txt", content="1\n")], "Wrote it.")
    driver = StreamJsonDriver(weft, "-m", weft.script(PLAN, "Done."), "--edit-model", editor, *ASKS)
    driver.send(user("make a file"))
    asked = driver.until("control_request")[-1]
    assert asked["request"]["tool_name"] == "plan"
    assert asked["request"]["input"]["plan"]["steps"] == [STEP]
    assert not list(weft.project.iterdir())
    return driver, asked


def test_a_plan_is_approved_by_the_other_side_and_its_steps_are_reported(weft: WeftProgram) -> None:
    driver, asked = planned(weft)
    driver.send(answer(asked, behavior="allow"))
    told = driver.until("result")
    steps = [each["status"] for each in told if each.get("subtype") == "plan_step"]
    assert steps == ["started", "passed"]
    tasks = [each for each in told if str(each.get("subtype")).startswith("task_")]
    assert [each["subtype"] for each in tasks] == ["task_started", "task_notification"]
    assert (tasks[0]["task_type"], tasks[1]["status"]) == ("step", "completed")
    assert tasks[0]["task_id"] == tasks[1]["task_id"]
    assert driver.end() == 0
    assert (weft.project / "1.txt").exists()


def test_a_plan_that_comes_back_changed_is_the_one_that_is_carried_out(weft: WeftProgram) -> None:
    driver, asked = planned(weft)
    changed = {"summary": "Better.", "steps": [{**STEP, "description": "make it well"}]}
    driver.send(answer(asked, behavior="allow", updatedInput={"plan": changed}))
    told = driver.until("result")
    plans = [each["plan"]["summary"] for each in told if each.get("subtype") == "plan"]
    assert plans == ["Better."]
    assert driver.end() == 0
    assert (weft.project / "1.txt").exists()


@pytest.mark.parametrize(
    "response",
    [
        {"behavior": "deny", "message": "not now"},
        {"behavior": "nonsense"},
        {"behavior": "allow", "updatedInput": {"plan": {"steps": "none"}}},
    ],
    ids=["deny", "nonsense", "no-plan"],
)
def test_what_is_no_clear_yes_turns_a_plan_down(
    weft: WeftProgram, response: dict[str, Any]
) -> None:
    driver, asked = planned(weft)
    driver.send(answer(asked, **response))
    told = driver.until("result")
    (decided,) = [each for each in told if each.get("subtype") == "plan_decided"]
    assert decided["approved"] is False
    assert told[-1]["is_error"]
    assert driver.end() == 1
    assert not list(weft.project.iterdir())


def test_a_plan_whose_driver_goes_away_is_turned_down_and_nothing_waits(weft: WeftProgram) -> None:
    driver, _ = planned(weft)
    assert driver.end() == 1
    assert not list(weft.project.iterdir())
    assert not weft.sessions()[0]["turn_open"]


def test_files_go_back_for_the_other_side_and_the_conversation_stays(weft: WeftProgram) -> None:
    model = weft.script(
        [call("write", path="a.txt", content="one\n")],
        "One.",
        [call("write", path="a.txt", content="two\n")],
        "Two.",
    )
    driver = StreamJsonDriver(weft, "-m", model, "--yolo")
    driver.send(user("a"))
    driver.until("result")
    driver.send(user("b"))
    driver.until("result")
    session = str(weft.sessions()[0]["id"])
    tree = json.loads(weft.call("session", "tree", session, "--json").stdout)
    said = [each["id"] for each in tree["messages"] if each["role"] == "user"]
    driver.send(control("r1", subtype="rewind_files", user_message_id=said[1], dry_run=True))
    seen = driver.until("control_response")[-1]["response"]["response"]
    assert (seen["filesChanged"], seen["conflicts"]) == (["a.txt"], [])
    assert (weft.project / "a.txt").read_text() == "two\n"
    driver.send(control("r2", subtype="rewind_files", user_message_id=said[1]))
    driver.until("control_response")
    assert (weft.project / "a.txt").read_text() == "one\n"
    driver.send(
        control("r3", subtype="rewind_files", user_message_id="nope"),
        control("r4", subtype="stop_task", task_id="nope"),
    )
    wrong = [driver.until("control_response")[-1]["response"] for _ in range(2)]
    assert [each["subtype"] for each in wrong] == ["error", "error"]
    assert "there is no message 'nope'" in wrong[0]["error"]
    assert "nothing runs in the background as 'nope'" in wrong[1]["error"]
    assert driver.end() == 0


def test_the_first_line_and_initialize_tell_what_the_project_brings(weft: WeftProgram) -> None:
    for path, body in {
        ".weft/commands/greet.md": "---\ndescription: Greet\nargument-hint: NAME\n---\nHello $1",
        ".weft/agents/looker.md": "---\nname: looker\ndescription: Looks.\n---\nLook.",
        ".agents/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies.\n---\nTidy.",
    }.items():
        file = weft.project / path
        file.parent.mkdir(parents=True)
        file.write_text(body)
    driver = StreamJsonDriver(weft, "-m", weft.script("Hello."))
    first = driver.until("system/init")[-1]
    assert "greet" in first["slash_commands"]
    assert (first["skills"], first["agents"]) == (["tidy"], ["general", "looker"])
    driver.send(control("r1", subtype="initialize"))
    told = driver.until("control_response")[-1]["response"]["response"]
    assert told["commands"] == [{"name": "greet", "description": "Greet", "argumentHint": "NAME"}]
    assert driver.end() == 0


def test_plan_is_a_permission_mode_too_and_contradictions_are_named(weft: WeftProgram) -> None:
    model = weft.script([call("write", path="a.txt", content="x")], "Planned.")
    assert weft.call("-p", "--plan", "-m", model, "go").returncode == 0
    assert not (weft.project / "a.txt").exists()
    done = weft.call("-p", "--plan", "--yolo", "-m", model, "go")
    assert done.returncode == 2
    assert "--plan and the permission mode bypass contradict each other" in done.stderr
