"""Net changes of an open session, and its hunks put back or taken from another branch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio.to_thread

from weft.api.branch_files.comparison import BranchSides
from weft.api.file_changes.hunk_turn import (
    FileEdit,
    HunkOutcome,
    HunkSession,
    change_file,
    earlier_outcome,
)
from weft.api.file_changes.hunks import with_hunk
from weft.api.file_changes.net_changes import (
    ChangedContents,
    NetChange,
    changed_contents,
    net_change,
    text_of,
)
from weft.errors import UsageError
from weft.ids import NodeId
from weft.runtime.fan.fan_keep import file_now
from weft.session.rewind.plan import FileSide
from weft.state import SessionState
from weft.store import Store

if TYPE_CHECKING:
    from weft.project.mentions import JudgeRead


class SessionChanges:
    """What a session changed between two of its messages."""

    def __init__(
        self, state: SessionState, store: Store, since: NodeId | None, until: NodeId | None
    ) -> None:
        self._state = state
        self._store = store
        self._since = since
        self._until = until
        self._root = state.about.project_path

    async def net(self, redact: Callable[[str], str], judge: JudgeRead) -> list[NetChange]:
        """Every file that is not what it was, by path."""
        return [await self._shown(each, redact, judge) for each in await self._found()]

    async def _found(self) -> list[ChangedContents]:
        return await changed_contents(self._since, self._until, self._state, self._store)

    async def _shown(
        self, found: ChangedContents, redact: Callable[[str], str], judge: JudgeRead
    ) -> NetChange:
        path = found.path
        decision = judge(path if path.startswith("/") else f"{self._root}/{path}")
        if decision.verdict != "allow":
            return net_change(found, None, None, redact, decision.reason or "a rule forbids it")
        contents = await self._contents(found)
        return await anyio.to_thread.run_sync(net_change, found, *contents, redact)

    async def _contents(self, found: ChangedContents) -> tuple[bytes | None, bytes | None]:
        return (
            await self._content(found.path, found.before),
            await self._content(found.path, found.after),
        )

    async def _content(self, path: str, side: FileSide) -> bytes | None:
        if side.content is None:
            return None
        stored = await self._store.blob(side.content)
        if stored is not None:
            return stored
        # What a turn that still runs has left is stored at its end.
        there = await anyio.to_thread.run_sync(_on_disk, self._root, path)
        is_it = there is not None and sha256(there).hexdigest() == side.content
        return there if is_it else None

    async def put_back(
        self, session: HunkSession, path: str, hunk: str, input_id: str | None
    ) -> HunkOutcome:
        """Take one hunk of a file back.

        Raises:
            UsageError: there is no such hunk, or others changed the same lines.
        """
        says = f"Put back a change of {path}."
        if (done := await earlier_outcome(session, path, says, input_id)) is not None:
            return done
        found = next((each for each in await self._found() if each.path == path), None)
        if found is None:
            raise UsageError(f"{path!r} was not changed there, or is what it was before")
        before, after = await self._contents(found)
        one, two = text_of(found.before, before), text_of(found.after, after)
        if one is None or two is None:
            raise UsageError(f"{path} is no text, or its content is not stored")
        text = await _with_hunk(path, one, two, hunk, is_taken=False)
        is_gone = not found.before.exists and text == ""
        edit = FileEdit(
            path=path,
            base=after if found.after.exists else None,
            wanted=None if is_gone else text.encode(),
            says=says,
        )
        return await change_file(session, edit, self._root, input_id)


async def take_hunk(
    session: HunkSession, sides: BranchSides, path: str, hunk: str, input_id: str | None
) -> HunkOutcome:
    """Take one hunk of the second branch into the file as the first has it.

    Raises:
        UsageError: there is no such hunk, or others changed the same lines.
    """
    says = f"Take a change of {path} from another branch."
    if (done := await earlier_outcome(session, path, says, input_id)) is not None:
        return done
    file = next((each for each in sides.files if each.shown.path == path), None)
    if file is None:
        raise UsageError(f"{path!r} is the same in both branches, or in neither")
    one = "" if file.first is None else file.first.text
    two = "" if file.second is None else file.second.text
    if one is None or two is None:
        raise UsageError(f"{path} is no text, or its content is not stored")
    text = await _with_hunk(path, one, two, hunk, is_taken=True)
    is_gone = file.second is None and text == ""
    edit = FileEdit(
        path=path,
        base=None if file.first is None else file.first.data,
        wanted=None if is_gone else text.encode(),
        says=says,
    )
    root = (await session._port()).state.about.project_path
    return await change_file(session, edit, root, input_id)


async def _with_hunk(path: str, before: str, after: str, hunk: str, *, is_taken: bool) -> str:
    # In a thread: comparing may take seconds, in which no session could say a word.
    work = partial(with_hunk, path, before, after, hunk, is_taken=is_taken)
    return await anyio.to_thread.run_sync(work)


def _on_disk(root: str, path: str) -> bytes | None:
    """What is there now; None where it cannot be read.  Blocks."""
    try:
        found = file_now(root, path)
    except OSError:
        return None
    return None if found is None else found.data
