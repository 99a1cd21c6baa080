"""`app.decisions`: the graph of a project, from programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.support.world import World, facts
from weft.app import App
from weft.decisions import CommitEvidence, DecisionNode, FileEvidence
from weft.decisions.sound_values import LAST_TIME
from weft.errors import UsageError
from weft.events import DecisionLogged
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.runtime.decisions import decision_book

pytestmark = pytest.mark.anyio


async def sqlite(app: App) -> DecisionNode:
    return await app.decisions.log(
        "Keep sessions in SQLite",
        why="One file, no service.",
        scope=["src/store/**", "src/store/base.py"],
        options=[{"title": "SQLite", "verdict": "chosen"}, "Postgres"],
        confidence=80,
        tags=["Storage"],
    )


async def test_what_is_logged_is_found_by_words_path_and_id(world: World) -> None:
    world.write("src/store/base.py", "class Store: ...\n")
    async with world.open(ScriptedModel([])) as app:
        node = await sqlite(app)
        assert (node.status, node.by, node.tags) == ("active", "user", ("storage",))
        [evidence] = node.evidence
        assert isinstance(evidence, FileEvidence)
        assert evidence.path == "src/store/base.py"
        decisions = app.decisions
        assert [each.id for each in await decisions.query("session storage in sqlite")] == [
            node.id,
            *[each.id for each in await decisions.query("sqlite") if each.kind == "option"],
        ]
        assert await decisions.query(path="src/store/base.py") == [node]
        assert await decisions.get(node.id[:9]) == node
        assert {each.title for each in await decisions.nodes(kind="option")} == {
            "SQLite",
            "Postgres",
        }
        assert {edge.kind for edge in await decisions.edges(node.id)} == {"chosen", "rejected"}
    if world.kind == "memory":
        return
    async with world.open(ScriptedModel([])) as app:
        assert await app.decisions.get(node.id) == node


async def test_what_has_the_words_comes_first_whether_it_still_counts_or_not(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        decisions = app.decisions
        old = await decisions.log("Keep sessions in SQLite")
        new = await decisions.log("Keep rows in files")
        await decisions.supersede(old.id, new.id)
        for number in range(10):
            await decisions.log(f"Name the sessions of kind {number} by their day")
        found = await decisions.query("sqlite sessions", limit=5)
        assert [found[0].id, found[0].status] == [old.id, "superseded"]


async def test_a_decision_of_a_session_is_superseded_in_another_and_asked_for_in_a_third(
    world: World,
) -> None:
    async with world.open(ScriptedModel([])) as app:
        a, b = [await app.sessions.start_session() for _ in range(2)]
        old = await app.decisions.log("Use YAML", session=a.id)
        [logged] = await facts(a, DecisionLogged)
        assert logged.ids == (old.id,)
        new = await app.decisions.log("Use TOML", supersedes=old.id, session=b.id)
        await a.stop()
        await app.sessions.delete_session(a.id)
        c = await app.sessions.start_session()
        assert c.id not in (a.id, b.id)
        assert (await app.decisions.get(old.id)).status == "superseded"
        assert [node.id for node in await app.decisions.nodes(status="active")] == [new.id]
        graph = await app.decisions.graph()
        assert graph.successor(old.id) == new
        assert "superseded by: Use TOML" in await app.decisions.narrative()
        assert await app.decisions.narrative(session=b.id) != ""


async def test_nodes_are_accepted_changed_linked_and_superseded(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        decisions = app.decisions
        goal = await decisions.log("Ship", kind="goal")
        node = await decisions.log("Use uv", status="proposed", options=["pip"])
        accepted = await decisions.accept(node.id, "tried it")
        assert accepted.status == "active"
        assert await decisions.accept(node.id) == accepted
        edge = await decisions.link(goal.id, node.id, "requires", "speed")
        assert edge in await decisions.edges(goal.id)
        changed = await decisions.change(node.id, confidence=40, scope=["pyproject.toml"])
        assert (changed.confidence, changed.scope) == (40, ("pyproject.toml",))
        pip = await decisions.log("Use pip after all", status="proposed")
        assert (await decisions.supersede(node.id, pip.id, "uv is gone")).status == "active"
        assert (await decisions.get(node.id)).status == "superseded"
        await decisions.link(goal.id, node.id, "requires", weight=0)
        assert await decisions.edges(goal.id) == []
        with pytest.raises(UsageError, match="is superseded; log a new decision"):
            await decisions.accept(node.id)
        with pytest.raises(UsageError, match="cannot supersede itself"):
            await decisions.supersede(pip.id, pip.id)
        with pytest.raises(UsageError, match="no kind of edge 'follows'"):
            await decisions.link(goal.id, pip.id, "follows")
        with pytest.raises(UsageError, match="no decision 'dec_zzzz'"):
            await decisions.get("dec_zzzz")
        with pytest.raises(UsageError, match="needs a text or a path"):
            await decisions.query()


async def test_a_program_registers_kinds_of_its_own(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        with pytest.raises(UsageError, match="no kind 'risk'"):
            await app.decisions.log("The vendor may go", kind="risk")
        app.decisions.register("risk", "what could go wrong")
        node = await app.decisions.log("The vendor may go", kind="risk")
        assert (await app.decisions.get(node.id)).kind == "risk"
        assert app.decisions.kinds()["risk"] == "what could go wrong"
        with pytest.raises(UsageError, match="is no name for a kind"):
            app.decisions.register("Big Risk")


async def test_the_pulse_looks_at_the_files_of_the_project(plain_world: World) -> None:
    plain_world.write("a.py", "\n".join(f"line {number}" for number in range(20)))
    async with plain_world.open(ScriptedModel([])) as app:
        await app.decisions.log("One", options=["two"], scope=["a.py"])
        assert (await app.decisions.pulse()).findings == ()
        plain_world.write("a.py", "all new\n")
        [finding] = (await app.decisions.pulse()).findings
        assert finding.check == "evidence_changed"
        (plain_world.project / "a.py").unlink()
        checks = {finding.check for finding in (await app.decisions.pulse()).findings}
        assert checks == {"evidence_changed", "scope_without_files"}


async def test_the_pulse_finds_what_a_list_of_files_leaves_out(plain_world: World) -> None:
    hidden = plain_world.project / ".github" / "workflows"
    hidden.mkdir(parents=True)
    (hidden / "ci.yml").write_text("on: push\n")
    plain_world.write("web/build/out.js", "x\n")
    options = [{"title": "One job", "verdict": "chosen"}]
    shown = (".github/workflows/ci.yml", ".github/**", ".github/workflows/*.yml", "web/build/**")
    async with plain_world.open(ScriptedModel([])) as app:
        for scope in shown:
            await app.decisions.log(f"About {scope}", scope=[scope], options=options)
        assert (await app.decisions.pulse()).findings == ()
        gone = await app.decisions.log("Gone", scope=[".github/*.md"], options=options)
        [finding] = (await app.decisions.pulse()).findings
        assert (finding.check, finding.id) == ("scope_without_files", gone.id)


async def test_what_could_not_be_read_again_is_not_stored(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        bad: Any = ["a commit"]
        with pytest.raises(UsageError, match="evidence is a TurnEvidence"):
            await app.decisions.log("x", evidence=bad)
        with pytest.raises(UsageError, match="no author 'me'"):
            await app.decisions.log("x", by="me")
        node = await app.decisions.log("x", evidence=[CommitEvidence(commit="abc1234")])
        with pytest.raises(UsageError, match="evidence is a TurnEvidence"):
            await app.decisions.change(node.id, evidence=bad)
        assert (await app.decisions.get(node.id)).evidence == (CommitEvidence(commit="abc1234"),)


async def test_exports_are_written_and_records_imported_once(
    plain_world: World, tmp_path: Path
) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        await sqlite(app)
        await app.decisions.export("json", tmp_path / "graph.json")
        document = msgspec.json.decode((tmp_path / "graph.json").read_bytes())
        assert len(document["nodes"]) == 3
        assert (await app.decisions.export("dot")).startswith("digraph")
        assert (await app.decisions.export("mermaid")).startswith("flowchart")
        await app.decisions.export("adr", tmp_path / "adr")
        [file] = (tmp_path / "adr").iterdir()
        assert file.name == "0001-keep-sessions-in-sqlite.md"
        # The graph has what it was written out as; another project does not.
        assert await app.decisions.import_adr(tmp_path / "adr") == []
        file.write_text(file.read_text().rpartition("<!--")[0])
        assert len(await app.decisions.import_adr(tmp_path / "adr")) == 1
        assert await app.decisions.import_adr(tmp_path / "adr") == []
        with pytest.raises(UsageError, match="no format 'xml'"):
            await app.decisions.export("xml")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no file or folder"):
            await app.decisions.import_adr(tmp_path / "nothing")
        (tmp_path / "empty").mkdir()
        with pytest.raises(UsageError, match="has no records"):
            await app.decisions.import_adr(tmp_path / "empty")


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *args], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.process
async def test_why_goes_from_a_line_to_its_commit_its_turn_and_the_decision(
    plain_world: World,
) -> None:
    world = plain_world
    world.clock.set(1_700_000_000.0) if hasattr(world.clock, "set") else None
    git(world.project, "init", "-q")
    model = ScriptedModel(
        [CallTool(name="write", args={"path": "a.py", "content": "one\ntwo\n"}), "done"]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("write a.py")
        turn = (await app.decisions.why("a.py", 1)).turn
        assert turn is not None
        assert (turn.session_id, turn.prompt) == (session.id, "write a.py")
        git(world.project, "add", "a.py")
        git(world.project, "commit", "-qm", "Write a.py")
        head = git(world.project, "rev-parse", "HEAD")
        by_commit = await app.decisions.log("By commit", evidence=[CommitEvidence(commit=head[:9])])
        by_scope = await app.decisions.log("By scope", scope=["*.py"], options=["a shell script"])
        why = await app.decisions.why("a.py", 2)
        assert why.commit is not None
        assert (why.commit.commit, why.commit.author, why.commit.summary) == (
            head,
            "Ada",
            "Write a.py",
        )
        assert [node.id for node in why.decisions] == [by_commit.id, by_scope.id]
        assert [node.title for node in why.rejected] == ["a shell script"]
        assert (await app.decisions.why("a.py")).commit == why.commit
        world.write("a.py", "one\nTWO\n")
        assert (await app.decisions.why("a.py", 2)).commit is None
        for path, line, says in (
            ("a.py", 99, "a.py has no line 99"),
            ("a.py", 0, "counted from 1"),
            ("b.py", None, "no file 'b.py'"),
            ("../x", None, "not in this project"),
        ):
            with pytest.raises(UsageError, match=says):
                await app.decisions.why(path, line)


async def test_a_look_leaves_no_project_id_behind(shared_world: World) -> None:
    async with shared_world.open(ScriptedModel([])) as app:
        assert await app.decisions.nodes() == []
        assert list(shared_world.base.rglob("projects/*.json")) == []


def test_the_blocking_api_has_it_too(tmp_path: Path) -> None:
    with weft.sync.open(tmp_path, "memory", environ={"HOME": str(tmp_path)}) as app:
        node = app.decisions.log("Use TOML", options=["YAML"])
        assert app.decisions.get(node.id).title == "Use TOML"


async def test_an_app_that_is_not_open_has_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not open"):
        _ = weft.open(tmp_path, "memory").decisions


@pytest.mark.parametrize(
    "given",
    [
        {"title": 5},
        {"tags": "abc"},
        {"scope": "src"},
        {"options": "Redis"},
        {"scope": [5]},
        {"why": 5},
        {"review_after": "tomorrow"},
        {"review_after": float("nan")},
        {"confidence": "high"},
        {"confidence": 50.5},
        {"options": [5]},
        {"parent": 5},
        {"status": 5},
    ],
)
async def test_what_could_not_be_read_again_is_refused(
    plain_world: World, given: dict[str, Any]
) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        with pytest.raises(UsageError):
            await app.decisions.log(**{"title": "A", **given})
        kept = await app.decisions.log("B")
        for_change = {
            key: value for key, value in given.items() if key not in ("options", "parent")
        }
        if for_change:
            with pytest.raises(UsageError):
                await app.decisions.change(kept.id, **for_change)
        with pytest.raises(UsageError):
            await app.decisions.link(kept.id, kept.id, weight="heavy")  # type: ignore[arg-type]
        assert await app.decisions.nodes() == [kept]


async def test_records_that_may_not_be_read_and_links_are_not_imported(
    plain_world: World, tmp_path: Path
) -> None:
    text = "# 1. Use TOML\n\n## Decision\n\nSecret words.\n"
    plain_world.write("private/0001-a.md", text)
    plain_world.write("adr/0002-b.md", text)
    (plain_world.project / "adr/0003-c.md").symlink_to("../private/0001-a.md")
    (plain_world.project / "0004-d.md").symlink_to("private/0001-a.md")
    rules = {"permissions.deny": ["read(private/**)"]}
    async with plain_world.open(ScriptedModel([]), config=rules) as app:
        for name in ("private", "private/0001-a.md", "0004-d.md"):
            with pytest.raises(UsageError, match="must not be read"):
                await app.decisions.import_adr(plain_world.project / name)
        with pytest.raises(UsageError, match="is a link out of its folder"):
            await app.decisions.import_adr(plain_world.project / "adr")
        (plain_world.project / "adr/0003-c.md").unlink()
        assert len(await app.decisions.import_adr(plain_world.project / "adr")) == 1


@pytest.mark.process
async def test_why_answers_where_git_cannot_run_and_where_a_commit_claims_any_date(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(plain_world.project, "init", "-q")
    plain_world.write("a.py", "one\n")
    git(plain_world.project, "add", "a.py")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@99999999999999 +0000")
    git(plain_world.project, "commit", "-qm", "Late")
    async with plain_world.open(ScriptedModel([])) as app:
        commit = (await app.decisions.why("a.py", 1)).commit
        assert commit is not None
        assert commit.at <= LAST_TIME
        scratch = app.places.home / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.write_text("in the way")
        assert (await app.decisions.why("a.py", 1)).commit is None


@pytest.mark.process
async def test_why_says_that_git_failed_and_not_that_a_line_is_in_no_commit(
    plain_world: World,
) -> None:
    world = plain_world
    git(world.project, "init", "-q")
    for name in ("a.py", "new.py"):
        (world.project / name).write_text("one\n")
    async with world.open(ScriptedModel([])) as app:
        for line in (None, 1):
            unborn = await app.decisions.why("a.py", line)
            assert (unborn.commit, unborn.git_error) == (None, "")
        git(world.project, "add", "a.py")
        git(world.project, "commit", "-qm", "Write a.py")
        tree = git(world.project, "rev-parse", "HEAD^{tree}")
        for line in (None, 1):
            unknown = await app.decisions.why("new.py", line)
            assert (unknown.commit, unknown.git_error) == (None, "")
        (world.project / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
        for line in (None, 1):
            failed = await app.decisions.why("a.py", line)
            assert failed.commit is None
            assert tree in failed.git_error


async def test_programs_see_every_attempt_also_those_that_sessions_are_no_longer_told_of(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_book, "MOST_NOTED", 1)
    async with plain_world.open(ScriptedModel(["one", "two", "three"])) as app:
        session = await app.sessions.start_session()
        for _ in range(3):
            await session.send_message("go")
            await session.rewind(0)
        tried = await app.decisions.nodes(session=session.id)
        assert [node.title for node in tried] == ["three", "two", "one"]
        [shared] = app.host.services.decisions.books.values()
        assert [node.title for node in shared.graph.nodes.values()] == ["three"]
        # What the user says of one brings it back.
        kept = await app.decisions.change(tried[2].id, why="It was right after all.")
        assert kept.why == "It was right after all."
        await app.decisions.purge(tried[1].id)
        assert [node.title for node in await app.decisions.nodes()] == ["three", "one"]
        graph = await shared.refresh()
        assert [node.title for node in graph.nodes.values()] == ["one", "three"]
