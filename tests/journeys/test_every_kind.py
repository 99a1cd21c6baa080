"""A tour through a session that makes every kind of event happen: each is told to a reader, and
each fact is stored as it was told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.support.background_shell import background_shell
from tests.support.buggy_model import BuggyModel
from tests.support.idle_loop import all_tasks_blocked
from tests.support.requirements import TOUR_EVENTS
from tests.support.role_models import agent_call, role_model
from tests.support.world import World, running, until, until_idle, until_status
from weft.api.session import Session
from weft.app import App
from weft.events import (
    CommandPrinted,
    Event,
    FactBase,
    GoalEnded,
    PermissionRequest,
    QuestionAsked,
    Replaced,
    SessionCreated,
    decode,
)
from weft.ids import NodeId
from weft.messages import Text
from weft.providers import Model, ModelInfo
from weft.providers.script import (
    Break,
    CallTogether,
    CallTool,
    Fail,
    SayText,
    Stall,
    Step,
    Think,
)
from weft.providers.scripted import ScriptedModel
from weft.runtime.decisions.decision_book import logged_commit
from weft.runtime.ports.local import LocalPort
from weft.session import EditNode

pytestmark = [pytest.mark.anyio, pytest.mark.process]

Leg = Callable[[Session, ScriptedModel], Awaitable[object]]


async def works(session: Session, model: ScriptedModel) -> None:
    """Retries, reasoning, tools, leave, a question and the task list."""
    await session.attach("driver")
    await session.send_prompt("work")
    request = await until(session, PermissionRequest)
    await session.respond_to_permission("allow_once", request_id=request.request_id)
    question = await until(session, QuestionAsked)
    await session.answer_question(question.request_id, "yes")
    await until(session, PermissionRequest, after=request.seq)
    await session.respond_to_permission("allow_once")
    await until_idle(session)
    await session.detach()


WORK: list[Step | tuple[Step, ...]] = [
    Fail(error="RateLimited"),
    (SayText(text="half"), Break()),
    (
        Think(text="hm", signature="s"),
        SayText(text="Let me see."),
        CallTogether(
            calls=(
                CallTool(name="write", args={"path": "a.txt", "content": "x"}),
                CallTool(name="todo", args={"todos": [{"text": "think"}]}),
                CallTool(name="ask", args={"question": "Sure?"}),
            )
        ),
    ),
    CallTool(name="shell", args={"command": "echo out"}),
    SayText(text="Done."),
]


async def waits(session: Session, model: ScriptedModel) -> None:
    """The queue, in every way."""
    await session.send_prompt("wait")
    await model.gate("g").reached.wait()
    first = (await session.queue_follow_up("a")).entry_id or ""
    second = (await session.queue_follow_up("b")).entry_id or ""
    await session.edit_queued(first, "A")
    await session.reorder_queue([second, first])
    await session.remove_queued(second)
    await session.recall_queues()
    await session.queue_steering("s")
    model.gate("g").opened.set()
    await until_idle(session)


async def sleeps(session: Session, model: ScriptedModel) -> None:
    """A turn that waits, and is woken."""
    await session.send_prompt("rest")
    await until_status(session, "waiting")
    await session.queue_steering("enough")
    await until_idle(session)


async def reaches_a_goal(session: Session, model: ScriptedModel) -> None:
    """A goal that is paused at work, goes on, and is reached."""
    await session.set_goal("work", "true", outside_sandbox=True)
    await session.pause_goal()
    await until_idle(session)
    await session.resume_goal(outside_sandbox=True)
    await until(session, GoalEnded)
    await until_idle(session)


async def is_sent_later(session: Session, model: ScriptedModel) -> None:
    """A prompt whose time comes at once."""
    await session.schedule("+0s", "later")
    await session._host.wake_due()
    await until_idle(session)


async def prints(session: Session, model: ScriptedModel) -> None:
    """A command in the background that says something."""
    async with await session.subscribe() as events:
        await session.send_prompt("start it")
        request = await until(session, PermissionRequest)
        await session.respond_to_permission("allow_once", request_id=request.request_id)
        async for event in events:
            if isinstance(event, CommandPrinted):
                break
    await until_idle(session)


async def turns_back(session: Session, model: ScriptedModel) -> None:
    """Notes, marks, settings, branches, revisions, boundaries, skills, rewinding."""
    await session.send_message("one")
    await session.add_system_message("note")
    node = (await session.messages_with_ids())[0][0]
    await session.pin(node)
    await session.set_thinking_level("high")
    await session.set_mode("architect")
    await session.set_mode("normal")
    port = await session._port()
    await port.call(EditNode(node=NodeId(node), parts=(Text(text="uno"),)))
    await session.branch_at(1, "side")
    await session.send_message("two")
    await session.switch_branch("main")
    await session.delete_branch("side")
    await session.set_boundary("there.txt", 0, 0)
    await session.activate_skill("polite")
    await session.rewind(0)


async def grows_long(session: Session, model: ScriptedModel) -> None:
    """Compaction, and taking it back."""
    for words in ("one", "two", "three"):
        await session.send_message(words)
    await session.compact()
    await session.undo_compaction()


async def fills_up(session: Session, model: ScriptedModel) -> None:
    """Results that give way."""
    await session.send_message("read it")
    await session.send_message("go on")


async def talks(session: Session, model: ScriptedModel) -> None:
    await session.send_message("ask somebody")


async def decides(session: Session, model: ScriptedModel) -> None:
    """What a session adds to its project's decision graph."""
    port = await session._port()
    assert isinstance(port, LocalPort)
    await port.actor.append(lambda state: logged_commit("p", (), ids=(), summary="nothing"))


