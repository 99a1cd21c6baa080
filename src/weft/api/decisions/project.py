"""`app.decisions`: the decision graph of the application's project.

Everything here works without a session; with `session=` an entry is stored in one append with the
session's own fact about it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread
import msgspec

from weft.api.handle import number_of, path_of
from weft.config.project_ids import ProjectIds
from weft.decisions import (
    KINDS,
    DecisionChanged,
    DecisionEdge,
    DecisionEntry,
    DecisionEvidence,
    DecisionFact,
    DecisionGraph,
    DecisionNode,
    DecisionOption,
    DecisionSuperseded,
    LoggedEntry,
    accepted,
    linked,
    log_entry,
    options_of,
    share_left,
)
from weft.decisions.adr import adr_name, exported_id, parse_adr, to_adr
from weft.decisions.entry import (
    check_edge,
    check_kind_name,
    check_texts,
    check_word,
    checked_change,
    checked_evidence,
    clean_why,
    several,
    well_typed,
)
from weft.decisions.export import to_dot, to_json, to_mermaid
from weft.decisions.facts import FileEvidence
from weft.decisions.graph import IN_FORCE, OPEN
from weft.decisions.masked_facts import masked_facts
from weft.decisions.narrative import narrative_of, reached_from
from weft.decisions.pulse import ProjectFiles, PulseReport, check_pulse
from weft.decisions.relevance import nodes_for_path, relevant_nodes, search
from weft.errors import UsageError
from weft.evidence.blame import Blame, LineCommit, LineTurn
from weft.ids import DecisionId, SessionId, new_id
from weft.runtime.blame.line_blame import LineBlame
from weft.runtime.blame.line_decisions import decided
from weft.runtime.decisions.decision_book import (
    DecisionBook,
    file_content,
    key_of,
    logged_commit,
    with_file_evidence,
)
from weft.runtime.decisions.decision_purge import PurgeReport, sessions_of, with_options
from weft.runtime.decisions.project_books import whole_book
from weft.runtime.decisions.scoped_files import scoped_files
from weft.runtime.services import Services
from weft.runtime.session_host import SessionHost
from weft.runtime.workspaces.read_guard import read_judge
from weft.store import Store

DecisionFormat = Literal["json", "dot", "mermaid", "adr"]

LARGEST_RECORD: Final = 256 * 1024
"""Bytes of an ADR that is imported."""
MOST_RECORDS: Final = 1_000


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Why a file, or a line of it, is as it is."""

    path: str
    line: int | None = None
    commit: LineCommit | None = None
    """Where it was last changed; None for what is not committed, or in no repository."""
    git_error: str = ""
    """Why git could not tell the commit; empty where it could."""
    turn: LineTurn | None = None
    """The turn of a session that changed it; None where no session did."""
    decisions: tuple[DecisionNode, ...] = ()
    """What was decided about it: first what the commit and the turn are evidence of, then what has
    it in its scope."""
    rejected: tuple[DecisionNode, ...] = ()
    """The options that these decisions rejected."""


