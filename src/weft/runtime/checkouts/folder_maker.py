"""Making the folder of a session that was at another host: its repository, its files, and the
ignored ones that go along.

It is made beside its place and renamed, so that what is in place is whole.  Nothing of it runs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from weft.errors import FinalToolError
from weft.events import IncludedFile, LeftOutFile, WorkspaceSaved
from weft.runtime.snapshots.node_files import (
    VERSION_CONTROL,
    NodeFiles,
    files_now,
    put_entry,
    why_not_put,
    write_files,
)
from weft.session.log.stored_line import read_places
from weft.state import SessionState
from weft.store import Store
from weft.workspace import Runner
from weft.workspace.history.project_tree import entries_of, listing_of
from weft.workspace.repository_copies.copy_maker import RepositoryCopy, made_repository
from weft.workspace.repository_copies.copy_record import RepositoryRecord

SCRATCH: Final = ".git-calls"
"""Where git's stand-ins lie while it is called."""
_UNFINISHED: Final = ".new-"
KEPT: Final = 2
"""Folders of one session that are kept, the newest: the others are what it left here earlier."""


class MadeFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that was made for a session."""

    path: str
    home: str
    """The folder of ours that it lies in."""
    source: str = ""
    """What it was made of: until another host goes on, it is what that host left."""
    left_behind: tuple[LeftOutFile, ...] = ()
    """What was to come along and did not."""
    is_set_up: bool = False
    """The user's command has run in it."""


class FolderMaker:
    """Makes one folder."""

    def __init__(self, state: SessionState, store: Store, runner: Runner, home: Path) -> None:
        self._state = state
        self._store = store
        self._runner = runner
        self._home = home
        self._left: dict[str, LeftOutFile] = {}

    async def make(self) -> MadeFolder:
        """Make it; of one session, one at a time (the caller has its lock).

        Raises:
            FinalToolError, UsageError, OSError: it cannot be made.
        """
        new = self._home / f"{_UNFINISHED}{os.getpid()}-{secrets.token_hex(4)}"
        await anyio.to_thread.run_sync(_remove_unfinished, self._home)
        await anyio.to_thread.run_sync(partial(os.makedirs, new, 0o700))
        try:
            below = await self._fill(new)
            return await anyio.to_thread.run_sync(self._put_in_place, new, below)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(shutil.rmtree, new, ignore_errors=True))
            raise

    async def _fill(self, new: Path) -> str:
        """Put everything below a folder; returns where in it the project is."""
        record = await self._record()
        inside = record.inside if record is not None else ""
        top = top_name(self._state.about.known_path, inside)
        below = f"{top}/{inside}".rstrip("/")
        files = await files_now(self._state, self._store)
        folder = str(new / below)
        make_parents = partial(os.makedirs, os.path.dirname(folder), exist_ok=True)
        await anyio.to_thread.run_sync(make_parents)
        left = await write_files(files, folder, self._store)
        if record is not None:
            left = await self._put_repository(str(new / top), folder, record, files, left)
        self._left = {each.path: each for each in left}
        for each in await self._included():
            await self._include(folder, each)
        return below

    async def _put_repository(
        self,
        top: str,
        folder: str,
        record: RepositoryRecord,
        files: NodeFiles,
        left: list[LeftOutFile],
    ) -> list[LeftOutFile]:
        """Make the repository around the files; returns those that it does not have either."""
        scratch = self._home.parent / SCRATCH
        await anyio.to_thread.run_sync(partial(os.makedirs, scratch, 0o700, exist_ok=True))
        made = made_repository(self._runner, top, record, self._store.blob, scratch)
        async with made as copy:
            await copy.put_surroundings()
            left = await self._from_objects(folder, files, left, copy)
            await copy.refresh()
        return left

    async def _record(self) -> RepositoryRecord | None:
        saved = self._state.files.saved
        if saved is None or saved.repository is None:
            return None
        data = await self._store.blob(saved.repository)
        if data is None:
            raise FinalToolError("the record of its repository is not stored any more")
        try:
            return msgspec.json.decode(data, type=RepositoryRecord)
        except msgspec.MsgspecError as error:
            raise FinalToolError("the record of its repository is damaged") from error

    # -- files

    async def _from_objects(
        self, folder: str, files: NodeFiles, left: Sequence[LeftOutFile], copy: RepositoryCopy
    ) -> list[LeftOutFile]:
        """Put what the store does not have and the repository does."""
        wanted = {each.path: str(each.content) for each in files.left_out if each.content}
        lacking = {each.path for each in left}
        asked = {path: content for path, content in wanted.items() if path in lacking}
        for path, data in (await copy.contents(asked)).items():
            found = files.files[path]
            # Some were left for their names, and not for want of their content.
            if why_not_put(path, found, files.files, data):
                continue
            put = partial(put_entry, f"{folder}/{path}", found.mode, data)
            if not await anyio.to_thread.run_sync(put):
                lacking.discard(path)
        return [each for each in left if each.path in lacking]

    async def _included(self) -> list[IncludedFile]:
        saved = self._state.files.saved
        if saved is None or saved.included is None:
            return []
        data = await self._store.blob(saved.included)
        if data is None:
            return []
        return msgspec.json.decode(data, type=list[IncludedFile])

    async def _include(self, folder: str, wanted: IncludedFile) -> None:
        data = await self._store.blob(wanted.content)
        why = "quota" if data is None else ""
        if data is not None:
            put = partial(_put_included, folder, wanted, data)
            why = await anyio.to_thread.run_sync(put)
        if why:
            self._left[wanted.path] = LeftOutFile(path=wanted.path, why=why)

    # -- the end

    def _put_in_place(self, new: Path, below: str) -> MadeFolder:
        known = {int(each.name) for each in self._home.iterdir() if each.name.isdecimal()}
        number = max(known, default=0) + 1
        place = self._home / str(number)
        new.rename(place)
        for old in sorted(known)[: -KEPT + 1]:
            shutil.rmtree(self._home / str(old), ignore_errors=True)
        return MadeFolder(
            path=str(place / below),
            home=str(place),
            source=source_of(self._state),
            left_behind=tuple(self._left.values()),
        )


