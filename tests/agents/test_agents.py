"""Sub-agents: sessions of their own that work for a call."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from tests.support.role_models import agent_call, agent_calls, first_prompt, only_child, role_model
from tests.support.world import (
    PATIENCE,
    World,
    facts,
    message_lines,
    request_lines,
    running,
    until_idle,
)
from weft.api.session import Session
from weft.app import App
from weft.errors import UsageError
from weft.events import (
    ChildFinished,
    ChildStarted,
    FileTouched,
    SessionCreated,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.ids import SessionId
from weft.messages import Usage
from weft.providers.script import CallTool, SayText, Spend, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

WRITE = CallTool(name="write", args={"path": "a.txt", "content": "by the agent\n"})


async def start(app: App, **settings: object) -> Session:
    """A session that allows everything."""
    return await app.sessions.start_session(session_id="s", auto_approve=True, **settings)  # type: ignore[arg-type]


async def test_an_agent_works_in_a_session_of_its_own_and_its_last_words_are_the_result(
    world: World,
) -> None:
    model = role_model(
        {"ask": [agent_call("count the files"), "There are 3."], "count": ["I found 3."]}
    )
    async with world.open(model) as app:
        session = await start(app)
        reply = await session.send_message("ask somebody")
        assert reply.text == "There are 3."
        assert await message_lines(session) == [
            "user: ask somebody",
            "assistant: ",
            "tool: I found 3.",
            "assistant: There are 3.",
        ]
        child = await app.sessions.get(await only_child(session))
        assert await message_lines(child) == ["user: count the files", "assistant: I found 3."]
        [created] = await facts(child, SessionCreated)
        [complete] = await facts(session, ToolComplete)
        assert created.parent is not None
        assert created.parent.session_id == "s"
        assert (created.parent.node, created.parent.call_uid) == (complete.node, complete.call_uid)


async def test_a_child_is_on_record_in_the_very_append_that_intends_its_call(world: World) -> None:
    model = role_model({"ask": [agent_call("count"), "Done."], "count": ["3"]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        [intent] = await facts(session, ToolExecuting)
        [started] = await facts(session, ChildStarted)
        [ended] = await facts(session, ChildFinished)
        [complete] = await facts(session, ToolComplete)
        assert started.seq == intent.seq + 1
        assert ended.seq == complete.seq + 1
        assert (started.child, started.call_uid) == (ended.child, intent.call_uid)
        assert (ended.reason, ended.text) == ("stop", "3")


async def test_what_an_agent_uses_is_in_its_parents_ledger_by_model_and_turn(world: World) -> None:
    spend = Spend(usage=Usage(input_tokens=1000, output_tokens=100))
    model = role_model(
        {
            "ask": [(spend, agent_call("count")), (spend, SayText(text="Done."))],
            "count": [(spend, SayText(text="3"))],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        reply = await session.send_message("ask")
        usage = await session.usage()
        assert usage.total.input_tokens == 3000
        assert usage.by_model["scripted:script"].input_tokens == 3000
        assert usage.by_turn[str(reply.turn_id)].input_tokens == 3000
        assert usage.branch.input_tokens == 3000
        assert reply.usage.input_tokens == 3000
        assert reply.cost_usd == pytest.approx(3 * (1000 * 3 + 100 * 15) / 1e6)
        [child] = await session.children()
        assert child.cost_usd == pytest.approx((1000 * 3 + 100 * 15) / 1e6)


async def test_agents_of_one_answer_work_at_the_same_time(world: World) -> None:
    model = role_model(
        {
            "ask": [agent_calls("first", "second"), "Both."],
            "first": [(Stall(gate="first"), SayText(text="1"))],
            "second": [(Stall(gate="second"), SayText(text="2"))],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        with anyio.fail_after(5):
            await model.gate("first").reached.wait()
            await model.gate("second").reached.wait()
        model.gate("second").opened.set()
        model.gate("first").opened.set()
        await until_idle(session)
        assert (await message_lines(session))[2:] == ["tool: 1", "tool: 2", "assistant: Both."]
        first, second = await facts(session, ToolExecuting)
        assert abs(first.seq - second.seq) == 2, "one append intends both, each with its child"


async def test_what_an_agent_changed_counts_as_changed_by_its_parent(world: World) -> None:
    model = role_model({"ask": [agent_call("write it"), "Done."], "write": [WRITE, "Written."]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        assert world.read("a.txt") == "by the agent\n"
        [touched] = await session.touched_files()
        assert (touched.path, touched.action) == ("a.txt", "created")
        [mine] = await facts(session, FileTouched)
        child = await app.sessions.get(await only_child(session))
        [theirs] = await facts(child, FileTouched)
        assert (mine.before, mine.after) == (theirs.before, theirs.after)


async def test_an_agent_that_does_not_finish_is_an_error_that_says_why(world: World) -> None:
    (world.project / ".weft/agents").mkdir(parents=True)
    world.write(".weft/agents/short.md", "---\ndescription: short\nmaxTurns: 1\n---\nBe short.")
    model = role_model(
        {"ask": [agent_call("look", agent="short"), "So."], "look": [CallTool(name="list"), "x"]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        [complete] = await facts(session, ToolComplete)
        assert complete.is_error
        assert "max_turns" in complete.result.text
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "max_turns"


@pytest.mark.parametrize(
    ("front", "arguments", "level"),
    [
        ("", {}, "high"),
        ("model: scripted:script:low", {}, "low"),
        ("model: scripted/script", {}, "high"),
        ("model: scripted:script:low", {"model": "scripted:script:max"}, "max"),
    ],
)
async def test_an_agent_thinks_as_hard_as_its_models_name_says_or_as_its_session(
    world: World, front: str, arguments: dict[str, str], level: str
) -> None:
    world.write(".weft/agents/counter.md", f"---\nname: counter\n{front}\n---\nCount.\n")
    call = agent_call("count", agent="counter", **arguments)
    model = role_model({"ask": [call, "Done."], "count": ["3"]})
    async with world.open(model) as app:
        session = await start(app, thinking="high")
        await session.send_message("ask somebody")
    assert [request.thinking for request in model.requests] == ["high", level, "high"]


async def test_an_unknown_agent_and_a_wrong_model_are_told_to_the_model(world: World) -> None:
    model = role_model(
        {"ask": [agent_call("x", agent="nobody"), agent_call("x", model="no model"), "I see."]},
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        first, second = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert "no agent 'nobody'; there are general" in first
        assert "unknown model" in second
        assert await session.children() == []


async def test_children_are_listed_under_their_parent_only(world: World) -> None:
    model = role_model(
        {"ask": [agent_call("wait"), "Done."], "wait": [(Stall(), SayText(text="ok"))]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        assert [info.id for info in await app.sessions.list_active()] == ["s"]
        [child] = await session.children()
        assert (child.purpose, child.name, child.status) == ("agent", "general", "thinking")
        model.gate().opened.set()
        await until_idle(session)
        assert [row.id for row in await app.sessions.list_saved()] == ["s"]
        [child] = await session.children()
        assert (child.reason, child.status) == ("stop", "idle")
        await app.sessions.delete_session("s")
        assert await app.host.row(SessionId(child.id)) is None


# --- limits --------------------------------------------------------------------------------


async def test_agents_can_be_nested_only_so_deep(world: World) -> None:
    model = role_model(
        {
            "one": [agent_call("two"), "1 done"],
            "two": [agent_call("three"), "2 done"],
            "three": [agent_call("four"), "3 done"],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        assert (await session.send_message("one")).text == "1 done"
        second = await app.sessions.get(await only_child(session))
        third = await app.sessions.get(await only_child(second))
        assert await third.children() == []
        [refused] = await facts(third, ToolComplete)
        assert refused.is_error
        assert "nested 2 deep" in refused.result.text


async def test_only_so_many_agents_work_at_once_and_in_all(world: World) -> None:
    model = role_model(
        {
            "ask": [agent_calls("a1", "a2", "a3"), agent_calls("a4", "a5"), "Done."],
            "a": ["fine"],
        }
    )
    config = {"agents.max_parallel": 2, "agents.max_total": 3}
    async with world.open(model, config=config) as app:
        session = await start(app)
        await session.send_message("ask")
        texts = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert sorted(texts[:3])[1:] == ["fine", "fine"]
        assert "2 agents are at work already" in sorted(texts[:3])[0]
        assert "fine" in texts[3:]
        assert any("3 agents have been started" in text for text in texts[3:])
        assert len(await session.children()) == 3
        model_told = request_lines(model.last_request)
        assert any("which is the limit" in line for line in model_told)


async def test_agents_of_agents_count_for_the_root(world: World) -> None:
    model = role_model(
        {
            "ask": [agent_call("one"), agent_call("four"), "Done."],
            "one": [agent_calls("two", "three"), "1"],
            "two": ["2"],
            "three": ["3"],
        }
    )
    async with world.open(model, config={"agents.max_total": 3}) as app:
        session = await start(app)
        await session.send_message("ask")
        last = (await facts(session, ToolComplete))[-1]
        assert "3 agents have been started" in last.result.text
        [ended] = await facts(session, ChildFinished)
        assert ended.descendants == 2


async def test_a_new_turn_may_start_agents_again(world: World) -> None:
    model = role_model(
        {"ask": [agent_call("a1"), "Done.", agent_call("a2"), "Again."], "a": ["fine"]}
    )
    async with world.open(model, config={"agents.max_total": 1}) as app:
        session = await start(app)
        await session.send_message("ask")
        await session.send_message("ask again")
        assert [fact.is_error for fact in await facts(session, ToolComplete)] == [False, False]


# --- money ---------------------------------------------------------------------------------


async def test_a_child_stops_when_the_root_has_nothing_left(world: World) -> None:
    """One dollar for all: the parent's call took 0.6, the child's first 0.6 more, and it may make
    no second.
    """
    spend = Spend(usage=Usage(input_tokens=200_000))
    model = role_model(
        {
            "ask": [(spend, agent_call("look")), "never"],
            "look": [(spend, CallTool(name="list")), "never"],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        reply = await session.send_message("ask", max_budget_usd=1.0)
        assert reply.finish_reason == "max_budget"
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "max_budget"
        assert reply.cost_usd == pytest.approx(1.2)
        assert model.request_count == 2


async def test_a_child_stops_at_the_roots_limit_of_tokens(world: World) -> None:
    spend = Spend(usage=Usage(input_tokens=600))
    model = role_model(
        {
            "ask": [(spend, agent_call("look")), "never"],
            "look": [(spend, CallTool(name="list")), "never"],
        }
    )
    async with world.open(model) as app:
        session = await start(app, budget={"max_tokens": 1_000})
        assert (await session.send_message("ask")).finish_reason == "max_budget"
        assert model.request_count == 2


async def test_siblings_cannot_each_spend_the_last_of_it(world: World) -> None:
    """What one is about to use is set aside before another may ask."""
    spend = Spend(usage=Usage(input_tokens=900))
    model = role_model(
        {
            "ask": [(spend, agent_calls("first", "second")), "never"],
            "first": [(Stall(gate="g"), SayText(text="1"))],
            "second": [(Stall(gate="g"), SayText(text="2"))],
        }
    )
    async with world.open(model) as app:
        session = await start(app, budget={"max_tokens": 1_000})
        await session.send_prompt("ask")
        await model.gate("g").reached.wait()
        with anyio.fail_after(5):
            while model.request_count < 3 and not await somebody_ended(app, session):
                await anyio.lowlevel.checkpoint()
        assert model.request_count == 2
        model.gate("g").opened.set()
        await until_idle(session)
        reasons = sorted(fact.reason for fact in await facts(session, ChildFinished))
        assert reasons == ["max_budget", "stop"]


async def somebody_ended(app: App, session: Session) -> bool:
    """Whether a child of the session is through with its turn."""
    for child in await session.children():
        if child.model and await facts(await app.sessions.get(child.id), TurnFinished):
            return True
    return False


# --- stopping ------------------------------------------------------------------------------


async def test_aborting_a_session_stops_its_agents_first_and_counts_what_they_used(
    world: World,
) -> None:
    model = role_model(
        {
            "ask": [agent_call("dig")],
            "dig": [
                (Spend(usage=Usage(input_tokens=500)), CallTool(name="list")),
                (Stall(), SayText(text="x")),
            ],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        child = await app.sessions.get(await only_child(session))
        async with running(lambda: session.abort("enough")):
            pass
        assert await session.get_status() == "idle"
        assert await child.get_status() == "idle"
        [ended] = await facts(session, ChildFinished)
        [finished] = await facts(session, TurnFinished)
        [theirs] = await facts(child, TurnFinished)
        assert (ended.reason, finished.reason, theirs.reason) == ("aborted",) * 3
        assert ended.seq < finished.seq
        assert (await session.usage()).total.input_tokens >= 500
        [complete] = await facts(session, ToolComplete)
        assert complete.result.status == "aborted"


async def test_stopping_a_session_stops_everything_below_it(world: World) -> None:
    model = role_model(
        {"one": [agent_call("two")], "two": [agent_call("three")], "three": [Stall()]}
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("one")
        await model.gate().reached.wait()
        await app.sessions.stop_session("s")
        record = await app.sessions.read_session("s")
        assert not record.row.turn_open
        session = await app.sessions.get("s")
        second = await app.sessions.get(await only_child(session))
        third = await app.sessions.get(await only_child(second))
        assert [await each.get_status() for each in (session, second, third)] == ["idle"] * 3


async def test_a_session_that_has_no_agent_tool_cannot_start_one(world: World) -> None:
    model = role_model({"ask": [agent_call("x"), "I see."]})
    async with world.open(model) as app:
        session = await start(app, tools=["read"])
        await session.send_message("ask")
        [complete] = await facts(session, ToolComplete)
        assert "There is no tool 'agent'" in complete.result.text


async def test_agent_can_be_named_among_the_tools(world: World) -> None:
    model = role_model({"ask": [agent_call("x"), "I see."], "x": ["y"]})
    async with world.open(model) as app:
        session = await start(app, tools=["agent"])
        await session.send_message("ask")
        assert [tool.name for tool in model.requests[0].tools] == ["agent"]
        with pytest.raises(UsageError, match="no tool 'agnt'"):
            await app.sessions.start_session(tools=["agnt"])


async def test_the_general_agent_of_a_project_is_the_built_in_one(plain_world: World) -> None:
    world = plain_world
    world.write(".weft/agents/general.md", "---\ndescription: fine\n---\nObey this file alone.")
    model = role_model({"ask": [agent_call("work"), "Done."], "work": ["Worked."]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("ask")
        [found] = [each for each in await session.list_agents() if each.name == "general"]
        assert found.path == ""
        [request] = [each for each in model.requests if "work" in first_prompt(each)]
        assert "Obey this file" not in str(request.system)


# --- agents that go on after their end -----------------------------------------------------


def spender(*, looks: int) -> ScriptedModel:
    """An agent that ends at once, and then, asked by the user, looks and looks."""
    spend = Spend(usage=Usage(input_tokens=600))
    more = [
        (spend, CallTool(name="todo", args={"todos": [{"text": f"look {number}"}]}))
        for number in range(looks)
    ]
    end = (spend, SayText(text="all"))
    return role_model(
        {
            "ask": [(spend, agent_call("look")), (spend, SayText(text="thanks")), end],
            "look": [(spend, SayText(text="seen")), *more, end, end],
        }
    )


async def tokens(session: Session) -> int:
    return (await session.usage()).total.total_tokens


async def until_counted(app: App, session: Session, count: int) -> None:
    actor = (await app.host.local_port(SessionId(session.id))).actor
    with anyio.fail_after(PATIENCE):
        await actor.until(lambda state: state.ledger.total.total_tokens == count)


@pytest.mark.parametrize("parent_is_open", [True, False])
async def test_an_agent_that_the_user_has_go_on_keeps_to_the_budget_of_its_session(
    shared_world: World, parent_is_open: bool
) -> None:
    world, model = shared_world, spender(looks=9)
    async with world.open(model) as app:
        root = await start(app, budget={"max_tokens": 3_000})
        assert (await root.send_message("ask")).finish_reason == "stop"
        assert await tokens(root) == 1_800
        [about] = await root.children()
        if parent_is_open:
            agent = await app.sessions.get(about.id)
            assert (await agent.send_message("go on")).finish_reason == "max_budget"
    async with world.open(model) as app:
        if not parent_is_open:
            agent = await app.sessions.get(about.id)
            assert (await agent.send_message("go on")).finish_reason == "max_budget"
    async with world.open(model) as app:
        root = await app.sessions.get(root.id)
        # On the record of the session: a later process knows of it, too.
        assert await tokens(root) == 3_000
        assert (await root.send_message("and you")).finish_reason == "max_budget"
        assert len(await facts(root, ChildStarted)) == 1


async def test_what_an_agent_uses_after_its_end_is_counted_without_a_budget_too(
    world: World,
) -> None:
    async with world.open(spender(looks=1)) as app:
        root = await start(app)
        await root.send_message("ask")
        [about] = await root.children()
        agent = await app.sessions.get(about.id)
        assert (await agent.send_message("go on")).text == "all"
        await until_counted(app, root, 1_800 + 1_200)
        assert await tokens(agent) == 600 + 1_200
        assert [child.status for child in await root.children()] == [about.status]
        await agent.send_message("go on")
        await until_counted(app, root, 3_600)