class ProjectDecisions:
    """The decision graph: log, look up, change, check and export."""

    def __init__(self, host: SessionHost, services: Services, store: Store) -> None:
        self._host = host
        self._services = services
        self._store = store

    # -- writing

    async def log(
        self,
        title: str,
        *,
        kind: str = "decision",
        why: str = "",
        scope: Sequence[str] = (),
        options: Sequence[DecisionOption | Mapping[str, str] | str] = (),
        supersedes: str | None = None,
        parent: str | None = None,
        confidence: int | None = None,
        tags: Sequence[str] = (),
        evidence: Sequence[DecisionEvidence] = (),
        review_after: float | None = None,
        status: str = "active",
        by: str = "user",
        session: str | None = None,
    ) -> DecisionNode:
        """Put a node down, with its options; a plain string among them was rejected.

        `supersedes` and `parent` are ids, or beginnings of ids.  A file that `scope` names is noted
        as it is now, so that `pulse()` can tell when it has changed.

        Raises:
            UsageError: it cannot be put down.
        """
        check_texts(by=by)
        check_word("author", by, ("user", "model", "auto"))
        for name, given in (("supersedes", supersedes), ("parent", parent)):
            if given == "":
                raise UsageError(f"{name} needs the id of a decision")
        entry = DecisionEntry(
            title=title,
            kind=kind,
            why=why,
            status=status,
            confidence=confidence,
            by=by,
            scope=several("scope", scope),
            evidence=checked_evidence(evidence),
            tags=several("tags", tags),
            review_after=review_after,
            options=options_of(options),
            supersedes=supersedes or "",
            parent=parent or "",
        )
        [node] = await self._log([well_typed(entry)], session)
        return node

    async def supersede(
        self, old: str, new: str, rationale: str = "", *, session: str | None = None
    ) -> DecisionNode:
        """Let one node stand in the place of another; returns the new one.

        Raises:
            UsageError: there is no such node.
        """
        check_texts(old=old, new=new, rationale=rationale)
        book = await self._book(writes=True)
        before, after = book.graph.find(old), book.graph.find(new)
        if before.id == after.id:
            raise UsageError(f"{before.id} cannot supersede itself")
        if after.status not in ("proposed", *IN_FORCE):
            raise UsageError(f"{after.id} is {after.status}: it cannot take the place of another")
        facts: list[DecisionFact] = [
            *(accepted(book.graph, after, by="user") if after.status == "proposed" else ()),
            DecisionSuperseded(old=before.id, new=after.id, rationale=clean_why(rationale)),
        ]
        await self._add(book, facts, (after.id, before.id), f"superseded: {before.title}", session)
        return book.graph.nodes[after.id]

    async def accept(
        self, name: str, reason: str = "", *, session: str | None = None
    ) -> DecisionNode:
        """Make what was proposed count, its options with it.

        Raises:
            UsageError: there is no such node, or it is over.
        """
        check_texts(name=name, reason=reason)
        book = await self._book(writes=True)
        node = book.graph.find(name)
        facts = accepted(book.graph, node, by="user", reason=clean_why(reason))
        if facts:
            await self._add(book, facts, (node.id,), f"accepted: {node.title}", session)
        return book.graph.nodes[node.id]

    async def change(
        self,
        name: str,
        *,
        status: str | None = None,
        title: str | None = None,
        why: str | None = None,
        confidence: int | None = None,
        scope: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        review_after: float | None = None,
        evidence: Sequence[DecisionEvidence] = (),
        reason: str = "",
        session: str | None = None,
    ) -> DecisionNode:
        """Change a node; what is left out stays.  `review_after=0.0` takes the date away.

        Raises:
            UsageError: there is no such node, or it cannot be so.
        """
        check_texts(name=name)
        given = well_typed(
            DecisionChanged(
                id=DecisionId(name),
                status=status,
                title=title,
                why=why,
                confidence=confidence,
                scope=None if scope is None else several("scope", scope),
                tags=None if tags is None else several("tags", tags),
                review_after=review_after,
                evidence=checked_evidence(evidence),
                reason=reason,
            )
        )
        book = await self._book(writes=True)
        node = book.graph.find(name)
        fact = checked_change(msgspec.structs.replace(given, id=node.id))
        await self._add(book, [fact], (node.id,), f"changed: {node.title}", session)
        return book.graph.nodes[node.id]

    async def link(
        self,
        source: str,
        target: str,
        kind: str = "leads_to",
        rationale: str = "",
        weight: float = 1.0,
        *,
        session: str | None = None,
    ) -> DecisionEdge:
        """Join two nodes; a weight of 0 takes the edge away.

        Raises:
            UsageError: there is no such node, or no such kind of edge.
        """
        well_typed(linked(DecisionId(source), DecisionId(target), kind, rationale, weight))
        check_edge(kind, weight)
        book = await self._book(writes=True)
        ends = book.graph.find(source), book.graph.find(target)
        if ends[0].id == ends[1].id:
            raise UsageError(f"{ends[0].id} cannot be joined with itself")
        fact = linked(ends[0].id, ends[1].id, kind, clean_why(rationale), weight)
        await self._add(book, [fact], (ends[0].id, ends[1].id), f"{kind}: {ends[1].title}", session)
        return fact.edge

    async def purge(self, *names: str) -> PurgeReport:
        """Take nodes out for good, a decision with its options, such as a secret that was logged by
        mistake.  Of what the project's stream says of them only ids, kinds, states and times stay.

        Raises:
            UsageError: there is no such node.
        """
        for name in names:
            check_texts(name=name)
        book = await self._book(writes=True)
        ids = with_options(book.graph, [book.graph.find(name).id for name in names])
        sessions = sessions_of(book.graph, ids)
        if ids:
            await book.purge(ids)
        return PurgeReport(ids=tuple(ids), sessions=tuple(sessions))

    def register(self, kind: str, about: str = "") -> None:
        """Let nodes of a program's own kind be logged by this application.

        Raises:
            UsageError: it can be no name of a kind.
        """
        check_kind_name(kind)
        self._services.decisions.kinds[kind] = about or kind

    def kinds(self) -> dict[str, str]:
        """The kinds of nodes that can be logged, and what each is."""
        return {**KINDS, **self._services.decisions.kinds}

    # -- looking

    async def get(self, name: str) -> DecisionNode:
        """A node by its id, or the beginning of it.

        Raises:
            UsageError: none has it, or several do.
        """
        return (await self.graph()).find(name)

    async def graph(self) -> DecisionGraph:
        """The graph as it is now; to be looked at, not changed."""
        return (await self._book()).graph

    async def nodes(
        self, *, kind: str | None = None, status: str | None = None, session: str | None = None
    ) -> list[DecisionNode]:
        """All nodes, newest first; of a kind, a status or a session, where one is named."""
        graph = await self.graph()
        nodes = graph.of_session(session) if session else list(graph.nodes.values())
        found = [
            node for node in nodes if kind in (None, node.kind) and status in (None, node.status)
        ]
        return sorted(found, key=lambda node: (-node.at, node.id))

    async def edges(self, name: str | None = None) -> list[DecisionEdge]:
        """All edges, or those of one node."""
        graph = await self.graph()
        if name is None:
            return list(graph.edges.values())
        node = graph.find(name).id
        return [*graph.outgoing(node), *graph.incoming(node)]

    async def query(
        self, text: str | None = None, *, path: str | None = None, limit: int = 20
    ) -> list[DecisionNode]:
        """What was decided about some words, or about a file; nearest first.

        Raises:
            UsageError: neither is given.
        """
        if not text and not path:
            raise UsageError("query needs a text or a path")
        graph, now = await self.graph(), self._services.clock.now()
        found: dict[DecisionId, DecisionNode] = {}
        if path:
            inside = self._relative(path)
            found.update((node.id, node) for node in nodes_for_path(graph, inside))
        if text:
            near = relevant_nodes(graph, text, now=now, most=limit, standing=False)
            # A file that the words name says more than they do.
            found.update((each.node.id, each.node) for each in near if each.in_scope)
            found.update((node.id, node) for node in search(graph, text, now=now, most=limit))
            found.update((each.node.id, each.node) for each in near)
        return list(found.values())[:limit]

    async def why(self, path: str, line: int | None = None) -> WhyReport:
        """Why a file, or a line of it (counted from 1), is as it is: its commit, the turn that made
        it, and what was decided.

        Raises:
            UsageError: it is no path of the project, or the file has no such line.
        """
        blame = self._blame()
        if line is None:
            inside = await blame.check_path(path, may_be_folder=True)
            commit, git_error = await blame.commit_of(inside, None)
            turn = await blame.newest_turn(inside, None if commit is None else commit.at)
        else:
            origin = await blame.origin(path, line)
            inside, commit, git_error = origin.path, origin.commit, origin.git_error
            turn = origin.story.turn
        graph = await self.graph()
        found = {node.id: node for node in decided(graph, commit, turn)}
        found.update((node.id, node) for node in nodes_for_path(graph, inside))
        rejected = {
            option.id: option for name in found for option, _ in graph.options(name, "rejected")
        }
        return WhyReport(
            path=inside,
            line=line,
            commit=commit,
            git_error=git_error,
            turn=turn,
            decisions=tuple(found.values()),
            rejected=tuple(rejected.values()),
        )

    async def blame(self, path: str, line: int) -> Blame:
        """As `App.blame`."""
        number_of("a line", line, least=-sys.maxsize)
        return await self._blame().of_line(path_of("file", path), line, await self.graph())

    def _blame(self) -> LineBlame:
        project = self._services.project_path
        judge = read_judge(
            self._host.registry.stored_read_rules(project), os.path.realpath(project)
        )
        return LineBlame(self._services, self._store, judge)

    async def pulse(self) -> PulseReport:
        """How the graph is: what is missing, stale or at odds, and a score."""
        graph, project = await self.graph(), self._services.project_path
        scopes = {scope for node in graph.nodes.values() for scope in node.scope}
        paths = await anyio.to_thread.run_sync(scoped_files, project, scopes)
        looked_at: dict[str, list[FileEvidence]] = {}
        for node in graph.nodes.values():
            for each in node.evidence:
                if isinstance(each, FileEvidence) and node.status in OPEN:
                    looked_at.setdefault(each.path, []).append(each)
        workspace = self._services.workspaces.workspace(project)
        left: dict[FileEvidence, float] = {}
        for path, found in looked_at.items():
            # One file at a time, and nothing of it is kept: there may be thousands.
            content = await file_content(workspace, path)
            left.update((each, share_left(each, content)) for each in found)
        files = ProjectFiles(paths, lambda each: left.get(each, 1.0))
        return check_pulse(graph, now=self._services.clock.now(), files=files)

    async def narrative(self, *, session: str | None = None, goal: str | None = None) -> str:
        """What was decided, as text, oldest first: of a session, of a goal, or all of it.

        Raises:
            UsageError: there is no such goal, or the session has decided nothing.
        """
        graph = await self.graph()
        if goal is not None:
            return narrative_of(graph, reached_from(graph, graph.find(goal).id))
        nodes = graph.of_session(session) if session is not None else list(graph.nodes.values())
        if session is not None and not nodes:
            raise UsageError(f"session {session!r} has decided nothing here")
        return narrative_of(graph, nodes)

    # -- other forms

    async def export(
        self, format: DecisionFormat = "json", path: str | os.PathLike[str] | None = None
    ) -> str:
        """The graph as JSON, DOT or Mermaid, written to `path` where one is given; as `adr`, one
        Markdown file for each decision into the folder `path`.

        Raises:
            UsageError: there is no such format, or it cannot be written.
        """
        check_word("format", format, ("json", "dot", "mermaid", "adr"))
        graph = await self.graph()
        if format == "adr":
            return await self._export_records(graph, path)
        text = {"json": to_json, "dot": to_dot, "mermaid": to_mermaid}[format](graph)
        if path is not None:
            await _write(Path(path), text)
        return text

    async def _export_records(
        self, graph: DecisionGraph, path: str | os.PathLike[str] | None
    ) -> str:
        decisions = [node for node in graph.nodes.values() if node.kind == "decision"]
        decisions.sort(key=lambda node: (node.at, node.id))
        texts = {
            adr_name(node, number): to_adr(graph, node, number)
            for number, node in enumerate(decisions, start=1)
        }
        if path is not None:
            folder = Path(path)
            try:
                await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"cannot make {folder}: {error.strerror or error}") from error
            for name, text in texts.items():
                await _write(folder / name, text)
        return "\n".join(texts.values())

    async def import_adr(self, path: str | os.PathLike[str]) -> list[DecisionNode]:
        """Log the architecture decision records of a file, or of a folder; those that are known
        already are passed over.

        Raises:
            UsageError: there are none, or one cannot be read.
        """
        files = await anyio.to_thread.run_sync(_record_files, Path(path))
        await anyio.to_thread.run_sync(self._check_readable, files)
        texts = {file.name: await anyio.to_thread.run_sync(_read_record, file) for file in files}
        known = (await self.graph()).nodes
        new = [name for name, text in texts.items() if DecisionId(exported_id(text)) not in known]
        entries = [parse_adr(texts[name], name) for name in new]
        return await self._log(entries, None, [f"adr {name}" for name in new])

    # -- inside

    def _check_readable(self, files: Sequence[Path]) -> None:
        """Raises:
        UsageError: a rule forbids to read one of them, by its name or where a link leads.
        """
        project = self._services.project_path
        root = self._services.workspaces.workspace(project).root
        judge = read_judge(self._host.registry.stored_read_rules(project), root)
        for file in files:
            for name in (os.path.abspath(file), os.path.realpath(file)):
                if judge(name).verdict == "deny":
                    raise UsageError(f"{str(file)!r} must not be read: a permission rule denies it")

    async def _book(self, *, writes: bool = False) -> DecisionBook:
        key = await self._key(makes=writes)
        return await whole_book(self._services, self._store, key, self._services.project_path)

    async def _key(self, *, makes: bool) -> str:
        """The name of the project's stream, as sessions of this store have it."""
        project = self._services.project_path
        if not self._store.is_lasting:
            return key_of(None, project)
        ids, now = ProjectIds(self._services.places.projects), self._services.clock.now()
        # A look leaves nothing behind.
        found = await anyio.to_thread.run_sync(
            lambda: ids.make(project, now) if makes else ids.find(project)
        )
        return key_of(found, project)

    async def _log(
        self,
        entries: Sequence[DecisionEntry],
        session: str | None,
        seeds: Sequence[str] = (),
    ) -> list[DecisionNode]:
        book = await self._book(writes=True)
        made: list[LoggedEntry] = []
        for number, entry in enumerate(entries):
            seed = seeds[number] if seeds else new_id("ent", self._services.clock.now())
            logged = log_entry(entry, book.graph, seed=seed, kinds=self.kinds())
            if logged.node.id not in book.graph.nodes:
                made.append(logged)
        facts = [fact for logged in made for fact in logged.facts]
        if not facts:
            return []
        facts = await self._with_files(facts)
        ids = [name for logged in made for name in logged.ids]
        summary = f"{made[0].node.kind}: {made[0].node.title}"
        await self._add(book, facts, ids, summary, session)
        return [book.graph.nodes.get(logged.node.id, logged.node) for logged in made]

    async def _with_files(self, facts: Sequence[DecisionFact]) -> list[DecisionFact]:
        project = self._services.project_path
        workspace = self._services.workspaces.workspace(project)
        judge = read_judge(self._host.registry.stored_read_rules(project), workspace.root)

        # Exports go into repositories, and hashes of short lines can be guessed.
        def forbids(path: str) -> bool:
            return judge(os.path.join(workspace.root, path)).verdict != "allow"

        return await with_file_evidence(facts, workspace, forbids)

    async def _add(
        self,
        book: DecisionBook,
        facts: Sequence[DecisionFact],
        ids: Iterable[DecisionId],
        summary: str,
        session: str | None,
    ) -> None:
        redact = self._services.redact
        facts, summary = masked_facts(facts, redact), redact(summary)
        if session is None:
            await book.add(facts)
            return
        port = await self._host.local_port(SessionId(session))
        if self._services.stores.of(SessionId(session)) is not self._store:
            raise UsageError(f"session {session!r} has a store of its own, and its decisions there")
        commit = logged_commit(book.project_id, facts, ids=tuple(ids), summary=summary)
        await port.actor.append(lambda state: commit)
        await book.refresh_after_append()

    def _relative(self, path: str) -> str:
        """A path as scopes have it.

        Raises:
            UsageError: it is outside the project.
        """
        project = os.path.realpath(self._services.project_path)
        if not path or "\0" in path:
            raise UsageError(f"{path!r} is no path")
        inside = os.path.relpath(os.path.realpath(os.path.join(project, path)), project)
        if inside == ".." or inside.startswith("../"):
            raise UsageError(f"{path!r} is not in this project")
        return inside.replace(os.sep, "/")


