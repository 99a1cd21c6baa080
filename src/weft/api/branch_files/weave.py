"""Files of two branches woven into one: a child of the message where they part, which names both.

The files are written by a turn whose calls are known beforehand.  So rules, hooks, approvals and
limits hold as for the calls of any model, what is replaced is on record, and a rewind takes it all
back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import anyio.to_thread
import msgspec

from weft.api.branch_files.comparison import (
    BranchFile,
    BranchSides,
    FileOrigin,
    FileVersion,
    SidedFile,
    parting,
)
from weft.config.models import WEAVER
from weft.errors import StaleInput, UsageError
from weft.ids import InputId, NodeId, derived_id, new_id
from weft.providers import ModelInfo
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel
from weft.runtime.fan.fan_keep import file_now
from weft.session import MarkNode
from weft.state import SessionState

if TYPE_CHECKING:
    from weft.api.results import Reply
    from weft.session import SessionPort

_WINDOW: Final = 1_000_000_000
"""No line is too long for it: nothing of it is read."""
_MODEL_CALLS: Final = 8
PARENTS: Final = "parents"
"""The mark that names the branches out of which a message was made, as of a woven text."""
WOVEN: Final = "woven"
"""The mark that says what a weave of files did."""
_CUT_OFF: Final = ("interrupted", "error")


class FileWeave(msgspec.Struct, frozen=True, kw_only=True):
    """Files of two branches put together."""

    ancestor: NodeId
    """The message where the branches part; what was woven hangs below it."""
    parents: tuple[NodeId, NodeId]
    node: NodeId | None = None
    """The message that stands for it; None in a preview."""
    files: tuple[BranchFile, ...] = ()
    """All that differ, and whose version was taken."""
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Paths of which a side has to be chosen; in a preview only."""
    left: tuple[str, ...] = ()
    """Paths that are not what was woven, each with the reason as far as it is known."""


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a path is to be."""

    file: SidedFile
    version: FileVersion | None
    now: FileVersion | None

    @property
    def path(self) -> str:
        return self.file.shown.path

    @property
    def is_there(self) -> bool:
        """Nothing has to be done."""
        return self.now is None if self.version is None else self.version.is_like(self.now)


class WeavingSession(Protocol):
    """The calls of a session that put files together."""

    async def _port(self) -> SessionPort: ...

    async def _call(self, command: MarkNode, /) -> object: ...

    async def branch_at(self, node: NodeId, /, *, input_id: str | None) -> object: ...

    async def send_message(self, text: str, /, **options: Any) -> Reply: ...


async def weave_files(
    session: WeavingSession,
    sides: BranchSides,
    root: str,
    *,
    picks: Mapping[str, Literal["first", "second"]],
    overwrite: Collection[str],
    preview: bool,
    input_id: str | None,
) -> FileWeave:
    """Put the files of two branches together.

    Raises:
        UsageError: a path cannot be decided, is not known, or was changed since by others.
        SessionBusy: a turn runs.
        StaleInput: the input id stands for another call.
    """
    found = sides.comparison
    asked = [found.first, found.second, dict(picks), sorted(overwrite)]
    planned: Collection[str] | None = None
    if input_id and not preview:
        state = (await session._port()).state
        if (earlier := _earlier(state, input_id, asked)) is not None:
            return earlier
        planned = _planned(state, input_id, asked)
    _check_known(sides, [*picks, *overwrite])
    origins = {
        file.shown.path: picks.get(file.shown.path, file.shown.origin) for file in sides.files
    }
    conflicts = tuple(path for path, origin in origins.items() if origin == "conflict")
    now = await anyio.to_thread.run_sync(_on_disk, root, list(origins))
    wanted = [_wanted(file, origins[file.shown.path], now) for file in sides.files]
    wanted = [each for each in wanted if each.path not in conflicts]
    changed = [each.path for each in wanted if _is_foreign(each) and each.path not in overwrite]
    acting = [each for each in wanted if each.path in (planned or ()) or not each.is_there]
    known = FileWeave(
        ancestor=found.ancestor,
        parents=(found.first, found.second),
        files=tuple(_taken(file.shown, origins[file.shown.path]) for file in sides.files),
        written=tuple(each.path for each in acting if each.version),
        removed=tuple(each.path for each in acting if not each.version),
        conflicts=conflicts,
        left=tuple(f"{path}: it was changed since" for path in changed),
    )
    if preview:
        return known
    _refuse(known, changed)
    if input_id and planned != {each.path for each in acting}:
        await _note_plan(session, known, input_id, asked)
    done, is_whole = await _woven(session, known, acting, root, input_id)
    if is_whole:
        await _note_woven(session, done, input_id, asked)
    return done


# --- what the log says of a weave ------------------------------------------------------------


def _plan_mark(input_id: str) -> str:
    """The mark of the message where the branches part, as long as a weave is not done."""
    return derived_id("weaving", input_id)


def _planned(state: SessionState, input_id: str, asked: Sequence[object]) -> Collection[str] | None:
    """The paths that a call under the same id set out to change, which is not done; None where
    there was none.

    Raises:
        StaleInput: it asked for something else, or was no weave.
    """
    name = _plan_mark(input_id)
    for held in state.tree.nodes.values():
        plan = (held.marked or {}).get(name)
        if not isinstance(plan, Mapping):
            continue
        if plan.get("asked") != asked:
            raise StaleInput(input_id)
        return frozenset([*plan["written"], *plan["removed"]])
    if InputId(input_id) in state.inputs.causes:
        raise StaleInput(input_id)
    return None


async def _note_plan(
    session: WeavingSession, known: FileWeave, input_id: str, asked: Sequence[object]
) -> None:
    """Before the first file is written: who comes again after a crash knows which were."""
    plan = {"asked": asked, "written": known.written, "removed": known.removed}
    value = msgspec.to_builtins(plan)
    await session._call(MarkNode(node=known.ancestor, mark=_plan_mark(input_id), value=value))


async def _note_woven(
    session: WeavingSession, done: FileWeave, input_id: str | None, asked: Sequence[object]
) -> None:
    assert done.node is not None
    outcome = {
        "files": [[each.path, each.origin] for each in done.files],
        "written": done.written,
        "removed": done.removed,
        "left": done.left,
    }
    mark = {"by": input_id or "", "asked": asked, **outcome}
    await session._call(MarkNode(node=done.node, mark=PARENTS, value=list(done.parents)))
    await session._call(MarkNode(node=done.node, mark=WOVEN, value=msgspec.to_builtins(mark)))
    if input_id:
        plan = _plan_mark(input_id)
        await session._call(MarkNode(node=done.ancestor, mark=plan, value=None))


def _earlier(state: SessionState, input_id: str, asked: Sequence[object]) -> FileWeave | None:
    """What a call under the same id did.

    Raises:
        StaleInput: it asked for something else.
    """
    for node, held in state.tree.nodes.items():
        known = (held.marked or {}).get(WOVEN)
        if not isinstance(known, Mapping) or known.get("by") != input_id:
            continue
        if known.get("asked") != asked:
            raise StaleInput(input_id)
        first, second = known["asked"][:2]
        return FileWeave(
            ancestor=parting(first, second, state),
            parents=(first, second),
            node=node,
            files=tuple(BranchFile(path=path, origin=origin) for path, origin in known["files"]),
            written=tuple(known["written"]),
            removed=tuple(known["removed"]),
            left=tuple(known["left"]),
        )
    return None


# --- what is to be done ----------------------------------------------------------------------


def _check_known(sides: BranchSides, paths: Sequence[str]) -> None:
    known = {file.shown.path for file in sides.files}
    for path in paths:
        if path not in known:
            raise UsageError(f"{path!r} is the same in both branches, or in neither")


def _taken(shown: BranchFile, origin: FileOrigin) -> BranchFile:
    return msgspec.structs.replace(shown, origin=origin)


def _wanted(file: SidedFile, origin: FileOrigin, now: Mapping[str, FileVersion | None]) -> _Wanted:
    return _Wanted(file=file, version=file.version(origin), now=now[file.shown.path])


def _on_disk(root: str, paths: Sequence[str]) -> dict[str, FileVersion | None]:
    """What the project has now.  Blocks."""
    found: dict[str, FileVersion | None] = {}
    for path in paths:
        try:
            there = file_now(root, path)
        except OSError:
            found[path] = FileVersion(mode=0)  # like nothing that is known
            continue
        found[path] = None if there is None else FileVersion(mode=there.mode, data=there.data)
    return found


def _is_foreign(wanted: _Wanted) -> bool:
    """Whether the disk has what neither branch nor the message above them had."""
    if wanted.is_there:
        return False
    versions = (wanted.file.base, wanted.file.first, wanted.file.second)
    if wanted.now is None:
        return None not in versions
    return not any(each is not None and each.is_like(wanted.now) for each in versions)


def _refuse(known: FileWeave, changed: Sequence[str]) -> None:
    if known.conflicts:
        path = known.conflicts[0]
        raise UsageError(
            f"the branches do not agree about {', '.join(known.conflicts)}; choose a side, "
            f"as in picks={{{path!r}: 'first'}}"
        )
    if changed:
        raise UsageError(
            f"{', '.join(changed)} was changed since by you or another program; "
            f"overwrite=[{changed[0]!r}] replaces it"
        )


# --- the turn --------------------------------------------------------------------------------


async def _woven(
    session: WeavingSession,
    known: FileWeave,
    acting: Sequence[_Wanted],
    root: str,
    input_id: str | None,
) -> tuple[FileWeave, bool]:
    """What came of it, and whether its turn came to its end."""
    reply = await _turn(session, known, acting, input_id)
    node = await _head(session)
    now = await anyio.to_thread.run_sync(_on_disk, root, [each.path for each in acting])
    left = [
        each.path
        for each in acting
        if not msgspec.structs.replace(each, now=now[each.path]).is_there
    ]
    is_whole = reply.finish_reason == "stop"
    cut_off = "" if is_whole else f"the turn ended before ({reply.finish_reason})"
    done = msgspec.structs.replace(
        known,
        node=node,
        written=tuple(path for path in known.written if path not in left),
        removed=tuple(path for path in known.removed if path not in left),
        left=tuple(f"{path}: {cut_off or _why_left(path, acting)}" for path in left),
    )
    return done, is_whole


async def _turn(
    session: WeavingSession, known: FileWeave, acting: Sequence[_Wanted], input_id: str | None
) -> Reply:
    """The turn that writes the files.

    One that was cut off is not gone on with, since the calls that it had left are not on record:
    another one, under an id of its own, makes those that are left now.
    """
    attempt = await _next_attempt(session, input_id)
    model: ScriptedModel | str
    model = _weaver([each for each in acting if not each.is_there], attempt)
    if attempt is not None and await _is_begun(session, attempt):
        # By its name: the turn that is at work has its model, which must not be another one now.
        model = f"{model.info.provider}:{model.info.name}"
    else:
        await _branch(session, known.ancestor, attempt)
    return await session.send_message(
        f"Put the files of two branches together: {known.parents[0]} and {known.parents[1]}.",
        queue=False,
        input_id=attempt,
        model=model,
        tools=["read", "write", "apply_patch"],
        max_turns=_MODEL_CALLS,
        mode="normal",
    )


async def _next_attempt(session: WeavingSession, input_id: str | None) -> str | None:
    """The id of the turn that is at work for this call, or else of the one to begin."""
    port = await session._port()
    attempt, number = input_id, 1
    while attempt and (cause := port.state.inputs.causes.get(InputId(attempt))) is not None:
        turn = port.state.turn.open
        answer: dict[str, Any] = msgspec.to_builtins(cause.answer)
        is_open = turn is not None and turn.turn_id == answer.get("turn_id")
        if is_open and port.status not in _CUT_OFF:
            break
        number += 1
        attempt = f"{input_id}/{number}"
    return attempt


async def _is_begun(session: WeavingSession, input_id: str) -> bool:
    return InputId(input_id) in (await session._port()).state.inputs.causes


async def _branch(session: WeavingSession, ancestor: NodeId, input_id: str | None) -> None:
    """Let the line end where the branches part."""
    await session.branch_at(ancestor, input_id=f"{input_id}/branch" if input_id else None)
    # A call that was cut off after this step may have come long ago.
    is_begun = input_id is not None and await _is_begun(session, input_id)
    if not is_begun and await _head(session) != ancestor:
        await session.branch_at(ancestor, input_id=None)


async def _head(session: WeavingSession) -> NodeId:
    head = (await session._port()).state.tree.head
    assert head is not None
    return head


def _why_left(path: str, acting: Sequence[_Wanted]) -> str:
    version = next(each.version for each in acting if each.path == path)
    if version is not None and version.text is None:
        return "it is no text, or its content is not stored"
    return "it was not allowed, or could not be written"


def _weaver(acting: Sequence[_Wanted], input_id: str | None) -> ScriptedModel:
    """A model that makes the calls which are known beforehand, and says so."""
    written = {
        each.path: each.version.text
        for each in acting
        if each.version is not None and each.version.text is not None
    }
    removed = [each.path for each in acting if each.version is None]
    answers: list[list[Step]] = [
        # A file that is there is written over only by those who have read it.
        [_call("read", path=each.path) for each in acting if each.path in written and each.now],
        [_call("write", path=path, content=text) for path, text in written.items()],
        [_call("apply_patch", patch=_removal(path)) for path in removed],
    ]
    answers = [answer for answer in answers if answer]
    number = len(written) + len(removed)
    answers.append([SayText(text=f"Files of both branches are put together: {number} changed.")])
    provider, kind = WEAVER
    info = ModelInfo(
        provider=provider,
        # Of its own: two that run at once must not answer for each other.
        name=derived_id(kind, input_id) if input_id else new_id(kind, 0.0),
        context_window=_WINDOW,
        price_input=0.0,
        price_output=0.0,
    )
    return ScriptedModel(answers, info=info)


def _call(name: str, **args: str) -> CallTool:
    return CallTool(name=name, args=dict(args))


def _removal(path: str) -> str:
    return f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
