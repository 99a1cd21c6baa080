"""Import of what other agents have: their sessions as sessions of ours, and their set-up.

First it is said what would be done, then it is done.  A session is read as it stands in its file,
which is believed in nothing but what was said: no mode, no grant, no rule and no cost of it counts
here.  Its id follows from what was read, so that the same file is known again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from anyio.to_thread import run_sync

from weft.api.imports.foreign_places import AGENTS, ForeignPlaces, ForeignSource
from weft.api.imports.foreign_setup import ForeignSetup, SetupItem, SetupTerms
from weft.errors import UsageError, WeftError, did_you_mean
from weft.events import SessionCreated, SettingChanged
from weft.export import ParsedDocument, RestoredFacts, restore
from weft.export.agents import READERS, ForeignSession
from weft.ids import SessionId, derived_id
from weft.messages import Usage
from weft.runtime.session_host import SessionHost
from weft.sha256 import sha256

SessionState: TypeAlias = Literal["new", "made", "there", "left out"]
_NOT_READ = "nothing that was said there could be read: it is no session of this agent, or empty"


class ForeignSessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session of another agent, and what becomes of it here."""

    agent: str
    path: str
    id: str = ""
    """That it has there."""
    title: str = ""
    state: SessionState = "new"
    session: str = ""
    """Our session of it, where there is one."""
    messages: int = 0
    branches: int = 0
    calls: int = 0
    interrupted: int = 0
    """Calls without a result."""
    usage: Usage | None = None
    """What it used there; it is not counted here."""
    folder: str = ""
    version: str = ""
    problems: tuple[str, ...] = ()
    """What of it is not taken, a sentence each."""


class AgentImport(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of another agent, and what was made of it."""

    agent: str
    is_preview: bool
    sessions: tuple[ForeignSessionRow, ...] = ()
    setup: tuple[SetupItem, ...] = ()

    @property
    def has_more(self) -> bool:
        """There is something that is not here yet."""
        states = [*(each.state for each in self.sessions), *(each.state for each in self.setup)]
        return "new" in states


async def import_into(
    host: SessionHost,
    project: str,
    terms: SetupTerms,
    agent: str,
    given: str | None,
    *,
    preview: bool,
    setup: bool,
) -> AgentImport:
    """What `App.import_from` does.

    Raises:
        UsageError: there is no such agent, file or id.
    """
    if agent not in AGENTS:
        raise UsageError(
            f"there is no agent {agent!r:.60}; there are {', '.join(AGENTS)}"
            f"{did_you_mean(agent, AGENTS)}"
        )
    places = ForeignPlaces(terms.places.user, terms.environ)
    imports = AgentImports(host, project, places)
    sessions = await imports.sessions(agent, given, preview=preview)
    items = await ForeignSetup(places, terms).take(agent, not preview) if setup else ()
    return AgentImport(agent=agent, is_preview=preview, sessions=sessions, setup=tuple(items))


class AgentImports:
    """Imports of sessions into one project."""

    def __init__(self, host: SessionHost, project: str, places: ForeignPlaces) -> None:
        self._host = host
        self._project = project
        self._places = places

    async def sessions(
        self, agent: str, given: str | None, *, preview: bool
    ) -> tuple[ForeignSessionRow, ...]:
        """The sessions of this project, or the one of a file or an id; made unless it is a preview.

        Raises:
            UsageError: there is no such file or id.
        """
        found = await run_sync(self._sources, agent, given)
        return tuple([await self._one(each, preview=preview) for each in found])

    def _sources(self, agent: str, given: str | None) -> list[ForeignSource]:
        if given is None:
            return self._places.of_folder(agent, self._project)
        return self._places.named(agent, given, self._project)

    async def _one(self, source: ForeignSource, *, preview: bool) -> ForeignSessionRow:
        try:
            read = await run_sync(partial(read_source, source, self._host.now()))
        except WeftError as error:
            return _refused(source, str(error))
        if not read.foreign.messages:
            return _refused(source, *read.problems, _NOT_READ)
        row = _row(source, read)
        imported = SessionId(
            derived_id("ses", "import-from", source.agent, read.foreign.foreign_id, read.digest)
        )
        registry = self._host.registry
        async with registry.alone(imported):
            if await registry.is_stored(imported):
                return msgspec.structs.replace(row, state="there", session=imported)
            if preview:
                return row
            try:
                await self._make(imported, source, read)
            except UsageError as error:
                return msgspec.structs.replace(row, state="left out", problems=(str(error),))
        # Of hundreds none stays open.
        await self._host.stop(imported)
        return msgspec.structs.replace(row, state="made", session=imported)

    async def _make(self, imported: SessionId, source: ForeignSource, read: ReadSession) -> None:
        parsed = ParsedDocument(read.foreign.document, ())
        restored: RestoredFacts = await run_sync(restore, parsed, source.path)
        foreign, config = read.foreign, self._host.services.config
        created = SessionCreated(
            project_path=self._project,
            title=restored.title,
            model=self._host.default_model() if self._host.has_default_model() else "",
            # The user's own, both: a file must not choose what is paid, or what is not asked.
            settings={"permission_mode": config.get("permissions.mode")},
            imported=True,
            at=restored.created,
        )
        origin = {
            "agent": source.agent,
            "version": foreign.version,
            "id": foreign.foreign_id,
            "digest": read.digest,
            "usage": msgspec.to_builtins(foreign.usage),
        }
        facts = (created, *restored.facts, SettingChanged(name="imported_from", value=origin))
        await self._host.registry.create(imported, facts, restored.blobs)


class ReadSession(msgspec.Struct, frozen=True):
    """A session as it was read, and what of it could not be."""

    foreign: ForeignSession
    digest: str
    problems: tuple[str, ...]


def read_source(source: ForeignSource, now: float) -> ReadSession:
    """A session whole; blocks."""
    reader = READERS[source.agent](now)
    digest, problems = sha256(b""), list[str]()
    for records in source.records():
        for record in records:
            reader.take(record)
            if reader.is_full:
                break
        digest.update(records.digest.encode())
        name = Path(records.path).name
        is_first = str(records.path) == source.path
        problems += records.problems if is_first else (f"{name}: {p}" for p in records.problems)
    foreign = reader.finish()
    if foreign.is_cut:
        problems.append(f"it is too long: only its first {foreign.messages:,} messages are taken")
    return ReadSession(foreign, digest.hexdigest(), tuple(problems))


def _row(source: ForeignSource, read: ReadSession) -> ForeignSessionRow:
    foreign = read.foreign
    return ForeignSessionRow(
        agent=source.agent,
        path=source.path,
        id=foreign.foreign_id,
        title=foreign.document.session.title,
        messages=foreign.messages,
        branches=foreign.branches,
        calls=foreign.calls,
        interrupted=foreign.unanswered,
        usage=foreign.usage,
        folder=foreign.folder,
        version=foreign.version,
        problems=read.problems,
    )


def _refused(source: ForeignSource, *problems: str) -> ForeignSessionRow:
    return ForeignSessionRow(
        agent=source.agent,
        path=source.path,
        id=source.session_id,
        state="left out",
        problems=problems,
    )
