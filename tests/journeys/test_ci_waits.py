"""A turn that waits for a CI run, by a program of the forge that stands on the search path."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import anyio
import pytest

from tests.support.waiting_turns import HeldSleep, result_of, woken_by
from tests.support.world import World, crash, facts, until, until_idle, until_status
from weft.api.session import Session
from weft.app import App
from weft.errors import BadArguments
from weft.events import PermissionRequest, ToolComplete, TurnWaiting
from weft.ids import SessionId
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.tools.waits.ci_look import ci_run

pytestmark = [pytest.mark.anyio, pytest.mark.process]

RUN = CallTool(name="wait_for", args={"ci": "acme/tool#77"})
RUNNING = {"status": "in_progress", "conclusion": ""}
GREEN = {"status": "completed", "conclusion": "success"}


class FakeForge:
    """`gh` and `glab` that say what the test says, and write down how they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("gh", "glab"):
            program = folder / name
            program.write_text(
                "#!/bin/sh\n"
                f'echo "{name} $* in $(pwd)" >> {folder}/asked\n'
                f"if [ -e {folder}/down ]; then echo 'no network' >&2; exit 1; fi\n"
                f"cat {folder}/state\n"
            )
            program.chmod(0o755)
        self.says(RUNNING)

    def says(self, state: dict[str, str]) -> None:
        (self.folder / "state").write_text(json.dumps(state))

    @property
    def asked(self) -> list[str]:
        path = self.folder / "asked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeForge:
    made = FakeForge(tmp_path / "forge")
    monkeypatch.setenv("PATH", f"{made.folder}:{os.environ['PATH']}")
    return made


def opened(world: World, model: ScriptedModel) -> tuple[App, HeldSleep]:
    sleep = HeldSleep(world.clock)
    return world.open(model, sleep=sleep, clock=world.clock), sleep


async def allowed_and_asleep(app: App, call: CallTool = RUN) -> Session:
    session = await app.sessions.start_session(session_id="ses_waits")
    await session.send_prompt("go")
    request = await until(session, PermissionRequest)
    assert "acme/tool" in request.preview
    await session.respond_to_permission("allow_once")
    await until(session, TurnWaiting)
    await until_status(session, "waiting")
    return session


async def until_looked(forge: FakeForge, sleep: HeldSleep, session: Session) -> None:
    """Let time pass until the turn has ended."""
    async with anyio.create_task_group() as group:

        async def tick() -> None:
            while True:
                await anyio.wait_all_tasks_blocked()
                sleep.pass_time(31)

        group.start_soon(tick)
        await until_idle(session)
        group.cancel_scope.cancel()


async def test_a_turn_waits_until_a_run_has_ended(world: World, forge: FakeForge) -> None:
    model = ScriptedModel([RUN, "green"])
    app, sleep = opened(world, model)
    async with app:
        session = await allowed_and_asleep(app)
        forge.says(GREEN)
        await until_looked(forge, sleep, session)
        assert await woken_by(session) == ["ci"]
        assert "The run 77 of acme/tool has ended.\nIt is: success." in await result_of(session)
        assert set(forge.asked) == {"gh run view 77 -R acme/tool --json status,conclusion in /"}
        assert len(model.requests) == 2


async def left_unasked(world: World) -> SessionId:
    """A session that asks no one, whose process died while its turn waited."""
    app, _ = opened(world, ScriptedModel([RUN, "never"]))
    await app.__aenter__()
    session = await app.sessions.start_session(session_id="ses_waits", auto_approve=True)
    await session.send_prompt("go")
    await until(session, TurnWaiting)
    await until_status(session, "waiting")
    await crash(app)
    return session.id


async def test_what_allowed_it_holds_for_the_looks_of_this_wait_in_another_process(
    world: World, forge: FakeForge
) -> None:
    session_id = await left_unasked(world)
    forge.says(GREEN)
    app, sleep = opened(world, ScriptedModel(["green"]))
    async with app:
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_looked(forge, sleep, session)
        assert await woken_by(session) == ["ci"]
        assert await facts(session, PermissionRequest) == []


async def test_what_another_user_sealed_is_asked_for(world: World, forge: FakeForge) -> None:
    session_id = await left_unasked(world)
    [key] = world.base.rglob("unattended.key")
    key.write_bytes(b"another user's key, 32 bytes long")
    asked = len(forge.asked)
    app, _ = opened(world, ScriptedModel(["never"]))
    async with app:
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_status(session, "awaiting_permission")
        assert len(forge.asked) == asked


