"""basemode-loom: a tree of generations, as far as the session API goes.

Several continuations of one place, moving between them, settings that hold for what comes next and
change nothing that is there, edits that keep what they replace, and a tree that opens where it was
left.  Its own interface is `LoomSession`.
"""

from __future__ import annotations

import pytest

import weft
from tests.support.scripted_stage import ScriptedStage
from tests.support.world import crash, message_lines, request_lines
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import TokenReceived
from weft.loom import GenerationCancelled, GenerationComplete
from weft.messages import Text
from weft.session import EditNode

pytestmark = pytest.mark.anyio

HAIKU = "anthropic:claude-3-5-haiku-20241022"
SONNET = "anthropic:claude-sonnet-4-6"


async def grow(session: Session, place: str, *names: str) -> None:
    """Several continuations of one place, each a branch."""
    for name in names:
        await session.branch_at(place, name)
        await session.send_message("Go on.")


async def test_several_continuations_of_one_place_and_moving_between_them(
    stage: ScriptedStage,
) -> None:
    """generate, navigate_parent, select_sibling (which wraps), navigate_child."""
    model = stage.plays(HAIKU, "Once upon a time", "a fox", "a crow", "a well")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="tree")
        await session.send_message("Tell me a story.")
        root = (await session.messages_with_ids())[-1][0]
        await grow(session, root, "fox", "crow", "well")
        assert [request_lines(request)[:2] for request in model.requests[1:]] == [
            ["user: Tell me a story.", "assistant: Once upon a time"]
        ] * 3
        branches = await session.list_branches()
        assert [(each.name, each.length) for each in branches] == [
            ("main", 2),
            ("fox", 4),
            ("crow", 4),
            ("well", 4),
        ]
        present = next(place for place, each in enumerate(branches) if each.is_current)
        following = await session.switch_branch((present + 1) % len(branches))
        assert following.name == "main"
        for name, words in (("crow", "a crow"), ("fox", "a fox"), ("well", "a well")):
            await session.switch_branch(name)
            assert (await message_lines(session))[-1] == f"assistant: {words}"


async def test_settings_hold_for_the_next_generation_and_alter_no_node(
    stage: ScriptedStage,
) -> None:
    stage.plays(HAIKU, "by haiku")
    stage.plays(SONNET, "by sonnet")
    async with stage.open() as app:
        session = await app.sessions.start_session(model=HAIKU)
        await session.send_message("one")
        await session.set_model(SONNET)
        await session.send_message("two")
        line = await (await session._port()).line()
        assert [entry.node.model for entry in line if entry.node.role == "assistant"] == [
            HAIKU,
            SONNET,
        ]


async def test_an_edit_lands_in_its_node_and_nothing_is_lost(stage: ScriptedStage) -> None:
    """There, a wrong `original` wrote nodes with wrong or empty text.

    Here a revision is added, and every earlier one stays.
    """
    model = stage.plays(HAIKU, "The fox was gray.", "And quick.", "And old.")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="tree")
        await session.send_message("Tell me of a fox.")
        node = (await session.messages_with_ids())[1][0]
        port = await session._port()
        # An id.
        edited = EditNode(node=node, parts=(Text(text="The fox was red."),))  # type: ignore[arg-type]
        await port.call(edited)
        assert await session.revisions(node) == ["The fox was gray.", "The fox was red."]
        await session.send_message("More.")
        assert request_lines(model.last_request)[1] == "assistant: The fox was red."
        await session.restore_revision(node, 0)
        await session.send_message("More.")
        assert request_lines(model.last_request)[1] == "assistant: The fox was gray."
        assert (await session.messages_with_ids())[1][0] == node
        with pytest.raises(UsageError):
            await session.restore_revision(node, 9)


