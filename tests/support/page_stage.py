"""Sessions with everything the page can show: a project with branches, a plan, decisions, a tree of
text and candidates, said and done by scripted models on the real server.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from tests.support.fan_project import git
from tests.support.role_models import first_prompt
from tests.support.served_world import ServedWorld
from tests.support.world import World, until, until_status
from weft.clock import SystemClock
from weft.events import ArchitectPlan
from weft.messages import Text, Usage
from weft.providers import ChatMessage
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.script import (
    CallTogether,
    CallTool,
    Fail,
    SayText,
    ScriptedAnswer,
    Spend,
    Stall,
    Think,
    as_answer,
)
from weft.providers.scripted import ScriptedModel, assistant_turns

RETRY: Final = '''"""Waiting between tries."""

import random

LONGEST = 60.0


def wait_for(attempt: int) -> float:
    """Seconds to wait."""
    return min(2**attempt, 30) + random.random()
'''
REMOTE: Final = '''"""Fetching from a mirror."""

import time

from larder.retry import wait_for


def fetch(url: str, tries: int = 4) -> bytes:
    for attempt in range(tries):
        reply = get(url)
        if reply.status < 500:
            return reply.body
        time.sleep(wait_for(attempt))
    raise OSError(url)
'''
TITLE: Final = "Honour Retry-After in remote fetches"


class PastClock(SystemClock):
    """The machine's clock, some time ago: what happened on the stage has an age."""

    def __init__(self, minutes: float) -> None:
        self._behind = minutes * 60

    def now(self) -> float:
        return time.time() - self._behind

    def pass_minutes(self, minutes: float) -> None:
        """Come nearer to now."""
        self._behind = max(0.0, self._behind - minutes * 60)


def edit(path: str, old: str, new: str) -> CallTool:
    """A call that edits a file."""
    return CallTool(name="edit", args={"path": path, "old_string": old, "new_string": new})


def write(path: str, content: str) -> CallTool:
    """A call that writes a file."""
    return CallTool(name="write", args={"path": path, "content": content})


def read(path: str) -> CallTool:
    """A call that reads a file."""
    return CallTool(name="read", args={"path": path})


def shell(command: str) -> CallTool:
    """A call that runs a command line."""
    return CallTool(name="shell", args={"command": command})


TEST_FILE: Final = "tests/test_retry_after.py"
NEW_WAIT: Final = '''def wait_for(attempt: int, reply: Response | None) -> float:
    """What the server asked for, else backoff."""
    asked = retry_after(reply)
    if asked is not None:
        return min(asked, LONGEST)
    return min(2**attempt, 30) + random.random()
'''
OLD_WAIT: Final = RETRY.partition("def wait_for")[1] + RETRY.partition("def wait_for")[2]

