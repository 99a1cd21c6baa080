"""The options that the Agent SDK starts us with: done, or said to do nothing; one that restricts
and is not done ends the run before anything is asked of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.stream_json_driver import ASKS, STREAMS, SdkDriver, answer, user
from tests.support.weft_program import WeftProgram, call, lines
from weft.cli.agent_sdk.sdk_options import carry_over
from weft.cli.parse import parse
from weft.errors import UsageError

PLAIN = (*STREAMS, "--verbose")


def settings(**table: Any) -> tuple[str, str]:
    """The words of `--settings`."""
    return "--settings", json.dumps(table)


# --- what restricts, and is not done --------------------------------------------------------

REFUSED: dict[str, tuple[str, ...]] = {
    "agent": ("--agent", "reviewer"),
    "managed settings": ("--managed-settings", "{}"),
    "managed settings in initialize": ("--managed-settings-in-initialize",),
    "config root": ("--project-config-root", "/elsewhere"),
    "resume guard": ("--resume-drops-turn=", "--resume=x"),
    "resume at nothing": ("--resume-session-at=abc",),
    "permission prompt tool": ("--permission-prompt-tool", "mcp__a__b"),
    "channels": ("--channels", "x"),
    "unknown option": ("--restrict-me",),
    "unknown source": ("--setting-sources=managed",),
    "settings that are no JSON": ("--settings", "{"),
    "settings file that is not there": ("--settings", "/nowhere/settings.json"),
    "hooks in settings": settings(hooks={"PreToolUse": [{"hooks": []}]}),
    "no bypass": settings(permissions={"disableBypassPermissionsMode": "disable"}),
    "unknown permission key": settings(permissions={"denyAll": True}),
    "wrong rule": settings(permissions={"deny": ["Bash(ls | rm:*)"]}),
    "unknown mode": settings(permissions={"defaultMode": "strict"}),
    "files of the sandbox": settings(sandbox={"filesystem": {"denyRead": ["/x"]}}),
    "commands in the sandbox alone": settings(sandbox={"allowUnsandboxedCommands": False}),
    "unknown sandbox key": settings(sandbox={"strict": True}),
    "variable that cannot be set": settings(env={"A=B": "c"}),
    "format that is taken back": (
        *("--input-format=stream-json", "--input-format", "text", "--setting-sources="),
        "hi",
    ),
    "servers of the settings": settings(disabledMcpjsonServers=["x"]),
    "unknown key": settings(forbidEverything=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_that_restricts_and_is_not_done_ends_with_exit_2(
    weft: WeftProgram, name: str
) -> None:
    done = weft.call(*PLAIN, "-m", weft.script("x"), *REFUSED[name])
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("weft: ")
    assert not done.stdout


@pytest.mark.parametrize("kind", [{"type": "http", "url": "https://x.example"}, {"type": "sdk"}])
def test_permissions_of_a_servers_tools_that_are_not_done_end_with_exit_2(
    weft: WeftProgram, kind: dict[str, str]
) -> None:
    tools = [{"name": "drop", "permission_policy": "always_deny"}]
    config = json.dumps({"mcpServers": {"x": {**kind, "tools": tools}}})
    done = weft.call(*PLAIN, "-m", weft.script("x"), "--mcp-config", config)
    assert done.returncode == 2, done.stderr
    assert "'tools' is not supported here" in done.stderr


def test_a_plugin_with_hooks_is_refused_and_one_without_is_said_to_do_nothing(
    weft: WeftProgram,
) -> None:
    plugin = weft.home / "plugin"
    (plugin / ".claude-plugin").mkdir(parents=True)
    manifest = plugin / ".claude-plugin" / "plugin.json"
    manifest.write_text('{"name": "p"}')
    done = weft.call(*PLAIN, "-m", weft.script("x"), "--plugin-dir", str(plugin), stdin=user("go"))
    assert done.returncode == 0
    assert "--plugin-dir" in done.stderr
    manifest.write_text('{"name": "p", "hooks": {"PreToolUse": []}}')
    words = (*PLAIN, "-m", weft.script("x"), "--plugin-dir", str(plugin))
    assert weft.call(*words).returncode == 2
    manifest.write_text('{"name": "p"}')
    (plugin / "hooks").mkdir()
    (plugin / "hooks" / "hooks.json").write_text("{}")
    assert weft.call(*words).returncode == 2


# --- what restricts nothing -----------------------------------------------------------------

TAKEN: dict[str, tuple[tuple[str, ...], str]] = {
    "betas": (("--betas", "context-1m-2025-08-07"), "--betas"),
    "session mirror": (("--session-mirror",), "--session-mirror"),
    "hook events": (("--include-hook-events",), "--include-hook-events"),
    "display of thinking": (("--thinking-display", "summarized"), ""),
    "debug": (("--debug",), ""),
    "debug file": (("--debug-file", "/tmp/x"), ""),
    "debug to stderr": (("--debug-to-stderr",), ""),
    "may skip permissions": (("--allow-dangerously-skip-permissions",), ""),
    "await initialize": (("--await-initialize",), ""),
    "an empty word": (("",), ""),
    "adaptive thinking": (("--thinking=adaptive",), ""),
    "no thinking": (("--thinking", "disabled"), ""),
    "tokens of thinking": (("--max-thinking-tokens", "8000"), ""),
    "all sources": (("--setting-sources=user,project,local",), ""),
    "no sources": (("--setting-sources=",), ""),
    "an id": (("--session-id=3f6f4a1e-9c3b-4f0e-8a51-2f54a5d0b1a7",), ""),
    "tools of the preset": (("--tools", "default"), ""),
    "prompts to the host": (("--permission-prompts", "host"), ""),
    "keys of comfort": (settings(cleanupPeriodDays=3, theme="dark"), "theme"),
    "no settings": (settings(), ""),
    "a fallback": (("--fallback-model", "scripted:other"), ""),
    "task budget": (("--task-budget", "100000"), ""),
    "sandbox": (settings(sandbox={"enabled": True, "network": {"allowLocalBinding": True}}), ""),
}


@pytest.mark.parametrize("name", TAKEN)
def test_an_option_that_restricts_nothing_is_taken(weft: WeftProgram, name: str) -> None:
    words, said = TAKEN[name]
    done = weft.call(*PLAIN, "-m", weft.script("Fine."), *words, stdin=user("go"))
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout)[-1]["result"] == "Fine."
    assert (said in done.stderr) if said else not done.stderr


def test_these_options_are_for_programs_that_drive_us(weft: WeftProgram) -> None:
    done = weft.call("-p", "-m", weft.script("x"), "--betas", "x", "hello")
    assert done.returncode == 2


# --- what they do ---------------------------------------------------------------------------


def test_rules_of_the_settings_deny_ask_and_allow(weft: WeftProgram) -> None:
    steps = [call("write", path="no.txt", content="x"), call("write", path="yes.txt", content="x")]
    steps.append(call("write", path="ask.txt", content="x"))
    rules = {"allow": ["Write(*.txt)"], "deny": ["Write(no.txt)"], "ask": ["Write(ask.txt)"]}
    driver = SdkDriver(weft, "-m", weft.script(steps, "Done."), *settings(permissions=rules), *ASKS)
    driver.send(user("go"))
    asked = driver.asked("can_use_tool")
    assert asked["request"]["input"]["file_path"].endswith("ask.txt")
    driver.send(answer(asked, behavior="deny", message="no"))
    driver.until("result")
    assert driver.end() == 0
    assert sorted(path.name for path in weft.project.glob("*.txt")) == ["yes.txt"]


def test_a_sandbox_that_is_asked_for_has_no_network_whatever_is_configured() -> None:
    """The program names the addresses that may be reached; all of them are more than that."""
    words = settings(sandbox={"enabled": True, "network": {"allowedDomains": ["a.example"]}})
    arguments = parse([*PLAIN, "--set", "sandbox.network=true", *words])
    carry_over(arguments)
    assert arguments.many("set")[-2:] == ("sandbox.mode=on", "sandbox.network=false")


def test_settings_name_the_mode_the_model_and_more_folders(
    weft: WeftProgram, tmp_path: Path
) -> None:
    more = tmp_path / "more"
    more.mkdir()
    table = {
        "model": weft.script([call("write", path=str(more / "a.txt"), content="x")], "Done."),
        "permissions": {"defaultMode": "acceptEdits", "additionalDirectories": [str(more)]},
    }
    path = weft.home / "settings.json"
    path.write_text(json.dumps(table))
    done = weft.call(*PLAIN, "--settings", str(path), stdin=user("go"))
    assert lines(done.stdout)[0]["permissionMode"] == "acceptEdits"
    assert (more / "a.txt").read_text() == "x"


def test_without_the_user_as_a_source_the_users_allowances_do_not_count(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text(
        '[permissions]\nallow = ["write"]\nmode = "bypass"\ndeny = ["shell"]\n'
    )
    steps = [call("write", path="a.txt", content="x")]
    done = weft.call(
        *PLAIN, "-m", weft.script(steps, "I could not."), "--setting-sources=", stdin=user("go")
    )
    assert not (weft.project / "a.txt").exists()
    assert lines(done.stdout)[0]["permissionMode"] == "default"


def test_without_the_project_as_a_source_its_files_do_not_count(weft: WeftProgram) -> None:
    (weft.project / "AGENTS.md").write_text("Say aubergine.")
    (weft.project / ".mcp.json").write_text('{"mcpServers": {"x": {"command": "true"}}}')
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text('[permissions]\nask = ["read"]\n')
    words = (*PLAIN, "-m", weft.script("x"))
    done = weft.call(*words, "--setting-sources=", stdin=user("go"))
    assert lines(done.stdout)[0]["mcp_servers"] == []
    assert "x" not in done.stderr
    done = weft.call(*words, "--setting-sources=project", stdin=user("go"))
    assert "not allowed: x" in done.stderr


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (("--thinking", "disabled"), "off"),
        (("--max-thinking-tokens", "0"), "off"),
        (("--max-thinking-tokens", "2000"), "low"),
        (("--max-thinking-tokens", "10000"), "medium"),
        (("--max-thinking-tokens", "31999"), "high"),
        (("--thinking", "adaptive"), "default"),
        (("--thinking", "adaptive", "--effort", "high"), "high"),
    ],
)
def test_how_hard_the_model_thinks(weft: WeftProgram, words: tuple[str, ...], level: str) -> None:
    arguments = parse([*PLAIN, *words])
    carry_over(arguments)
    assert arguments.text("effort") == level


def test_a_number_of_tokens_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="--max-thinking-tokens"):
        carry_over(parse([*PLAIN, "--max-thinking-tokens", "many"]))


def test_where_nobody_answers_prompts_the_program_is_not_asked(weft: WeftProgram) -> None:
    steps = [call("shell", command="touch made")]
    driver = SdkDriver(weft, "-m", weft.script(steps, "No."), *ASKS, "--permission-prompts", "none")
    driver.send(user("go"))
    told = driver.until("result")
    assert "control_request" not in {each["type"] for each in told}
    driver.end()
    assert not (weft.project / "made").exists()


def test_messages_are_repeated_with_their_ids_where_that_is_asked_for(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("One.", "Two."), "--replay-user-messages")
    given = "11111111-2222-4333-8444-555555555555"
    driver.send(json.dumps({**json.loads(user("first")), "uuid": given}))
    told = driver.until("result")
    (first,) = [each for each in told if each["type"] == "user"]
    assert (first["uuid"], first["isReplay"]) == (given, True)
    assert first["message"]["content"] == "first"
    driver.send(user("second"))
    (second,) = [each for each in driver.until("result") if each["type"] == "user"]
    assert second["uuid"] != given
    assert driver.end() == 0


def test_files_go_back_to_a_message_that_is_named_by_its_repeated_id(weft: WeftProgram) -> None:
    model = weft.script([call("write", path="a.txt", content="x")], "Done.")
    driver = SdkDriver(weft, "-m", model, "--yolo", "--replay-user-messages")
    driver.send(user("go"))
    told = driver.until("result")
    said = next(each for each in told if each.get("isReplay"))
    assert (weft.project / "a.txt").exists()
    back = driver.control(subtype="rewind_files", user_message_id=said["uuid"])
    assert back["response"]["filesChanged"] == ["a.txt"]
    assert not (weft.project / "a.txt").exists()
    assert driver.end() == 0


def test_a_session_is_resumed_at_a_message(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("One.", "Two."))
    driver.send(user("first"))
    told = driver.until("result")
    session = told[-1]["session_id"]
    kept = next(each for each in told if each["type"] == "assistant")
    driver.send(user("second"))
    driver.until("result")
    assert driver.end() == 0
    again = SdkDriver(
        weft,
        "-m",
        weft.script("One.", "Again."),
        f"--resume={session}",
        f"--resume-session-at={kept['uuid']}",
    )
    again.send(user("third"))
    again.until("result")
    assert again.end() == 0
    shown = weft.call("session", "show", session).stdout
    assert "first" in shown
    assert "second" not in shown
    assert "third" in shown


def test_a_message_that_is_not_there_is_not_resumed_at(weft: WeftProgram) -> None:
    driver = SdkDriver(weft, "-m", weft.script("One."))
    driver.send(user("first"))
    session = driver.until("result")[-1]["session_id"]
    assert driver.end() == 0
    done = weft.call(*PLAIN, f"--resume={session}", "--resume-session-at=none", stdin=user("x"))
    assert done.returncode == 2
    assert "'none'" in done.stderr


def test_a_composed_message_is_sent_as_it_is_written(weft: WeftProgram) -> None:
    (weft.project / "secret.txt").write_text("aubergine\n")
    driver = SdkDriver(weft, "-m", weft.script("Fine.", "Fine."), "--replay-user-messages")
    for said in ("/compact now", "see @secret.txt"):
        driver.send(json.dumps({**json.loads(user(said)), "client_composed": True}))
        told = driver.until("result")
        assert told[-1]["subtype"] == "success"
        (echo,) = [each for each in told if each["type"] == "user"]
        assert echo["message"]["content"] == said
    assert driver.end() == 0
    (row,) = weft.sessions()
    assert "aubergine" not in weft.call("session", "export", row["id"], "--format", "json").stdout


# --- what is asked before ---------------------------------------------------------------------


def test_the_version_is_one_that_the_sdk_takes_only_where_it_asks(weft: WeftProgram) -> None:
    plain = weft.call("-v").stdout
    assert plain.startswith("weft ")
    asked = weft.call("-v", env={"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}).stdout
    assert int(asked.partition(".")[0]) >= 2
    assert "(Weft" in asked


def test_whether_a_key_is_there_can_be_asked(weft: WeftProgram) -> None:
    done = weft.call("auth", "status", "--json")
    assert (done.returncode, json.loads(done.stdout)["loggedIn"]) == (1, False)
    done = weft.call("auth", "status", "--json", env={"ANTHROPIC_API_KEY": "sk-x"})
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert (said["loggedIn"], said["authMethod"]) == (True, "api_key")
    assert "sk-x" not in done.stdout
