"""A session and one that works for it, each in an application of its own."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from tests.support.role_models import RoleAnswers, agent_call, role_model
from tests.support.world import MODEL, PATIENCE, World, crash, facts, until, until_idle
from weft.api.session import Session
from weft.app import App
from weft.errors import UsageError
from weft.events import (
    ChildFinished,
    ChildStarted,
    PermissionRequest,
    ToolComplete,
    UsageRecorded,
)
from weft.ids import SessionId, TurnId
from weft.messages import NOTHING_USED, Usage
from weft.permissions import PermissionRule
from weft.providers.script import CallTool, SayText, Spend, Stall, Step
from weft.session import ForwardRequest, GrantedPermissions, ReportChild, Reserve, Settle

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120), pytest.mark.process]

CALL = Usage(input_tokens=500, output_tokens=500)
BUDGET = 6_000


def step(number: int) -> tuple[CallTool, Spend]:
    """A call that uses a thousand tokens; each looks somewhere else."""
    return CallTool(name="find", args={"pattern": f"*.{number}"}), Spend(usage=CALL)


def roles(*, stalls: bool) -> RoleAnswers:
    """The parent hands its task to an agent, which would never end by itself."""
    waits: tuple[Step, ...] = (Stall(gate="a"),) if stalls else ()
    first: tuple[Step, ...] = (SayText(text="hm"), *waits, *step(0))
    return {
        "begin": [
            (agent_call("dig"), Spend(usage=CALL)),
            (SayText(text="The end."), Spend(usage=CALL)),
        ],
        "dig": [first, *(step(number) for number in range(1, 60))],
    }


async def begin(app: App) -> Session:
    """Start the session that has the budget."""
    return await app.sessions.start_session(
        session_id="root",
        model=MODEL,
        auto_approve=True,
        budget={"max_tokens": BUDGET},
    )


async def left_by_a_crash(world: World) -> SessionId:
    """A family whose process died while the agent was answering; returns the agent's id."""
    model = role_model(roles(stalls=True))
    app = world.open(model)
    await app.__aenter__()
    session = await begin(app)
    await session.send_prompt("begin")
    with anyio.fail_after(PATIENCE):
        await model.gate("a").reached.wait()
    [started] = await facts(session, ChildStarted)
    await crash(app)
    return started.child


async def spent(session: Session) -> int:
    """Tokens that the family has on the record of its root."""
    return (await session.usage()).total.total_tokens


