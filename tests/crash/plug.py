"""The plug is pulled inside a command: afterwards the workspace equals the log, or each difference
is named, and nothing runs on.

`python -m tests.crash.plug` prints one JSON line; `--rounds 40 --seed 7` tries fewer of each kind,
others, `--kinds outside,agent` some kinds, and `--only 13` one round of each.  A round starts a
process with a session that mostly has a snapshot of its files and runs a command that changes them,
without end.  Beside it up to three processes of the command write, too: in sessions of their own,
after a double fork, with an emptied environment.  When all of them run, the process of the session
is killed (`kill -9`) at a chance instant.  The command runs

    sandboxed     in the sandbox
    outside       outside of it, or where there is none
    background    in the background
    agent         for a sub-agent
    recovery      outside, and the processes that go on with the session are killed, too

What is judged: every process of the command is dead; before the session is gone on with, each file
that is not what the last snapshot says is named by `session.differences()`, and of a sandboxed
command there is none; afterwards the files of the log (`session.files_at`) are those of the disk,
but for those that `differences()` names; what the command changed is on record as unknown; and the
command was not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import anyio
import msgspec

from tests.support.crash.journey_process import import_everything
from tests.support.role_models import RoleAnswers, agent_call, role_model
from tests.support.world import World
from weft.api.session import Session
from weft.app import App
from weft.events import FileTouched, PermissionRequest, WorkspaceSnapshot, decode
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

Kind: TypeAlias = Literal["sandboxed", "outside", "background", "agent", "recovery"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SESSION: Final = "ses_plug"
PATIENCE_SECONDS: Final = 20.0
GONE_SECONDS: float = 10.0
"""How long the processes of a command may take to die; a busy machine is slow."""
AFTER_SECONDS: Final = 0.06
"""How long after the last of its processes has begun the kill comes at the latest."""
RECOVERY_SECONDS: Final = 0.5
"""How long a process that goes on with the session may live before it is killed."""
LATER: Final = 6
"""Answers that the model has for turns after the command."""

WRITES: Final = """
import os, sys, time
while True:
    with open(sys.argv[2], "a") as file:
        file.write("more\\n")
    time.sleep(0.002)
"""
WORKS: Final = """
import os, sys, time
writes, token, *strays = sys.argv[1:]
for number, ways in enumerate(strays):
    first = os.fork()
    if first:
        if "double" in ways:
            os.waitpid(first, 0)
        continue
    if "session" in ways:
        os.setsid()
    if "double" in ways and os.fork():
        os._exit(0)
    argv = [sys.executable, "-I", "-S", "-c", writes, token, f"stray-{number}.txt"]
    os.execve(sys.executable, argv, {} if "emptied" in ways else os.environ)
number = 0
while True:
    with open("half.txt", "w") as file:
        file.write("one half, ")
        file.flush()
        time.sleep(0.001)
        file.write("and the other\\n")
    with open("made.tmp", "w") as file:
        file.write(f"{number}\\n")
    os.replace("made.tmp", f"made-{number % 7}.txt")
    if number == 5:
        os.unlink("b.txt")
    number += 1
    time.sleep(0.001)
