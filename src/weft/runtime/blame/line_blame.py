"""Blame of a line of the project: its file as it is now, the change that wrote it, and all that the
logs, the decisions and the repository tell of that change.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio.to_thread
import msgspec

from weft.decisions import DecisionGraph
from weft.decisions.sound_values import one_line
from weft.errors import FinalToolError, UsageError
from weft.evidence.blame import Blame, BlamedCall, LineCommit, LineTurn
from weft.evidence.blame_words import sentence_of
from weft.ids import BlobId, NodeId, SessionId
from weft.permissions import PolicyDecision
from weft.runtime.blame.call_story import (
    CallStory,
    first_check,
    first_prompt,
    story_of,
    turn_of,
)
from weft.runtime.blame.line_commit import blamed_commit
from weft.runtime.blame.line_decisions import blamed_decision, decided
from weft.runtime.blame.line_map import is_binary, lines_of
from weft.runtime.blame.line_trace import LineTrace, TraceEnd, TracePlace
from weft.runtime.blame.other_folders import folder_that_changed
from weft.runtime.blame.version_index import VersionIndex
from weft.runtime.services import Services
from weft.sha256 import sha256
from weft.store import Store
from weft.workspace.safe_read import read_beneath

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a file whose lines are followed."""
LONGEST_TEXT: Final = 500
LATE_SECONDS: Final = 5.0
"""Clocks of git and of the log are read one after the other."""
MOST_DECISIONS: Final = 5


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a line, before decisions are looked up."""

    path: str
    line: int
    text: str
    end: TraceEnd
    story: CallStory
    commit: LineCommit | None
    git_error: str
    committed_by: LineTurn | None
    has_versions: bool
    elsewhere: str
    """Another folder, whose sessions changed the file."""
    steps: tuple[str, ...]
    notes: tuple[str, ...]


class LineBlame:
    """Answers for one project."""

    def __init__(
        self, services: Services, store: Store, judge: Callable[[str], PolicyDecision]
    ) -> None:
        """`judge` says what rules say of reading a file, by its absolute path."""
        self._services = services
        self._store = store
        self._judge = judge
        self._project = os.path.realpath(services.project_path)

    # -- a line

    async def of_line(self, path: str, line: int, graph: DecisionGraph) -> Blame:
        """Who or what wrote a line of a file, counted from 1.

        Raises:
            UsageError: there is no such line, or the file is none that has lines.
        """
        origin = await self.origin(path, line)
        if not _is_text(origin.path):  # what was decided on its like can be told, not who wrote it
            shown = repr(one_line(path))
            raise UsageError(
                f"{shown} cannot be asked about: its name is no text, so no log names it"
            )
        end, story = origin.end, origin.story
        nodes = decided(graph, origin.commit, story.turn)
        check = None
        if (version := end.version) is not None and end.made_by != "user":
            root = self._services.project_path.rstrip("/")
            check = await first_check(version.session, version.seq, version.at, root, self._store)
        is_user = end.made_by == "user"
        kept = end.kept
        candidate = None if kept is None or not kept.index else kept.index
        opens = _opens(end, story)
        return Blame(
            path=origin.path,
            line=line,
            text=origin.text,
            made_by=end.made_by,
            sentence=sentence_of(
                *(end.made_by, story.turn, story.call, origin.commit),
                candidate=candidate,
                is_first=end.is_first,
                has_versions=origin.has_versions,
                elsewhere=origin.elsewhere,
            ),
            turn=story.turn,
            call=story.call,
            candidate=candidate,
            check=check,
            commit=origin.commit,
            committed_by=origin.committed_by,
            git_error=origin.git_error,
            decisions=tuple(blamed_decision(graph, node) for node in nodes[:MOST_DECISIONS]),
            since=end.since if is_user else None,
            until=end.until if is_user else None,
            steps=origin.steps,
            notes=origin.notes,
            open_session=None if opens is None else opens[0],
            open_node=None if opens is None else opens[1],
        )

    async def origin(self, path: str, line: int) -> LineOrigin:
        """The same, without what was decided.

        Raises:
            UsageError: as `of_line`.
        """
        inside, data = await self._file(path, line)
        lines = lines_of(data)
        commit, git_error = await self._commit(inside, line)
        place = TracePlace(inside, BlobId(sha256(data).hexdigest()), line - 1)
        async with self._index() as index:
            trace = LineTrace(index, self._loader(place.content, data), self._exists)
            end = await trace.run(place)
            has_versions = bool(await index.of_path(inside)) or bool(trace.steps)
            made = None if commit is None else await index.made_commit(commit.commit)
            committed_by = None if made is None else await turn_of(made, self._store)
            unread = len(index.unread)
        notes = tuple(trace.notes)
        if unread:
            notes += (f"{unread} session{'s' if unread > 1 else ''} cannot be read",)
        story = await self._story(end)
        elsewhere = ""
        if story.is_by_user:
            end = msgspec.structs.replace(end, made_by="user")
        elif end.made_by == "user":
            places = self._services.places
            elsewhere = await folder_that_changed(self._store, places, self._project, inside)
        if elsewhere:
            end = msgspec.structs.replace(end, made_by="unknown", version=None)
        return LineOrigin(
            path=inside,
            line=line,
            text=self._text(inside, lines[line - 1]),
            end=end,
            story=story,
            commit=commit,
            git_error=git_error,
            committed_by=committed_by,
            has_versions=has_versions,
            elsewhere=elsewhere,
            steps=tuple(trace.steps),
            notes=notes,
        )

    async def _story(self, end: TraceEnd) -> CallStory:
        version = end.version
        if version is None or end.made_by == "user":
            return CallStory()
        if version.kind == "kept" and version.child is not None:
            # A command in the candidate wrote it: its task is what is known.
            turn = await first_prompt(version.child, self._store)
            call = BlamedCall(tool_name="candidate", target=version.path)
            return CallStory(turn=turn, call=call)
        return await story_of(version, self._store)

    # -- a file

    async def newest_turn(self, path: str, before: float | None) -> LineTurn | None:
        """The newest turn that changed a file, up to a time."""
        async with self._index() as index:
            versions = await index.of_path(path)
        found = [
            each
            for each in versions
            if each.kind in ("call", "kept")
            and each.turn_id is not None
            and (before is None or each.at <= before + LATE_SECONDS)
        ]
        return await turn_of(found[-1], self._store) if found else None

    # -- the parts

    @asynccontextmanager
    async def _index(self) -> AsyncIterator[VersionIndex]:
        project = self._services.project_path
        folder = self._services.places.index_of(project) if self._store.is_lasting else None
        index = await VersionIndex.opened(self._store, project, folder)
        try:
            yield index
        finally:
            index.close()

    async def commit_of(self, path: str, line: int | None) -> tuple[LineCommit | None, str]:
        """The commit of a line or a file; and why git cannot tell."""
        return await self._commit(path, line)

    async def _commit(self, path: str, line: int | None) -> tuple[LineCommit | None, str]:
        services = self._services
        runner, project = services.workspaces.runner, services.project_path
        try:
            return await blamed_commit(runner, services.places, project, path, line), ""
        except FinalToolError as error:
            return None, str(error)

    def _loader(self, content: BlobId, data: bytes) -> Callable[[BlobId], Awaitable[bytes | None]]:
        known: dict[BlobId, bytes | None] = {content: data}

        async def load(wanted: BlobId) -> bytes | None:
            if wanted not in known:
                if len(known) > 8:
                    del known[next(each for each in known if each != content)]
                known[wanted] = await self._store.blob(wanted)
            return known[wanted]

        return load

    async def _exists(self, path: str) -> bool:
        return await anyio.to_thread.run_sync(os.path.lexists, f"{self._project}/{path}")

    def _text(self, path: str, line: bytes) -> str:
        if self._judge(f"{self._project}/{path}").verdict != "allow":
            return ""
        text = self._services.redact(line.decode(errors="replace").rstrip("\r").expandtabs(4))
        text = "".join(letter for letter in text if letter.isprintable())
        return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"

    # -- the file

    async def check_path(self, path: str, *, may_be_folder: bool = False) -> str:
        """A path as the logs have it.

        Raises:
            UsageError: it is none of a file of this project, or may not be read.
        """
        shown = repr(one_line(path))
        if not path or "\0" in path:
            raise UsageError(f"{path!r} is no path")
        real, inside, kind = await anyio.to_thread.run_sync(self._placed, path)
        if inside == ".." or inside.startswith("../"):
            raise UsageError(f"{shown} is not in this project")
        if kind == "folder" and not may_be_folder:
            raise UsageError(f"{shown} is a folder; name a file and a line of it, FILE:LINE")
        if not kind:
            raise UsageError(await self._why_missing(inside, shown))
        for name in (os.path.join(self._project, path), real):
            if self._judge(name).verdict == "deny":
                raise UsageError(f"{shown} must not be read: a permission rule denies it")
        return inside

    def _placed(self, path: str) -> tuple[str, str, str]:
        """Where a path really is, its name in the project, and what is there.  Blocks."""
        real = os.path.realpath(os.path.join(self._project, path))
        kind = "folder" if os.path.isdir(real) else "file" if os.path.exists(real) else ""
        return real, os.path.relpath(real, self._project).replace(os.sep, "/"), kind

    async def _why_missing(self, path: str, shown: str) -> str:
        async with self._index() as index:
            versions = await index.of_path(path)
        if not versions:
            return f"no file {shown} in this project"
        last = versions[-1]
        by = f" by session {last.session}" if last.kind == "call" and not last.is_there else ""
        return f"{shown} was deleted{by}; blame needs a file that is there"

    async def _file(self, path: str, line: int) -> tuple[str, bytes]:
        if line < 1:
            raise UsageError(f"lines are counted from 1, not {line}")
        inside = await self.check_path(path)
        shown = one_line(inside)
        data = await anyio.to_thread.run_sync(read_beneath, self._project, inside, LARGEST + 1)
        if data is None:
            raise UsageError(f"{shown} cannot be read: it is no regular file, or not yours to read")
        if len(data) > LARGEST:
            raise UsageError(f"{shown} has more than {LARGEST >> 20} MiB: too large to be followed")
        if is_binary(data):
            raise UsageError(f"{shown} is binary: it has no lines")
        count = len(lines_of(data))
        if line > count:
            lines = f"{count} line{'' if count == 1 else 's'}"
            raise UsageError(f"{shown} has no line {line}, it has {lines}")
        return inside, data


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _opens(end: TraceEnd, story: CallStory) -> tuple[SessionId, NodeId] | None:
    """The session and the message at which the past of a line can be opened: of a candidate, where
    it was kept.
    """
    version = end.kept or end.version
    if version is None or version.kind == "outside":
        return None
    node = version.turn_node
    if end.kept is None and story.call is not None and story.call.node is not None:
        node = story.call.node
    return None if node is None else (version.session, node)