PROMPTS: Final[Mapping[str, list[Any]]] = {
    "test_fetch_retries fails about one run in five": [
        read("src/larder/remote.py"),
        "The test waits for a random time, and its own time-out is shorter. In `wait_for()` the "
        "random part comes on top of the cap.",
    ],
    "Reproduce it in a loop": [
        shell("for n in 1 2 3; do echo run $n; done; echo 11 failed, 39 passed"),
        "Of 50 runs 11 fail.",
    ],
    "Which call sleeps": ["`time.sleep` in `fetch()`, up to 31 s, with the pool's lock held."],
    "Fix it, but no new dependency": ["Then I parse the header ourselves: both forms are short."],
    "Read what the server asked for": [
        read("src/larder/retry.py"),
        edit("src/larder/retry.py", "LONGEST = 60.0\n", "LONGEST = 60.0\nPAST = 0.0\n"),
        "`Retry-After` is read as a number of seconds.",
    ],
    "Use tenacity for the retry loop": [
        write("requirements.txt", "tenacity\n"),
        "It is in, and the loop is a decorator now.",
    ],
    "no stubs for tenacity": ["There are none; I left the call untyped."],
    "Run it on 3.11": [shell("echo 50 passed on 3.11; echo 50 passed on 3.13"), "Both pass."],
    "Cap the wait at 60 s": [
        edit("src/larder/remote.py", "tries: int = 4", "tries: int = 6"),
        "Capped, and the tries are six.",
    ],
    "Put the whole policy into one object": [
        write("src/larder/policy.py", "class Policy:\n    longest = 60.0\n    tries = 6\n"),
        "`Policy` holds the cap, the tries and the clock.",
    ],
    "Name the policy in the docs": [write("docs/retries.md", "# Retries\n"), "Named."],
    "Handle the HTTP-date form too": [
        edit("src/larder/retry.py", OLD_WAIT, NEW_WAIT),
        "Both forms are read now. A date in the past counts as zero, so a clock that runs ahead "
        "never makes us wait.",
    ],
    "Which servers send dates": ["Ours, and two of the public mirrors."],
    "Run the date test 50 times": [
        write(TEST_FILE, "def test_number() -> None: ...\n\n\ndef test_date() -> None: ...\n"),
        "All 50 pass, on 3.11 and on 3.13. The test file is new: it has the number, the date, and "
        "a date that is already past, which counts as zero.",
    ],
    "Try it with what our mirror really sends": [
        (
            SayText(
                text="I add your mirror's header as a case of its own. Both forms go through "
                "`retry_after()`, and either is capped at 60 s, as you asked in turn 8."
            ),
            CallTogether(
                calls=(
                    read("src/larder/retry.py"),
                    CallTool(name="grep", args={"pattern": "retry", "path": "src"}),
                )
            ),
        ),
        edit(TEST_FILE, "test_date()", "test_date_of_our_mirror()"),
        shell("printf '%.0s.' $(seq 50); echo ' [100%]'; echo '50 passed in 3.86s'"),
        (
            SayText(text="All 50 pass; before turn 9, 11 of 50 failed. Pushing the branch now."),
            shell("git push origin retry-after"),
        ),
        "Pushed. `retry-after` is on the server, three files, 50 of 50 on both versions.",
    ],
    "Now take the sleep out of remote.py": [
        (
            Think(
                text="Two callers hold the pool lock while they sleep. If the wait moves into the "
                "event loop, cancellation reaches it; the lock must be released first, or a second "
                "download stalls behind the first one."
            ),
            read("src/larder/remote.py"),
        ),
        CallTogether(
            calls=(
                CallTool(name="agent", args={"prompt": "callers of fetch() and open_stream()"}),
                CallTool(name="agent", args={"prompt": "who sleeps today, and under which lock"}),
            )
        ),
        CallTool(
            name="todo",
            args={
                "todos": [
                    {"text": "Reproduce the failure in a loop", "status": "done"},
                    {"text": "Read what the server asked for", "status": "done"},
                    {"text": "Cap the wait at 60 s", "status": "done"},
                    {"text": "HTTP-date form", "status": "done"},
                    {"text": "Move the sleep out of remote.py", "status": "in_progress"},
                    {"text": "Document it in docs/retries.md", "status": "pending"},
                ]
            },
        ),
        shell("echo 'tests/test_remote.py::test_cancel FAILED'; exit 1"),
        (
            SayText(
                text="The failing test is the one that matters: the lock is taken in "
                "`Pool.lease()` and kept across the wait. I am splitting the wait in two:\n\n"
                "- release the lease before sleeping, and take it again after;\n"
                "- wait on the cancel event with a time-out instead of `time.sleep`, so that a "
                "cancel ends it at"
            ),
            Stall(gate="writing"),
        ),
    ],
    "callers of fetch()": ["`cli.py` and `mirror.py`, both from the event loop."],
    "who sleeps today": [(SayText(text="grep time.sleep"), Stall(gate="agent"))],
    "Why is the wheel": ["The fixtures are in it: 8.1 of 9 MB."],
    "Type the config loader": [
        write("src/larder/config.py", "def load() -> dict[str, str]:\n    return {}\n"),
        "Typed.",
    ],
    "Write the release notes": [(SayText(text="## 0.9\n\n- "), Fail(error="AuthFailed"))],
    "Two files for the policy": [
        CallTool(
            name="submit",
            args={
                "summary": "The policy in a file of its own, then its test.",
                "steps": [
                    {
                        "action": "create",
                        "file": "src/larder/policy.py",
                        "description": "A class for the cap, the tries and the clock.",
                        "details": "As in retry.py.",
                        "check": "python -c 'import larder'",
                    },
                    {
                        "action": "edit",
                        "file": "src/larder/remote.py",
                        "description": "Use it in fetch().",
                        "details": "Hand it in.",
                        "check": "true",
                    },
                    {
                        "action": "create",
                        "file": "tests/test_policy.py",
                        "description": "A test for each of its fields.",
                        "details": "Three tests.",
                        "check": "true",
                    },
                ],
            },
        )
    ],
}


def last_prompt(request: ModelRequest) -> str:
    """The last prompt of a request that is on the list."""
    for message in reversed(request.messages):
        if isinstance(message, ChatMessage) and message.role == "user":
            text = "".join(part.text for part in message.parts if isinstance(part, Text))
            if any(each in text for each in PROMPTS):
                return text
    return first_prompt(request)