"""
WAYS: Final = ("session", "double", "emptied")


class RoundPlan(msgspec.Struct, frozen=True):
    """What a seed and a number make of a round."""

    kind: Kind
    token: str
    """A word in the command line of every process of the command."""
    strays: tuple[str, ...]
    after: float
    """How long the command is let run, in seconds."""
    has_snapshot: bool
    """The session has a snapshot of its files before the command."""
    recoveries: tuple[float, ...]
    """How long each process that goes on with the session lives."""

    def describe(self) -> str:
        """For the report."""
        first = "a snapshot" if self.has_snapshot else "no snapshot"
        ms = f"{self.after * 1000:.0f} ms"
        return f"{self.kind}, {first}, strays {self.strays}, killed after {ms}"


def planned(seed: int, kind: Kind, number: int) -> RoundPlan:
    """The round of this number."""
    dice = random.Random(f"{seed}:{kind}:{number}")
    strays = tuple(
        "+".join(way for way in WAYS if dice.random() < 0.6) or "plain"
        for _ in range(dice.randint(0, 3))
    )
    lives = dice.randint(1, 3) if kind == "recovery" else 0
    return RoundPlan(
        kind=kind,
        token=f"plug-{os.getpid()}-{seed}-{kind}-{number}",
        strays=strays,
        after=dice.uniform(0.0, AFTER_SECONDS),
        has_snapshot=dice.random() < 0.7,
        recoveries=tuple(dice.uniform(0.0, RECOVERY_SECONDS) for _ in range(lives)),
    )


# -- the processes


def model_of(plan: RoundPlan) -> ScriptedModel:
    """Writes a file, then runs the command, by itself or by an agent."""
    words = [sys.executable, "-I", "-S", "-c", WORKS, WRITES, plan.token, *plan.strays]
    args: dict[str, Any] = {"command": " ".join(map(_quoted, words))}
    if plan.kind == "background":
        args["background"] = True
    elif plan.kind != "sandboxed":
        args["outside_sandbox"] = True
    run = CallTool(name="shell", args=args)
    asks = agent_call("dig here") if plan.kind == "agent" else run
    written = CallTool(name="write", args={"path": "written.txt", "content": "written\n"})
    first = [written] if plan.has_snapshot else []
    later = [SayText(text=f"answer {number}") for number in range(LATER)]
    roles: RoleAnswers = {
        "begin": [*first, "based", asks, *later],
        "dig": [run, *later],
    }
    return role_model(roles)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def open_plugged(world: World, plan: RoundPlan) -> App:
    """The application as each process opens it."""
    mode = "auto" if plan.kind == "sandboxed" or plan.token.endswith(("0", "1", "2")) else "off"
    return world.open(model_of(plan), config={"sandbox.mode": mode}, sleep=anyio.sleep)


async def start(app: App) -> Session:
    """The session, made or resumed."""
    return await app.sessions.start_session(session_id=SESSION)


async def begin(world: World, plan: RoundPlan, say: Callable[[Any], None]) -> None:
    """The first life: it never ends by itself."""
    async with open_plugged(world, plan) as app, anyio.create_task_group() as group:
        session = await start(app)
        group.start_soon(allow_everything, session)
        await session.send_message("begin")
        say(None)
        await session.send_message("go on")
        await anyio.sleep_forever()


async def allow_everything(session: Session) -> None:
    """Answer as a user does who allows all: no mode lets a command leave the sandbox unasked."""
    async with await session.subscribe() as events:
        async for event in events:
            if isinstance(event, PermissionRequest):
                await session.respond_to_permission("allow_once", request_id=event.request_id)


async def look(world: World, plan: RoundPlan, say: Callable[[Any], None]) -> None:
    """See what differs, and change nothing."""
    async with open_plugged(world, plan) as app:
        session = await app.sessions.get(SESSION)
        say(await named(session))


async def go_on(world: World, plan: RoundPlan, say: Callable[[Any], None]) -> None:
    """Go on with the session until it rests, and tell what the log has."""
    async with open_plugged(world, plan) as app:
        session = await start(app)
        if await session.get_status() == "interrupted":
            await session.continue_and_wait()
        await session.send_message("and then")
        files = await session.files_at(-1)
        contents = {path: each.content for path, each in files.files.items() if not each.is_folder}
        facts = [decode(record.body) for record in await app.store.read(SESSION)]
        unsure = [
            fact.path for fact in facts if isinstance(fact, FileTouched) and not fact.is_certain
        ]
        unsure += [
            change.path
            for fact in facts
            if isinstance(fact, WorkspaceSnapshot)
            for change in fact.changes
            if change.by != "session"
        ]
        say({"files": contents, "differences": await named(session), "unsure": unsure})


async def named(session: Session) -> list[str]:
    """The paths that differ from the log."""
    return [each.path for each in await session.differences()]


Work: TypeAlias = Callable[[World, RoundPlan, Callable[[Any], None]], Awaitable[None]]


class PluggedProcess:
    """A forked process; what it says comes through a pipe, one JSON value a line."""

    def __init__(self, work: Work, world: World, plan: RoundPlan) -> None:
        self._ear, voice = os.pipe()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._ear)
            _live(work, world, plan, voice)
        os.close(voice)
        self._heard = b""

    def hear(self) -> Any:
        """What it says next.

        Raises:
            RuntimeError: nothing comes.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._ear], [], [], max(0, deadline - time.monotonic()))
            portion = os.read(self._ear, 1 << 20) if ready else b""
            if not portion:
                raise RuntimeError("the process of the session ended, or says nothing")
            self._heard += portion
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def ends_within(self, seconds: float) -> None:
        """Wait until it has ended, or so long."""
        select.select([self._ear], [], [], seconds)

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self._ear)
            self.pid = 0


def _live(work: Work, world: World, plan: RoundPlan, voice: int) -> None:
    code = 1

    def say(said: Any) -> None:
        os.write(voice, json.dumps(said).encode() + b"\n")

    try:
        anyio.run(work, world, plan, say)
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


# -- what is seen from outside