async def test_the_tree_opens_where_it_was_left_even_after_a_crash(stage: ScriptedStage) -> None:
    """`save` is not needed: the place and every line are durable already."""
    stage.plays(HAIKU, "Once upon a time", "a fox", "a crow", "said nothing")
    app = await stage.open().__aenter__()
    session = await app.sessions.start_session(session_id="tree")
    await session.send_message("Tell me a story.")
    root = (await session.messages_with_ids())[-1][0]
    await grow(session, root, "fox", "crow")
    await session.switch_branch("fox")
    await crash(app)
    async with stage.open() as app:
        session = await app.sessions.get("tree")
        assert (await message_lines(session))[-1] == "assistant: a fox"
        await session.switch_branch("crow")
        assert (await message_lines(session))[-1] == "assistant: a crow"
        await session.send_message("What did it say?")
        assert (await message_lines(session))[-1] == "assistant: said nothing"


async def test_a_prefix_of_an_id_is_enough_and_no_wildcard(stage: ScriptedStage) -> None:
    """There, `%` and `_` in a prefix matched anything."""
    stage.plays(HAIKU, "a")
    async with stage.open() as app:
        await app.sessions.start_session(session_id="tree-of-foxes")
        assert (await app.sessions.get("tree-of")).id == "tree-of-foxes"
        for pattern in ("%", "tree_of", "tree%"):
            with pytest.raises(weft.WeftError):
                await app.sessions.get(pattern)


async def test_the_documented_session_of_the_text_tree(stage: ScriptedStage) -> None:
    """Each call of the page on `LoomSession`, in its order."""
    stage.plays(HAIKU, " there was a fox.", " there was a crow.")
    async with stage.open() as app:
        root = await app.loom.create_root("Once upon a time")
        session = await app.loom.open(root.id)
        assert isinstance(session, weft.LoomSession)
        session.set_model(HAIKU)
        session.set_max_tokens(400)
        session.set_n_branches(2)
        state = session.get_state()
        assert (state.model, state.max_tokens, state.n_branches) == (HAIKU, 400, 2)
        assert (state.root_id, state.view_mode, state.hoisted_node_id) == (root.id, "branch", None)
        events = [event async for event in session.generate()]
        tokens = [event for event in events if isinstance(event, TokenReceived)]
        assert {event.branch_idx for event in tokens} == {0, 1}
        [done] = [event for event in events if isinstance(event, GenerationComplete)]
        assert sorted(done.completions) == [" there was a crow.", " there was a fox."]
        first, second = done.new_nodes
        assert session.select_sibling(+1).selected_child_idx == 1
        assert session.select_sibling(+1).selected_child_idx == 0
        assert session.select_sibling(-1).selected_child_idx == 1
        state = session.navigate_child()
        assert (state.current_node_id, state.full_text) == (second.id, root.text + second.text)
        assert session.toggle_bookmark() is True
        assert session.navigate_parent().descendant_counts == {
            root.id: 2,
            first.id: 0,
            second.id: 0,
        }
        assert session.next_bookmark().current_node_id == second.id
        edited = session.apply_edit(root.text + second.text, root.text + " nobody came.")
        assert edited is not None
        assert (edited.id, edited.text) == (second.id, " nobody came.")
        assert session.apply_edit(root.text + edited.text, root.text + edited.text) is None
        assert session.toggle_tree_view().view_mode == "tree"
        assert session.toggle_model_names().show_model_names is False
        assert session.toggle_hoist().hoisted_node_id == second.id
        await session.save()
        assert session.store is app.loom
    async with stage.open() as app:
        assert (await app.loom.open(root.id)).get_state().full_text == root.text + " nobody came."


async def test_a_generation_that_is_cancelled_says_so(stage: ScriptedStage) -> None:
    stage.plays(HAIKU, " one two three four five six seven eight nine ten.")
    async with stage.open() as app:
        session = await app.loom.open((await app.loom.create_root("Count:")).id)
        session.set_model(HAIKU)
        last: object = None
        async for event in session.generate():
            session.cancel()
            last = event
        assert isinstance(last, GenerationCancelled)