async def gives_way(session: Session, model: ScriptedModel) -> None:
    await session.new_session()


def models() -> dict[Leg, ScriptedModel]:
    return {
        works: ScriptedModel(WORK),
        sleeps: ScriptedModel([CallTool(name="wait", args={"seconds": 600}), "rested"]),
        reaches_a_goal: ScriptedModel(["worked", "worked on", "and on"]),
        is_sent_later: ScriptedModel(["sent"]),
        prints: ScriptedModel([background_shell("echo printed; sleep 1000"), "started"]),
        waits: ScriptedModel([(Stall(gate="g"), SayText(text="x")), "y"]),
        turns_back: ScriptedModel(["one", "two", "three"]),
        grows_long: ScriptedModel(["long answer " * 500] * 3 + ["the summary", "x"]),
        fills_up: ScriptedModel(
            [CallTool(name="read", args={"path": "long.txt", "offset": n}) for n in range(1, 11)]
            + ["read", "done"],
            info=ModelInfo(
                provider="scripted", name="narrow", context_window=44_000, max_output_tokens=1_000
            ),
        ),
        talks: role_model({"ask": [agent_call("count"), "3"], "count": ["3"]}),
        decides: ScriptedModel([]),
        gives_way: ScriptedModel([]),
    }


async def told_on(app: App, leg: Leg, model: Model) -> list[Event]:
    """Every event of one leg of the tour."""
    session = await app.sessions.start_session(model=model)
    seen: list[Event] = []

    async def read() -> None:
        async with await session.subscribe(after=0) as events:
            reading.set()
            async for event in events:
                seen.append(event)
                if isinstance(event, Replaced):
                    return

    reading = anyio.Event()
    async with running(read):
        await reading.wait()
        await leg(session, model)  # type: ignore[arg-type]  # a scripted one
        await all_tasks_blocked()
        await app.sessions.stop_session(session.id)
    stored = [decode(record.body) for record in await app.store.read(session.id)]
    assert [event for event in seen if isinstance(event, FactBase)] == stored
    return seen


@pytest.mark.requirement(*TOUR_EVENTS)
async def test_every_kind_of_event_is_reported_and_every_fact_is_stored_as_it_was_reported(
    world: World,
) -> None:
    world.write("there.txt", "one\ntwo\n")
    world.write("long.txt", "a line of the file\n" * 440)
    skill = "---\nname: polite\ndescription: How to be polite.\n---\n\nSay please.\n"
    world.write(".agents/skills/polite/SKILL.md", skill)
    told: set[str] = set()
    with anyio.fail_after(30):
        async with world.open(ScriptedModel([])) as app:
            for leg, model in models().items():
                told |= {type(event).__name__ for event in await told_on(app, leg, model)}
            buggy = await told_on(app, talks, BuggyModel(1, ["fine"]))
            told |= {type(event).__name__ for event in buggy}
    assert SessionCreated.__name__ in told
    # Only a store that hosts share keeps the files for the next one.
    shown = {f"event:{name}" for name in told} - {"event:WorkspaceSaved"}
    assert sorted(shown) == sorted(TOUR_EVENTS)