def _record_files(path: Path) -> list[Path]:
    try:
        is_folder = path.is_dir()
        files = sorted(file for file in path.glob("*.md")) if is_folder else [path]
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error}") from error
    if not is_folder:
        if not os.path.lexists(path):
            raise UsageError(f"no file or folder {str(path)!r}")
        return files
    records = [file for file in files if file.name[:1].isdigit()]
    if not records:
        raise UsageError(
            f"{str(path)!r} has no records: their names begin with a number, 0001-x.md"
        )
    if len(records) > MOST_RECORDS:
        raise UsageError(
            f"{str(path)!r} has {len(records)} records; import at most {MOST_RECORDS} at once"
        )
    for file in records:
        # A folder may come with a repository, and its links may lead anywhere.
        if os.path.dirname(os.path.realpath(file)) != os.path.realpath(path):
            raise UsageError(f"{str(file)!r} is a link out of its folder; import the file it means")
    return [file for file in records if not file.name.startswith(("000-", "0000-"))]


def _read_record(file: Path) -> str:
    try:
        # Not to wait for a pipe's other end, nor to read a device without end.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"{str(file)!r} is no file")
            data = opened.read(LARGEST_RECORD + 1)
        if len(data) > LARGEST_RECORD:
            raise UsageError(f"{str(file)!r} is too large for a decision record")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(file)!r} is no text in UTF-8") from error
    except (OSError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{str(file)!r} cannot be read: {reason}") from error


async def _write(path: Path, text: str) -> None:
    try:
        await anyio.Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