def stage_model(name: str = "script") -> ScriptedModel:
    """A model that answers the prompts of the stage, whoever asks and whenever."""

    def choose(request: ModelRequest) -> ScriptedAnswer:
        prompt = last_prompt(request)
        key = next((each for each in PROMPTS if each in prompt), None)
        if key is None:
            return as_answer([SayText(text="and every download with a question."), SPENT])
        before = _rounds_since(request, key)
        found = PROMPTS[key][min(before, len(PROMPTS[key]) - 1)]
        steps = [SayText(text=found)] if isinstance(found, str) else found
        listed = (
            list(steps)
            if isinstance(steps, tuple)
            else [*(steps if isinstance(steps, list) else [steps])]
        )
        return as_answer([*listed, SPENT] if not isinstance(listed[-1], Fail | Stall) else listed)

    info = ModelInfo(
        provider="scripted",
        name=name,
        context_window=200_000,
        price_input=3.0,
        price_output=15.0,
        thinks=True,
        levels=("low", "medium", "high"),
    )
    return ScriptedModel([], choose=choose, info=info)


SPENT: Final = Spend(usage=Usage(input_tokens=4_000, output_tokens=500, cost_usd=0.02))


def _rounds_since(request: ModelRequest, key: str) -> int:
    rounds = 0
    for message in reversed(request.messages):
        if not isinstance(message, ChatMessage):
            continue
        text = "".join(part.text for part in message.parts if isinstance(part, Text))
        if message.role == "user" and key in text:
            return rounds
        rounds += message.role == "assistant"
    return assistant_turns(request)


def make_project(world: World) -> None:
    """The project of the stage, with one commit."""
    world.write("src/larder/__init__.py", "")
    world.write("src/larder/retry.py", RETRY)
    world.write("src/larder/remote.py", REMOTE)
    world.write("README.md", "# larder\n\nFetches packages.\n")
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", "first")


