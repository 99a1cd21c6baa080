"""Text trees and coding sessions are one thing: any node of one opens as the other."""

from __future__ import annotations

import pytest

from tests.support.loom_views import HOW, events_of, scripted, view_of
from tests.support.world import MODEL, World
from weft.api.session import Session
from weft.loom import GenerationComplete
from weft.messages import Text
from weft.providers import ChatMessage
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def said(model: ScriptedModel) -> list[tuple[str, str]]:
    """What the newest request of a model says, by role."""
    return [
        (message.role, "".join(part.text for part in message.parts if isinstance(part, Text)))
        for message in model.last_request.messages
        if isinstance(message, ChatMessage)
    ]


async def nodes_of(session: Session) -> list[str]:
    """The messages of a session's line that are nodes; results of tools belong to those above."""
    line = [message for message, _ in await session.messages_with_ids()]
    return [message for message in line if message.startswith("nod_")]


async def test_any_node_of_a_text_tree_begins_a_coding_session(world: World) -> None:
    write = CallTool(name="write", args={"path": "a.txt", "content": "fox\n"})
    coder = ScriptedModel([write, "Written."])
    async with world.open(coder) as app:
        root, (first, _) = await app.loom.save_continuations("Once", [" upon", " there"], **HOW)
        leaf = await app.loom.add_child(first.id, " a time", **HOW)
        for node, text in ((root, "Once"), (leaf, "Once upon a time")):
            home = await app.loom.session_of(node.id)
            session = await app.sessions.fork_session(home, at=node.id)
            assert await session.get_mode() == "normal"
            assert "".join(message.content for message in await session.messages()) == text
        await session.set_permission_mode("accept_edits")
        reply = await session.send_message("Write that down.", model=MODEL)
        assert reply.text == "Written."
        assert world.read("a.txt") == "fox\n"
        assert "Once" in said(coder)[0][1]
        # The tree that it came from is as it was, and it is still listed; the session is none.
        assert {node.text for node in await app.loom.tree(root.id)} == {
            *("Once", " upon", " there", " a time")
        }
        assert [each.id for each in await app.loom.roots()] == [root.id]


async def test_any_message_of_a_coding_session_opens_as_a_loom_and_grows(world: World) -> None:
    write = CallTool(name="write", args={"path": "a.txt", "content": "fox\n"})
    coder = ScriptedModel([write, "Written.", "And so on.", "Once more."])
    async with world.open(coder, scripted("w", " a branch")) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("Write.")
        line = await nodes_of(session)
        for node in line:
            found = await app.loom.open(node)
            assert found.get_state().current_node.kind == "message"
            await found.aclose()
        view = await app.loom.open(line[-1])
        assert view.get_state().render_chat_headers
        view.set_model_plan([{"model": "scripted:w"}])
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        # The conversation stands where it stood, and goes on.
        assert await nodes_of(session) == line
        await session.send_message("Go on.")
        assert len(await app.loom.children(line[-1])) == 2
        # And from the branch of text a coding session can go on, too.
        branch = await session.branch_at(done.new_nodes[0].id)
        assert branch.left is not None
        assert (await session.send_message("Again.")).text == "Once more."
        assert said(coder)[-2][1] == done.new_nodes[0].text


async def test_a_whole_text_tree_that_is_forked_is_a_tree_again(plain_world: World) -> None:
    async with plain_world.open() as app:
        view = await view_of(app, text="Once")
        fork = await app.sessions.fork_session(await app.loom.session_of(view.root_id))
        assert await fork.get_mode() == "loom"
        assert len((await app.loom.catalogue()).entries) == 2


async def test_a_session_that_was_forked_from_a_text_tree_opens_as_a_loom_again(
    plain_world: World,
) -> None:
    async with plain_world.open(ScriptedModel(["Hello."])) as app:
        view = await view_of(app, text="Once")
        session = await app.sessions.fork_session(
            await app.loom.session_of(view.root_id), at=view.root_id
        )
        await session.send_message("Go on.", model=MODEL)
        last = [node for node, _ in await session.messages_with_ids()][-1]
        again = await app.loom.open(last)
        assert again.get_state().full_text == "OnceGo on.Hello."
        assert await app.loom.session_of(last) == session.id
