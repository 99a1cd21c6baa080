"""What a session notes as decisions by itself, in one append with what it comes from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.role_models import role_model
from tests.support.world import World, facts, until_idle, until_status
from weft.app import App
from weft.decisions import CheckEvidence, CommitEvidence, DecisionNode, TurnEvidence
from weft.events import DecisionLogged, SystemNote
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel
from weft.store import project_stream

pytestmark = pytest.mark.anyio


async def nodes(app: App, kind: str) -> list[DecisionNode]:
    return await app.decisions.nodes(kind=kind)


async def test_a_correction_becomes_a_proposed_decision_with_what_was_rejected(
    world: World,
) -> None:
    model = ScriptedModel(["I'll add Redis as a cache for lookups.", "ok", "fine"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("Lookups are slow.")
        await session.send_message("no, not that; use an in-process LRU")
        [node] = await nodes(app, "decision")
        assert (node.status, node.by, node.title) == ("proposed", "auto", "use an in-process LRU")
        assert "no, not that; use an in-process LRU" in node.why
        [logged] = await facts(session, DecisionLogged)
        assert logged.ids[0] == node.id
        [evidence] = node.evidence
        assert isinstance(evidence, TurnEvidence)
        assert evidence.turn_id is not None
        notes = [note.text for note in await facts(session, SystemNote)]
        assert any(f"weft decisions accept {node.id}" in note for note in notes)
        options = {each.title: each for each in await nodes(app, "option")}
        assert "Add Redis as a cache for lookups" in options
        await session.send_message("thanks, go on")
        assert len(await nodes(app, "decision")) == 1
        await session.stop()
        other = ScriptedModel(["fine"])
        later = await app.sessions.start_session(model=other)
        await later.send_message("Make a cache for the lookups.")
        assert "Rejected: Add Redis as a cache" in repr(other.requests[-1].messages)


async def test_a_correction_is_about_the_files_that_the_proposal_names(plain_world: World) -> None:
    (plain_world.project / "a").write_text("one\n")
    (plain_world.project / "cache.py").write_text("two\n")
    read = [CallTool(name="read", args={"path": name}) for name in ("a", "cache.py")]
    model = ScriptedModel([*read, "I'll add Redis in cache.py.", "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("Lookups are slow.")
        await session.send_message("SSE is simpler, no, not Redis; use an LRU")
        [node] = await nodes(app, "decision")
        assert node.scope == ("cache.py",)


async def test_an_answer_that_corrects_nothing_writes_nothing(plain_world: World) -> None:
    model = ScriptedModel(["I'll add Redis.", "ok", "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        for words in ("Lookups are slow.", "yes, do it", "no problem, take your time"):
            await session.send_message(words)
        assert await app.decisions.nodes() == []


async def test_what_was_noted_stands_behind_the_message_that_it_is_about(
    plain_world: World,
) -> None:
    """Not before the first message of the session, where it stood in every history."""
    model = ScriptedModel(["I'll add Redis as a cache for lookups.", "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("Lookups are slow.")
        await session.send_message("no, not that; use an in-process LRU")
        said = [(each.role, each.content.split(":")[0]) for each in await session.messages()]
    assert said == [
        ("user", "Lookups are slow."),
        ("assistant", "I'll add Redis as a cache for lookups."),
        ("user", "no, not that; use an in-process LRU"),
        ("system", "Noted as a proposed decision"),
        ("assistant", "ok"),
    ]


async def test_switched_off_nothing_is_noted(plain_world: World) -> None:
    model = ScriptedModel(["I'll add Redis.", "ok"])
    async with plain_world.open(model, config={"decisions.enabled": False}) as app:
        session = await app.sessions.start_session()
        await session.send_message("Lookups are slow.")
        await session.send_message("no, use an LRU")
        assert await app.decisions.nodes() == []


async def test_a_rewind_leaves_an_abandoned_attempt_and_undoing_it_takes_that_back(
    plain_world: World,
) -> None:
    write = CallTool(name="write", args={"path": "cache.py", "content": "x"})
    model = ScriptedModel(["hi", write, "I wrote a cache in C.", "fine"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("hello")
        await session.send_message("write a cache")
        await session.rewind(1)
        [node] = await nodes(app, "action")
        assert (node.title, node.status, node.scope) == (
            "I wrote a cache in C.",
            "abandoned",
            ("cache.py",),
        )
        assert "write a cache" in node.why
        await session.undo_rewind()
        assert (await app.decisions.get(node.id)).status == "superseded"


async def test_an_attempt_is_told_to_later_sessions_and_not_where_it_was_given_up(
    plain_world: World,
) -> None:
    own, other = ScriptedModel(["hi", "I built the cache with Redis.", "ok"]), ScriptedModel(["ok"])
    async with plain_world.open(own) as app:
        session = await app.sessions.start_session()
        await session.send_message("hello")
        await session.send_message("Build a cache")
        await session.rewind(1)
        await session.send_message("Build a cache in this process, without Redis")
        assert "given up" not in repr(own.requests[-1].messages)
        later = await app.sessions.start_session(model=other)
        await later.send_message("Build the cache with Redis")
        told = repr(other.requests[-1].messages)
        assert "Tried and given up: I built the cache with Redis." in told


async def test_a_deleted_branch_is_an_abandoned_attempt_and_a_renamed_one_is_none(
    plain_world: World,
) -> None:
    model = ScriptedModel(["one", "I used threads.", "two"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("start")
        await session.branch_at(1, "side")
        await session.send_message("use threads")
        await session.rename_branch("side", "threads")
        await session.switch_branch("main")
        assert await app.decisions.nodes() == []
        await session.delete_branch("threads")
        [node] = await nodes(app, "action")
        assert (node.title, node.status) == ("I used threads.", "abandoned")
        assert "branch threads was deleted" in node.why


@pytest.mark.process
async def test_a_test_that_fails_before_an_edit_and_passes_after_it_is_an_outcome(
    plain_world: World,
) -> None:
    plain_world.write("check.sh", "grep -q good a.txt\n")
    plain_world.write("Makefile", "test:\n\t@sh check.sh\n")
    plain_world.write("a.txt", "bad\n")
    run = CallTool(name="shell", args={"command": "make test"})
    log = {"title": "Say good", "scope": ["a.txt"]}
    script: list[CallTool | str] = [
        CallTool(name="decision_log", args=log),
        run,
        CallTool(name="read", args={"path": "a.txt"}),
        CallTool(name="edit", args={"path": "a.txt", "old_string": "bad", "new_string": "good"}),
        run,
        CallTool(name="edit", args={"path": "a.txt", "old_string": "good", "new_string": "bad"}),
        run,
        CallTool(name="edit", args={"path": "a.txt", "old_string": "bad", "new_string": "good"}),
        run,
        "done",
    ]
    async with plain_world.open(ScriptedModel(script)) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("fix it")
        [outcome] = await nodes(app, "outcome")
        assert outcome.title == "make test passes after edits of a.txt"
        assert CheckEvidence(command="make test", exit=0) in outcome.evidence
        [seen] = await nodes(app, "observation")
        [check] = seen.evidence
        assert isinstance(check, CheckEvidence)
        assert check.exit != 0
        [decision] = await nodes(app, "decision")
        assert decision.status == "active"  # a passing check makes it so


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *args], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.process
async def test_a_commit_is_evidence_of_what_was_decided_about_its_files(
    plain_world: World,
) -> None:
    git(plain_world.project, "init", "-q")
    commit = "git add a.py && git -c user.name=A -c user.email=a@b commit -m 'Add a'"
    script: list[CallTool | str] = [
        CallTool(name="decision_log", args={"title": "One letter", "scope": ["*.py"]}),
        CallTool(name="decision_log", args={"title": "Elsewhere", "scope": ["web/**"]}),
        CallTool(name="write", args={"path": "a.py", "content": "a = 1\n"}),
        CallTool(name="shell", args={"command": commit}),
        "done",
    ]
    async with plain_world.open(ScriptedModel(script)) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("write a.py")
        head = git(plain_world.project, "rev-parse", "HEAD")
        by_title = {node.title: node for node in await nodes(app, "decision")}
        [found] = [
            each for each in by_title["One letter"].evidence if isinstance(each, CommitEvidence)
        ]
        assert head.startswith(found.commit)
        kinds = {type(each) for each in by_title["Elsewhere"].evidence}
        assert CommitEvidence not in kinds
        why = await app.decisions.why("a.py", 1)
        assert why.decisions[0].title == "One letter"
        assert why.turn is not None
        assert why.turn.session_id == session.id


def plan_models(check: str) -> tuple[ScriptedModel, ScriptedModel]:
    """A planner with one step and its check, and the model that carries it out."""
    step = {
        "action": "create",
        "file": "a.txt",
        "description": "make the file",
        "details": "It holds Redis.",
        "check": check,
    }
    plan = CallTool(name="submit", args={"summary": "Cache with Redis.", "steps": [step]})
    write = CallTool(name="write", args={"path": "a.txt", "content": "x\n"})
    return (
        role_model({"make": [plan]}, "script"),
        role_model({"make the file": [write, "Made it."]}, "fast"),
    )


@pytest.mark.process
async def test_a_plan_becomes_a_goal_with_actions_and_the_outcome_of_its_check(
    plain_world: World,
) -> None:
    models = plan_models("test -f a.txt")
    async with plain_world.open(*models, config={"model.editor": "scripted:fast"}) as app:
        await app.decisions.log("Cache in process", options=["Redis"])
        session = await app.sessions.start_session(auto_approve=True)
        await session.set_mode("architect")
        await session.send_message("make them")
        [goal] = await nodes(app, "goal")
        assert (goal.title, goal.status, goal.author) == (
            "Cache with Redis.",
            "active",
            "architect",
        )
        [action] = await nodes(app, "action")
        assert (action.title, action.status, action.scope) == ("make the file", "done", ("a.txt",))
        [outcome] = await nodes(app, "outcome")
        assert outcome.evidence == (CheckEvidence(command="test -f a.txt", exit=0),)
        kinds = {(edge.source, edge.target) for edge in await app.decisions.edges()}
        assert {(goal.id, action.id), (action.id, outcome.id)} <= kinds
        warnings = [note.text for note in await facts(session, SystemNote) if note.level != "info"]
        assert any("The plan goes back to Redis, which was rejected" in each for each in warnings)


async def test_a_plan_that_is_turned_down_is_abandoned(plain_world: World) -> None:
    models = plan_models("")
    async with plain_world.open(*models, config={"model.editor": "scripted:fast"}) as app:
        session = await app.sessions.start_session()
        await session.set_mode("architect")
        await session.send_prompt("make them")
        await until_status(session, "awaiting_permission")
        assert [node.status for node in await nodes(app, "goal")] == ["proposed"]
        await session.reject_plan("no services")
        await until_idle(session)
        assert [node.status for node in await nodes(app, "goal")] == ["abandoned"]


KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


@pytest.mark.process
async def test_no_secret_gets_into_the_graph(plain_world: World) -> None:
    log = {
        "title": f"Use {KEY}",
        "why": f"why {KEY}",
        "options": [{"title": f"Not {KEY}", "why": f"old {KEY}"}],
    }
    program = plain_world.project / "pytest"
    program.write_text("#!/bin/sh\ntest -e fine\n")
    program.chmod(0o755)
    shell = CallTool(name="shell", args={"command": f"API_TOKEN={KEY} ./pytest"})
    write = CallTool(name="write", args={"path": "fine", "content": "x"})
    model = ScriptedModel(
        [
            CallTool(name="decision_log", args=log),
            *(shell, write, shell),
            "I'll use memcached for the cache.",
            *("ok", "I'll do it."),
        ]
    )
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("hello")
        await session.send_message(f"no, use redis with the long and very secret key {KEY}")
        await app.decisions.log(f"Mine {KEY}", why=KEY, options=[KEY], session=session.id)
        mine = await app.decisions.log("Plain", tags=["x"])
        await app.decisions.change(mine.id, title=f"Now {KEY}", reason=KEY)
        await session.send_message(f"write {KEY}")
        await session.rewind(1)
        assert {"outcome", "action", "option", "decision"} <= {
            node.kind for node in await app.decisions.nodes()
        }
        assert "sk-ant" not in await app.decisions.export("json")
        logged = await facts(session, DecisionLogged)
        assert "sk-ant" not in repr([fact.summary for fact in logged])
        changes = await app.store.read(project_stream(logged[0].project_id))
        assert not any(b"sk-ant" in record.body for record in changes)


async def test_the_end_of_a_proposal_counts_however_long_what_came_before_is(
    plain_world: World,
) -> None:
    plain_world.write("a.py", "x\n")
    before = SayText(text="I will look at the logging module first. " * 220)
    read = CallTool(name="read", args={"path": "a.py"})
    model = ScriptedModel(["hi", [before, read], "I'll use memcached for the cache.", "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        for words in ("hello", "make it faster", "no, not memcached; use redis"):
            await session.send_message(words)
        rejected = [node.title for node in await nodes(app, "option")]
        assert any("memcached" in title for title in rejected)
        assert not any("logging" in title for title in rejected)


async def test_a_plan_that_no_user_decided_on_is_not_noted_as_decided_by_one(
    plain_world: World,
) -> None:
    step = {"action": "create", "file": "a.txt", "description": "make", "details": "d", "check": ""}
    empty = CallTool(name="submit", args={"summary": "It lives in cart.py.", "steps": []})
    plan = CallTool(name="submit", args={"summary": "Use GraphQL.", "steps": [step]})
    async with plain_world.open(ScriptedModel([empty, plan, "ok", "ok"])) as app:
        session = await app.sessions.start_session(asking="no")
        await session.set_mode("architect")
        await session.send_message("Where does the cart live?")
        assert await app.decisions.nodes() == []
        await session.send_message("Use GraphQL")
        assert await app.decisions.nodes() == []


async def test_a_plan_that_is_approved_by_itself_is_no_decision_of_the_user(
    plain_world: World,
) -> None:
    models = plan_models("")
    async with plain_world.open(*models, config={"model.editor": "scripted:fast"}) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.set_mode("architect")
        await session.send_message("make them")
        [goal] = await nodes(app, "goal")
        assert goal.status == "active"
        assert goal.id not in (await app.decisions.graph()).of_user


async def test_a_step_that_the_user_took_out_of_a_plan_is_not_approved_with_it(
    plain_world: World,
) -> None:
    names = ("write the form", "drop the users table")
    steps = [
        {"action": "create", "file": "a.txt", "description": each, "details": "d", "check": ""}
        for each in names
    ]
    plan = {"summary": "Add a login.", "steps": steps}
    model = ScriptedModel([CallTool(name="submit", args=plan), "done", "done"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.set_mode("architect")
        await session.send_prompt("add it")
        await until_status(session, "awaiting_permission")
        await session.edit_plan({**plan, "steps": steps[:1]})
        status = {node.title: node.status for node in await nodes(app, "action")}
        assert status == {names[0]: "proposed", names[1]: "superseded"}
        await session.edit_plan(plan)
        assert {node.status for node in await nodes(app, "action")} == {"proposed"}
        await session.edit_plan({**plan, "steps": steps[:1]})
        await session.approve_plan()
        await until_idle(session)
        status = {node.title: node.status for node in await nodes(app, "action")}
        assert status[names[1]] == "superseded"


async def test_what_another_branch_still_has_is_not_given_up(plain_world: World) -> None:
    model = ScriptedModel(["one", "I used threads.", "I used queues."])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("start")
        await session.send_message("use threads")
        await session.branch_at(3, "side")
        await session.send_message("use queues")
        await session.switch_branch("main")
        await session.rewind(1)
        assert await nodes(app, "action") == []  # side has it
        await session.delete_branch("side")
        [node] = await nodes(app, "action")
        assert node.title == "I used queues."


async def test_an_attempt_that_is_left_twice_is_given_up(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel(["one", "I used threads."])) as app:
        session = await app.sessions.start_session()
        await session.send_message("start")
        await session.send_message("use threads")
        await session.rewind(1)
        await session.undo_rewind()
        await session.rewind(1)
        [node] = await nodes(app, "action")
        assert node.status == "abandoned"


@pytest.mark.process
async def test_a_commit_after_a_restart_is_no_evidence_of_what_was_changed_before(
    plain_world: World,
) -> None:
    git(plain_world.project, "init", "-q")
    commit = "git add {0} && git -c user.name=A -c user.email=a@b commit -m x {0}"
    before: list[CallTool | str] = [
        CallTool(name="decision_log", args={"title": "One letter", "scope": ["a.py"]}),
        CallTool(name="write", args={"path": "a.py", "content": "a = 1\n"}),
        "done",
    ]
    after: list[CallTool | str] = [
        CallTool(name="write", args={"path": "b.py", "content": "b = 1\n"}),
        CallTool(name="shell", args={"command": commit.format("b.py")}),
        "done",
    ]
    async with plain_world.open(ScriptedModel(before)) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("write a.py")
    async with plain_world.open(ScriptedModel(after)) as app:
        again = await app.sessions.start_session(session_id=session.id, auto_approve=True)
        await again.send_message("write b.py")
        assert git(plain_world.project, "rev-parse", "HEAD")
        [node] = await nodes(app, "decision")
        assert not any(isinstance(each, CommitEvidence) for each in node.evidence)
