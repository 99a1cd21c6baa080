"""What a model has sent of an answer is beside the log: words, reasoning and arguments alike."""

from __future__ import annotations

import pytest

from tests.support.world import World, until_idle
from weft.events import NewMessage
from weft.ids import NodeId
from weft.loop import Commit
from weft.messages import Node, Text, ToolCall
from weft.providers.script import Break, CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel
from weft.store import DraftCall

pytestmark = pytest.mark.anyio


async def test_reasoning_and_arguments_in_flight_are_kept_until_the_answer_is_whole(
    world: World,
) -> None:
    model = ScriptedModel(
        [
            (
                Think(text="hmm"),
                SayText(text="so"),
                Stall(gate="a"),
                CallTool(name="todo", args={"todos": []}, chunk=4),
                Stall(gate="b"),
            ),
            "done",
        ]
    )
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("go")
        await model.gate("a").reached.wait()
        world.clock.advance(1)
        model.gate("a").opened.set()
        await model.gate("b").reached.wait()
        [draft] = await app.store.load_drafts("s")
        assert (draft.text, draft.thinking) == ("so", "hmm")
        # The first piece after the time was over is the last that was handed in.
        assert draft.calls == (DraftCall(index=0, tool="todo", arguments='{"to'),)
        model.gate("b").opened.set()
        await until_idle(session)
        assert await app.store.load_drafts("s") == []
        said = [entry.node for entry in await (await session._port()).line()]
        assert said[1].id == draft.node
        assert isinstance(said[1].parts[-1], ToolCall)


async def test_a_screen_that_joins_in_the_middle_sees_reasoning_and_arguments(
    world: World,
) -> None:
    words = (
        Think(text="hmm"),
        SayText(text="so"),
        CallTool(name="todo", args={"todos": []}, chunk=4),
        Stall(gate="a"),
    )
    model = ScriptedModel([words, "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("a").reached.wait()
        shown = await session.editor_snapshot()
        assert (shown.draft, shown.draft_thinking) == ("so", "hmm")
        calls = [(call.index, call.tool, call.arguments) for call in shown.draft_calls]
        assert calls == [(0, "todo", '{"todos":[]}')]
        model.gate("a").opened.set()
        await until_idle(session)
        shown = await session.editor_snapshot()
        assert (shown.draft, shown.draft_thinking, shown.draft_calls) == ("", "", ())


async def test_a_call_that_was_begun_and_broke_off_is_not_shown_twice(world: World) -> None:
    call = CallTool(name="todo", args={"todos": []}, chunk=4)
    model = ScriptedModel([(call, Break()), (call, Stall(gate="a")), "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await model.gate("a").reached.wait()
        [shown] = (await session.editor_snapshot()).draft_calls
        assert shown.arguments == '{"todos":[]}'
        model.gate("a").opened.set()
        await until_idle(session)


async def test_a_turn_ends_its_own_draft_and_no_other(world: World) -> None:
    """Several answers of a session may be in flight at once."""
    model = ScriptedModel(
        [(SayText(text="one "), Stall(gate="a"), SayText(text="two"), Stall(gate="b"))]
    )
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("go")
        await model.gate("a").reached.wait()
        world.clock.advance(1)
        model.gate("a").opened.set()
        await model.gate("b").reached.wait()
        [own] = await app.store.load_drafts("s")
        log = (await session._port()).actor.log  # type: ignore[attr-defined]  # a local session
        other = NodeId(own.node + "x")
        log.save_draft(other, "text", "beside", index=0, tool="", restart=False)
        assert {each.node for each in await app.store.load_drafts("s")} == {own.node, other}
        model.gate("b").opened.set()
        await until_idle(session)
        assert [each.text for each in await app.store.load_drafts("s")] == ["beside"]
        branch = Node(id=other, role="assistant", parent=None, parts=(Text(text="beside it"),))
        await log.commit(Commit(facts=(NewMessage(node=branch, advance=False),)))
        assert await app.store.load_drafts("s") == []
