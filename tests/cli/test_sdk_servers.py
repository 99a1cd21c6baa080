"""The MCP servers that a program has inside itself: listed before the first request, called over
the same lines, judged like every other tool."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.support.in_process_server import ADD, InProcessServer
from tests.support.mcp_servers import entry
from tests.support.stream_json_driver import (
    ASKS,
    STREAMS,
    SdkDriver,
    answer,
    control,
    failure,
    user,
)
from tests.support.weft_program import WeftProgram, call

CONFIG = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
TOOL = "mcp__calc__add"
SUM = [call(TOOL, a=1, b=2)]


def test_a_server_of_the_program_is_listed_before_the_first_request_and_called(
    weft: WeftProgram,
) -> None:
    model = weft.script(SUM, "It is 3.")
    driver = SdkDriver(weft, "-m", model, "--mcp-config", CONFIG, "--allowedTools", TOOL)
    assert driver.initialize()["subtype"] == "success"
    driver.send(user("add"))
    server = InProcessServer(driver)
    server.serve_until("tools/call")
    assert [each["method"] for each in server.seen] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ]
    assert server.seen[-1]["params"]["arguments"] == {"a": 1, "b": 2}
    told = driver.until("result")
    (block,) = next(each for each in told if each["type"] == "user")["message"]["content"]
    assert "3" in block["content"]
    assert driver.end() == 0


def test_a_server_that_only_initialize_names_is_the_same(weft: WeftProgram) -> None:
    model = weft.script(SUM, "It is 3.")
    driver = SdkDriver(weft, "-m", model, "--allowedTools", TOOL)
    assert driver.initialize(sdkMcpServers=["calc"])["subtype"] == "success"
    driver.send(user("add"))
    InProcessServer(driver).serve_until("tools/call")
    assert driver.until("result")[-1]["subtype"] == "success"
    assert driver.end() == 0


def test_a_call_of_such_a_server_asks_as_every_other_and_passes_hooks(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script(SUM, "No."), "--mcp-config", CONFIG, *ASKS)
    hooks = {"PreToolUse": [{"matcher": TOOL, "hookCallbackIds": ["hook_0"]}]}
    assert driver.initialize(hooks=hooks)["subtype"] == "success"
    driver.send(user("add"))
    server = InProcessServer(driver)
    server.serve_until("tools/list")
    asked = driver.asked("hook_callback")
    assert asked["request"]["input"]["tool_name"] == TOOL
    driver.send(answer(asked))
    asked = driver.asked("can_use_tool")
    assert (asked["request"]["tool_name"], asked["request"]["input"]) == (TOOL, {"a": 1, "b": 2})
    driver.send(answer(asked, behavior="deny", message="no sums"))
    told = driver.until("result")
    assert "tools/call" not in {each["method"] for each in server.seen}
    assert told[-1]["permission_denials"][0]["tool_name"] == TOOL
    driver.end()


def test_a_server_of_the_program_that_fails_says_so_and_the_turn_goes_on(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."), "--mcp-config", CONFIG)
    driver.send(user("hello"))
    asked = driver.asked("mcp_message")
    error = {"code": -32603, "message": "it is broken"}
    said = {"jsonrpc": "2.0", "id": asked["request"]["message"]["id"], "error": error}
    driver.send(answer(asked, mcp_response=said))
    assert driver.until("result")[-1]["result"] == "Fine."
    (server,) = driver.control(subtype="mcp_status")["response"]["mcpServers"]
    assert (server["name"], server["status"]) == ("calc", "failed")
    assert "it is broken" in server["error"]
    assert driver.end() == 0


def test_such_a_server_is_refused_where_no_program_drives(weft: WeftProgram) -> None:
    done = weft.run("-p", "-m", weft.script("x"), "--mcp-config", CONFIG, "hello")
    assert done.returncode == 2
    assert "a program that drives Weft" in done.stderr


@pytest.mark.parametrize("place", ["user", "project"])
def test_such_a_server_counts_for_nothing_in_a_file(weft: WeftProgram, place: str) -> None:
    folder = weft.config if place == "user" else weft.project
    folder.mkdir(parents=True, exist_ok=True)
    name = "mcp.json" if place == "user" else ".mcp.json"
    (folder / name).write_text(CONFIG)
    (folder / name).chmod(0o600)
    driver = SdkDriver(weft, "-m", weft.script("Fine."))
    driver.send(user("hello"))
    told = driver.until("result")
    assert "control_request" not in {each["type"] for each in told}
    assert driver.end() == 0


def test_the_tools_of_the_program_are_never_asked_about_as_new_and_nothing_is_kept(
    weft: WeftProgram,
) -> None:
    for tool in (ADD, {**ADD, "description": "Add, said in another way"}):
        model = weft.script(SUM, "It is 3.")
        driver = SdkDriver(weft, "-m", model, "--mcp-config", CONFIG, "--allowedTools", TOOL)
        driver.send(user("add"))
        InProcessServer(driver, tool).serve_until("tools/call")
        assert driver.until("result")[-1]["subtype"] == "success"
        assert driver.end() == 0
    assert not list(weft.data.glob("mcp/*.json"))


# --- what a program asks of servers ---------------------------------------------------------


def status(driver: SdkDriver) -> dict[str, Any]:
    """The only server there is."""
    (server,) = driver.control(subtype="mcp_status")["response"]["mcpServers"]
    return dict(server)


def test_the_status_of_servers_has_the_fields_of_the_sdk(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."), "--mcp-config", CONFIG)
    driver.send(user("hello"))
    InProcessServer(driver).serve_until("tools/list")
    driver.until("result")
    assert status(driver) == {
        "name": "calc",
        "status": "connected",
        "serverInfo": {"name": "calc", "version": "1.0.0"},
        "scope": "dynamic",
        "config": {"type": "sdk", "name": "calc"},
        "tools": [{"name": "add", "description": "Add two numbers", "annotations": {}}],
    }
    assert driver.end() == 0


def test_a_server_that_is_switched_off_is_not_offered_until_it_is_switched_on(
    weft: WeftProgram,
) -> None:
    model = weft.script(SUM, "I could not.", SUM, "It is 3.")
    driver = SdkDriver(weft, "-m", model, "--mcp-config", CONFIG, "--allowedTools", TOOL)
    off = {"subtype": "mcp_toggle", "serverName": "calc", "enabled": False}
    assert driver.control(**off)["subtype"] == "success"
    assert status(driver)["status"] == "disabled"
    driver.send(user("add"))
    told = driver.until("result")
    assert "control_request" not in {each["type"] for each in told}
    assert driver.control(**{**off, "enabled": True})["subtype"] == "success"
    driver.send(user("add"))
    InProcessServer(driver).serve_until("tools/call")
    driver.until("result")
    assert driver.end() == 0


def test_a_server_is_reached_anew_when_the_program_asks_for_it(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."), "--mcp-config", CONFIG)
    driver.send(user("hello"))
    InProcessServer(driver).serve_until("tools/list")
    driver.until("result")
    driver.send(control("again", subtype="mcp_reconnect", serverName="calc"))
    again = InProcessServer(driver)
    again.serve_until("tools/list")
    assert driver.until("control_response")[-1]["response"]["subtype"] == "success"
    assert driver.end() == 0


def test_servers_that_there_are_not_are_named_in_the_refusal(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."))
    for request in (
        {"subtype": "mcp_reconnect", "serverName": "none"},
        {"subtype": "mcp_toggle", "serverName": "none", "enabled": True},
    ):
        said = driver.control(**request)
        assert (said["subtype"], "'none'" in said["error"]) == ("error", True)
    driver.end()


def test_the_servers_of_a_running_session_can_be_set(weft: WeftProgram) -> None:
    model = weft.script("Fine.", SUM, "It is 3.", "Bye.")
    driver = SdkDriver(weft, "-m", model, "--allowedTools", TOOL)
    driver.send(user("hello"))
    driver.until("result")
    wanted = {"calc": {"type": "sdk", "name": "calc"}}
    driver.send(control("set", subtype="mcp_set_servers", servers=wanted))
    server = InProcessServer(driver)
    server.serve_until("tools/list")
    said = driver.until("control_response")[-1]["response"]["response"]
    assert said == {"added": ["calc"], "removed": [], "errors": {}}
    driver.send(user("add"))
    server.serve_until("tools/call")
    driver.until("result")
    driver.send(control("set", subtype="mcp_set_servers", servers={}))
    said = driver.until("control_response")[-1]["response"]["response"]
    assert said == {"added": [], "removed": ["calc"], "errors": {}}
    assert driver.end() == 0


@pytest.mark.parametrize("more", [{"command": "x"}, {"type": "sdk", "name": "x"}])
def test_servers_whose_tools_are_restricted_are_refused_whole(
    weft: WeftProgram, more: dict[str, Any]
) -> None:
    driver = SdkDriver(weft, "-m", weft.script("x"))
    tools = [{"name": "drop", "permission_policy": "always_deny"}]
    servers = {"x": {**more, "tools": tools}}
    refused = driver.control(subtype="mcp_set_servers", servers=servers)
    assert refused["subtype"] == "error"
    assert "'tools' is not supported here" in refused["error"]
    assert driver.end() == 0


def test_what_the_program_brings_is_not_read_from_a_plain_stream_of_prompts(
    weft: WeftProgram,
) -> None:
    """The plain line protocol takes such servers, too."""
    model = weft.script(SUM, "It is 3.")
    arguments = ("-p", *STREAMS, "-m", model, "--mcp-config", CONFIG, "--allowedTools", TOOL)
    driver = SdkDriver(weft, *arguments)
    driver.send(user("add"))
    InProcessServer(driver).serve_until("tools/call")
    driver.until("result")
    assert driver.end() == 0


# --- what servers ask ----------------------------------------------------------------------------


def asking_driver(weft: WeftProgram, tool: str, *flags: str, trap: str = "") -> SdkDriver:
    """A program that is driven with a server of ours, whose tool asks the user."""
    name = f"mcp__asking__{tool}"
    config = json.dumps({"mcpServers": {"asking": entry(trap, sandbox="off")}})
    found = call("tool_search", query=tool)
    made = {"do": "call", "name": "tool_call", "args": {"name": name, "arguments": {}}}
    model = weft.script([found], [made], "Done.")
    driver = SdkDriver(weft, "-m", model, "--mcp-config", config, "--allowedTools", name, *flags)
    assert driver.initialize()["subtype"] == "success"
    driver.send(user("ask"))
    return driver


def told_of_call(driver: SdkDriver) -> str:
    return json.dumps([each for each in driver.until("result") if each["type"] == "user"][-1])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"action": "accept", "content": {"color": "green"}}, "green"),
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
        ({"action": "accept", "content": "green"}, "decline"),
        ({"action": "accept", "content": {"colour": "green"}}, "decline"),
        ({"action": "accept", "content": {"color": {"deep": 1}}}, "decline"),
        ({"behavior": "allow"}, "decline"),
    ],
)
def test_what_a_server_asks_is_asked_of_the_program(
    weft: WeftProgram, said: dict[str, Any], told: str
) -> None:
    driver = asking_driver(weft, "ask")
    asked = driver.asked("elicitation")
    request = asked["request"]
    assert (request["mcp_server_name"], request["message"]) == ("asking", "Which one?")
    assert list(request["requested_schema"]["properties"]) == ["color"]
    driver.send(answer(asked, **said))
    assert told in told_of_call(driver)
    assert driver.end() == 0


def test_a_program_that_cannot_be_asked_is_a_no(weft: WeftProgram) -> None:
    driver = asking_driver(weft, "ask")
    driver.send(failure(driver.asked("elicitation"), "Unsupported control request subtype"))
    assert "decline" in told_of_call(driver)
    assert driver.end() == 0


@pytest.mark.parametrize(
    ("tool", "flags"),
    [("ask_secret", ()), ("ask", ("--permission-prompts", "none")), ("ask", ("--dialect", "weft"))],
)
def test_no_program_is_asked_for_a_secret_or_where_it_does_not_answer(
    weft: WeftProgram, tool: str, flags: tuple[str, ...]
) -> None:
    driver = asking_driver(weft, tool, *flags)
    told = driver.until("result")
    assert "control_request" not in {each["type"] for each in told}
    assert "decline" in json.dumps([each for each in told if each["type"] == "user"])
    assert driver.end() == 0


def test_an_interrupt_withdraws_what_a_server_asks(weft: WeftProgram) -> None:
    driver = asking_driver(weft, "ask")
    asked = driver.asked("elicitation")
    driver.send(control("stop", subtype="interrupt"))
    told = driver.until("result")
    withdrawn = [each for each in told if each["type"] == "control_cancel_request"]
    assert [each["request_id"] for each in withdrawn] == [asked["request_id"]]
    driver.end()


def test_what_a_server_takes_back_is_withdrawn_from_the_program(weft: WeftProgram) -> None:
    sign = weft.home / "sign"
    os.mkfifo(sign)
    driver = asking_driver(weft, "ask", trap=f"takes_back={sign}")
    first = driver.asked("elicitation")
    sign.write_text("now")
    assert driver.until("control_cancel_request")[-1]["request_id"] == first["request_id"]
    second = driver.asked("elicitation")
    driver.send(answer(first, action="accept", content={"color": "too late"}))
    driver.send(answer(second, action="accept", content={"color": "green"}))
    told = told_of_call(driver)
    assert "green" in told
    assert "too late" not in told
    assert driver.end() == 0
