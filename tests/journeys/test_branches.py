"""Branches, checkpoints and revisions: what the model sees follows every one of them, and no line
is ever lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.support.compaction import SummarizingModel, gate_reached, send_prompts, start
from tests.support.world import World, crash, facts, message_lines, until_idle
from weft.api.session import Session
from weft.errors import SessionBusy, UsageError
from weft.events import HeadMoved, TurnFinished
from weft.messages import Text
from weft.providers.script import CallTogether, CallTool, SayText, Stall, Step
from weft.session import EditNode

pytestmark = pytest.mark.anyio


async def names(session: Session) -> list[str]:
    """Every branch by name, the present one with a star."""
    return [f"{each.name}{'*' * each.is_current}" for each in await session.list_branches()]


# --- branching -------------------------------------------------------------------------


@pytest.mark.requirement("session:list_branches")
async def test_a_session_has_one_branch_from_the_start(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        [main] = await session.list_branches()
        assert (main.name, main.node, main.is_current, main.length) == ("main", None, True, 0)
        await send_prompts(session, "one")
        [main] = await session.list_branches()
        assert main.node == (await session.messages_with_ids())[-1][0]
        assert main.length == 2


@pytest.mark.requirement("session:branch_at")
@pytest.mark.parametrize("by", ["index", "negative", "id"])
async def test_the_line_ends_where_it_is_branched_and_the_model_sees_that(
    world: World, by: str
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two", "three")
        before = await session.messages_with_ids()
        places: dict[str, str | int] = {"index": 1, "negative": -5, "id": before[1][0]}
        branch = await session.branch_at(places[by])
        assert (branch.name, branch.node, branch.is_current, branch.length) == (
            "branch-1",
            before[1][0],
            True,
            2,
        )
        assert await session.messages_with_ids() == before[:2]
        await send_prompts(session, "other")
        assert teller.seen == ["user: one", "assistant: answer 1", "user: other"]
        assert await names(session) == ["main", "branch-1*"]
        await session.switch_branch("main")
        assert await session.messages_with_ids() == before


async def test_branching_at_a_tool_message_keeps_the_answer_that_called(world: World) -> None:
    """No cut parts a call from its result: the message of a tool is no place of its own."""
    calls = CallTogether(calls=(CallTool(name="list"), CallTool(name="read", args={"path": "x"})))
    steps: list[Step] = [calls, SayText(text="done")]
    teller = SummarizingModel(say=lambda request: steps.pop(0) if steps else SayText(text="ok"))
    async with world.open(teller.model) as app:
        session = await start(app, tools=["list", "read"])
        await send_prompts(session, "look")
        rows = await session.messages_with_ids()
        assert [message.role for _, message in rows] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
        ]
        for place in (2, 3, rows[2][0], rows[3][0], rows[1][0]):
            branch = await session.branch_at(place)
            assert branch.node == rows[1][0]
            assert await session.messages_with_ids() == rows[:4]
            await session.switch_branch("main")


async def test_branching_at_a_system_message_keeps_what_it_was_said_after(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await session.add_system_message("welcome")
        await send_prompts(session, "one")
        await session.add_system_message("by the way")
        await send_prompts(session, "two")
        assert [message.role for message in await session.messages()] == [
            "system",
            "user",
            "assistant",
            "system",
            "user",
            "assistant",
        ]
        await session.branch_at(3)
        assert await message_lines(session) == [
            "system: welcome",
            "user: one",
            "assistant: answer 1",
            "system: by the way",
        ]
        await session.branch_at(0)
        assert await message_lines(session) == ["system: welcome"]
        await send_prompts(session, "anew")
        assert teller.seen == ["user: anew"]


@pytest.mark.parametrize("place", [4, -5, 99, "nod_nobody", "", True, None, 1.0])
async def test_a_place_that_is_none_is_refused_and_nothing_happens(
    world: World, place: object
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        before = (await session.editor_snapshot()).seq
        with pytest.raises(UsageError):
            await session.branch_at(place)  # type: ignore[arg-type]  # that is the point
        assert (await session.editor_snapshot()).seq == before
        assert await names(session) == ["main*"]


async def test_a_branch_may_begin_at_a_message_of_any_line(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        left = (await session.messages_with_ids())[-1][0]
        await session.branch_at(1, "side")
        await send_prompts(session, "aside")
        await session.branch_at(left, "back")
        await send_prompts(session, "three")
        assert teller.seen[-3:] == ["user: two", "assistant: answer 2", "user: three"]


@pytest.mark.parametrize("name", ["main", "side", "first", " side ", "", "x" * 101, "a\nb", "\x1b"])
async def test_a_name_must_be_free_and_plain(world: World, name: str) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.branch_at(1, "side")
        await session.checkpoint("first")
        await session.switch_branch("main")
        if name:  # an empty one means: make one up
            with pytest.raises(UsageError):
                await session.branch_at(1, name)
            with pytest.raises(UsageError):
                await session.checkpoint(name)
        with pytest.raises(UsageError):
            await session.rename_branch("side", name)
        assert await names(session) == ["main*", "side"]


async def test_made_up_names_are_never_taken(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.branch_at(1, "branch-2")
        assert (await session.branch_at(1)).name == "branch-1"
        assert (await session.branch_at(1)).name == "branch-3"
        assert [await session.checkpoint() for _ in range(2)] == ["checkpoint-1", "checkpoint-2"]


# --- switching, renaming, deleting -----------------------------------------------------


@pytest.mark.requirement("session:switch_branch")
async def test_switching_goes_on_with_that_line_and_loses_none(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        main = await session.messages_with_ids()
        await session.branch_at(1, "left")
        await send_prompts(session, "left")
        left = await session.messages_with_ids()
        await session.branch_at(1, "right")
        await send_prompts(session, "right")
        right = await session.messages_with_ids()
        for name, line in (("main", main), ("left", left), ("right", right)):
            switched = await session.switch_branch(name)
            assert (switched.name, switched.is_current, switched.length) == (name, True, len(line))
            assert await session.messages_with_ids() == line
        await session.switch_branch(0)
        assert await session.messages_with_ids() == main
        await send_prompts(session, "three")
        assert teller.seen[-3:] == ["user: two", "assistant: answer 2", "user: three"]
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await names(session) == ["main*", "left", "right"]
        assert (await session.messages_with_ids())[:4] == main
        await session.switch_branch("right")
        assert await session.messages_with_ids() == right


async def test_switching_to_where_one_is_changes_nothing(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        before = (await session.editor_snapshot()).seq
        assert (await session.switch_branch("main")).is_current
        assert (await session.editor_snapshot()).seq == before


@pytest.mark.parametrize("which", ["nobody", 1, -2, "checkpoint-1"])
async def test_a_branch_that_is_none_is_refused(world: World, which: str | int) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.checkpoint()
        for call in (session.switch_branch, session.delete_branch):
            with pytest.raises(UsageError, match="no branch"):
                await call(which)
        with pytest.raises(UsageError, match="no branch"):
            await session.rename_branch(which, "other")


@pytest.mark.requirement("session:rename_branch")
async def test_a_renamed_branch_is_the_same_branch(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        main = await session.messages_with_ids()
        await session.rename_branch("main", "trunk")
        assert await names(session) == ["trunk*"]
        await session.branch_at(1, "side")
        await send_prompts(session, "aside")
        await session.rename_branch("trunk", "stem")
        await session.rename_branch("side", "twig")
        assert sorted(await names(session)) == ["stem", "twig*"]
        await send_prompts(session, "aside again")
        await session.switch_branch("stem")
        assert await session.messages_with_ids() == main
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert sorted(await names(session)) == ["stem*", "twig"]
        await session.switch_branch("twig")
        assert len(await session.messages()) == 6


@pytest.mark.requirement("session:delete_branch")
async def test_deleting_forgets_the_name_and_keeps_the_messages(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.branch_at(1, "side")
        await send_prompts(session, "aside")
        left = (await session.messages_with_ids())[-1][0]
        with pytest.raises(UsageError, match="you are on"):
            await session.delete_branch("side")
        await session.switch_branch("main")
        await session.delete_branch("side")
        assert await names(session) == ["main*"]
        await session.branch_at(left, "side")
        assert (await message_lines(session))[-2:] == ["user: aside", "assistant: answer 2"]


@pytest.mark.requirement("session:checkpoint")
async def test_a_checkpoint_is_a_place_to_go_back_to(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        assert await session.checkpoint("before the storm") == "before the storm"
        await send_prompts(session, "two")
        await session.rewind("before the storm", files=False)
        await send_prompts(session, "other")
        assert teller.seen == ["user: one", "assistant: answer 1", "user: other"]


async def test_a_line_that_was_rewound_keeps_a_name(world: World) -> None:
    """Also where the present branch had one: that goes back with the head."""
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        whole = await session.messages_with_ids()
        await session.branch_at(1, "side")
        await session.switch_branch("main")
        await session.rewind(1, files=False)
        await send_prompts(session, "three")
        [kept] = [each for each in await session.list_branches() if each.node == whole[-1][0]]
        await session.switch_branch(kept.name)
        assert await session.messages_with_ids() == whole


# --- busy and interrupted --------------------------------------------------------------

Move = Callable[[Session], Awaitable[object]]
MOVES: dict[str, Move] = {
    "branch_at": lambda session: session.branch_at(1),
    "switch_branch": lambda session: session.switch_branch("side"),
    "restore_revision": lambda session: restore_first(session),
}


async def restore_first(session: Session) -> None:
    await session.restore_revision((await session.messages_with_ids())[0][0], 0)


@pytest.mark.requirement("command:busy")
@pytest.mark.parametrize("move", MOVES)
async def test_a_running_turn_keeps_its_line(world: World, move: str) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.branch_at(1, "side")
        await session.switch_branch("main")
        teller.say = lambda request: (SayText(text="half "), Stall(gate="g"), SayText(text="done"))
        await session.send_prompt("two")
        await gate_reached(teller, "g")
        before = (await session.editor_snapshot()).seq
        with pytest.raises(SessionBusy):
            await MOVES[move](session)
        assert (await session.editor_snapshot()).seq == before
        assert await session.checkpoint()
        teller.model.gate("g").opened.set()
        await until_idle(session)
        assert (await message_lines(session))[-1] == "assistant: half done"


@pytest.mark.requirement("session:rename_branch", "session:delete_branch")
async def test_names_may_change_while_a_turn_runs_for_it_does_not_stand_on_them(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.branch_at(1, "side")
        await session.branch_at(1, "third")
        await session.switch_branch("main")
        teller.say = lambda request: (SayText(text="half "), Stall(gate="g"), SayText(text="done"))
        await session.send_prompt("two")
        await gate_reached(teller, "g")
        await session.rename_branch("side", "other")
        await session.rename_branch("main", "trunk")
        await session.delete_branch("third")
        with pytest.raises(UsageError, match="you are on"):
            await session.delete_branch("trunk")
        assert sorted(await names(session)) == ["other", "trunk*"]
        teller.model.gate("g").opened.set()
        await until_idle(session)
        line = await session.messages_with_ids()
        assert line[-1][1].content == "half done"
        assert sorted(await names(session)) == ["other", "trunk*"]
        await session.switch_branch("other")
        await session.switch_branch("trunk")
        assert await session.messages_with_ids() == line


@pytest.mark.parametrize("move", ["branch_at", "switch_branch", "restore_revision"])
async def test_moving_ends_a_turn_that_a_dead_process_left_and_loses_nothing(
    world: World, move: str
) -> None:
    teller = SummarizingModel()
    app = await world.open(teller.model).__aenter__()
    session = await start(app)
    await send_prompts(session, "one")
    await session.branch_at(1, "side")
    await session.switch_branch("main")
    teller.say = lambda request: (CallTool(name="list"), Stall(gate="g"))
    await session.send_prompt("two")
    await gate_reached(teller, "g")
    await crash(app)
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await session.get_status() == "interrupted"
        asked = len(teller.asked)
        await MOVES[move](session)
        assert await session.get_status() == "idle"
        assert [each.reason for each in await facts(session, TurnFinished)] == ["stop", "halted"]
        assert len(teller.asked) == asked
        await session.switch_branch("main")
        assert "user: two" in await message_lines(session)
        teller.say = None
        await send_prompts(session, "three")


async def test_a_refused_move_leaves_an_interrupted_turn_alone(world: World) -> None:
    teller = SummarizingModel(say=lambda request: Stall(gate="g"))
    app = await world.open(teller.model).__aenter__()
    session = await start(app)
    await session.send_prompt("one")
    await gate_reached(teller, "g")
    await crash(app)
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        with pytest.raises(UsageError):
            await session.switch_branch("nobody")
        with pytest.raises(UsageError):
            await session.branch_at(9)
        assert await session.get_status() == "interrupted"
        teller.say = None
        assert (await session.continue_and_wait()).finish_reason == "stop"


async def test_moving_the_head_is_durable_before_it_is_acknowledged(world: World) -> None:
    teller = SummarizingModel()
    app = await world.open(teller.model).__aenter__()
    session = await start(app)
    await send_prompts(session, "one", "two")
    await session.branch_at(1, "side")
    await crash(app)
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await names(session) == ["main", "side*"]
        assert await message_lines(session) == ["user: one", "assistant: answer 1"]
        assert len(await facts(session, HeadMoved)) == 1


# --- revisions -------------------------------------------------------------------------


async def edit(session: Session, node: str, text: str) -> None:
    """Give a message another text; the loom's editing does this."""
    port = await session._port()
    # An id.
    await port.call(EditNode(node=node, parts=(Text(text=text),)))  # type: ignore[arg-type]