class PageStage:
    """Sessions that are played on a server, one call for each."""

    def __init__(self, served: ServedWorld, clock: PastClock) -> None:
        self.served = served
        self.clock = clock

    async def start(self, title: str, **settings: Any) -> str:
        """A session that asks nothing."""
        given = {"title": title, "permission_mode": "bypass", **settings}
        return str((await self.served.good("POST", "/sessions", given))["id"])

    async def say(self, session: str, *prompts: str) -> None:
        """Turns, some minutes apart."""
        for prompt in prompts:
            await self.served.good("POST", f"/sessions/{session}/message", {"content": prompt})
            self.clock.pass_minutes(4)

    async def head(self, session: str) -> str:
        """The last message of the line."""
        found = await self.served.good("GET", f"/sessions/{session}/messages?limit=1")
        return str(found["messages"][-1]["id"])

    async def branch(self, session: str, at: str, name: str) -> None:
        """A new branch from a message."""
        given = {"at": at, "name": name}
        await self.served.good("POST", f"/sessions/{session}/branches", given)

    async def switch(self, session: str, name: str) -> None:
        """Back to a branch."""
        await self.served.good("POST", f"/sessions/{session}/branches/{name}/switch", {})

    async def retry_session(self) -> str:
        """Twelve turns and four branches; the last turn waits for an answer."""
        session = await self.start(TITLE)
        await self.say(
            session,
            "test_fetch_retries fails about one run in five on CI. Why?",
            "Reproduce it in a loop of 50",
            "Which call sleeps, and for how long?",
            "Fix it, but no new dependency",
        )
        fourth = await self.head(session)
        await self.branch(session, fourth, "tenacity")
        await self.say(session, "Use tenacity for the retry loop", "mypy: no stubs for tenacity")
        await self.switch(session, "main")
        await self.say(session, "Read what the server asked for", "Run it on 3.11 and 3.13")
        await self.served.good("POST", f"/sessions/{session}/checkpoints", {"label": "green"})
        sixth = await self.head(session)
        await self.branch(session, sixth, "retry-policy")
        await self.say(session, "Put the whole policy into one object")
        await self.say(session, "Name the policy in the docs")
        await self.switch(session, "main")
        await self.say(
            session,
            "Cap the wait at 60 s",
            "Handle the HTTP-date form too",
            "Which servers send dates?",
            "Run the date test 50 times",
        )
        return session

    async def others(self) -> None:
        """Older sessions for the lists."""
        await self.say(await self.start("Why is the wheel 9 MB?"), "Why is the wheel 9 MB?")
        await self.say(await self.start("Type the config loader"), "Type the config loader")
        await self.say(await self.start("Release notes 0.9"), "Write the release notes of 0.9")

    async def decisions(self, project: str) -> None:
        """What was decided, and what was not."""
        path = f"/projects/{project}/decisions"
        for title, why, options in (
            (
                "Parse Retry-After ourselves, both forms",
                "A dependency would bring 1,900 lines for forty.",
                ["tenacity", "urllib3.Retry"],
            ),
            ("No wait longer than a minute", "A mirror asked for a day once.", ["No cap"]),
            ("Release the lock while waiting", "A cancelled download must not wait for it.", []),
        ):
            given = {"title": title, "why": why, "scope": ["src/larder/retry.py"]}
            await self.served.good("POST", path, {**given, "options": options})

    async def mcp_servers(self, project: str) -> None:
        """One that the project names, one that is ready and has changed a tool, one with an
        address.
        """
        self.served.world.write(
            ".mcp.json", '{"mcpServers": {"linter": {"command": "ruff", "args": ["server"]}}}\n'
        )
        path = f"/projects/{project}/mcp"
        entry = {"command": "python3", "args": ["-m", "package_index", "--offline"]}
        await self.served.good("PUT", f"{path}/packages", {"entry": entry, "scope": "user"})
        entry = {"type": "http", "url": "https://docs.example.org/mcp"}
        await self.served.good("PUT", f"{path}/docs", {"entry": entry, "scope": "local"})

    async def loom(self) -> str:
        """A tree of text with several ends; its deepest line is the one that is read."""

        async def child(of: str, text: str, model: str = "scripted:script") -> str:
            given = {"text": text, "model": model}
            return str((await self.served.good("POST", f"/looms/{of}/children", given))["id"])

        first = {"text": "Every build begins with a promise that nobody wrote down: "}
        root = str((await self.served.good("POST", "/looms", first))["id"])
        one = await child(root, "the same input gives the same output. ")
        await child(
            root, "the machine that made it yesterday will make it again. ", "local:smollm2"
        )
        two = await child(one, "larder writes it down, and keeps the receipt. ")
        await child(one, "Most tools keep it only while nobody looks. ")
        await child(two, "Ask it for a file, and it answers with where the file came from. ")
        await child(two, "A download is a question; the lock file is its answer. ", "local:smollm2")
        await child(two, "What it cannot prove, it does not keep. ")
        return two

    async def wait_for_push(self, session: str) -> None:
        """A turn that edits, tests, and then asks before it pushes; and a message behind it."""
        path = f"/sessions/{session}"
        await self.served.good("PUT", f"{path}/permission-mode", {"mode": "default"})
        said = (
            "Try it with what our mirror really sends, `Retry-After: Wed, 21 Oct 2026`, 50 times "
            "more, then push."
        )
        await self.served.good("POST", f"{path}/prompt", {"content": said})
        while "push" not in await self.asked(session):
            await self.allow(session)
        await self.served.good(
            "POST", f"{path}/follow-up", {"content": "also run mypy on the whole package"}
        )

    async def asked(self, session: str) -> str:
        """What is asked now; waits until something is."""
        await until_status(await self.served.app.sessions.get(session), "awaiting_permission")
        found = await self.served.good("GET", f"/sessions/{session}")
        return str(found["snapshot"]["requests"][0].get("preview", ""))

    async def allow(self, session: str) -> None:
        """Allow what is asked, once."""
        found = await self.served.good("GET", f"/sessions/{session}")
        for request in found["snapshot"]["requests"]:
            await self.served.good(
                "POST",
                f"/sessions/{session}/requests/{request['request_id']}",
                {"action": "allow_once"},
            )

    async def stream(self, session: str, model: ScriptedModel) -> None:
        """A turn with agents, a failing command and an answer that is being written."""
        await self.served.good("DELETE", f"/sessions/{session}/queue", {})
        await self.until(session, "idle")
        path = f"/sessions/{session}"
        await self.served.good("PUT", f"{path}/permission-mode", {"mode": "bypass"})
        said = "Now take the sleep out of remote.py, so that a cancelled download does not wait."
        await self.served.good("POST", f"{path}/prompt", {"content": said})
        await model.gate("agent").reached.wait()
        model.gate("agent").opened.set()
        await model.gate("writing").reached.wait()

    async def until(self, session: str, status: str) -> None:
        """Wait for a status."""
        await until_status(await self.served.app.sessions.get(session), status)

    async def plan(self) -> str:
        """A plan that waits to be approved."""
        session = await self.start(
            "The policy in two files", mode="architect", permission_mode="accept_edits"
        )
        path = f"/sessions/{session}/prompt"
        await self.served.good("POST", path, {"content": "Two files for the policy, please."})
        await until(await self.served.app.sessions.get(session), ArchitectPlan)
        return session