def bearing(token: str) -> list[int]:
    """The living processes of a command, by its word."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if token.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"):
                found.append(int(name))
    return found


def wait_until(holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
    """True when it holds in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def on_disk(folder: Path) -> dict[str, str]:
    """Path → hash of every file."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def unequal(one: dict[str, str], other: dict[str, str | None]) -> set[str]:
    """Paths that are not the same in both."""
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


# -- a round


def attempt(seed: int, kind: Kind, number: int) -> str:
    """One round; what is wrong, with what happened in it."""
    plan = planned(seed, kind, number)
    with tempfile.TemporaryDirectory(prefix="weft-plug-") as name:
        wrong = judged(prepared(Path(name)), plan)
    return f"{kind} {number} ({plan.describe()}): {'; '.join(wrong)}" if wrong else ""


def prepared(folder: Path) -> World:
    """A project with three files, and a store on disk."""
    base = folder / "base"
    base.mkdir()
    world = World("sqlite", base)
    for name in "abc":
        world.write(f"{name}.txt", f"{name}\n")
    return world


def judged(world: World, plan: RoundPlan) -> list[str]:
    """What is wrong; nothing of the command is left."""
    try:
        return judge(world, plan)
    except (RuntimeError, OSError) as error:
        return [str(error)]
    finally:
        for pid in bearing(plan.token):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def judge(world: World, plan: RoundPlan) -> list[str]:
    """Let the round happen; what is wrong."""
    before = killed_inside(world, plan)
    if isinstance(before, str):
        return [before]
    if not wait_until(lambda: not bearing(plan.token), GONE_SECONDS):
        return [f"{len(bearing(plan.token))} processes run on"]
    for seconds in plan.recoveries:
        again = PluggedProcess(go_on, world, plan)
        again.ends_within(seconds)
        again.kill()
    wrong = [*judge_look(world, plan, before), *judge_end(world, plan, before)]
    if left := bearing(plan.token):
        wrong.append(f"{len(left)} processes run after the end: it was run again")
    return wrong


def killed_inside(world: World, plan: RoundPlan) -> dict[str, str] | str:
    """Kill the session inside its command; the files as they were before it, or what is wrong."""
    life = PluggedProcess(begin, world, plan)
    try:
        life.hear()
        before = on_disk(world.project)
        if not wait_until(lambda: len(bearing(plan.token)) > len(plan.strays)):
            return "the command did not begin"
        time.sleep(plan.after)
        return before
    finally:
        life.kill()


def judge_look(world: World, plan: RoundPlan, before: dict[str, str]) -> list[str]:
    """What is wrong before the session is gone on with."""
    now = on_disk(world.project)
    changed = unequal(now, dict(before))
    if plan.kind == "sandboxed" and changed:
        return [f"a sandboxed command left {sorted(changed)}"]
    if plan.recoveries:
        # They may have gone on to a snapshot of what is there now.
        return []
    looking = PluggedProcess(look, world, plan)
    try:
        found = set(looking.hear())
    finally:
        looking.kill()
    wrong = [f"not named: {sorted(changed - found)}"] if changed - found else []
    return wrong + ([f"named, and equal: {sorted(found - changed)}"] if found - changed else [])


def judge_end(world: World, plan: RoundPlan, before: dict[str, str]) -> list[str]:
    """What is wrong when the session has gone on."""
    changed = unequal(on_disk(world.project), dict(before))
    last = PluggedProcess(go_on, world, plan)
    try:
        said = last.hear()
    finally:
        last.kill()
    now = on_disk(world.project)
    wrong = []
    if silent := unequal(now, said["files"]) - set(said["differences"]):
        wrong.append(f"not what the log says, and not named: {sorted(silent)}")
    if certain := changed - set(said["unsure"]):
        wrong.append(f"changed by the command, and not recorded as unsure: {sorted(certain)}")
    if unequal(now, dict(before)) != changed:
        wrong.append("files were changed while the session went on")
    return wrong


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--only", type=int, default=None)
    chosen = parser.parse_args(argv)
    import_everything()
    begun = time.monotonic()
    numbers = range(chosen.rounds) if chosen.only is None else [chosen.only]
    tried: Counter[str] = Counter()
    violations = 0
    for kind in (each for each in KINDS if each in chosen.kinds.split(",")):
        for number in numbers:
            tried[kind] += 1
            if said := attempt(chosen.seed, kind, number):
                violations += 1
                print(said, file=sys.stderr, flush=True)
    line = {
        "claim": "plug",
        "n": tried.total(),
        "violations": violations,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - begun, 1),
        "kinds": tried,
    }
    print(json.dumps(line))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
