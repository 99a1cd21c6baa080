"""Every append of a family is a place to die: just before it is durable, and just after.

Each story is lived through once, and its appends are counted, over all its sessions.  Then it is
lived again for each of them, up to that append; nothing is written any more from there on; and a
new process goes on.  Whatever the place: the story ends well, every child was started once and its
use is counted once, and no effect happened twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

import anyio
import pytest

import weft
from tests.support.role_models import RoleAnswers, agent_call, agent_calls, role_model
from tests.support.world import MODEL, World, crash, facts, until_holds
from weft.api.options import SessionMode
from weft.api.session import Session
from weft.app import App
from weft.errors import StoreUnavailable
from weft.events import ChildFinished, ChildStarted, UsageRecorded
from weft.messages import NOTHING_USED, Usage
from weft.providers.script import CallTool
from weft.store import Append, MemoryData, MemoryStore

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120), pytest.mark.process]

When: TypeAlias = Literal["before", "after"]


class DyingStore(MemoryStore):
    """A store of a process that dies at its n-th append (0: never)."""

    def __init__(self, data: MemoryData, at: int, when: When) -> None:
        super().__init__(data=data)
        self._at = at
        self._when = when
        self.appends = 0
        self.dead = anyio.Event()

    async def append(self, *appends: Append) -> None:
        if self.dead.is_set():
            raise StoreUnavailable("the process is dead")
        self.appends += 1
        if self.appends != self._at:
            return await super().append(*appends)
        if self._when == "after":
            await super().append(*appends)
        self.dead.set()
        raise StoreUnavailable("the process dies here")


class Story:
    """What happens, who plays it, and how it ends."""

    def __init__(
        self,
        roles: dict[str, RoleAnswers],
        *,
        config: dict[str, Any] | None = None,
        mode: SessionMode = "normal",
        children: int,
    ) -> None:
        self.roles = roles
        self.config = config or {}
        self.mode = mode
        self.children = children
        self.runs: dict[str, int] = {}

    def count(self, key: str) -> str:
        """Count one up."""
        self.runs[key] = self.runs.get(key, 0) + 1
        return f"counted {key}"

    def open(self, world: World, store: MemoryStore) -> App:
        models = [role_model(roles, name) for name, roles in self.roles.items()]
        return world.open(*models, store=store, config=self.config)

    async def start(self, app: App) -> Session:
        return await app.sessions.start_session(
            session_id="s",
            model=MODEL,
            tools=["all", weft.tool(self.count)],
            auto_approve=True,
            mode=self.mode,
        )


def count(key: str) -> CallTool:
    return CallTool(name="count", args={"key": key})


def step(number: int) -> dict[str, Any]:
    return {
        "action": "create",
        "file": f"{number}.txt",
        "description": f"make file {number}",
        "details": str(number),
        "check": f"grep -q {number} {number}.txt",
    }


def write(number: int) -> CallTool:
    return CallTool(name="write", args={"path": f"{number}.txt", "content": f"{number}\n"})


def agents() -> Story:
    """Two agents at once, one with an agent of its own, each with an effect."""
    return Story(
        {
            "script": {
                "begin": [agent_calls("first", "second"), count("own"), "The end."],
                "first": [count("first"), agent_call("third"), "1"],
                "second": [count("second"), "2"],
                "third": [count("third"), "3"],
            }
        },
        children=3,
    )


def background() -> Story:
    """An agent beside the turn, whose end is a message."""
    roles: RoleAnswers = {
        "begin": [agent_call("beside", background=True), count("own"), *["The end."] * 4],
        "beside": [count("beside"), "B"],
    }
    return Story({"script": roles}, children=1)


def architect() -> Story:
    """A plan of three steps with checks, the second of which fails and is planned anew."""
    wrong = {**step(2), "check": "false"}
    first = CallTool(name="submit", args={"summary": "Make.", "steps": [step(1), wrong]})
    second = CallTool(name="submit", args={"summary": "Mend.", "steps": [step(3)]})
    return Story(
        {
            "script": {"begin": [CallTool(name="list"), first, second]},
            "fast": {f"make file {n}": [write(n), f"Made {n}."] for n in (1, 2, 3)},
        },
        config={"model.editor": "scripted:fast"},
        mode="architect",
        children=3,
    )


STORIES = {"agents": agents, "background": background, "architect": architect}


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_family_survives_a_death_at_every_append(
    plain_world: World, name: str, when: When
) -> None:
    tell = STORIES[name]
    total = await appends_of(tell(), plain_world)
    assert total >= 12
    wrong = [
        f"append {at}: {problem}"
        for at in range(1, total + 1)
        for problem in await die(tell(), plain_world, at, when)
    ]
    assert wrong == []


async def appends_of(story: Story, world: World) -> int:
    """How many appends the story has, undisturbed."""
    store = DyingStore(MemoryData(), 0, "after")
    async with story.open(world, store) as app:
        session = await story.start(app)
        await session.send_prompt("begin")
        await until_over(session)
        assert await problems(story, app, session) == []
        counted = store.appends
    clean(world)
    return counted


async def die(story: Story, world: World, at: int, when: When) -> list[str]:
    """Live up to the append, die, come back, and see what is wrong then."""
    data = MemoryData()
    store = DyingStore(data, at, when)
    app = await story.open(world, store).__aenter__()
    try:
        session = await story.start(app)
        await session.send_prompt("begin", input_id="begin")
        await first_of(store.dead.wait, lambda: until_over(session))
    except StoreUnavailable:
        pass
    await crash(app)
    async with story.open(world, MemoryStore(data=data)) as app:
        session = await story.start(app)
        if await session.get_status() == "interrupted":
            await session.continue_turn()
        await session.send_prompt("begin", input_id="begin")
        if await waits_for_a_word(session):
            await session.send_prompt("begin again")
        await until_over(session)
        found = await problems(story, app, session)
    clean(world)
    return found


async def waits_for_a_word(session: Session) -> bool:
    """Whether the session is idle, and has something that goes on with its next turn: opening alone
    sets nothing to work.
    """
    snapshot = await session.editor_snapshot()
    beside = await session.background_commands()
    return snapshot.status == "idle" and bool(snapshot.queue or beside)


async def first_of(*waits: Callable[[], Awaitable[Any]]) -> None:
    """Wait for one of them.

    A message that steers a turn takes fewer appends than one that starts its own, so a late append
    may not come.
    """
    async with anyio.create_task_group() as group:

        async def wait(each: Callable[[], Awaitable[Any]]) -> None:
            await each()
            group.cancel_scope.cancel()

        for each in waits:
            group.start_soon(wait, each)


def clean(world: World) -> None:
    for file in world.project.iterdir():
        file.unlink()


async def until_over(session: Session) -> None:
    """Wait until nothing of the family is at work."""

    async def is_over() -> bool:
        snapshot = await session.editor_snapshot()
        beside = await session.background_commands()
        metadata = await session.metadata()
        is_idle = snapshot.status == "idle" and not snapshot.queue and not beside
        return is_idle and metadata.turn_count > 0

    await until_holds(session, is_over)


async def problems(story: Story, app: App, session: Session) -> list[str]:
    """What is wrong with a family that has come to its end."""
    wrong: list[str] = []
    used = NOTHING_USED
    members = await family(app, session)
    for member in members:
        snapshot = await member.editor_snapshot()
        if snapshot.status != "idle" or snapshot.requests:
            wrong.append(f"{member.id} is {snapshot.status}, with {snapshot.requests}")
        started = [fact.child for fact in await facts(member, ChildStarted)]
        if len(set(started)) != len(started):
            wrong.append(f"a child of {member.id} was started twice")
        if {fact.child for fact in await facts(member, ChildFinished)} != set(started):
            wrong.append(f"a child of {member.id} has no end")
        own: Sequence[Usage] = [fact.usage for fact in await facts(member, UsageRecorded)]
        used = sum(own, used)
    if len(members) != 1 + story.children:
        wrong.append(f"there are {len(members) - 1} children")
    total = (await session.usage()).total
    if total.total_tokens != used.total_tokens:
        wrong.append(f"{total.total_tokens} tokens are counted, {used.total_tokens} were used")
    last = (await session._port()).state.turn.last_reason
    if last != "stop":
        wrong.append(f"the last turn ended with {last}")
    wrong += [f"{key} ran {times} times" for key, times in story.runs.items() if times > 1]
    return wrong


async def family(app: App, session: Session) -> list[Session]:
    """The session and all below it."""
    found = [session]
    for child in await session.children():
        found += await family(app, await app.sessions.get(child.id))
    return found
