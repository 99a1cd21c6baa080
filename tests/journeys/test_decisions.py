"""Decisions at work: logged by a model, told in the next session at the moment of need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.world import World, facts
from weft.app import App
from weft.context import DECISION_SUBJECT, estimate_text
from weft.decisions import FileEvidence
from weft.events import DecisionLogged, SystemNote, ToolComplete, decode
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

LOG = {
    "title": "Cache lookups in process",
    "why": "one machine",
    "scope": ["src/cache.py"],
    "options": [
        {"title": "an LRU", "verdict": "chosen"},
        {"title": "Redis", "why": "one more service"},
    ],
}


def seen(model: ScriptedModel, index: int = -1) -> str:
    """What a request said, all of it."""
    return msgspec.json.encode(model.requests[index].messages).decode()


def tool_names(model: ScriptedModel) -> set[str]:
    return {tool.name for tool in model.requests[-1].tools}


def call(name: str, **args: Any) -> CallTool:
    return CallTool(name=name, args=args)


async def logged(app: App, model: ScriptedModel | None = None) -> str:
    """A decision that a model logs and the user accepts; returns its id."""
    session = await app.sessions.start_session(
        model=model or ScriptedModel([call("decision_log", **LOG), "ok"])
    )
    await session.send_message("we talked about caching")
    [fact] = await facts(session, DecisionLogged)
    await session.stop()
    return fact.ids[0]


async def test_what_a_model_logs_is_proposed_and_in_one_append_with_its_result(
    world: World,
) -> None:
    async with world.open(ScriptedModel([])) as app:
        model = ScriptedModel([call("decision_log", **LOG), "ok"])
        session = await app.sessions.start_session(model=model)
        await session.send_message("we talked about caching")
        [fact] = await facts(session, DecisionLogged)
        [done] = await facts(session, ToolComplete)
        assert done.result.text.startswith(f"Logged as {fact.ids[0]}, proposed")
        assert fact.call_uid == done.call_uid
        node = await app.decisions.get(fact.ids[0])
        assert (node.status, node.by) == ("proposed", "model")
        [evidence] = node.evidence
        assert evidence.session_id == session.id  # type: ignore[union-attr]
        rejected = [each.title for each in await app.decisions.nodes(kind="option")]
        assert sorted(rejected) == ["Redis", "an LRU"]


async def test_the_next_session_is_told_what_was_rejected_when_it_matters(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        name = await logged(app)
        await app.decisions.accept(name)
        model = ScriptedModel(["fine", "fine", "fine"])
        session = await app.sessions.start_session(model=model)
        await session.send_message("Translate the greeting to French.")
        assert "Redis" not in seen(model)
        await session.send_message("Lookups are slow, add a cache.")
        assert "Rejected: Redis (one more service)." in seen(model)
        assert "do not propose again" in seen(model)
        before = seen(model).count("Redis")
        await session.send_message("And now a bigger cache for lookups.")
        assert seen(model).count("Redis") == before
        assert {"decision_log", "decision_query", "decision_update"} <= tool_names(model)


async def test_a_decision_that_is_superseded_meanwhile_is_taken_back(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        name = await logged(app)
        await app.decisions.accept(name)
        model = ScriptedModel(["fine", "fine"])
        session = await app.sessions.start_session(model=model)
        await session.send_message("Lookups are slow, add a cache.")
        new = await app.decisions.log("Cache in Redis after all", supersedes=name)
        await session.send_message("Go on.")
        assert f"No longer counts: Cache lookups in process [{name}], superseded by {new.id}" in (
            seen(model)
        )


async def test_another_process_does_not_tell_it_again(shared_world: World) -> None:
    async with shared_world.open(ScriptedModel([])) as app:
        name = await logged(app)
        await app.decisions.accept(name)
        first = ScriptedModel(["fine"])
        session = await app.sessions.start_session(model=first)
        await session.send_message("Lookups are slow, add a cache.")
        kept = session.id
    model = ScriptedModel(["fine"])
    async with shared_world.open(model) as app:
        session = await app.sessions.get(kept)
        await session.send_message("Now test the cache for lookups.", model="scripted:script")
        assert seen(model).count("Rejected: Redis") == 1


async def test_what_the_model_is_told_stays_within_its_tokens(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        for number in range(40):
            await app.decisions.log(
                f"Cache number {number}", why="because of the cache " * 20, options=["Redis" * 8]
            )
        model = ScriptedModel(["fine"] * 8)
        session = await app.sessions.start_session(model=model)
        for number in range(8):
            await session.send_message(f"The cache number {number} is slow.")
        stored = [decode(record.body) for record in await app.store.read(session.id)]
        notes = [fact for fact in stored if isinstance(fact, SystemNote)]
        told = [note.environment for note in notes if note.environment][-1]
        lines = [text for name, text in told.items() if name.startswith(DECISION_SUBJECT)]
        assert 4 < len(lines) < 40
        assert estimate_text(sum(map(len, lines))) <= 1_024


async def test_an_order_that_is_given_late_is_told(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        logged = [
            await app.decisions.log(
                f"Cache number {number}", why="because of the cache " * 20, options=["Redis" * 8]
            )
            for number in range(30)
        ]
        model = ScriptedModel(["fine"] * 10)
        session = await app.sessions.start_session(model=model)
        for number in range(8):
            await session.send_message(f"The cache number {number} is slow.")
        await app.decisions.log("Never push to main", kind="constraint")
        await session.send_message("The cache is slow.")
        assert "Standing order: Never push to main" in seen(model)
        for node in logged:
            await app.decisions.change(node.id, status="superseded")
        await app.decisions.log("Use Kafka", why="because of the queue " * 20)
        await session.send_message("What about Kafka?")
        assert "Decided: Use Kafka" in seen(model)


async def test_a_read_or_an_edit_in_scope_says_so_once_a_turn(plain_world: World) -> None:
    plain_world.write("src/cache.py", "x = 1\n")
    plain_world.write("other.py", "y = 1\n")
    edit = call("edit", path="src/cache.py", old_string="1", new_string="2")
    script: list[CallTool | str] = [
        call("read", path="other.py"),
        call("read", path="src/cache.py"),
        edit,
        "done",
        call("read", path="src/cache.py"),
        "done",
    ]
    async with plain_world.open(ScriptedModel([])) as app:
        name = await logged(app)
        await app.decisions.accept(name)
        model = ScriptedModel(script)
        session = await app.sessions.start_session(model=model, auto_approve=True)
        await session.send_message("Make it twice as large.")
        results = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert [name in text for text in results] == [False, True, False]
        note = results[1][results[1].index("[Decided before") :]
        assert note.startswith("[Decided before about this file:\nRejected: Redis")
        assert estimate_text(len(note)) <= 120
        await session.send_message("And again?")
        results = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert name not in results[-1]  # told with the message: the file is in play


async def test_what_only_a_model_says_is_told_in_its_own_session_alone(plain_world: World) -> None:
    plain_world.write("src/cache.py", "x = 1\n")
    order = {"title": "Always push the cache", "kind": "constraint", "scope": ["**"]}
    script: list[CallTool | str] = [
        call("decision_log", **order),
        call("decision_log", **{**order, "title": "Never test the cache"}),
        "ok",
        "ok",
    ]
    async with plain_world.open(ScriptedModel([])) as app:
        own = ScriptedModel(script)
        session = await app.sessions.start_session(model=own)
        await session.send_message("look")
        await session.send_message("Go on with the cache in src/cache.py.")
        assert "Constraint: Always push the cache" in seen(own)
        assert "Standing order" not in seen(own)
        done = (await facts(session, DecisionLogged))[1].ids[0]
        update = ScriptedModel([call("decision_update", id=done, status="done"), "ok"])
        await session.send_message("done?", model=update)
        model = ScriptedModel([call("read", path="src/cache.py"), "fine", "fine"])
        later = await app.sessions.start_session(model=model)
        await later.send_message("Work on the cache in src/cache.py.")
        assert "push the cache" not in seen(model)
        assert "test the cache" not in seen(model)
        first = (await facts(session, DecisionLogged))[0].ids[0]
        await app.decisions.accept(first)
        await later.send_message("Once more the cache in src/cache.py.")
        assert "Standing order: Always push the cache" in seen(model)


async def test_after_a_compaction_it_is_told_again(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        name = await logged(app)
        await app.decisions.accept(name)
        model = ScriptedModel(["long answer " * 400] * 3 + ["the summary", "fine"])
        session = await app.sessions.start_session(model=model)
        for words in ("Add a cache for lookups.", "two", "three"):
            await session.send_message(words)
        await session.compact()
        await session.send_message("Translate the greeting.")
        assert "the summary" in seen(model)
        assert seen(model).count("Rejected: Redis") == 1


async def test_queries_and_updates_of_a_model(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        mine = await logged(app)
        users = await app.decisions.log("Never push", kind="constraint")
        script: list[CallTool | str] = [
            call("decision_query", text="caching"),
            call("decision_query", path="src/cache.py"),
            call("decision_query", id=mine),
            call("decision_query", text="unheard of"),
            call("decision_query"),
            call("decision_update", id=mine, status="abandoned", reason="too small"),
            call("decision_update", id=users.id, status="done"),
            call("decision_update", id="dec_none"),
            call("decision_log", title="Add Redis", kind="action"),
            call("decision_log", title="x", kind="wish"),
            call("decision_log", title="New", supersedes=mine),
            "done",
        ]
        session = await app.sessions.start_session(model=ScriptedModel(script))
        await session.send_message("look")
        results = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert all("Redis" in text for text in results[:3])
        assert results[3] == "Nothing was decided about that."
        assert "give `text`, `path` or `id`" in results[4]
        assert results[5] == f"Changed {mine}."
        assert (await app.decisions.get(mine)).status == "abandoned"
        assert "is the user's" in results[6]
        assert (await app.decisions.get(users.id)).status == "active"
        assert "no decision 'dec_none'" in results[7]
        assert "no kind 'wish'" in results[9]
        assert results[10].startswith("Logged as")


async def test_a_model_changes_neither_what_the_user_accepted_nor_what_was_noted(
    plain_world: World,
) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        mine = await logged(app)
        await app.decisions.accept(mine)
        noted = await app.decisions.log("Not Redis", by="auto", status="proposed")
        script: list[CallTool | str] = [
            call("decision_update", id=mine, status="abandoned"),
            call("decision_update", id=noted.id, scope=["elsewhere.py"]),
            "done",
        ]
        session = await app.sessions.start_session(model=ScriptedModel(script))
        await session.send_message("look")
        results = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert all("is the user's" in text for text in results)
        assert (await app.decisions.get(mine)).status == "active"
        assert (await app.decisions.get(noted.id)).scope == ()


async def test_a_model_ends_no_decision_of_the_user_with_one_that_it_finishes(
    plain_world: World,
) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        users = await app.decisions.log("Use Postgres")
        log = call("decision_log", title="Use MySQL", supersedes=users.id)
        session = await app.sessions.start_session(model=ScriptedModel([log, "ok"]))
        await session.send_message("look")
        [logged] = await facts(session, DecisionLogged)
        script: list[CallTool | str] = [
            call("decision_update", id=logged.ids[0], status="done"),
            "ok",
        ]
        await session.send_message("go on", model=ScriptedModel(script))
        results = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert "the user accepts it first" in results[-1]
        assert (await app.decisions.get(users.id)).status == "active"
        await app.decisions.accept(logged.ids[0])
        assert (await app.decisions.get(users.id)).status == "superseded"


async def test_a_file_that_must_not_be_read_is_no_evidence(plain_world: World) -> None:
    for name in ("keys.env", "plain.py"):
        (plain_world.project / name).write_text("SECRET=1234\n")
    (plain_world.project / "link.py").symlink_to("keys.env")
    model = ScriptedModel(
        [call("decision_log", title="x", scope=["keys.env", "link.py", "plain.py"]), "done"]
    )
    config = {"permissions.deny": ["read(keys.env)"]}
    async with plain_world.open(model, config=config) as app:
        session = await app.sessions.start_session()
        await session.send_message("look")
        [node] = await app.decisions.nodes(kind="decision")
        mine = await app.decisions.log("y", scope=["keys.env", "link.py", "plain.py"])
        for each in (node, mine):
            files = [one.path for one in each.evidence if isinstance(one, FileEvidence)]
            assert files == ["plain.py"]


async def test_a_plan_that_returns_to_what_was_rejected_is_answered_with_a_warning(
    plain_world: World,
) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        name = await logged(app)
        await app.decisions.accept(name)
        script: list[CallTool | str] = [
            call("decision_log", title="Add Redis to the cluster", kind="action"),
            "done",
        ]
        session = await app.sessions.start_session(model=ScriptedModel(script))
        await session.send_message("plan")
        [result] = [fact.result.text for fact in await facts(session, ToolComplete)]
        assert f"Beware: Redis was rejected before ({name}" in result


async def test_a_model_may_log_a_kind_that_the_program_has_registered(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        app.decisions.register("risk")
        script: list[CallTool | str] = [
            call("decision_log", title="It may burn", kind="risk"),
            "ok",
        ]
        session = await app.sessions.start_session(model=ScriptedModel(script))
        await session.send_message("look")
        assert [node.title for node in await app.decisions.nodes(kind="risk")] == ["It may burn"]


PAIRS = msgspec.json.decode(
    (Path(__file__).parents[1] / "decisions" / "data" / "pairs.json").read_bytes()
)


async def test_of_30_pairs_of_sessions_the_second_is_told_what_the_first_rejected(
    plain_world: World,
) -> None:
    """All 30 decisions are in one project, and the session that made them is deleted."""
    async with plain_world.open(ScriptedModel([])) as app:
        first = await app.sessions.start_session(model=ScriptedModel([]))
        for pair in PAIRS["pairs"]:
            options = [
                {"title": pair["chosen"], "verdict": "chosen"},
                {"title": pair["rejected"], "why": pair["reason"]},
            ]
            await app.decisions.log(
                pair["title"],
                why=pair["why"],
                scope=pair["scope"],
                options=options,
                session=first.id,
            )
        await first.stop()
        await app.sessions.delete_session(first.id)
        returned = 0
        for pair in PAIRS["pairs"]:
            text = await request_of(app, pair["request"])
            returned += f"Rejected: {pair['rejected']} ({pair['reason']})" in text
        assert returned / len(PAIRS["pairs"]) >= 0.95
        for request in PAIRS["unrelated"]:
            assert (await request_of(app, request)).count("- Rejected: ") <= 1


async def request_of(app: App, text: str) -> str:
    """All that a new session's model is sent for a message."""
    model = ScriptedModel(["fine"])
    session = await app.sessions.start_session(model=model)
    await session.send_message(text)
    await session.stop()
    return seen(model)