def _remove_unfinished(home: Path) -> None:
    """Remove what a process left that was killed while it made a folder."""
    for left in home.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)


def top_name(path: str, inside: str) -> str:
    """What the top of a work tree is called whose project was at a path, so far inside of it."""
    names = path.strip("/").split("/")
    depth = len(inside.split("/")) if inside else 0
    name = names[-1 - depth] if len(names) > depth else ""
    # A path comes out of a log: what is made must not lie beside its place.
    return "project" if name.lower() in ("", ".", "..", ".git") else name


def source_of(state: SessionState) -> str:
    """What the files of a session are, as the log tells; another word where they are others."""
    files, saved = state.files, state.files.saved
    at = "" if saved is None else f"{saved.at.log}:{saved.at.seq}"
    return f"{files.folder} {at} {len(files.places)}"


async def saved_fact(state: SessionState, store: Store) -> WorkspaceSaved | None:
    """What was last saved of a session, with what stayed where that was."""
    saved = state.files.saved
    if saved is None:
        return None
    fact = (await read_places([saved.at], store))[saved.at]
    return fact if isinstance(fact, WorkspaceSaved) else None


def _put_included(folder: str, wanted: IncludedFile, data: bytes) -> str:
    """Put an ignored file; returns why it is not put."""
    if not VERSION_CONTROL.isdisjoint(wanted.path.lower().split("/")):
        return "version control's own"
    try:  # the rules of a listing hold for the names of its path
        for name in wanted.path.split("/"):
            entries_of(listing_of([(name, stat.S_IFREG | 0o644, "")]).data)
    except ValueError as error:
        return str(error)[:100]
    here = folder
    for part in wanted.path.split("/")[:-1]:
        here = f"{here}/{part}"
        if os.path.islink(here):
            return "its folder is a link"
        os.makedirs(here, exist_ok=True)
    path = f"{folder}/{wanted.path}"
    return (
        "something else is there" if os.path.lexists(path) else put_entry(path, wanted.mode, data)
    )