@pytest.mark.requirement("session:revisions", "session:restore_revision")
async def test_an_edited_message_keeps_its_id_its_place_and_every_earlier_text(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        node = (await session.messages_with_ids())[0][0]
        assert await session.revisions(node) == ["one"]
        await edit(session, node, "uno")
        await edit(session, node, "eins")
        assert await session.revisions(node) == ["one", "uno", "eins"]
        assert (await session.messages_with_ids())[0] == (
            node,
            (await session.messages())[0],
        )
        await send_prompts(session, "three")
        assert teller.seen[0] == "user: eins"
        await session.restore_revision(node, 0)
        assert await session.revisions(node) == ["one", "uno", "eins", "one"]
        await send_prompts(session, "four")
        assert teller.seen[0] == "user: one"
        for number in (-1, 4, 99):
            with pytest.raises(UsageError, match="no revision"):
                await session.restore_revision(node, number)
        with pytest.raises(UsageError):
            await session.revisions("nod_nobody")
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await session.revisions(node) == ["one", "uno", "eins", "one"]
        assert (await message_lines(session))[0] == "user: one"


async def test_a_revision_is_seen_on_every_branch_and_children_name_what_they_grew_from(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        node = (await session.messages_with_ids())[1][0]
        await session.branch_at(1, "side")
        await edit(session, node, "mended")
        await send_prompts(session, "aside")
        assert teller.seen == ["user: one", "assistant: mended", "user: aside"]
        await session.switch_branch("main")
        assert (await message_lines(session))[1] == "assistant: mended"
        tree = (await session._port()).state.tree
        children = tree.children(node)  # type: ignore[arg-type]  # an id
        assert [tree.nodes[each].parent_revision for each in children] == [0, 1]


async def test_a_fork_may_edit_what_it_shares_and_its_source_keeps_its_words(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        fork = await app.sessions.fork_session("s")
        node = (await fork.messages_with_ids())[0][0]
        await edit(fork, node, "uno")
        assert (await message_lines(fork))[0] == "user: uno"
        assert (await message_lines(session))[0] == "user: one"
        assert await fork.revisions(node) == ["one", "uno"]
        await fork.restore_revision(node, 0)
        assert (await message_lines(fork))[0] == "user: one"


# --- forks by index --------------------------------------------------------------------


async def test_a_fork_and_a_branch_at_the_same_index_end_at_the_same_message(world: World) -> None:
    steps: list[Step] = [CallTool(name="list"), SayText(text="done"), SayText(text="again")]
    teller = SummarizingModel(say=lambda request: steps.pop(0))
    async with world.open(teller.model) as app:
        session = await start(app, tools=["list"])
        await send_prompts(session, "look", "and then")
        rows = await session.messages_with_ids()
        for place in (*range(len(rows)), -1, -2, rows[2][0]):
            fork = await app.sessions.fork_session("s", at=place)
            await session.branch_at(place)
            assert await fork.messages_with_ids() == await session.messages_with_ids()
            await session.switch_branch("main")


# --- view ------------------------------------------------------------------------------


@pytest.mark.requirement("session:toggle_tool_collapse", "session:toggle_all_tool_collapses")
async def test_folding_is_kept_with_the_session_and_changes_nothing_that_the_model_sees(
    world: World,
) -> None:
    steps: list[Step] = [CallTool(name="list"), SayText(text="done")]
    teller = SummarizingModel(say=lambda request: steps.pop(0) if steps else SayText(text="ok"))
    async with world.open(teller.model) as app:
        session = await start(app, tools=["list"])
        await send_prompts(session, "look")
        _, answer, tool, _ = [key for key, _ in await session.messages_with_ids()]
        assert await session.toggle_tool_collapse(answer) is False
        assert await session.toggle_tool_collapse(tool) is True
        assert await session.toggle_all_tool_collapses() is False
        assert await session.toggle_all_tool_collapses() is True
        assert await session.toggle_tool_collapse(answer) is False
        with pytest.raises(UsageError):
            await session.toggle_tool_collapse("nod_nobody")
        await send_prompts(session, "again")
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert await session.toggle_tool_collapse(answer) is True
        await session.toggle_tool_collapse(answer)
        assert await session.toggle_all_tool_collapses() is False
