"""Net changes of files: what each was before the first change of a stretch of a session, and what
the last one left.

They come from the log (the same facts that a rewind undoes), so that a file which was changed ten
times is one difference, and one that was put back is none.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from weft.api.file_changes.hunks import FileHunk, file_hunks
from weft.events import AnyFact, FileTouched
from weft.ids import CallUid, NodeId
from weft.session.log.stored_line import read_places
from weft.session.rewind.plan import FileSide, PathSpan, spans
from weft.state import SessionState
from weft.store import Store
from weft.tree import LogPosition, NodeSkeleton

_MOST_FILES: Final = 500
_LONGEST: Final = 400_000
"""Characters of a text; a longer one is named without its hunks."""


class NetChange(msgspec.Struct, frozen=True, kw_only=True):
    """All changes of one file together."""

    path: str
    action: Literal["created", "modified", "deleted"]
    hunks: tuple[FileHunk, ...] = ()
    added: int = 0
    removed: int = 0
    calls: tuple[CallUid, ...] = ()
    """The tool calls that changed it, in order."""
    why: str = ""
    """Why it is shown without hunks, in a few words."""
    is_masked: bool = False
    """A secret in it is not shown; its hunks can neither be put back nor taken."""


class ChangedContents(msgspec.Struct, frozen=True, kw_only=True):
    """What a stretch of a session did to one path."""

    path: str
    before: FileSide
    after: FileSide
    calls: tuple[CallUid, ...]

    @property
    def action(self) -> Literal["created", "modified", "deleted"]:
        """What became of the file."""
        if not self.before.exists:
            return "created"
        return "modified" if self.after.exists else "deleted"


async def changed_contents(
    since: NodeId | None, until: NodeId | None, state: SessionState, store: Store
) -> list[ChangedContents]:
    """What was changed after a message and up to another one, by path.

    Raises:
        UsageError: there is no such message.
    """
    inside = _Stretch(since, until, state)
    facts = await read_places(state.files.places, store)
    told = [fact for place in state.files.places if inside.has(fact := facts[place])]
    calls: dict[str, dict[CallUid, None]] = {}
    for fact in told:
        if isinstance(fact, FileTouched) and fact.call_uid is not None:
            calls.setdefault(fact.path, {})[fact.call_uid] = None
    found = [
        ChangedContents(
            path=path, before=span.target, after=span.left, calls=tuple(calls.get(path, ()))
        )
        for path, span in sorted(spans(told).items())
        if _is_change(span)
    ]
    return found[:_MOST_FILES]


def _is_change(span: PathSpan) -> bool:
    if span.target.is_folder or span.left.is_folder:
        return False
    return not span.target.agrees(span.left)


class _Stretch:
    """The part of a session after one message and up to another."""

    def __init__(self, since: NodeId | None, until: NodeId | None, state: SessionState) -> None:
        self._age = state.files.age_of()
        first = None if since is None else state.tree.require(since)
        last = None if until is None else state.tree.require(until)
        self._from = None if first is None else self._done(first)
        self._to = None if last is None else self._done(last)
        # A message's calls report right after their results: by the call, not by the place.
        self._before = frozenset(first.calls if first is not None else ())
        self._own = frozenset(last.calls if last is not None else ())

    def _done(self, node: NodeSkeleton) -> tuple[int, int]:
        first = node.earlier[0] if node.earlier else node.at
        return max([self._age(first), *map(self._age, node.results.values())])

    def has(self, fact: AnyFact) -> bool:
        """Whether this change is in it."""
        call = fact.call_uid if isinstance(fact, FileTouched) else None
        if call is not None and call in self._before:
            return False
        age = self._age(LogPosition(fact.session_id, fact.seq))
        is_after = self._from is None or age > self._from
        is_before = self._to is None or age <= self._to or (call is not None and call in self._own)
        return is_after and is_before


def net_change(
    found: ChangedContents,
    before: bytes | None,
    after: bytes | None,
    redact: Callable[[str], str],
    why: str = "",
) -> NetChange:
    """A change with its hunks, as far as the contents are known and may be shown."""
    plain = NetChange(path=found.path, action=found.action, calls=found.calls)
    one, two = text_of(found.before, before), text_of(found.after, after)
    if why or one is None or two is None:
        why = why or "it is no text, or its content is not stored"
        return msgspec.structs.replace(plain, why=why)
    if max(len(one), len(two)) > _LONGEST:
        return msgspec.structs.replace(plain, why="it is too long")
    shown = redact(one), redact(two)
    hunks = file_hunks(found.path, *shown)
    return msgspec.structs.replace(
        plain,
        hunks=tuple(hunks),
        added=sum(hunk.added for hunk in hunks),
        removed=sum(hunk.removed for hunk in hunks),
        is_masked=shown != (one, two),
    )


def text_of(side: FileSide, data: bytes | None) -> str | None:
    """What a file says, empty where there is none; None where it is no text that is known."""
    if not side.exists:
        return ""
    if data is None or b"\0" in data or (side.mode and not stat.S_ISREG(side.mode)):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
