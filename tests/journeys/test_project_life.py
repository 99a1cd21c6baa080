"""The life of a project, as the documents that Weft began with describe it: a repository of several
languages is watched, a session finds a symbol and logs a decision, the process dies, and another
one finds both again.  Real processes, and nothing but the public API.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.source_code import SRC
from tests.support.world import World

pytestmark = pytest.mark.process

FILES = {
    "tools/report.py": "def report(rows): ...\n",
    "web/login.ts": "export function logIn(name: string) { return name }\n",
    "cmd/main.go": "package main\n\nfunc main() {}\n",
}
"""What is there before anybody looks."""
LATER = {
    "lib/auth.ex": "defmodule Auth do\n  def token(user), do: user.name\nend\n",
    "src/signer.rs": "pub fn sign_token(user: &str) -> String { user.into() }\n",
    "tools/report.py": "def report_logins(rows): ...\n",
}
"""What comes, or changes, while it is watched."""
FOUND = {"token": "lib/auth.ex", "sign_token": "src/signer.rs", "report_logins": "tools/report.py"}

COMMON = """
import json, os, signal, sys
import anyio
import weft
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.providers.script import CallTool

def opened(model):
    settings = {"model.default": "scripted:script", "sandbox.mode": "off", "lsp.enabled": False}
    providers = {"scripted": ScriptedProvider({model.info.name: model})}
    return weft.open(".", os.environ["WEFT_HOME"] + "/weft.db", settings, providers=providers)

def tell(**said):
    print(json.dumps(said), flush=True)

def run(main):
    async def bounded():
        with anyio.fail_after(60):
            await main()

    anyio.run(bounded)

async def places(app, names):
    return {name: [each.path for each in await app.index.symbols(name)] for name in names}
"""
FIRST = f"""{COMMON}
names, later = json.loads(sys.argv[1]), set(json.loads(sys.argv[2]))
decision = dict(
    kind="decision", title="Sign tokens with a key", why="A name can be forged.",
    scope=["lib/auth.ex"], options=[dict(title="The name alone", verdict="rejected", why="forged")],
)
model = ScriptedModel([
    CallTool(name="find_symbol", args=dict(name="Auth.token")),
    CallTool(name="decision_log", args=decision),
    "It is logged.",
])

async def main():
    async with opened(model) as app:
        events, seen = await app.subscribe("repo:updates"), {{}}
        tell(watches=await app.index.files())
        async for update in events:
            seen |= update.changes
            if later <= seen.keys():
                break
        tell(seen=seen, places=await places(app, names))
        session = await app.sessions.start_session(session_id="code-review-session")
        reply = await session.send_message("Review the authentication logic in lib/auth.ex")
        results = [each.content for each in await session.get_history() if each.role == "tool"]
        tell(answer=reply.text, results=results)
        os.kill(os.getpid(), signal.SIGKILL)

run(main)
"""
AGAIN = f"""{COMMON}
names = json.loads(sys.argv[1])
model = ScriptedModel(["As decided."])

async def main():
    async with opened(model) as app:
        session = await app.sessions.start_session(session_id="code-review-session")
        history = [each.content for each in await session.get_history() if each.role == "assistant"]
        [node] = await app.decisions.query("tokens")
        tell(history=history, places=await places(app, names), node=[node.title, node.kind])
        await app.decisions.accept(node.id)  # what a model logs is a proposal
        other = await app.sessions.start_session()
        await other.send_message("Make the token in lib/auth.ex shorter")
        tell(is_told="The name alone" in repr(model.last_request.messages))

run(main)
"""


def write(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


def started(world: World, script: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(json.dumps, words)],
        cwd=world.project,
        env={**world.environ, "WEFT_REPO_INDEX": "on", "PYTHONPATH": str(SRC.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


def heard(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line that a process says."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "it has ended"
    said: dict[str, Any] = json.loads(line)
    return said


def test_a_project_is_known_again_after_a_restart(plain_world: World) -> None:
    write(plain_world.project, FILES)
    with started(plain_world, FIRST, list(FOUND), list(LATER)) as first:
        assert heard(first)["watches"] == sorted(FILES)
        write(plain_world.project, LATER)
        told = heard(first)
        assert told["seen"] == {
            "lib/auth.ex": "created",
            "src/signer.rs": "created",
            "tools/report.py": "modified",
        }
        assert told["places"] == {name: [path] for name, path in FOUND.items()}
        answered = heard(first)
        assert answered["answer"] == "It is logged."
        assert answered["results"][0].startswith("lib/auth.ex:2")
        assert first.wait(30) < 0
    with started(plain_world, AGAIN, list(FOUND)) as again:
        known = heard(again)
        assert known["history"][-1] == "It is logged."
        assert known["places"] == {name: [path] for name, path in FOUND.items()}
        assert known["node"] == ["Sign tokens with a key", "decision"]
        assert heard(again) == {"is_told": True}
        assert again.wait(30) == 0
