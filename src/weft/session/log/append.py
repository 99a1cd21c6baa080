"""What goes into one append, computed from the facts and the state before them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from weft.events import (
    BoundaryChanged,
    CommandCause,
    Fact,
    FactBase,
    FileTouched,
    ModelCallStarted,
    NewMessage,
    NodeEdited,
    NodesJoined,
    NodeSplit,
    PrefixFrozen,
    Rewound,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    UsageRecorded,
    encode,
    kind_of,
)
from weft.ids import BlobId, NodeId, SessionId
from weft.loop import Commit, ProjectFacts, tip_after
from weft.messages import Part, Text
from weft.session.log.long_parts import WITH_PARTS, spill
from weft.state import (
    OpenTurnState,
    PromptSchedules,
    SessionGoal,
    SessionSettings,
    SessionState,
    used_by,
)
from weft.store import (
    LOOKS_READER,
    Append,
    Blob,
    Lease,
    Record,
    SearchText,
    SessionRow,
    project_stream,
)
from weft.tree import EXCLUDED_READER, reader_for

SEARCHED: Final = 256 * 1024
"""Characters of one message that search looks at: a long report, not a whole dump."""


LISTED_EVERY_SECONDS: Final = 60.0
"""How far the counts of a list may be behind a turn that runs."""


class StampedFacts(msgspec.Struct, frozen=True):
    """Facts as they are stored, with the blobs that they name."""

    facts: tuple[Fact, ...]
    blobs: dict[BlobId, bytes]
    history: tuple[BlobId, ...]
    """Those of the blobs that are file history."""
    others: tuple[BlobId, ...]
    """Those of the files in trees that something else names, too."""
    said: tuple[SearchText, ...]
    """The words that search should find, those of long messages included that are kept as blobs."""

    def append(
        self, state: SessionState, lease: Lease, commit: Commit, listed: SessionRow | None
    ) -> Append:
        """The append that makes them durable, with the drafts that end in it.

        `listed` is the row that this owner wrote last.
        """
        answers = (fact.node for fact in self.facts if isinstance(fact, NewMessage))
        ended = (node.id for node in answers if node.role == "assistant")
        return Append(
            stream=state.session_id,
            expected_seq=state.seq,
            records=tuple(
                Record(fact.seq, fact.at, kind_of(fact), encode(fact)) for fact in self.facts
            ),
            fence=lease.fence,
            row=due_row(state, self.facts, listed),
            said=self.said,
            blobs=tuple(Blob(blob_id, data) for blob_id, data in self.blobs.items()),
            names_blobs=self.others,
            history=self.history,
            trees=tuple(commit.trees.trees),
            tree_listings=tuple(commit.trees.listings),
            # In the order of the files, not of a set: by it the quota tells what is oldest.
            tree_contents=tuple(each for each in commit.blobs if each in commit.trees.contents),
            ends_drafts=tuple(dict.fromkeys((*ended, *commit.ends_drafts))),
            drop_draft=commit.drop_draft,
        )


def project_append(batch: ProjectFacts, end: int, *, session_id: SessionId, now: float) -> Append:
    """The append of a batch onto a project's stream that is at `end`; the facts carry the id of the
    session that wrote them, and their `seq` counts in the project's stream.
    """
    facts: list[FactBase] = []
    blobs: dict[BlobId, bytes] = {}
    for seq, fact in enumerate(batch.facts, end + 1):
        slim, more = spill(fact)
        blobs |= more
        facts.append(
            msgspec.structs.replace(slim, session_id=session_id, seq=seq, at=fact.at or now)
        )
    return Append(
        stream=project_stream(batch.project_id),
        expected_seq=end,
        records=tuple(Record(each.seq, each.at, kind_of(each), encode(each)) for each in facts),
        blobs=tuple(Blob(blob_id, data) for blob_id, data in blobs.items()),
    )


def _placed(note: SystemNote, before: Sequence[Fact], state: SessionState) -> SystemNote:
    """A note for the user with the place where it was said; one that was imported has its own."""
    if note.node is not None or note.to_model or note.at:
        return note
    return msgspec.structs.replace(note, node=tip_after(state, before))


def stamp(
    commit: Commit, state: SessionState, *, now: float, cause: CommandCause | None
) -> StampedFacts:
    """Number and date the facts of a commit, and move what is long in them into blobs."""
    blobs = dict(commit.blobs)
    spilled: set[BlobId] = set()
    stamped: list[Fact] = []
    for offset, fact in enumerate(commit.facts):
        slim = fact
        if type(slim) is SystemNote:
            slim = _placed(slim, commit.facts[:offset], state)
        elif type(slim) in WITH_PARTS:
            slim, more = spill(slim)
            blobs.update(more)
            spilled.update(more)
        stamped.append(
            msgspec.structs.replace(
                slim,
                session_id=state.session_id,
                seq=state.seq + offset + 1,
                at=fact.at or now,  # an imported message keeps its own time
                cause=cause if offset == 0 else None,
            )
        )
    history, others = history_blobs(stamped, blobs, spilled)
    both = others & (commit.trees.listings | commit.trees.contents)
    return StampedFacts(tuple(stamped), blobs, history, tuple(both), tuple(said(commit.facts)))


def history_blobs(
    facts: Iterable[Fact],
    handed_in: Collection[BlobId],
    spilled: Collection[BlobId],
) -> tuple[tuple[BlobId, ...], set[BlobId]]:
    """Those of the blobs that are file history and nothing else, and those that are not.

    `spilled` are parts of messages.  The files in trees are neither, unless a fact names them.
    """
    if not handed_in:  # as in most rounds
        return (), set()
    # Only these may be dropped when a project has more history than it may.  The same content can
    # be a long message, a tool's whole output or the base of a boundary, and those are for ever.
    history: set[BlobId | str | None] = set()
    others: set[BlobId | None] = set(spilled)
    for fact in facts:
        match fact:
            case FileTouched(before=before, after=after):
                history |= {before, after}
            case Rewound(files=files):
                history |= {each for change in files for each in (change.before, change.after)}
            case ToolExecuting(pre_hashes=before_it, post_hashes=after_it):
                history |= {*before_it.values(), *after_it.values()}
            case ToolComplete(result=result):
                others.add(result.full_text)
            case PrefixFrozen(prefix=prefix):
                others.add(prefix)
            case BoundaryChanged(base=base):
                others.add(base)
            case _:
                pass
    named = {each for each in handed_in if each in others}
    return tuple(each for each in handed_in if each in history and each not in named), named


def row_after(state: SessionState, facts: Sequence[Fact]) -> SessionRow:
    """What a list will show once these facts are in."""
    about = copy.copy(state.about)
    settings = copy.copy(state.settings)
    settings.values = dict(settings.values)
    total, turn = state.ledger.total, state.turn.copied()
    schedules = copy.copy(state.schedules)
    schedules.open, schedules.queued = dict(schedules.open), dict(schedules.queued)
    goal = copy.copy(state.goal)
    for fact in facts:
        about.apply(fact)
        settings.apply(fact)
        turn.apply(fact)
        schedules.apply(fact)
        goal.apply(fact)
        total = sum(used_by(fact).values(), total)
    parent = about.parent.session_id if about.parent is not None else None
    fork = about.fork.session_id if about.fork is not None else None
    return SessionRow(
        id=state.session_id,
        title=about.title(settings),
        project_path=about.known_path,
        project_id=about.project_id,
        model=settings.model,
        mode=settings.mode,
        created=about.created or facts[0].at,
        last_active=facts[-1].at,
        message_count=about.message_count,
        turn_count=about.turn_count,
        first_prompt=about.first_prompt,
        branch=about.branch,
        cost_usd=total.cost_usd,
        parent_id=parent or fork,
        is_child=parent is not None,
        archived=bool(settings.get("archived", False)),
        turn_open=turn.open is not None,
        wake_at=_earliest(
            _wake_at(turn),
            _comes_back(turn, settings, about.created),
            schedules.next_due,
            goal.wake_at,
        ),
        round_at=schedules.next_due,
        asleep=turn.wait is not None,
        min_reader=max(
            state.tree.min_reader,
            # As long as there are some: an older program may have the session again after that.
            EXCLUDED_READER if state.tree.excluded else 1,
            _reader_of(turn, schedules, goal),
            *map(reader_for, facts),
        ),
        last_seq=facts[-1].seq,
        root=str(settings.get("loom_root") or about.root or ""),
    )


_COUNTED: Final = frozenset(
    (FileTouched, ModelCallStarted, NewMessage, ToolComplete, ToolExecuting, UsageRecorded)
)
"""Facts that add to the counts of a row and change nothing else in it, while a turn runs."""


def due_row(
    state: SessionState, facts: Sequence[Fact], listed: SessionRow | None
) -> SessionRow | None:
    """The row that the list is to show in place of the one that was written last; None for the
    same.
    """
    # Most appends are a round of tools.  To find out by a look at the kinds that their row is not
    # due takes a twentieth of making it.
    if listed is not None and _only_adds(state, facts, listed):
        return None
    row = row_after(state, facts)
    return row if is_row_due(listed, row) else None


def _only_adds(state: SessionState, facts: Sequence[Fact], listed: SessionRow) -> bool:
    is_running = listed.turn_open and state.turn.open is not None
    # The result of the call that waits ends the wait; the first words are the title.
    return (
        is_running
        and state.turn.wait is None
        and bool(state.about.first_prompt)
        and facts[-1].at - listed.last_active < LISTED_EVERY_SECONDS
        and _COUNTED.issuperset(map(type, facts))
    )


def is_row_due(listed: SessionRow | None, row: SessionRow) -> bool:
    """Whether the list is to show this row in place of the one that was written last."""
    # Not with every append: a row is written into five indexes, and each round of tools would
    # write it for a count alone.  What a turn only adds to waits for its end, or for a minute.
    if listed is None or not row.turn_open:
        return True
    if row.last_active - listed.last_active >= LISTED_EVERY_SECONDS:
        return True
    counted = msgspec.structs.replace(
        row,
        last_active=listed.last_active,
        last_seq=listed.last_seq,
        message_count=listed.message_count,
        cost_usd=listed.cost_usd,
    )
    return counted != listed


def _reader_of(turn: OpenTurnState, schedules: PromptSchedules, goal: SessionGoal) -> int:
    """The least `READER_VERSION` that may go on with the session."""
    # An older program would open it because it is due, and sleep on for ever.
    is_old = turn.asleep is None or turn.asleep.on.kind in ("time", "command")
    return 1 if is_old and not schedules.open and not goal.is_open else LOOKS_READER


def _earliest(*times: float | None) -> float | None:
    return min((each for each in times if each is not None), default=None)


def _wake_at(turn: OpenTurnState) -> float | None:
    """When the turn that waits is to be woken."""
    wait, woken = turn.wait, turn.woken
    if wait is None:
        return None
    # Due at once until the turn has gone on: it could die before.
    if woken is not None:
        return woken.at
    # A command ends with the process that runs it: once that is gone there is nothing to wait for.
    # What is looked at needs a process that looks; an agent, one that goes on with it.
    if wait.on.kind != "time" or wait.until is None:
        return wait.at
    return wait.until


def _comes_back(turn: OpenTurnState, settings: SessionSettings, created: float) -> float | None:
    """Since when a turn is due that goes on by itself once no process has it."""
    is_due = turn.open is not None and turn.wait is None and not turn.open.parked
    return created if is_due and settings.get("resume") == "auto" else None


def said(facts: Sequence[Fact]) -> list[SearchText]:
    """The words that search should find."""
    found: list[SearchText] = []
    for fact in facts:
        for node_id, parts in _worded(fact):
            text = "".join(part.text for part in parts if isinstance(part, Text))
            if text or _is_branch(fact):
                found.append(SearchText(node_id, text[:SEARCHED]))
    return found


def _is_branch(fact: Fact) -> bool:
    """Whether a message is a segment of a text tree, which is asked for by its id alone; of a
    conversation, most that say nothing are calls of tools.
    """
    return isinstance(fact, NewMessage) and "loom" in fact.node.metadata


def _worded(fact: Fact) -> tuple[tuple[NodeId, tuple[Part, ...]], ...]:
    """The nodes that have new words with a fact."""
    match fact:
        case NewMessage(node=node):
            return ((node.id, node.parts),)
        case NodeEdited(node=node_id, parts=parts) | NodesJoined(node=node_id, parts=parts):
            return ((node_id, parts),)
        case NodeSplit(node=node_id, parts=parts, tail=tail):
            return ((node_id, parts), (tail.id, tail.parts))
        case _:
            return ()
