"""The states of a session's files along the line to its head, from the log: before the first turn,
at the end of each turn, and between two turns what something else changed.

Only what tells them apart is read here; the files of a state are rebuilt when it is checked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import msgspec

from weft.errors import Corrupt
from weft.events import Rewound, SnapshotChange, WorkspaceSnapshot
from weft.evidence.bisection import BisectState
from weft.ids import BlobId, NodeId, TurnId
from weft.runtime.snapshots.node_files import NodeFiles, snapshot_files
from weft.session.log.stored_line import read_places
from weft.session.rewind.plan import FileSide, spans
from weft.state import SessionState, SnapshotPlace
from weft.store import Store
from weft.tree import LogPosition

RebuildFiles: TypeAlias = Callable[[], Awaitable[NodeFiles]]
NOW_NAME: Final = "now"


class LineState(msgspec.Struct, frozen=True, kw_only=True):
    """A state, and how its files are had."""

    about: BisectState
    key: str
    """Equal for equal files, as far as that is known without rebuilding them."""
    files: RebuildFiles | None = None
    """None: they are those of the project now, or not known (`about.why`)."""
    turn_id: TurnId | None = None
    steps: tuple[LogPosition, ...] = ()
    """Where the changes of the session are written down that lead here from the state before."""
    files_after: Callable[[int], Awaitable[NodeFiles]] | None = None
    """The files after so many of its steps."""
    parent: NodeId | None = None
    """The last message before its turn."""


class _Taken(msgspec.Struct, frozen=True):
    """A snapshot of the line."""

    place: SnapshotPlace
    fact: WorkspaceSnapshot
    turn: int


class LineStates:
    """Finds the states of one session."""

    def __init__(self, state: SessionState, store: Store) -> None:
        self._state = state
        self._store = store
        self._age = state.files.age_of()
        self._line = state.tree.line(state.tree.head)
        self._turns = self._numbered()
        self._found: list[LineState] = []

    def _numbered(self) -> dict[NodeId, int]:
        """The number of each message's turn: how many of the user's messages there are up to it."""
        numbers: dict[NodeId, int] = {}
        count = 0
        for node in self._line:
            count += self._state.tree.nodes[node].role == "user"
            numbers[node] = count
        return numbers

    def turn_of(self, node: NodeId) -> int | None:
        """The number of a message's turn; None where it is not on the line."""
        return self._turns.get(node)

    async def look(self, now: BlobId) -> list[LineState]:
        """All states, the oldest first; `now` is the tree hash of the project."""
        before: _Taken | None = None
        for taken in await self._snapshots():
            if taken.place.tree is None:
                self._add_unknown(taken)
                continue
            if before is None:
                self._add_start(taken)
            else:
                await self._add_between(before, taken)
            self._add_end(before, taken)
            before = taken
        if before is not None:
            await self._add_present(before, now)
        return self._found

    async def _snapshots(self) -> list[_Taken]:
        places = [each for each in self._state.files.snapshots if self._turn(each) is not None]
        facts = await read_places([each.at for each in places], self._store)
        found = []
        for place in places:
            fact = facts[place.at]
            if isinstance(fact, WorkspaceSnapshot):
                found.append(_Taken(place, fact, self._turn(place) or 0))
        return found

    def _turn(self, place: SnapshotPlace) -> int | None:
        """The turn of a snapshot; None where it is another branch's."""
        node = place.prompt if place.node is None else place.node
        return None if node is None else self._turns.get(node)

    # -- the states

    def _add(self, kind: str, turn: int, name: str, key: str, **fields: object) -> None:
        own = {each: fields.pop(each) for each in ("node", "made_by", "why") if each in fields}
        about = BisectState(index=len(self._found), kind=kind, turn=turn, name=name, **own)  # type: ignore[arg-type]  # as `_add` is called
        self._found.append(LineState(about=about, key=key, **fields))  # type: ignore[arg-type]

    def _add_unknown(self, taken: _Taken) -> None:
        why = f"its files are not on record ({taken.fact.why or 'unknown'})"
        name, key = f"turn {taken.turn}", f"unknown {taken.place.at}"
        self._add("turn", taken.turn, name, key, node=taken.place.node, why=why)

    def _add_start(self, first: _Taken) -> None:
        # Everything that came before it, where it is the first of all; else what the turn did: it
        # begins with files of another branch.
        is_first = first.fact.after is None
        places = self._between(None if is_first else first.place.began, first.place.at)
        files = partial(self._undone, first.place, places)
        name = f"before turn {first.turn}"
        before = self._before(first.place)
        self._add("start", first.turn, name, "start", node=before, files=files)

    async def _add_between(self, before: _Taken, taken: _Taken) -> None:
        """What was changed since the snapshot before, and not by the turn."""
        fact = taken.fact
        if fact.after == before.place.tree and not fact.more_changes:
            others = [change for change in fact.changes if change.by != "session"]
            if others:
                self._add_others(before, taken, others)
            return
        # The files were another branch's meanwhile.  Where a rewind has put them back, they are
        # those of the state before.
        places = self._between(taken.place.began, taken.place.at)
        rebuilt = await self._or_unknown(partial(self._undone, taken.place, places))
        if rebuilt is None or not await self._is_as(before, rebuilt):
            made_by = "unknown" if fact.after == before.place.tree else "branch"
            self._add_before(taken, partial(self._undone, taken.place, places), made_by)

    def _add_others(self, before: _Taken, taken: _Taken, others: Sequence[SnapshotChange]) -> None:
        made_by = "outside" if any(each.by == "outside" for each in others) else "unknown"
        if len(others) == len(taken.fact.changes):
            files = partial(self._undone, taken.place, ())
            self._add_before(taken, files, made_by, str(taken.place.tree))
        else:
            changed = {each.path: (_side_of(each), "") for each in others}
            self._add_before(taken, partial(self._changed, before.place, changed), made_by)

    def _add_before(self, taken: _Taken, files: RebuildFiles, made_by: str, key: str = "") -> None:
        name = f"before turn {taken.turn}" if taken.place.node else f"in turn {taken.turn}"
        key = key or f"before {taken.place.at}"
        node = self._before(taken.place)
        self._add("before", taken.turn, name, key, node=node, files=files, made_by=made_by)

    def _add_end(self, before: _Taken | None, taken: _Taken) -> None:
        place, fact = taken.place, taken.fact
        if fact.turn_id is None and all(each.by != "session" for each in fact.changes):
            return  # taken before an effect, for what was changed from outside
        is_next = before is not None and fact.after == before.place.tree
        start = before.place.at if before is not None and is_next else place.began
        if before is None and fact.after is None:
            start = None
        name = f"turn {taken.turn}" if fact.turn_id else f"in turn {taken.turn}"
        steps = self._between(start, place.at)
        self._add(
            *("turn", taken.turn, name, str(place.tree)),
            node=place.node,
            made_by="session",
            files=partial(self._undone, place, ()),
            turn_id=fact.turn_id,
            steps=tuple(steps),
            files_after=lambda count: self._undone(place, steps[count:]),
            parent=self._before(place),
        )

    async def _add_present(self, last: _Taken, now: BlobId) -> None:
        """What came after the last snapshot: changes of the session that has none yet, and the
        files of the project, where they are others."""
        if last.place.tree == now:
            return
        turn, head = self._turns.get(self._line[-1], 0), self._line[-1]
        newest = next(each for each in reversed(self._state.files.snapshots) if each.tree)
        steps = self._state.files.places_after(newest.at)
        own = steps
        if newest != last.place:
            own = await self._after_rewind(steps)
            left = steps[: len(steps) - len(own)]
            await self._add_other_branch(last, turn, partial(self._since, newest, left))
        if own:
            first = len(steps) - len(own)
            self._add(
                *("turn", turn, f"since turn {last.turn}", f"since {newest.at}"),
                node=head,
                made_by="session",
                files=partial(self._since, newest, steps),
                steps=tuple(own),
                files_after=lambda count: self._since(newest, steps[: first + count]),
                parent=last.place.node,
            )
        self._add("now", turn, NOW_NAME, str(now), node=head, made_by="outside")

    async def _after_rewind(self, places: list[LogPosition]) -> list[LogPosition]:
        """The changes behind the last rewind: what came before it was another branch's."""
        facts = await read_places(places, self._store)
        rewinds = [n for n, place in enumerate(places) if isinstance(facts[place], Rewound)]
        return places[rewinds[-1] + 1 :] if rewinds else places

    async def _add_other_branch(self, last: _Taken, turn: int, files: RebuildFiles) -> None:
        """What another branch left, where a rewind has not put it back."""
        rebuilt = await self._or_unknown(files)
        if rebuilt is None or not await self._is_as(last, rebuilt):
            name, key = f"before turn {turn + 1}", "another branch"
            self._add(
                "before", turn + 1, name, key, files=files, node=last.place.node, made_by="branch"
            )

    def _before(self, place: SnapshotPlace) -> NodeId | None:
        """The last message before a turn."""
        if place.prompt is None or place.prompt not in self._state.tree.nodes:
            return None
        return self._state.tree.nodes[place.prompt].parent

    def _between(self, start: LogPosition | None, end: LogPosition) -> list[LogPosition]:
        """Where the changes are written down that happened between two facts."""
        age, last = self._age, self._age(end)
        first = None if start is None else age(start)
        places = self._state.files.places
        return [
            each for each in places if age(each) < last and (first is None or age(each) > first)
        ]

    # -- their files

    async def _undone(self, place: SnapshotPlace, places: Sequence[LogPosition]) -> NodeFiles:
        """The files of a snapshot without these changes."""
        facts = await read_places(places, self._store)
        later = spans(facts[each] for each in places)
        undo = {path: (span.target, span.missing) for path, span in later.items()}
        return await self._changed(place, undo)

    async def _since(self, place: SnapshotPlace, places: Sequence[LogPosition]) -> NodeFiles:
        facts = await read_places(places, self._store)
        done = spans(facts[each] for each in places)
        return await self._changed(place, {path: (span.left, "") for path, span in done.items()})

    async def _changed(
        self, place: SnapshotPlace, changed: Mapping[str, tuple[FileSide, str]]
    ) -> NodeFiles:
        return await snapshot_files(place, self._state, self._store, changed)

    async def _or_unknown(self, files: RebuildFiles) -> NodeFiles | None:
        try:
            return await files()
        except Corrupt:
            return None  # said when it is its turn to be checked

    async def _is_as(self, before: _Taken, rebuilt: NodeFiles) -> bool:
        known = await self._or_unknown(partial(self._undone, before.place, ()))
        return known is not None and _contents(known) == _contents(rebuilt)


def _contents(found: NodeFiles) -> dict[str, tuple[int, BlobId | None]]:
    files = found.files.items()
    return {path: (each.mode, each.content) for path, each in files if not each.is_folder}


def _side_of(change: SnapshotChange) -> FileSide:
    return FileSide(change.mode != 0, change.content, change.mode)