@pytest.mark.parametrize(
    "forged",
    [
        ("shell", {"command": "touch stolen"}),
        ("wait_for", {"ci": "acme/other#77"}),
    ],
)
async def test_what_allowed_it_holds_for_no_call_that_was_put_in_its_place(
    shared_world: World, forge: FakeForge, forged: tuple[str, dict[str, str]]
) -> None:
    world = shared_world
    session_id = await left_unasked(world)
    name, args = forged
    given = json.dumps({"name": name, "args": args}, separators=(",", ":"))[1:-1]
    was = '"name":"wait_for","args":{"ci":"acme/tool#77"}'
    with sqlite3.connect(world.base / "weft.db") as store:
        changed = store.execute(
            "update facts set body = cast(replace(cast(body as text), ?, ?) as blob)"
            " where instr(cast(body as text), ?)",
            (was, given, was),
        )
        assert changed.rowcount == 1
    asked = len(forge.asked)
    app, _ = opened(world, ScriptedModel(["never"]))
    async with app:
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_status(session, "awaiting_permission")
        assert len(forge.asked) == asked
    assert not (world.project / "stolen").exists()


async def test_the_next_wait_needs_a_permission_of_its_own(world: World, forge: FakeForge) -> None:
    session_id = await left_unasked(world)
    forge.says(GREEN)
    app, sleep = opened(world, ScriptedModel(["green", RUN, "never"]))
    async with app:
        await app.host.wake_due()
        session = await app.sessions.get(session_id)
        await until_looked(forge, sleep, session)
        await session.send_prompt("again")
        await until(session, PermissionRequest)


async def test_a_forge_that_is_down_for_a_while_is_asked_again(
    world: World, forge: FakeForge
) -> None:
    app, sleep = opened(world, ScriptedModel([RUN, "green"]))
    async with app:
        session = await allowed_and_asleep(app)
        (forge.folder / "down").touch()
        await anyio.wait_all_tasks_blocked()
        sleep.pass_time(31)
        await anyio.wait_all_tasks_blocked()
        assert await session.get_status() == "waiting"
        (forge.folder / "down").unlink()
        forge.says(GREEN)
        await until_looked(forge, sleep, session)
        assert await woken_by(session) == ["ci"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [("down", "gh cannot say how run 77 of acme/tool is: no network"), ("gone", "not installed")],
)
async def test_a_forge_that_cannot_be_asked_is_said_at_once(
    world: World, forge: FakeForge, broken: str, said: str
) -> None:
    (forge.folder / "down").touch()
    if broken == "gone":
        (forge.folder / "gh").unlink()
    app, _ = opened(world, ScriptedModel([RUN, "ok"]))
    async with app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await until(session, PermissionRequest)
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        assert said in await result_of(session)
        assert await facts(session, TurnWaiting) == []


async def test_a_rule_for_commands_keeps_the_forge_from_being_asked(
    world: World, forge: FakeForge
) -> None:
    model, rules = ScriptedModel([RUN, "ok"]), {"permissions.deny": ["shell(gh *)"]}
    async with world.open(model, config=rules) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        assert [each.result.status for each in await facts(session, ToolComplete)] == ["denied"]
        assert forge.asked == []


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        ("acme/tool#77", "gh run view 77 -R acme/tool --json status,conclusion"),
        ("https://github.com/acme/tool/actions/runs/77/job/1", "gh run view 77 -R acme/tool"),
        ("gitlab:a/b/c#5", "glab ci get -p 5 -R a/b/c -F json"),
        ("https://gitlab.com/a/b/-/pipelines/5", "glab ci get -p 5 -R a/b -F json"),
    ],
)
def test_a_run_is_named_in_several_ways(given: str, argv: str) -> None:
    assert " ".join(ci_run(given).argv).startswith(argv)


@pytest.mark.parametrize(
    "given", ["77", "acme#7", "a/b/c#7", "-x/y#7", "a/b#7;ls", "a/b#", "--help", "a/-b#7"]
)
def test_what_is_no_run_is_refused(given: str) -> None:
    with pytest.raises(BadArguments, match="owner/name#RUN"):
        ci_run(given)
