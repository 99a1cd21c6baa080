"""Privileges and asks: a child may never do more than its parent, and whoever watches the parent is
asked.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.role_models import RoleAnswers, agent_call, agent_calls, only_child, role_model
from tests.support.world import World, crash, facts, request_lines, until, until_idle, until_status
from weft.api.session import Session
from weft.app import App
from weft.errors import NoPendingRequest, UsageError
from weft.events import (
    ChildFinished,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionCreated,
    ToolComplete,
    TurnFinished,
)
from weft.providers.script import CallTool, SayText, Stall

pytestmark = pytest.mark.anyio

WRITE = CallTool(name="write", args={"path": "a.txt", "content": "new\n"})
SHELL = CallTool(name="shell", args={"command": "echo hi > made.txt"})
TASK: RoleAnswers = {"ask": [agent_call("do it"), "Done."], "do": [WRITE, "Written."]}


async def start(app: App, **settings: Any) -> Session:
    return await app.sessions.start_session(session_id="s", **settings)


async def child_of(app: App, session: Session) -> Session:
    return await app.sessions.get(await only_child(session))


# --- asking --------------------------------------------------------------------------------


async def test_a_request_of_a_child_is_asked_on_the_parents_record_and_the_answer_reaches_it(
    world: World,
) -> None:
    async with world.open(role_model(TASK)) as app:
        session = await start(app)
        await session.send_prompt("ask")
        asked = await until(session, PermissionRequest)
        child = await child_of(app, session)
        [theirs] = await facts(child, PermissionRequest)
        assert asked.tool_name == "agent ▸ write"
        assert (asked.request_id, asked.preview) == (theirs.request_id, theirs.preview)
        assert (asked.shown_hash, asked.child) == (theirs.shown_hash, child.id)
        assert await session.get_status() == "awaiting_permission"
        snapshot = await session.editor_snapshot()
        assert snapshot.pending_approval == asked
        await session.respond_to_permission("allow_once", request_id=asked.request_id)
        await until_idle(session)
        assert world.read("a.txt") == "new\n"
        [mine] = await facts(session, PermissionResolved)
        [handed_on] = await facts(child, PermissionResolved)
        assert mine.action == handed_on.action == "allow_once"


async def test_a_denial_reaches_the_child_with_its_reason_and_nothing_is_done(world: World) -> None:
    model = role_model(TASK)
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await until(session, PermissionRequest)
        await session.respond_to_permission("deny", meta={"reason": "not that file"})
        await until_idle(session)
        [complete] = await facts(await child_of(app, session), ToolComplete)
        assert "not that file" in complete.result.text
        assert not (world.project / "a.txt").exists()
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once")


async def test_a_request_from_two_levels_down_comes_up_one_by_one(world: World) -> None:
    model = role_model(
        {"one": [agent_call("two"), "1"], "two": [agent_call("three"), "2"], "three": [WRITE, "3"]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("one")
        asked = await until(session, PermissionRequest)
        assert asked.tool_name == "agent ▸ agent ▸ write"
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        assert world.read("a.txt") == "new\n"


@pytest.mark.requirement("session:respond_to_permission:several")
async def test_of_two_open_requests_the_one_that_is_answered_must_be_named(world: World) -> None:
    roles: RoleAnswers = {
        "both": [agent_calls("write", "run"), "Done."],
        "write": [WRITE, "1"],
        "run": [SHELL, "2"],
    }
    async with world.open(role_model(roles)) as app:
        session = await start(app)
        await session.send_prompt("both")
        first = await until(session, PermissionRequest)
        second = await until(session, PermissionRequest, after=first.seq)
        with pytest.raises(UsageError, match=f"{first.request_id}, {second.request_id}"):
            await session.respond_to_permission("allow_once")
        for each in (second, first):
            await session.respond_to_permission("deny", request_id=each.request_id)
        await until_idle(session)
        answered = [fact.request_id for fact in await facts(session, PermissionResolved)]
        assert answered == [second.request_id, first.request_id]


async def test_a_question_of_a_child_is_put_to_the_user(world: World) -> None:
    ask = CallTool(name="ask", args={"question": "Which one?", "options": ["a", "b"]})
    model = role_model({"ask": [agent_call("choose"), "Done."], "choose": [ask, "Then b."]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        asked = await until(session, QuestionAsked)
        assert (asked.question, asked.options) == ("Which one?", ("a", "b"))
        await session.answer_question(asked.request_id, "b")
        await until_idle(session)
        [answered] = await facts(await child_of(app, session), QuestionAnswered)
        assert answered.answer == "b"


async def test_an_answer_given_to_the_child_itself_settles_the_parents_request(
    world: World,
) -> None:
    async with world.open(role_model(TASK)) as app:
        session = await start(app)
        await session.send_prompt("ask")
        asked = await until(session, PermissionRequest)
        child = await child_of(app, session)
        await child.respond_to_permission("allow_once", request_id=asked.request_id)
        resolved = await until(session, PermissionResolved)
        assert resolved.request_id == asked.request_id
        await until_idle(session)
        assert world.read("a.txt") == "new\n"


@pytest.mark.process
async def test_always_is_granted_to_the_child_alone(world: World) -> None:
    """It asks once for two runs.

    The parent's own run of the same command asks again, and so does another child's.
    """
    model = role_model(
        {
            "ask": [agent_call("do 1"), SHELL, agent_call("do 2"), "Done."],
            "do": [SHELL, SHELL, "Ran twice."],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        after = 0
        names = []
        for _ in range(3):
            asked = await until(session, PermissionRequest, after=after)
            after = asked.seq
            names.append(asked.tool_name)
            await session.respond_to_permission("allow_always", request_id=asked.request_id)
        await until_idle(session)
        assert names == ["agent ▸ shell", "shell", "agent ▸ shell"]
        granted = [fact.pattern for fact in await facts(session, PermissionResolved)]
        assert granted == ["", "shell(echo hi > made.txt)", ""]


async def test_without_a_user_a_child_is_told_no_at_once(world: World) -> None:
    model = role_model(TASK)
    async with world.open(model) as app:
        session = await start(app, asking="no")
        reply = await session.send_message("ask")
        assert reply.finish_reason == "stop"
        [complete] = await facts(await child_of(app, session), ToolComplete)
        assert "there is no one to ask" in complete.result.text
        assert await facts(session, PermissionRequest) == []


async def test_aborting_the_parent_withdraws_the_childs_request_on_both_records(
    world: World,
) -> None:
    async with world.open(role_model(TASK)) as app:
        session = await start(app)
        await session.send_prompt("ask")
        asked = await until(session, PermissionRequest)
        await session.abort()
        child = await child_of(app, session)
        for each in (session, child):
            [resolved] = await facts(each, PermissionResolved)
            assert (resolved.request_id, resolved.action) == (asked.request_id, "deny")
            assert (await each.editor_snapshot()).requests == ()
        assert not (world.project / "a.txt").exists()


async def test_a_request_that_was_open_at_a_crash_is_the_same_request_afterwards(
    world: World,
) -> None:
    app = await world.open(role_model(TASK)).__aenter__()
    session = await start(app)
    await session.send_prompt("ask")
    asked = await until(session, PermissionRequest)
    await crash(app)
    async with world.open(role_model(TASK)) as app:
        session = await app.sessions.get("s")
        await session.continue_turn()
        await until_status(session, "awaiting_permission")
        [request] = (await session.editor_snapshot()).requests
        assert request.request_id == asked.request_id
        await session.respond_to_permission("allow_once", request_id=asked.request_id)
        await until_idle(session)
        assert world.read("a.txt") == "new\n"
        assert len(await facts(session, PermissionRequest)) == 1


async def test_an_answer_that_a_crash_kept_from_the_child_reaches_it_afterwards(
    world: World,
) -> None:
    app = await world.open(role_model(TASK)).__aenter__()
    session = await start(app)
    await session.send_prompt("ask")
    asked = await until(session, PermissionRequest)
    await crash(app)
    async with world.open(role_model(TASK)) as app:
        session = await app.sessions.get("s")
        await session.respond_to_permission("allow_once", request_id=asked.request_id)
        assert await session.get_status() == "interrupted"
        await session.continue_turn()
        await until_idle(session)
        assert world.read("a.txt") == "new\n"


# --- privileges ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parents", "wanted", "in_force"),
    [
        ("default", "bypassPermissions", "default"),
        ("default", "acceptEdits", "default"),
        ("accept_edits", "bypass", "accept_edits"),
        ("plan", "default", "plan"),
        ("bypass", "default", "default"),
        ("bypass", "plan", "plan"),
        ("bypass", None, "bypass"),
        ("accept_edits", None, "accept_edits"),
    ],
)
async def test_a_child_is_never_above_its_parents_mode(
    plain_world: World, parents: str, wanted: str | None, in_force: str
) -> None:
    world = plain_world
    line = f"permissionMode: {wanted}\n" if wanted else ""
    world.write(".weft/agents/bold.md", f"---\ndescription: bold\n{line}---\nBe bold.")
    model = role_model(
        {"ask": [agent_call("wait", agent="bold"), "Done."], "wait": [(Stall(), SayText(text="x"))]}
    )
    async with world.open(model) as app:
        session = await start(app, permission_mode=parents)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        child = await child_of(app, session)
        assert (await child.editor_snapshot()).permission_mode == in_force
        [created] = await facts(child, SessionCreated)
        assert created.settings["permission_mode"] == in_force
        await child.set_permission_mode("bypass")
        assert (await child.editor_snapshot()).permission_mode == (
            parents if parents != "plan" else "plan"
        )


async def test_lowering_the_parents_mode_lowers_the_childs_at_once(plain_world: World) -> None:
    model = role_model(
        {"ask": [agent_call("do it"), "Done."], "do": [(Stall(), WRITE), "Not written, then."]}
    )
    world = plain_world
    async with world.open(model) as app:
        session = await start(app, permission_mode="bypass")
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        await session.set_permission_mode("plan")
        model.gate().opened.set()
        await until_idle(session)
        assert not (world.project / "a.txt").exists()
        [complete] = await facts(await child_of(app, session), ToolComplete)
        assert complete.result.status == "denied"


async def test_a_deny_rule_holds_for_children_in_bypass_too(plain_world: World) -> None:
    world = plain_world
    async with world.open(role_model(TASK), config={"permissions.deny": ["write"]}) as app:
        session = await start(app, permission_mode="bypass")
        await session.send_message("ask")
        assert not (world.project / "a.txt").exists()


async def test_an_ask_rule_for_agents_asks_before_one_starts(plain_world: World) -> None:
    world = plain_world
    async with world.open(role_model(TASK), config={"permissions.ask": ["agent(general)"]}) as app:
        session = await start(app, permission_mode="accept_edits")
        await session.send_prompt("ask")
        asked = await until(session, PermissionRequest)
        assert (asked.tool_name, asked.tool_path, asked.child) == ("agent", "general", None)
        assert await session.children() == []
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        assert world.read("a.txt") == "new\n"


@pytest.mark.process
async def test_a_grant_of_the_parent_is_none_for_its_child(plain_world: World) -> None:
    world = plain_world
    model = role_model({"ask": [SHELL, agent_call("run"), "Done."], "run": [SHELL, "Ran."]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        first = await until(session, PermissionRequest)
        await session.respond_to_permission("allow_always")
        second = await until(session, PermissionRequest, after=first.seq)
        assert second.tool_name == "agent ▸ shell"
        await session.respond_to_permission("deny")
        await until_idle(session)


async def test_a_child_has_its_parents_tools_and_of_them_those_it_is_defined_with(
    plain_world: World,
) -> None:
    world = plain_world
    world.write(
        ".weft/agents/bold.md",
        "---\ntools: Read, Bash, Grep, WebFetch\ndisallowedTools: Grep\n---\nBe bold.",
    )
    model = role_model(
        {
            "ask": [agent_call("one", agent="bold"), agent_call("two"), "Done."],
            "one": ["1"],
            "two": [SHELL, "2"],
        }
    )
    async with world.open(model) as app:
        session = await start(app, tools=["read", "agent", "grep"], auto_approve=True)
        await session.send_message("ask")
        offered = [[tool.name for tool in request.tools] for request in model.requests]
        assert offered[0] == ["read", "agent", "grep"]
        assert offered[1] == ["read"]
        assert offered[3] == ["read", "agent", "grep"]
        second = await app.sessions.get((await session.children())[1].id)
        [complete] = await facts(second, ToolComplete)
        assert "There is no tool 'shell'" in complete.result.text
        assert not (world.project / "made.txt").exists()


async def test_a_boundary_of_the_parent_holds_for_its_child(plain_world: World) -> None:
    world = plain_world
    world.write("a.txt", "a\nb\n")
    read = CallTool(name="read", args={"path": "a.txt"})
    edit = CallTool(name="edit", args={"path": "a.txt", "old_string": "a", "new_string": "A"})
    model = role_model({"ask": [agent_call("do it"), "Done."], "do": [read, edit, "I may not."]})
    async with world.open(model) as app:
        session = await start(app, auto_approve=True)
        await session.set_boundary("a.txt", 1, 1)
        await session.send_message("ask")
        refused = (await facts(await child_of(app, session), ToolComplete))[-1]
        assert "only line 2" in refused.result.text
        assert world.read("a.txt") == "a\nb\n"


async def test_options_of_the_message_hold_for_the_children_of_its_turn(plain_world: World) -> None:
    model = role_model({"ask": [agent_call("one"), "Done."], "one": ["1"]})
    async with plain_world.open(model) as app:
        session = await start(app)
        await session.send_message("ask", tools=["agent", "read"])
        assert [tool.name for tool in model.requests[1].tools] == ["agent", "read"]


async def test_a_definition_is_the_childs_system_prompt_and_is_told_to_the_parent(
    plain_world: World,
) -> None:
    world = plain_world
    world.write(".claude/agents/poet.md", "---\ndescription: Writes verse.\n---\nYou are a poet.")
    model = role_model({"ask": [agent_call("sing", agent="poet"), "Done."], "sing": ["la"]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        asking, singing, _ = model.requests
        assert "- poet: Writes verse." in asking.system
        assert singing.system.startswith("You are a poet.")
        assert request_lines(singing) == ["user: sing"]
        [ended] = await facts(session, ChildFinished)
        assert ended.text == "la"
        assert (await facts(session, TurnFinished))[0].reason == "stop"
