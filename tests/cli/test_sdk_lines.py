"""What programs of the Agent SDK read between the messages: the answer to `initialize`, reports,
states, and the fields of results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stream_json_driver import ASKS, SdkDriver, answer, user
from tests.support.weft_program import WeftProgram, call, kinds

READS_STATE = {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
TOUCH = [call("shell", command="touch made")]


class StateDriver(SdkDriver):
    """One whose SDK reads the state of the session."""

    def __init__(self, weft: WeftProgram, *arguments: str, env: dict[str, str]) -> None:
        start = weft.start
        weft.start = lambda *words, **options: start(*words, env=env, **options)  # type: ignore[method-assign]
        super().__init__(weft, *arguments)


def test_initialize_is_answered_with_all_that_hosts_read(weft: WeftProgram) -> None:
    folder = weft.project / ".weft" / "agents"
    folder.mkdir(parents=True)
    (folder / "tidy.md").write_text("---\ndescription: Tidies up\n---\nTidy.\n")
    driver = SdkDriver(weft, "-m", weft.script("x"), "--permission-mode", "plan")
    said = driver.initialize()["response"]
    assert said["current_permission_mode"] == "plan"
    assert {"name": "tidy", "description": "Tidies up"} in said["agents"]
    assert said["available_output_styles"] == ["default"]
    assert said["pid"] > 1
    assert said["claude_code_version"][0].isdecimal()
    assert said["models"][0]["value"] == "default"
    for model in said["models"]:
        assert {"value", "displayName", "description"} <= set(model)
    assert set(said["account"]) <= {"apiKeySource", "tokenSource", "apiProvider"}
    driver.end()


def test_models_that_could_be_used_are_named_and_can_be_set(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text(f'[model]\ndefault = "{weft.script("First.")}"\n')
    driver = SdkDriver(weft)
    said = driver.initialize()["response"]
    assert said["models"][0]["resolvedModel"].startswith("scripted:")
    assert driver.control(subtype="set_model", model="default")["subtype"] == "success"
    driver.end()


# --- agents and skills that a program brings --------------------------------------------------

AGENT = {"description": "Reviews", "prompt": "You review.", "tools": ["Read"]}


def test_agents_of_the_program_are_used_with_their_tools_alone(weft: WeftProgram) -> None:
    # The agent is asked the same, from the beginning: it would add a line and start agents, too.
    both = [call("shell", command="echo x >> made"), call("agent", agent="rev", prompt="look")]
    model = weft.script(both, "Done.")
    driver = SdkDriver(weft, "-m", model, "--yolo")
    said = driver.initialize(agents={"rev": AGENT})["response"]
    assert {"name": "rev", "description": "Reviews"} in said["agents"]
    driver.send(user("go"))
    told = driver.until("result")
    driver.end()
    assert [each["agent"] for each in told if each.get("subtype") == "task_started"] == ["rev"]
    assert (weft.project / "made").read_text() == "x\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"mcpServers": ["x"]},
        {"skills": ["x"]},
        {"observer": "x"},
        {"initialPrompt": "x"},
        {"newRestriction": True},
        {"permissionMode": "strict"},
        {"maxTurns": 0},
        {"tools": 3},
        {"prompt": 3},
    ],
    ids=str,
)
def test_an_agent_that_cannot_be_had_whole_is_refused(
    weft: WeftProgram, wrong: dict[str, Any]
) -> None:
    driver = SdkDriver(weft, "-m", weft.script("x"))
    said = driver.initialize(agents={"rev": {**AGENT, **wrong}})
    assert said["subtype"] == "error"
    assert "rev" in said["error"]
    driver.end()


def skill(weft: WeftProgram, name: str) -> None:
    folder = weft.project / ".weft" / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: About {name}\n---\nBody.\n")


def use(name: str) -> dict[str, Any]:
    return {"do": "call", "name": "skill", "args": {"name": name}}


def test_only_the_skills_that_the_program_names_can_be_used(weft: WeftProgram) -> None:
    skill(weft, "pdf")
    skill(weft, "docx")
    model = weft.script([use("docx"), use("pdf")], "Done.")
    driver = SdkDriver(weft, "-m", model, "--yolo")
    assert driver.initialize(skills=["pdf"])["subtype"] == "success"
    driver.send(user("go"))
    told = driver.until("result")
    blocks = [each["message"]["content"][0] for each in told if each["type"] == "user"]
    assert [block["is_error"] for block in blocks] == [True, False]
    driver.end()


@pytest.mark.parametrize("wrong", ["all but pdf", [3], {"pdf": True}], ids=str)
def test_skills_that_are_no_list_of_names_are_refused(weft: WeftProgram, wrong: Any) -> None:
    driver = SdkDriver(weft, "-m", weft.script("x"))
    assert driver.initialize(skills=wrong)["subtype"] == "error"
    driver.end()


# --- reports ---------------------------------------------------------------------------------


def test_the_use_of_the_context_has_the_fields_of_the_sdk(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."))
    driver.send(user("hello"))
    driver.until("result")
    said = driver.control(subtype="get_context_usage")["response"]
    assert said["totalTokens"] > 0
    assert said["maxTokens"] >= said["totalTokens"]
    assert 0 <= said["percentage"] <= 100
    assert {"name", "tokens", "color"} <= set(said["categories"][0])
    assert {"model", "memoryFiles", "mcpTools", "agents", "gridRows"} <= set(said)
    driver.end()


def test_the_use_of_the_context_is_known_before_the_first_message(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."))
    said = driver.control(subtype="get_context_usage")["response"]
    assert (said["totalTokens"], said["categories"]) == (0, [])
    driver.end()


@pytest.mark.parametrize("tokens", [0, 8000, None])
def test_tokens_of_thinking_can_be_set(weft: WeftProgram, tokens: int | None) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Fine."))
    said = driver.control(subtype="set_max_thinking_tokens", max_thinking_tokens=tokens)
    assert said["subtype"] == "success"
    driver.end()


# --- states ----------------------------------------------------------------------------------


def states(told: list[dict[str, Any]]) -> list[str]:
    return [each["state"] for each in told if each.get("subtype") == "session_state_changed"]


def test_the_state_of_the_session_is_told_where_the_sdk_reads_it(weft: WeftProgram) -> None:
    driver = StateDriver(weft, "-m", weft.script(TOUCH, "Done."), *ASKS, env=READS_STATE)
    driver.send(user("go"))
    told = driver.until("control_request")
    assert states(told) == ["running", "requires_action"]
    assert all(each["sdk_host_only"] for each in told if "state" in each)
    driver.send(answer(told[-1], behavior="deny", message="no"))
    rest = driver.until("system/session_state_changed")
    rest += driver.until("result")
    rest += driver.until("system/session_state_changed")
    assert states(rest) == ["running", "idle"]
    driver.end()


def test_no_state_is_told_where_nobody_asked_for_it(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("Done."))
    driver.send(user("go"))
    assert "system/session_state_changed" not in kinds(driver.until("result"))
    driver.end()


# --- results ---------------------------------------------------------------------------------


def test_results_have_why_the_model_stopped_and_all_that_was_used_until_then(
    weft: WeftProgram,
) -> None:
    driver = SdkDriver(weft, "-m", weft.script("One.", "Two."))
    found = []
    for _ in range(2):
        driver.send(user("go"))
        found.append(driver.until("result")[-1])
    driver.end()
    assert [each["stop_reason"] for each in found] == ["end_turn", "end_turn"]
    used = [next(iter(each["modelUsage"].values())) for each in found]
    assert used[1]["inputTokens"] > used[0]["inputTokens"]
    assert {"outputTokens", "costUSD"} <= set(used[0])
    assert used[0]["contextWindow"] > 1000


def test_a_failed_turn_has_its_sentence_in_errors(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script({"do": "error"}, by="order"), "--max-turns", "1")
    driver.send(user("go"))
    told = driver.until("result")[-1]
    assert told["is_error"]
    assert told["errors"]
    assert all(isinstance(each, str) and each for each in told["errors"])
    driver.end()


def test_results_of_tools_have_their_parts(weft: WeftProgram) -> None:
    model = weft.script([call("write", path="a.txt", content="x")], TOUCH, "Done.")
    driver = SdkDriver(weft, "-m", model, "--yolo")
    driver.send(user("go"))
    told = [each for each in driver.until("result") if each["type"] == "user"]
    driver.end()
    written, run = [each["tool_use_result"] for each in told]
    assert written["filePath"] == str(weft.project / "a.txt")
    assert {"stdout", "stderr", "interrupted"} <= set(run)


def test_a_deferred_call_has_the_name_and_the_input_of_its_tool(weft: WeftProgram) -> None:
    server = weft.home / "server.py"
    listed = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(30)]
    server.write_text(
        "import json, sys\n"
        f"tools = json.loads('''{json.dumps(listed)}''')\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' not in asked: continue\n"
        "    result = {'initialize': {'protocolVersion': '2025-11-25', 'capabilities':"
        " {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}},\n"
        "      'tools/list': {'tools': tools}, 'tools/call': {'content':"
        " [{'type': 'text', 'text': 'called'}]}}.get(asked['method'])\n"
        "    body = {'result': result} if result else {'error': {'code': -32601, 'message': '?'}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **body}), flush=True)\n"
    )
    entry = {"command": "python3", "args": [str(server)], "sandbox": "off"}
    config = json.dumps({"mcpServers": {"many": entry}})
    arguments: dict[str, Any] = {"do": "call", "name": "tool_call"}
    arguments["args"] = {"name": "mcp__many__t7", "arguments": {"x": 1}}
    model = weft.script([call("tool_search", query="*")], [arguments], "Done.")
    driver = SdkDriver(weft, "-m", model, "--mcp-config", config, "--yolo")
    driver.send(user("go"))
    told = driver.until("result")
    driver.end()
    blocks = [each["message"]["content"][0] for each in told if each["type"] == "assistant"]
    assert (blocks[1]["name"], blocks[1]["input"]) == ("mcp__many__t7", {"x": 1})