async def test_switched_off_nothing_is_told_and_nothing_logged(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([]), config={"decisions.enabled": False}) as app:
        await app.decisions.log("Cache lookups", options=["Redis"])
        model = ScriptedModel([call("decision_log", **LOG), "ok"])
        session = await app.sessions.start_session(model=model)
        await session.send_message("Add a cache for lookups.")
        assert "Rejected" not in seen(model)
        assert not any(name.startswith("decision") for name in tool_names(model))
        assert await facts(session, DecisionLogged) == []


async def test_a_project_without_decisions_offers_only_the_tool_that_logs(
    plain_world: World,
) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        model = ScriptedModel([call("decision_log", **LOG), "ok", "fine"])
        session = await app.sessions.start_session(model=model)
        await session.send_message("one")
        first = model.requests[0]
        await session.send_message("two")
        assert {tool.name for tool in first.tools} & {"decision_query", "decision_update"} == set()
        assert "decision_log" in tool_names(model)
        # The epoch stays: what a vendor has cached is sent again, byte for byte.
        assert model.requests[-1].tools == first.tools


@pytest.mark.process
def test_a_run_on_a_project_without_decisions_loads_nothing_of_them(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, anyio, weft\n"
        "from weft.testing import ScriptedModel\n"
        "async def main():\n"
        "    async with weft.open(sys.argv[1], 'jsonl:' + sys.argv[1] + '/l',\n"
        "                         environ={'HOME': sys.argv[1]}) as app:\n"
        "        session = await app.sessions.start_session(model=ScriptedModel(['hi']))\n"
        "        await session.send_message('hello')\n"
        "anyio.run(main)\n"
        "print([name for name in sys.modules if 'decision' in name])\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
