"""A guard that was written for the Claude Agent SDK guards here too: its hooks are called, its
answers count, its names fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream_json_driver import (
    ASKS,
    PRINT,
    STREAMS,
    SdkDriver,
    StreamJsonDriver,
    answer,
    control,
    failure,
    user,
)
from tests.support.weft_program import WeftProgram, call, text
from weft.cli.agent_sdk.stream_input import WAITING

WRITE = [call("write", path="a.txt", content="original\n")]
TOUCH = [call("shell", command="touch made")]


def hooked(weft: WeftProgram, event: str, *arguments: str, **matcher: Any) -> SdkDriver:
    """A driver that has handed over one hook."""
    driver = SdkDriver(weft, *arguments)
    hooks = {event: [{"matcher": None, "hookCallbackIds": ["hook_0"], **matcher}]}
    assert driver.initialize(hooks=hooks)["subtype"] == "success"
    return driver


def test_a_hook_that_was_handed_over_is_called_and_its_deny_counts(weft: WeftProgram) -> None:
    model = weft.script(TOUCH, "I could not.")
    driver = hooked(weft, "PreToolUse", "-m", model, "--yolo", matcher="Bash")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    assert asked["request"]["callback_id"] == "hook_0"
    assert asked["request"]["input"]["tool_name"] == "Bash"
    assert asked["request"]["input"]["tool_input"] == {"command": "touch made"}
    specific = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no touching",
    }
    driver.send(answer(asked, hookSpecificOutput=specific))
    told = driver.until("result")
    (result,) = [each for each in told if each["type"] == "user"]
    assert "no touching" in result["message"]["content"][0]["content"]
    assert driver.end() == 0
    assert not (weft.project / "made").exists()


def test_the_input_of_a_permission_answer_is_what_runs(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script(WRITE, "Done."), *ASKS)
    driver.send(user("go"))
    asked = driver.asked("can_use_tool")
    assert asked["request"]["tool_name"] == "Write"
    given = {**asked["request"]["input"], "content": "changed\n"}
    driver.send(answer(asked, behavior="allow", updatedInput=given))
    driver.until("result")
    assert driver.end() == 0
    assert (weft.project / "a.txt").read_text() == "changed\n"


def test_a_deny_with_interrupt_ends_the_turn_and_the_model_is_not_asked_again(
    weft: WeftProgram,
) -> None:
    model = weft.script([*TOUCH, call("read", path="b.txt")], "I go on.", "Next.")
    (weft.project / "b.txt").write_text("b\n")
    driver = SdkDriver(weft, "-m", model, *ASKS)
    driver.send(user("go"))
    asked = driver.asked("can_use_tool")
    driver.send(answer(asked, behavior="deny", message="stop it", interrupt=True))
    told = driver.until("result")
    assert told[-1]["terminal_reason"] == "aborted"
    assert [each["type"] for each in told].count("assistant") == 0
    assert driver.end() == 1


@pytest.mark.parametrize(
    ("step", "name", "given"),
    [
        (call("shell", command="ls"), "Bash", {"command": "ls"}),
        (call("write", path="a.txt", content="x"), "Write", {"file_path": "a.txt", "content": "x"}),
    ],
)
def test_the_names_are_those_of_the_sdk(
    weft: WeftProgram, step: dict[str, Any], name: str, given: dict[str, Any]
) -> None:
    if "file_path" in given:
        given = {**given, "file_path": str(weft.project / given["file_path"])}
    driver = SdkDriver(weft, "-m", weft.script([step], "Done."), "--yolo")
    tools = driver.until("system/init")[-1]["tools"]
    assert {"Read", "Write", "Edit", "Bash", "Task"} <= set(tools)
    assert not {name for name in tools if name[0].islower()}
    driver.send(user("go"))
    block = driver.until("assistant")[-1]["message"]["content"][0]
    assert (block["name"], block["input"]) == (name, given)
    driver.until("result")
    assert driver.end() == 0


# --- hooks ----------------------------------------------------------------------------------


def test_a_hook_is_told_what_the_types_of_the_sdk_promise(weft: WeftProgram) -> None:
    driver = hooked(weft, "PreToolUse", "-m", weft.script(WRITE, "Done."), "--yolo")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")["request"]
    told = asked["input"]
    assert told["hook_event_name"] == "PreToolUse"
    assert (told["tool_name"], told["tool_use_id"]) == ("Write", asked["tool_use_id"])
    assert told["tool_input"]["file_path"] == str(weft.project / "a.txt")
    assert (told["cwd"], told["transcript_path"]) == (str(weft.project), "")
    assert told["session_id"] == weft.sessions()[0]["id"]
    assert told["permission_mode"] == "bypassPermissions"


def test_an_input_that_a_hook_changes_is_what_runs(weft: WeftProgram) -> None:
    driver = hooked(weft, "PreToolUse", "-m", weft.script(WRITE, "Done."), "--yolo")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    given = {**asked["request"]["input"]["tool_input"], "content": "changed\n"}
    driver.send(answer(asked, hookSpecificOutput={"updatedInput": given}))
    driver.until("result")
    assert driver.end() == 0
    assert (weft.project / "a.txt").read_text() == "changed\n"


def test_a_hook_that_echoes_the_input_changes_nothing(weft: WeftProgram) -> None:
    driver = hooked(weft, "PreToolUse", "-m", weft.script(WRITE, "Done."), "--yolo")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    same = asked["request"]["input"]["tool_input"]
    driver.send(answer(asked, hookSpecificOutput={"updatedInput": same}))
    driver.until("result")
    assert driver.end() == 0
    exported = weft.run("session", "export", str(weft.sessions()[0]["id"]), "-f", "jsonl").stdout
    assert "changed the input" not in exported


@pytest.mark.parametrize("how", ["error", "hang up", "time"])
def test_a_hook_that_does_not_answer_denies_the_call(weft: WeftProgram, how: str) -> None:
    model = weft.script(TOUCH, "I could not.")
    timeout = 0.05 if how == "time" else 60
    driver = hooked(weft, "PreToolUse", "-m", model, "--yolo", timeout=timeout)
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    if how == "error":
        driver.send(failure(asked, "TypeError: oops"))
    if how == "hang up":
        driver.hang_up()
    told = driver.until("result")
    withdrawn = [each["request_id"] for each in told if each["type"] == "control_cancel_request"]
    assert withdrawn == ([asked["request_id"]] if how == "time" else [])
    [denial] = told[-1]["permission_denials"]
    assert (denial["tool_name"], denial["tool_input"]) == ("Bash", {"command": "touch made"})
    assert driver.end() == 0
    assert not (weft.project / "made").exists()


def test_after_the_program_has_hung_up_no_message_and_no_call_passes_its_hooks(
    weft: WeftProgram,
) -> None:
    hooks = {"UserPromptSubmit": [{"hookCallbackIds": ["hook_0"]}]}
    driver = SdkDriver(weft, "-m", weft.script("Never said."))
    assert driver.initialize(hooks=hooks)["subtype"] == "success"
    driver.send(user("go"))
    driver.hang_up()
    told = driver.until("result")
    assert "has hung up" in told[-1]["error"]
    assert driver.end() == 1


def test_an_abort_withdraws_the_hook_that_is_waited_for(weft: WeftProgram) -> None:
    driver = hooked(weft, "PreToolUse", "-m", weft.script(TOUCH, "Done."), "--yolo")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    driver.send(control("r1", subtype="interrupt"))
    told = driver.until("result")
    assert asked["request_id"] in [each.get("request_id") for each in told]
    assert told[-1]["terminal_reason"] == "aborted"
    assert driver.end() == 1
    assert not (weft.project / "made").exists()


def test_a_hook_on_messages_may_add_to_them_or_keep_them_out(weft: WeftProgram) -> None:
    driver = hooked(weft, "UserPromptSubmit", "-m", weft.script("Fine."))
    driver.send(user("bad words"))
    asked = driver.asked("hook_callback")
    assert asked["request"]["input"]["prompt"] == "bad words"
    assert asked["request"]["tool_use_id"] is None
    driver.send(answer(asked, decision="block", reason="mind your tongue"))
    refused = driver.until("result")[-1]
    assert refused["is_error"]
    assert "mind your tongue" in refused["error"]
    driver.send(user("good words"))
    asked = driver.asked("hook_callback")
    driver.send(answer(asked, hookSpecificOutput={"additionalContext": "be brief"}))
    assert driver.until("result")[-1]["result"] == "Fine."
    assert driver.end() == 0


def test_a_hook_after_a_call_is_told_what_came_of_it(weft: WeftProgram) -> None:
    model = weft.script([call("shell", command="echo hello")], "Done.")
    driver = hooked(weft, "PostToolUse", "-m", model, "--yolo")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    response = asked["request"]["input"]["tool_response"]
    assert (response["stdout"], response["interrupted"]) == ("hello", False)
    driver.send(answer(asked, **{"continue": False, "stopReason": "enough"}))
    told = driver.until("result")[-1]
    assert (told["terminal_reason"], told["num_turns"]) == ("halted", 1)
    assert driver.end() == 1


def test_a_hook_may_keep_the_model_at_work(weft: WeftProgram) -> None:
    driver = hooked(weft, "Stop", "-m", weft.script("Done.", "Really done."))
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    told = asked["request"]["input"]
    assert (told["stop_hook_active"], told["last_assistant_message"]) == (False, "Done.")
    driver.send(answer(asked, decision="block", reason="look again"))
    asked = driver.asked("hook_callback")
    assert asked["request"]["input"]["stop_hook_active"] is True
    driver.send(answer(asked))
    assert driver.until("result")[-1]["result"] == "Really done."
    assert driver.end() == 0


def test_hooks_hold_for_agents_in_the_one_session_that_is_driven(weft: WeftProgram) -> None:
    hand = [call("agent", prompt="touch it", model=weft.script(TOUCH, "I tried."))]
    model = weft.script(hand, "Fine.")
    driver = hooked(weft, "PreToolUse", "-m", model, "--yolo", matcher="Bash")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    told = asked["request"]["input"]
    assert told["tool_input"] == {"command": "touch made"}
    assert told["agent_type"] == "general"
    assert told["agent_id"] != told["session_id"] == first_session(weft)
    driver.send(answer(asked, decision="block", reason="no"))
    driver.until("result")
    assert driver.end() == 0
    assert not (weft.project / "made").exists()


def first_session(weft: WeftProgram) -> str:
    return str(weft.sessions()[0]["id"])


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"hooks": {"Notification": [{"hookCallbackIds": ["hook_0"]}]}}, "'Notification'"),
        ({"hooks": {"PreToolUse": [{"matcher": "(", "hookCallbackIds": ["x"]}]}}, "'('"),
        ({"hooks": ["PreToolUse"]}, "hooks"),
        ({"agents": {"a": {"description": "d", "memory": "user"}}}, "'memory'"),
        ({"agents": ["a"]}, "agents"),
        ({"sdkMcpServers": ["two__parts"]}, "'two__parts'"),
        ({"sdkMcpServers": "tools"}, "sdkMcpServers"),
        ({"sdkMcpServerConfigs": {"a": {"tools": [{"name": "x"}]}}}, "'tools'"),
        ({"sdkMcpServerConfigs": {"a": 3}}, "sdkMcpServerConfigs"),
        ({"planModeInstructions": "Only plan."}, "'planModeInstructions'"),
        ({"plugins": [{"type": "local", "path": "/x"}]}, "'plugins'"),
        ({"mcpServers": {"a": {"command": "true"}}}, "'mcpServers'"),
        ({"skills": "tidy"}, "skills"),
        ({"toolAliases": {"Bash": "mcp__x"}}, "'toolAliases'"),
        ({"managedSettings": {"permissions": {"deny": ["Bash"]}}}, "'managedSettings'"),
        ({"somethingNew": True}, "'somethingNew'"),
        ({"systemPrompt": 3}, "systemPrompt"),
        ({"jsonSchema": "x"}, "jsonSchema"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_initialize_asks_for_and_cannot_have_is_refused_and_nothing_runs_without_it(
    weft: WeftProgram, fields: dict[str, Any], named: str
) -> None:
    driver = SdkDriver(weft, "-m", weft.script(TOUCH, "Done."), "--yolo")
    refused = driver.initialize(**fields)
    assert refused["subtype"] == "error"
    assert named in refused["error"]
    driver.send(user("go"))
    told = driver.until("result")[-1]
    assert told["is_error"]
    assert named in told["error"]
    assert driver.initialize()["subtype"] == "success"
    driver.send(user("go"))
    assert driver.until("result")[-1]["subtype"] == "success"
    assert driver.end() == 0


def test_hooks_for_what_never_happens_here_are_taken_and_the_others_are_called(
    weft: WeftProgram,
) -> None:
    driver = SdkDriver(weft, "-m", weft.script(TOUCH, "No."), "--yolo")
    names = ("TaskCreated", "TaskCompleted", "TeammateIdle", "PreToolUse")
    said = driver.initialize(hooks={name: [{"hookCallbackIds": [name]}] for name in names})
    assert said["response"]["hooks_applied"] is True
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    assert asked["request"]["callback_id"] == "PreToolUse"
    driver.send(answer(asked, decision="block"))
    driver.until("result")
    driver.end()
    assert not (weft.project / "made").exists()


def test_a_session_is_initialized_once(weft: WeftProgram) -> None:
    driver = hooked(weft, "PreToolUse", "-m", weft.script(TOUCH, "Done."), "--yolo")
    again = driver.initialize()
    assert (again["subtype"], "already" in again["error"]) == ("error", True)
    driver.send(user("go"))
    driver.send(answer(driver.asked("hook_callback"), decision="block"))
    driver.until("result")
    assert driver.end() == 0
    assert not (weft.project / "made").exists()


def test_what_initialize_promises_is_said_only_when_it_is_true(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Hi."))
    told = driver.initialize(hooks={"Stop": [{"hookCallbackIds": ["hook_0"]}]})["response"]
    assert (told["hooks_applied"], told["hook_on_failure_supported"]) == (True, True)
    assert driver.end() == 0
    driver = SdkDriver(weft, "-m", weft.script("Hi."))
    assert "hooks_applied" not in driver.initialize(hooks=None)["response"]
    assert driver.end() == 0


@pytest.mark.parametrize(
    "prompt", [{"systemPrompt": ["Be a", "PIRATE"]}, {"appendSystemPrompt": "Be a PIRATE"}]
)
def test_what_initialize_may_set_is_set(weft: WeftProgram, prompt: dict[str, Any]) -> None:
    counted = [call("submit", count=3)]
    model = weft.script({"when": {"system_says": "PIRATE"}, "steps": counted}, "Hello.")
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    driver = SdkDriver(weft, "-m", model)
    told = driver.initialize(jsonSchema=schema, title="Mine", promptSuggestions=True, **prompt)
    assert told["subtype"] == "success"
    driver.send(user("go"))
    assert driver.until("result")[-1]["structured_output"] == {"count": 3}
    assert driver.end() == 0
    assert weft.sessions()[0]["title"] == "Mine"


def test_a_control_request_with_a_field_that_means_nothing_here_is_refused(
    weft: WeftProgram,
) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Hi."))
    for request in (
        {"subtype": "mcp_call", "server": "x"},
        {"subtype": "set_permission_mode", "mode": "default", "ultraplan": True},
        {"subtype": "apply_flag_settings", "settings": {}},
    ):
        assert driver.control(**request)["subtype"] == "error"
    assert driver.control(subtype="get_context_usage")["subtype"] == "success"
    assert driver.end() == 0


def test_an_interrupt_may_drop_the_messages_that_wait(weft: WeftProgram) -> None:
    model = weft.script([text("word " * 50_000, 5)], "After.", pace_seconds=0.002)
    driver = SdkDriver(weft, "-m", model, "--include-partial-messages")
    driver.send(user("a"))
    driver.until("stream_event")
    driver.send(user("b"), user("c"), control("r1", subtype="interrupt", cancel_queued=True))
    assert driver.until("result")[-1]["terminal_reason"] == "aborted"
    driver.send(user("d"))
    assert driver.until("result")[-1]["result"] == "After."
    assert driver.end() == 0


def test_messages_that_wait_do_not_keep_the_answer_of_a_hook_from_being_read(
    weft: WeftProgram,
) -> None:
    driver = hooked(weft, "PreToolUse", "-m", weft.script(TOUCH, "Done.", loop=True), "--yolo")
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    driver.send(*[user("more")] * (WAITING + 1))
    assert "this one was not taken" in driver.until("system/error")[-1]["content"]
    driver.send(answer(asked, decision="block", reason="no"))
    driver.until("user")
    driver.send(control("r1", subtype="interrupt", cancel_queued=True))
    driver.until("control_response")
    driver.end()
    assert not (weft.project / "made").exists()


# --- answers --------------------------------------------------------------------------------


def asking(
    weft: WeftProgram, *answers: Any, mode: str = "default"
) -> tuple[SdkDriver, dict[str, Any]]:
    """A driver that was just asked for permission, and what it was asked."""
    driver = SdkDriver(weft, "-m", weft.script(*answers), *ASKS, "--permission-mode", mode)
    driver.send(user("go"))
    return driver, driver.asked("can_use_tool")


def test_another_input_is_judged_by_the_rules_before_it_runs(weft: WeftProgram) -> None:
    rules = ("--disallowedTools", "Write(b.txt)")
    driver = SdkDriver(weft, "-m", weft.script(WRITE, "Done."), *ASKS, *rules)
    driver.send(user("go"))
    asked = driver.asked("can_use_tool")
    given = {**asked["request"]["input"], "file_path": str(weft.project / "b.txt")}
    driver.send(answer(asked, behavior="allow", updatedInput=given))
    assert driver.until("result")[-1]["permission_denials"]
    assert driver.end() == 0
    assert not list(weft.project.iterdir())


def test_an_answer_that_echoes_the_input_as_the_sdk_does_changes_nothing(weft: WeftProgram) -> None:
    driver, asked = asking(weft, WRITE, "Done.")
    driver.send(answer(asked, behavior="allow", updatedInput=asked["request"]["input"]))
    driver.until("result")
    assert driver.end() == 0
    assert (weft.project / "a.txt").read_text() == "original\n"
    exported = weft.run("session", "export", first_session(weft), "-f", "jsonl").stdout
    assert "changed the input" not in exported


@pytest.mark.parametrize(
    "response",
    [
        {"behavior": "allow", "updatedInput": "touch other"},
        {"behavior": "allow", "updatedInput": {"command": 3}},
        {"behavior": "allow", "interrupt": True},
        {"behavior": "allow", "updatedPermissions": [{"type": "addDirectories"}]},
        {
            "behavior": "allow",
            "updatedPermissions": [{"type": "addRules", "destination": "userSettings"}],
        },
        {
            "behavior": "allow",
            "updatedPermissions": [
                {
                    "type": "addRules",
                    "behavior": "deny",
                    "rules": [{"toolName": "Bash", "ruleContent": "ls | rm:*"}],
                }
            ],
        },
        {
            "behavior": "allow",
            "updatedPermissions": [
                {"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Reed"}]}
            ],
        },
        {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "wild"}]},
        {"behavior": "allow_always", "updatedInput": {"command": "touch other"}},
        {"behavior": "allow", "updated_input": {"command": "touch other"}},
        {"behavior": "allow", "interupt": True},
        {
            "behavior": "allow",
            "updatedPermissions": [
                {"type": "addRules", "behaviour": "deny", "rules": [{"toolName": "LS"}]}
            ],
        },
    ],
    ids=str,
)
def test_an_answer_that_cannot_be_carried_out_whole_is_refused_whole(
    weft: WeftProgram, response: dict[str, Any]
) -> None:
    driver, asked = asking(weft, TOUCH, "I could not.")
    driver.send(answer(asked, **response))
    told = driver.until("result")
    [result] = [each for each in told if each["type"] == "user"]
    assert result["message"]["content"][0]["is_error"]
    # An input that the tool does not take is told to the model like any mistake; all else is an
    # error of the program.
    complaints = [each for each in told if each.get("where") == "input"]
    assert len(complaints) == (0 if response.get("updatedInput") == {"command": 3} else 1)
    assert driver.end() == 0
    assert not list(weft.project.iterdir())


def test_a_callback_that_fails_is_a_denial_that_says_so(weft: WeftProgram) -> None:
    driver, asked = asking(weft, TOUCH, "I could not.")
    driver.send(failure(asked, "KeyError: 'x'"))
    told = driver.until("result")
    (result,) = [each for each in told if each["type"] == "user"]
    assert "KeyError" in result["message"]["content"][0]["content"]
    assert driver.end() == 0
    assert not (weft.project / "made").exists()


def test_the_suggestion_that_is_sent_back_is_not_asked_about_again(weft: WeftProgram) -> None:
    glob = [call("shell", command="touch *.made")]
    driver, asked = asking(weft, glob, glob, "Done.")
    [suggested] = asked["request"]["permission_suggestions"]
    assert suggested["rules"] == [{"toolName": "Bash", "ruleContent": "touch *.made"}]
    driver.send(answer(asked, behavior="allow", updatedPermissions=[suggested]))
    told = driver.until("result")
    assert "control_request" not in [each["type"] for each in told]
    assert driver.end() == 0
    assert (weft.project / "*.made").exists()


def test_rules_of_an_answer_deny_from_then_on(weft: WeftProgram) -> None:
    driver, asked = asking(weft, TOUCH, [call("list")], "Done.", mode="default")
    update = {"type": "addRules", "behavior": "deny", "rules": [{"toolName": "LS"}]}
    driver.send(answer(asked, behavior="allow", updatedPermissions=[update]))
    [denial] = driver.until("result")[-1]["permission_denials"]
    assert denial["tool_name"] == "LS"
    assert driver.end() == 0


@pytest.mark.parametrize(
    "rule",
    [
        {"toolName": "Write", "ruleContent": "a.txt"},
        {"toolName": "Edit", "ruleContent": "/a.txt"},
        {"toolName": "Edit", "ruleContent": "**/a.txt"},
        {"toolName": "Edit"},
    ],
    ids=str,
)
def test_a_rule_of_an_answer_means_what_it_means_in_settings(
    weft: WeftProgram, rule: dict[str, str]
) -> None:
    driver, asked = asking(weft, TOUCH, WRITE, "Done.", mode="acceptEdits")
    update = {"type": "addRules", "behavior": "deny", "rules": [rule]}
    driver.send(answer(asked, behavior="allow", updatedPermissions=[update]))
    [denial] = driver.until("result")[-1]["permission_denials"]
    assert denial["tool_name"] == "Write"
    assert driver.end() == 0
    assert not (weft.project / "a.txt").exists()


def test_an_answer_may_set_the_mode(weft: WeftProgram) -> None:
    driver, asked = asking(weft, TOUCH, WRITE, "Done.")
    update = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    driver.send(answer(asked, behavior="allow", updatedPermissions=[update]))
    assert not driver.until("result")[-1]["permission_denials"]
    assert driver.end() == 0
    assert (weft.project / "a.txt").exists()


def test_where_nothing_may_be_asked_the_program_is_not_asked(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script(TOUCH, "I could not."), *ASKS)
    assert driver.control(subtype="set_permission_mode", mode="dontAsk")["subtype"] == "success"
    driver.send(user("go"))
    told = driver.until("result")
    assert "control_request" not in [each["type"] for each in told]
    assert told[-1]["permission_denials"]
    assert driver.end() == 0


def test_a_request_of_an_agent_has_the_name_and_the_input_of_its_call(weft: WeftProgram) -> None:
    hand = [call("agent", prompt="touch it", model=weft.script(TOUCH, "Done."))]
    driver = SdkDriver(weft, "-m", weft.script(hand, "Fine."), *ASKS)
    driver.send(user("go"))
    asked = driver.asked("can_use_tool")
    assert asked["request"]["tool_name"] == "Bash"
    assert asked["request"]["input"] == {"command": "touch made"}
    assert asked["request"]["agent_id"]
    driver.send(answer(asked, behavior="allow", updatedInput={"command": "touch other"}))
    driver.until("result")
    assert driver.end() == 0
    assert [each.name for each in weft.project.iterdir()] == ["other"]


def test_an_abort_withdraws_the_request_that_is_open(weft: WeftProgram) -> None:
    driver, asked = asking(weft, TOUCH, "Done.")
    driver.send(control("r1", subtype="interrupt"))
    told = driver.until("result")
    withdrawn = [each["request_id"] for each in told if each["type"] == "control_cancel_request"]
    assert withdrawn == [asked["request_id"]]
    assert driver.end() == 1


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"behavior": "allow", "updatedInput": {"answers": {"Which?": "b"}}}, "b"),
        ({"behavior": "allow"}, "no answer"),
        ({"behavior": "deny", "message": "ask me later"}, "ask me later"),
    ],
)
def test_what_the_model_asks_is_asked_of_the_program(
    weft: WeftProgram, response: dict[str, Any], told: str
) -> None:
    question = [call("ask", question="Which?", options=["a", "b"])]
    driver, asked = asking(weft, question, "Thanks.")
    assert asked["request"]["tool_name"] == "AskUserQuestion"
    [asks] = asked["request"]["input"]["questions"]
    assert [each["label"] for each in asks["options"]] == ["a", "b"]
    driver.send(answer(asked, **response))
    [result] = [each for each in driver.until("result") if each["type"] == "user"]
    assert told in result["message"]["content"][0]["content"]
    assert driver.end() == 0


# --- names ----------------------------------------------------------------------------------


def test_arguments_in_flight_have_their_names_too(weft: WeftProgram) -> None:
    driver = SdkDriver(
        weft, "-m", weft.script(WRITE, "Done."), "--yolo", "--include-partial-messages"
    )
    driver.send(user("go"))
    told = [each["event"] for each in driver.until("assistant") if each["type"] == "stream_event"]
    [start] = [each for each in told if each["type"] == "content_block_start"]
    [delta] = [each for each in told if each["type"] == "content_block_delta"]
    assert start["content_block"]["name"] == "Write"
    assert start["content_block"]["id"].startswith("cal_")
    assert told[0]["message"]["usage"]["input_tokens"] == 0
    assert [each["type"] for each in told][-2:] == ["message_delta", "message_stop"]
    assert json.loads(delta["delta"]["partial_json"]) == {
        "file_path": str(weft.project / "a.txt"),
        "content": "original\n",
    }
    driver.until("result")
    assert driver.end() == 0


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (PRINT, "shell"),
        ((*PRINT, "--dialect", "claude"), "Bash"),
        ((*STREAMS, "--dialect", "weft"), "shell"),
    ],
)
def test_the_dialect_can_be_chosen(weft: WeftProgram, flags: tuple[str, ...], name: str) -> None:
    driver = StreamJsonDriver(weft, "-m", weft.script(TOUCH, "Done."), "--yolo", flags=flags)
    assert name in driver.until("system/init")[-1]["tools"]
    hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
    assert driver.control(subtype="initialize", hooks=hooks)["subtype"] == "success"
    driver.send(user("go"))
    asked = driver.asked("hook_callback")
    assert asked["request"]["input"]["tool_name"] == name
    driver.send(answer(asked))
    driver.until("result")
    assert driver.end() == 0


def test_the_model_knows_nothing_of_the_dialect(weft: WeftProgram) -> None:
    model = weft.script([call("Bash", command="touch made")], "I see.")
    driver = SdkDriver(weft, "-m", model, "--yolo")
    driver.send(user("go"))
    [result] = [each for each in driver.until("result") if each["type"] == "user"]
    assert "There is no tool 'Bash'" in result["message"]["content"][0]["content"]
    assert driver.end() == 0


DEEP = "[" * 5_000 + "]" * 5_000
WRONG_LINES = {
    "nested too deeply": control("a", subtype="initialize").replace("}", f',"hooks":{DEEP}}}', 1),
    "a request whose kind is a list": control("a", subtype=["initialize"]),
    "more servers than there may be": control(
        "a", subtype="mcp_set_servers", servers={f"s{n}": {"command": "x"} for n in range(101)}
    ),
    "more servers inside than there may be": control(
        "a", subtype="initialize", sdkMcpServers=[f"s{n}" for n in range(101)]
    ),
}


@pytest.mark.parametrize("wrong", WRONG_LINES)
def test_no_line_of_a_program_ends_the_session(weft: WeftProgram, wrong: str) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."))
    driver.send(WRONG_LINES[wrong])
    said = driver.until("system/e" if "deeply" in wrong else "control_response")
    assert "error" in json.dumps(said[-1])
    assert driver.control(subtype="mcp_status")["subtype"] == "success"
    driver.end()