async def test_a_child_in_another_process_keeps_to_the_budget_of_its_parent(
    shared_world: World,
) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    model = role_model(roles(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        root = await begin(here)
        child = await there.sessions.get(child_id)
        assert there.host.runs_here(child_id)
        reply = await child.continue_and_wait()
        assert reply.finish_reason == "max_budget"
        assert not there.host.runs_here(root.id), "the parent stayed where it was"
        await root.continue_turn()
        await until_idle(root)
        [ended] = await facts(root, ChildFinished)
        assert ended.reason == "max_budget"
        own = [fact.usage for fact in await facts(root, UsageRecorded)]
        of_child = [fact.usage for fact in await facts(child, UsageRecorded)]
        counted = sum((*own, *of_child), NOTHING_USED).total_tokens
        assert await spent(root) == counted, "each call is counted once"
        assert counted <= BUDGET + CALL.total_tokens


async def test_a_parent_follows_its_child_into_another_process(shared_world: World) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    model = role_model(roles(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        child = await there.sessions.get(child_id)
        root = await begin(here)
        # The child has not gone on yet: its parent has it go on, where it is.
        reply = await root.continue_and_wait()
        assert reply.finish_reason == "max_budget"
        assert there.host.runs_here(child_id)
        assert not here.host.runs_here(child_id)
        assert len(await facts(root, ChildFinished)) == 1
        assert await child.get_status() == "idle"


async def test_a_child_whose_process_dies_goes_on_in_its_parents(shared_world: World) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    stalled, model = role_model(roles(stalls=True)), role_model(roles(stalls=False))
    there = world.open(stalled)
    await there.__aenter__()
    async with world.open(model) as here:
        await there.sessions.get(child_id)
        root = await begin(here)
        await root.continue_turn()
        with anyio.fail_after(PATIENCE):
            await stalled.gate("a").reached.wait()
        await crash(there)
        await until_idle(root)
        [ended] = await facts(root, ChildFinished)
        assert ended.reason == "max_budget"
        assert here.host.runs_here(root.id)


async def test_commands_of_a_family_are_refused_from_any_other_process(
    shared_world: World,
) -> None:
    """The carrier asks kernel and store who speaks."""
    world = shared_world
    child_id = await left_by_a_crash(world)
    model = role_model(roles(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        root = await begin(here)
        port = await there.host.port(root.id)
        turn = TurnId("trn_x")
        commands = (
            ReportChild(child=child_id, reason="stop"),
            ForwardRequest(child=child_id),
            Reserve(child=child_id, turn_id=turn, total=NOTHING_USED, pending=NOTHING_USED),
            Settle(child=child_id, turn_id=turn),
        )
        for command in commands:
            # No process has the child.
            with pytest.raises(UsageError, match="only for the process that has"):
                await port.call(command)
        assert not await facts(root, ChildFinished)
        # It has a session, but none that works for this one.
        other = await there.sessions.start_session()
        stranger = Reserve(child=other.id, turn_id=turn, total=NOTHING_USED, pending=NOTHING_USED)
        with pytest.raises(UsageError, match="works for this one"):
            await port.call(stranger)
        assert await port.call(ReportChild(child=other.id, reason="stop")) is False
        assert not await facts(root, ChildFinished)


async def test_a_request_of_a_child_in_another_process_is_answered_at_its_parent(
    shared_world: World,
) -> None:
    world = shared_world
    write = CallTool(name="write", args={"path": "made.txt", "content": "made\n"})

    def acts(*, stalls: bool) -> RoleAnswers:
        waits: tuple[Step, ...] = (Stall(gate="a"),) if stalls else ()
        return {"begin": [agent_call("dig"), "The end."], "dig": [(*waits, write), "dug"]}

    stalled = role_model(acts(stalls=True))
    app = world.open(stalled)
    await app.__aenter__()
    session = await app.sessions.start_session(session_id="root", model=MODEL)
    await session.send_prompt("begin")
    with anyio.fail_after(PATIENCE):
        await stalled.gate("a").reached.wait()
    [started] = await facts(session, ChildStarted)
    await crash(app)
    model = role_model(acts(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        root = await here.sessions.get("root")
        child = await there.sessions.get(started.child)
        await root.continue_turn()
        asked = await until(root, PermissionRequest)
        assert asked.child == started.child
        await root.respond_to_permission("allow_once", request_id=asked.request_id)
        await until_idle(root)
        assert there.host.runs_here(child.id)
        assert (world.project / "made.txt").read_text() == "made\n"
        [ended] = await facts(root, ChildFinished)
        assert ended.reason == "stop"


async def test_what_is_denied_to_a_parent_holds_for_its_child_in_another_process(
    shared_world: World,
) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    model = role_model(roles(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        denied = PermissionRule(verdict="deny", tool="find", source="session")
        # As if the user had answered so here, before the session was unloaded.
        here.host.registry.granted[SessionId("root")] = GrantedPermissions(rules=(denied,))
        await begin(here)
        child = await there.sessions.get(child_id)
        await child.continue_and_wait()
        results = [fact.result.text for fact in await facts(child, ToolComplete)]
        assert results
        assert all("enied" in text for text in results)


async def test_a_child_that_calls_no_model_keeps_to_the_rules_of_a_parent_elsewhere(
    shared_world: World,
) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    model = role_model(roles(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        denied = PermissionRule(verdict="deny", tool="shell", source="session")
        here.host.registry.granted[SessionId("root")] = GrantedPermissions(rules=(denied,))
        await begin(here)
        child = await there.sessions.get(child_id)
        with pytest.raises(UsageError, match="deny shell"):
            await there.host.run_as_user(child.id, "touch made", to_model=False)
        assert not (world.project / "made").exists()


async def test_a_child_whose_parent_cannot_be_asked_is_allowed_nothing(
    shared_world: World,
) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    model = role_model(roles(stalls=False))
    async with world.open(model) as here, world.open(model) as there:
        # A process that has the parent and takes no commands.
        here.store.owner = msgspec.structs.replace(here.store.owner, address="")
        await here.store.take_lease(SessionId("root"))
        child = await there.sessions.get(child_id)
        world.write("a.txt", "text")
        with pytest.raises(UsageError, match="cannot be asked for its rules"):
            await there.host.run_as_user(child.id, "touch made", to_model=False)
        with pytest.raises(UsageError, match="cannot be asked for its rules"):
            await child.read_file("a.txt")
        assert not (world.project / "made").exists()


async def test_the_agent_of_a_deleted_parent_works_for_the_user_alone(shared_world: World) -> None:
    world = shared_world
    child_id = await left_by_a_crash(world)
    async with world.open(role_model(roles(stalls=False))) as app:
        child = await app.sessions.get(child_id)
        await app.store.delete(SessionId("root"))
        world.write("a.txt", "text")
        assert (await child.read_file("a.txt")).text == "text"
