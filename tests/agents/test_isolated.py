"""Isolated agents: each in an overlay of its own, as a candidate of a fan-out is, and what it
changed comes back through the same merge, when that is approved.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.fan_project import git
from tests.support.fan_stage import make_stage, shell_call, write_call
from tests.support.role_models import agent_call, first_prompt, only_child
from tests.support.world import PATIENCE, World, facts, running, until, until_idle
from weft.api.session import Session
from weft.app import App
from weft.events import (
    ChildFinished,
    FanCandidateEnded,
    FanCandidateStarted,
    FanKept,
    FanStarted,
    PermissionRequest,
    SessionCreated,
    ToolComplete,
    TurnFinished,
)
from weft.providers.base import ModelRequest
from weft.providers.script import CallTool, SayText, ScriptedAnswer, Stall, as_answer
from weft.providers.scripted import ScriptedModel, assistant_turns

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]

ON = {"sandbox.mode": "on"}
ALONE = "---\ndescription: alone\nisolation: worktree\n---\nWork alone."
HIRE = agent_call("do the work", agent="alone")
KEEP = object()
"""Keep what the agent before has made."""


def player(ask: list[Any], work: list[Any]) -> ScriptedModel:
    """The session gives the answers of `ask`, and its agent those of `work`."""

    def choose(request: ModelRequest) -> ScriptedAnswer:
        steps = work if "do the work" in first_prompt(request) else ask
        step = steps[assistant_turns(request)]
        if step is KEEP:
            found = re.findall(r'keep="(fan_\w+)"', str(request.messages))
            step = CallTool(name="agent", args={"keep": found[-1]})
        return as_answer(step)

    return ScriptedModel([], choose=choose)


@pytest.fixture
def stage(tmp_path: Path) -> World:
    made = World("sqlite", tmp_path)
    made.write(".weft/agents/alone.md", ALONE)
    make_stage(made)
    return made


def opened(world: World, model: ScriptedModel, **config: Any) -> App:
    return world.open(model, config={**ON, **config})


async def start(app: App, **settings: Any) -> Session:
    await app.trust()
    return await app.sessions.start_session(
        session_id="s", **{"permission_mode": "accept_edits", **settings}
    )


def left(world: World) -> list[str]:
    """What is on disk of overlays, and of marks of what is under way."""
    marks = (world.base / "fans" / "unsettled").glob("*")
    return [path.name for path in (*(world.base / "sandbox" / "fans").glob("*"), *marks)]


async def test_what_an_isolated_agent_changes_stays_apart_until_it_is_kept_and_is_rewound(
    stage: World,
) -> None:
    work = shell_call(
        "echo 3 >> README.md; mkdir new; echo n > new/n; git add -A; git commit -qm x"
    )
    model = player([HIRE, "Not yet.", KEEP, "Done."], [work, "Worked."])
    async with opened(stage, model) as app:
        session = await start(app)
        await session.send_message("ask")
        [complete] = await facts(session, ToolComplete)
        assert complete.result.text.startswith("Worked.\n\nIt worked in an overlay of its own")
        assert "It changed 2 files (+2 −0): README.md, new/n." in complete.result.text
        assert "+3" in complete.result.text
        assert not (stage.project / "new").exists()
        assert git(stage.project, "log", "--oneline").count("\n") == 1, "its commit is its own"
        [began] = await facts(session, FanCandidateStarted)
        assert (began.isolation, began.network) == ("overlay", False)
        [listed] = await app.fans()
        assert (listed.agent, listed.ended) == ("alone", 1)
        stage.write("README.md", "1\n\n\ntwo\n\n\nthree\n")
        await session.send_message("keep it")
        assert stage.read("README.md") == "1\n\n\ntwo\n\n\nthree\n3\n", "both are in it"
        assert stage.read("new/n") == "n\n"
        [kept] = await facts(session, FanKept)
        assert kept.merged == ("README.md",)
        assert {each.path for each in await session.touched_files()} >= {"README.md", "new/n"}
        assert await app.fans() == []
        assert left(stage) == []
        await session.rewind(2)
        assert not (stage.project / "new/n").exists()
        assert stage.read("README.md") == "1\n\n\ntwo\n\n\nthree\n"


async def test_an_agent_that_changes_nothing_leaves_nothing(stage: World) -> None:
    async with opened(stage, player([HIRE, "Done."], ["Nothing to do."])) as app:
        session = await start(app)
        await session.send_message("ask")
        [complete] = await facts(session, ToolComplete)
        assert complete.result.text == "Nothing to do."
        assert await app.fans() == []
        assert left(stage) == []
        assert list((stage.base / "fans").glob("*.json")) == []


async def test_in_an_overlay_nothing_is_asked_for_and_the_way_back_is(stage: World) -> None:
    model = player(
        [HIRE, KEEP, "Denied.", KEEP, "Done."], [shell_call("echo x > x.txt"), "Worked."]
    )
    async with opened(stage, model) as app:
        session = await start(app, permission_mode="default")
        async with running(lambda: session.send_message("ask")):
            request = await until(session, PermissionRequest)
            assert request.tool_name == "agent"
            assert "+x" in request.preview
            await session.respond_to_permission("deny", request_id=request.request_id)
        assert not (stage.project / "x.txt").exists()
        async with running(lambda: session.send_message("again")):
            request = await until(session, PermissionRequest, after=request.seq)
            await session.respond_to_permission("allow_once", request_id=request.request_id)
        assert stage.read("x.txt") == "x\n"
        assert left(stage) == []


async def test_what_the_user_does_meanwhile_is_not_seen_and_conflicts_stay_theirs(
    stage: World,
) -> None:
    looks = shell_call("cat README.md; cat src/add.py > seen.txt; echo mine > src/add.py")
    model = player(
        [HIRE, KEEP, "Done."],
        [(Stall(times=1), shell_call("true")), looks, "Worked."],
    )
    async with opened(stage, model) as app:
        session = await start(app)
        async with running(lambda: session.send_message("ask")):
            await model.gate().reached.wait()
            before = stage.read("src/add.py")
            stage.write("src/add.py", "theirs\n")
            git(stage.project, "commit", "-qam", "theirs")
            # The kernel tells of a change after it was made: the old content is put back then.
            upper = stage.base / "sandbox/fans"
            while not list(upper.glob("*/1/upper/src/add.py")):  # noqa: ASYNC110 - a file
                await anyio.sleep(0.01)
            model.gate().opened.set()
        [_, complete] = await facts(session, ToolComplete)
        assert "Not put: src/add.py (you and the candidate changed the same lines)" in (
            complete.result.text
        )
        assert stage.read("src/add.py") == "theirs\n"
        assert stage.read("seen.txt") == before
        assert len(await app.fans()) == 1, "what was not taken over can be looked at"


async def test_without_an_overlay_it_works_in_a_copy_and_that_is_said(stage: World) -> None:
    model = player([HIRE, KEEP, "Done."], [write_call("new.txt", "n\n"), "Worked."])
    async with opened(stage, model, **{"sandbox.mode": "off"}) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("ask")
        [complete, _] = await facts(session, ToolComplete)
        assert "It worked in a copy of the project (there is no overlay here: the sandbox is " in (
            complete.result.text
        )
        assert stage.read("new.txt") == "n\n"
        assert left(stage) == []


async def test_who_wants_overlays_only_gets_no_copy(stage: World) -> None:
    model = player([HIRE, "I see."], [])
    config = {"sandbox.mode": "off", "fan.isolation": "overlay"}
    async with opened(stage, model, **config) as app:
        session = await start(app)
        await session.send_message("ask")
        [complete] = await facts(session, ToolComplete)
        assert complete.is_error
        assert "cannot be kept apart by an overlay here" in complete.result.text
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "halted"
        assert left(stage) == []


async def test_the_next_process_goes_on_in_the_overlay_of_one_that_ended(stage: World) -> None:
    second = shell_call("echo 2 > 2.txt")
    model = player([HIRE, "-"], [shell_call("echo 1 > 1.txt"), (Stall(times=1), second), "Worked."])
    async with opened(stage, model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
    model = player([HIRE, KEEP, "Done."], [shell_call("false"), second, "Worked."])
    async with opened(stage, model) as app:
        session = await app.sessions.get("s")
        await session.set_permission_mode("accept_edits")
        await session.continue_turn()
        await until_idle(session)
        assert (stage.read("1.txt"), stage.read("2.txt")) == ("1\n", "2\n")
        assert len(await facts(session, FanStarted)) == 1
        assert len(await facts(session, FanCandidateStarted)) == 1
        assert left(stage) == []


WORK = """
import os, sys, anyio
from weft.app import open_app

