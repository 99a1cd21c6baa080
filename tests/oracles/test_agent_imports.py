"""Sessions that the real programs of other agents write here and now, imported and continued.
Nothing that they write is kept."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import weft
from tests.support.oracles.agent_vendor import DELEGATE, DONE, LOOK, READ, SEEN, agent_vendor
from tests.support.real_servers import SERVERS
from tests.support.vendor_legality import VENDORS, illegal_request
from weft.api import ForeignSessionRow, HistoryMessage
from weft.providers.scripted import ScriptedModel, ScriptedProvider

pytestmark = [pytest.mark.process, pytest.mark.oracle, pytest.mark.anyio]

PATIENCE = 180
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "IS_SANDBOX": "1",
    "NO_COLOR": "1",
    "CI": "1",
    "ANTHROPIC_API_KEY": "sk-test",
    "OPENAI_API_KEY": "sk-test",
}
_LOCAL = {"name": "lab", "options": {"apiKey": "sk-test"}, "models": {"small": {"name": "small"}}}


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def claude(home: Path, url: str, prompt: str) -> list[str]:
    del home, url
    return [
        "claude",
        "-p",
        prompt,
        "--dangerously-skip-permissions",
        "--model",
        "claude-sonnet-4-5",
    ]


def codex(home: Path, url: str, prompt: str) -> list[str]:
    provider = f'name = "lab"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    _put(
        home / ".codex" / "config.toml",
        f'model = "gpt-5"\nmodel_provider = "lab"\n[model_providers.lab]\n{provider}'
        'env_key = "OPENAI_API_KEY"\n',
    )
    safe = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return ["codex", "exec", *safe, prompt]


def opencode(home: Path, url: str, prompt: str) -> list[str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "sk-test"}
    provider = {**_LOCAL, "npm": "@ai-sdk/openai-compatible", "options": options}
    settings = {"model": "lab/small", "small_model": "lab/small", "provider": {"lab": provider}}
    _put(home / ".config" / "opencode" / "opencode.json", json.dumps(settings))
    return ["opencode", "run", prompt]


def pi(home: Path, url: str, prompt: str) -> list[str]:
    model = {"id": "small", "name": "small", "contextWindow": 100_000, "maxTokens": 4_096}
    model |= {"reasoning": False, "input": ["text"]}
    model["cost"] = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}
    lab = {"baseUrl": f"{url}/v1", "apiKey": "sk-test", "api": "openai-completions"}
    _put(
        home / ".pi" / "agent" / "models.json",
        json.dumps({"providers": {"lab": {**lab, "models": [model]}}}),
    )
    return ["pi", "-p", prompt, "--provider", "lab", "--model", "small"]


PROGRAMS: dict[str, Callable[[Path, str, str], list[str]]] = {
    "claude": claude,
    "codex": codex,
    "opencode": opencode,
    "pi": pi,
}


def wrote(agent: str, home: Path, prompt: str) -> Path:
    """Have the program work once; returns the folder that it worked in."""
    program = SERVERS / "node_modules" / ".bin" / agent
    if not program.exists():
        pytest.skip(f"{agent} is not installed: `make oracles`")
    folder = home / "notes"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("buy milk\n")
    with agent_vendor() as url:
        _, *words = PROGRAMS[agent](home, url, prompt)
        done = subprocess.run(
            [str(program), *words],
            cwd=folder,
            env={
                **QUIET,
                "HOME": str(home),
                "PATH": os.environ["PATH"],
                "ANTHROPIC_BASE_URL": url,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert DONE in done.stdout + done.stderr, done.stdout + done.stderr
    return folder


async def imported(
    agent: str, home: Path, folder: Path
) -> tuple[ForeignSessionRow, tuple[HistoryMessage, ...]]:
    """The session as it is here, after it went on once by a legal request."""
    model = ScriptedModel(["Going on."])
    async with weft.open(
        folder,
        "memory",
        {"model.default": "scripted:script", "sandbox.mode": "off", "lsp.enabled": False},
        environ={"HOME": str(home), "WEFT_HOME": str(home / "weft"), "PATH": os.environ["PATH"]},
        providers={"scripted": ScriptedProvider({model.info.name: model})},
    ) as app:
        (row,) = (await app.import_from(agent, preview=False, setup=False)).sessions
        record = await app.sessions.read_session(row.session)
        session = await app.sessions.get(row.session)
        assert (await session.send_message("Go on.")).text == "Going on."
        (request,) = model.requests
        assert [rule for vendor in VENDORS for rule in illegal_request(request, vendor)] == []
        return row, record.messages


@pytest.mark.parametrize("agent", PROGRAMS)
async def test_what_the_real_program_wrote_is_imported_and_goes_on(
    agent: str, tmp_path: Path
) -> None:
    folder = wrote(agent, tmp_path, READ)
    row, messages = await imported(agent, tmp_path, folder)
    assert (row.state, row.problems, row.calls, row.interrupted) == ("made", (), 1, 0)
    assert [each.role for each in messages] == ["user", "assistant", "tool", "assistant"]
    assert READ in messages[0].content
    assert "buy milk" in messages[2].content
    assert messages[3].content == DONE
    assert row.usage is not None
    assert row.usage.output_tokens == 2


async def test_what_a_helper_of_claude_code_did_is_a_branch(tmp_path: Path) -> None:
    folder = wrote("claude", tmp_path, DELEGATE)
    row, messages = await imported("claude", tmp_path, folder)
    assert (row.branches, row.calls, row.interrupted) == (2, 1, 0)
    assert SEEN in messages[2].content
    assert LOOK not in "".join(each.content for each in messages)