async def work(base, goes_on):
    environ = {"HOME": base, "WEFT_HOME": base, "PATH": os.environ["PATH"]}
    settings = {"model.default": f"scripted:{base}/ask.json", "repo.index": False}
    async with open_app(f"{base}/project", f"{base}/weft.db", settings, environ=environ) as app:
        await app.trust()
        if goes_on:
            session = await app.sessions.get("s")
            print(sorted(os.listdir(f"{base}/fans/unsettled")), flush=True)
            await session.continue_turn()
            async with await session.subscribe() as events:
                while await session.get_status() != "idle":
                    await anext(events)
            for each in await app.fans():
                fan = await app.fan(each.id)
                print((await fan.keep(1)).is_kept, flush=True)
                await fan.close()
        else:
            session = await app.sessions.start_session(session_id="s", asking="no")
            await session.send_message("ask")

anyio.run(work, sys.argv[1], bool(sys.argv[2:]))
"""


def scripted(*steps: dict[str, Any]) -> str:
    return json.dumps({"by": "content", "answers": [{"steps": [step]} for step in steps]})


async def test_what_a_kill_leaves_is_settled_by_the_next_start_and_goes_on(stage: World) -> None:
    base = stage.base
    stage.write(
        ".weft/agents/alone.md", ALONE.replace("isol", f"model: scripted:{base}/x.json\nisol")
    )
    call = {"do": "call", "name": "agent", "args": {"prompt": "work", "agent": "alone"}}
    wait = {"do": "call", "name": "shell", "args": {"command": "echo 1 > 1.txt; sleep 600"}}
    done = {"do": "text", "text": "Done."}
    (base / "ask.json").write_text(scripted(call, done))
    (base / "x.json").write_text(scripted(wait, done))
    process = await anyio.open_process([sys.executable, "-c", WORK, str(base)])
    async with process:
        with anyio.fail_after(PATIENCE):
            while not list(base.glob("sandbox/fans/*/1/upper/1.txt")):  # noqa: ASYNC110 - a file
                await anyio.sleep(0.02)
        process.kill()
    assert not (stage.project / "1.txt").exists()
    after = await anyio.run_process([sys.executable, "-c", WORK, str(base), "goes on"])
    assert after.stdout.decode().splitlines() == ["[]", "True"]
    assert stage.read("1.txt") == "1\n"
    assert left(stage) == []


async def test_what_an_agent_had_changed_when_it_was_stopped_is_on_record(stage: World) -> None:
    steps = [shell_call("echo 1 > 1.txt"), (Stall(times=1), SayText(text="x"))]
    model = player([HIRE, "Done."], steps)
    async with opened(stage, model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        with anyio.fail_after(PATIENCE):
            await session.abort()
            await until_idle(session)
        [ended] = await facts(session, FanCandidateEnded)
        assert ended.files == ("1.txt",)
        [turn] = await facts(session, TurnFinished)
        assert turn.finish_reason == "aborted"
        [listed] = await app.fans()
        fan = await app.fan(listed.id)
        assert "+1" in await fan.diff(1)
        await fan.close()
        assert left(stage) == []


async def test_a_background_agent_is_isolated_too(stage: World) -> None:
    hire = agent_call("do the work", agent="alone", background=True)
    model = player([hire, "Waiting.", KEEP, "Done."], [shell_call("echo x > x.txt"), "Worked."])
    async with opened(stage, model) as app:
        session = await start(app)
        async with running(lambda: session.send_message("ask")):
            await until(session, FanKept)
            await until_idle(session)
        assert stage.read("x.txt") == "x\n"
        assert left(stage) == []


async def test_it_has_no_tools_that_see_the_project_itself(stage: World) -> None:
    async with opened(stage, player([HIRE, "Done."], ["Nothing."])) as app:
        session = await start(app)
        await session.send_message("ask")
        child = await app.sessions.get(await only_child(session))
        [created] = await facts(child, SessionCreated)
        assert not {"agent", "wait", "outline"} & set(created.settings["tools"])
        assert {"read", "shell"} <= set(created.settings["tools"])
        assert created.settings["permission_mode"] == "auto"


async def test_changes_of_another_session_and_unknown_ones_are_not_kept(stage: World) -> None:
    work = [shell_call("echo x > x.txt"), "Worked."]
    async with opened(stage, player([HIRE, "Done."], work)) as app:
        session = await start(app)
        await session.send_message("ask")
        [listed] = await app.fans()
    calls = [CallTool(name="agent", args={"keep": each}) for each in (listed.id, "fan_x")]
    calls.append(CallTool(name="agent", args={}))
    async with opened(stage, player([*calls, "I see."], [])) as app:
        other = await app.sessions.start_session(session_id="t", auto_approve=True)
        await other.send_message("ask")
        said = [each.result.text for each in await facts(other, ToolComplete)]
        assert "no agent of this session" in said[0]
        assert "there is no fan-out 'fan_x'" in said[1]
        assert "`prompt` is missing" in said[2]
        assert not (stage.project / "x.txt").exists()


async def test_without_trust_nothing_is_isolated_and_git_is_not_called(stage: World) -> None:
    async with opened(stage, player([HIRE, "I see."], [])) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        await session.send_message("ask")
        [complete] = await facts(session, ToolComplete)
        assert complete.is_error
        assert "in a folder that the user does not trust" in complete.result.text
        assert left(stage) == []
