"""The contract of a store: append-only streams of facts, and the few things kept beside them.

A store moves bytes; it folds nothing and knows no kind of fact.  The core is `append`, `read`,
`follow` and the lease.  Everything else (rows for lists, search, blobs, drafts, snapshots) is there
so that a list, a search or a restart is fast; each has an obvious plain implementation, so that a
store of your own stays small.  `weft.testing.store_contract` checks one.

Streams.  A session's stream is named by its id and needs a lease: every append carries the lease's
fence, and an append under an old fence is refused inside the same transaction.  A project's stream
is named `project:<id>` and takes optimistic appends from any process (`fence=None`): only
`expected_seq` guards it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.ids import BlobId, NodeId, SessionId
from weft.messages import DraftPart

# Grows when a session can hold something that an older program would misread; what an older one
# may skip does not count.
LOOKS_READER = 3
"""The first `READER_VERSION` that knows turns which wait for files, ports and agents, scheduled
prompts, and goals."""
READER_VERSION = 4
"""What this program can read.

A session row whose `min_reader` is higher is listed and refused, never written.
"""

PROJECT_STREAM = "project:"
"""Prefix of streams that need no lease."""
FILES_STREAM = f"{PROJECT_STREAM}files:"
"""Prefix of what keeps the files of a project."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored fact: where it stands, and its bytes."""

    seq: int
    at: float
    kind: str
    body: bytes


class Blob(msgspec.Struct, frozen=True, gc=False):
    """Content that is kept once, under its SHA-256."""

    id: BlobId
    data: bytes


class SearchText(msgspec.Struct, frozen=True, gc=False):
    """Words that full-text search should find: what the user and the model said, not tool
    output.  Without words the message is only to be found by its id.
    """

    node: NodeId
    text: str


class SessionRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a list shows of a session, kept up to date by its appends.

    Read without decoding a single fact.  While a turn runs, counts, cost and times may be a minute
    behind.
    """

    id: SessionId
    title: str = ""
    project_path: str = ""
    project_id: str = ""
    model: str = ""
    mode: str = "normal"
    created: float = 0.0
    last_active: float = 0.0
    message_count: int = 0
    turn_count: int = 0
    first_prompt: str = ""
    branch: str = ""
    """The git branch, or the commit, at its last turn; empty outside of a repository."""
    cost_usd: float | None = 0.0
    parent_id: SessionId | None = None
    """The session it was forked from, or works for."""
    is_child: bool = False
    """True for sub-agents and candidates: lists leave them out unless asked."""
    archived: bool = False
    turn_open: bool = False
    """A turn had started and not ended; with no living owner the session is interrupted."""
    wake_at: float | None = None
    """When the session is to be woken, by whichever process finds it (`due`): the end of its turn's
    wait, or its next scheduled round; None where there is neither."""
    round_at: float | None = None
    """When the next scheduled round begins."""
    asleep: bool = False
    """Its turn waits; of a row with `wake_at` and without `round_at`, in any case (`waits`)."""
    min_reader: int = 1
    damaged: str = ""
    """Why it cannot be opened; empty when it can."""
    last_seq: int = 0
    """The end of the stream when the row was written."""
    root: str = ""
    """The message that its tree begins with; empty where it has none of its own, and in rows of
    programs that did not know this field."""

    @property
    def waits(self) -> bool:
        """Whether its turn waits, and is woken in its time."""
        # Rows of programs that did not know schedules have neither of the two fields.
        return self.wake_at is not None and (self.asleep or self.round_at is None)


RowPlace: TypeAlias = tuple[float, SessionId]
"""A row's place in the list of sessions: when it was last active, and its id."""


class Append(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is added to one stream, with all that must become durable in the same instant."""

    stream: str
    expected_seq: int
    """The stream's last `seq` before this; another value is a `Conflict`."""
    records: tuple[Record, ...]
    fence: int | None = None
    """The lease's fence; None only on project streams."""
    row: SessionRow | None = None
    said: tuple[SearchText, ...] = ()
    blobs: tuple[Blob, ...] = ()
    names_blobs: tuple[BlobId, ...] = ()
    """Blobs that were stored before and that this stream refers to from now on."""
    history: tuple[BlobId, ...] = ()
    """Those of `blobs` that are named as file history only: `trim_history` may drop them."""
    trees: tuple[BlobId, ...] = ()
    """Trees of files that this stream refers to from now on.  What they name is kept for as long as
    some stream refers to them: listings for ever, contents as file history."""
    tree_listings: tuple[BlobId, ...] = ()
    """Those of `blobs` that are listings of folders: the stream's project names them, and not the
    stream, so that they are stored and named once however many sessions have the same files."""
    tree_contents: tuple[BlobId, ...] = ()
    """The same of contents of files; `trim_history` may drop them."""
    ends_drafts: tuple[NodeId, ...] = ()
    """The nodes whose drafts end with it."""
    drop_draft: bool = False
    """All drafts of the stream end with it."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A process that has the store open."""

    process_id: str
    """Unique for each opening of the store."""
    pid: int
    started: float
    """When it opened the store, for display."""
    host: str = ""
    boot_id: str = ""
    address: str = ""
    """Where the process takes commands for its sessions (`unix:PATH`, `https://…`); empty when it
    takes none.
    """
    accepting: bool = True
    """It takes further sessions; False of one that is closing down, or full."""


class StoreHost(msgspec.Struct, frozen=True, kw_only=True):
    """A living process that takes commands for sessions over a network."""

    owner: Owner
    load: float = 0.0
    """How busy it says it is, in sessions; only to be compared."""


class Lease(msgspec.Struct, frozen=True):
    """The right to append to one stream.  `fence` grows with every new holder."""

    stream: str
    fence: int
    owner: Owner


class DraftCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in flight."""

    index: int
    """Its place in the answer; it has no id before the answer is whole."""
    tool: str
    arguments: str
    """As far as they have come: rarely whole JSON."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Text in flight: what had arrived of an answer that never became a node."""

    node: NodeId
    text: str = ""
    thinking: str = ""
    calls: tuple[DraftCall, ...] = ()


class DraftChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """More text in flight."""

    stream: str
    fence: int
    node: NodeId
    part: DraftPart
    chunk: str
    index: int = 0
    """Of arguments: the call's place in the answer."""
    tool: str = ""
    """Of arguments: which tool is called."""
    restart: bool = False
    """The answer begins again: what was kept of it before is thrown away first."""


class Snapshot(msgspec.Struct, frozen=True):
    """A fold's state after `seq`, under the fold's version; only ever a short cut."""

    seq: int
    version: str
    data: bytes


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the words of a search were said."""

    session_id: SessionId
    node: NodeId
    excerpt: str


class NodePlace(msgspec.Struct, frozen=True):
    """A message, and the session whose log has it."""

    node: NodeId
    session_id: SessionId


class KeptContent(NamedTuple):
    """A content that is kept as file history."""

    id: BlobId
    size: int


class RecordStream(Protocol):
    """An endless stream of records; `aclose` (or leaving it) ends it.  Safe to abandon."""

    def __aiter__(self) -> AsyncIterator[Record]: ...

    async def __anext__(self) -> Record: ...

    async def aclose(self) -> None: ...


LeaseLiveness: TypeAlias = Literal["kernel", "time"]


class Store(Protocol):
    """Append-only streams with leases.  All methods may be called from many tasks of one event
    loop.

    Every method may raise `StoreUnavailable` (locked beyond patience, disk full, file gone):
    nothing was written then.  Its kind `StoreOutage` is for what passes without the user: a
    database that is being restarted, a lock.  `append` alone may raise `OutcomeUnknown`, where the
    connection broke while it was committed (`append_once` finds out what became of it); all other
    methods can be called again without harm.  A cancelled wait leaves a handed-in append to its
    fate: it is committed whole or not at all.

    Order.  What is handed in first is done first: appends, drafts, leases, snapshots, deletes and
    `load_drafts` are carried out in the order in which they were called, whether their callers wait
    or not.  Reads may overtake what is not answered yet, and see all that was answered before they
    were called, by this store or another on the same data.

    Text.  Any character comes back as it was, NUL too; names may have a limit of length.  Half of a
    surrogate pair is refused with a `UsageError` where it would be stored for ever, and replaced in
    drafts (`weft.store.text`).
    """

    owner: Owner
    is_lasting: bool = True
    """What it holds is there after this process: False of one in memory."""
    is_shared: bool = False
    """Other processes see the leases that are taken here, and may drive their sessions."""
    meeting_folder: Path | None = None
    """A folder of this machine where the processes that share the store meet (locks, sockets).

    None where there is none: no other process has the store, or they meet over a network.
    """
    liveness: LeaseLiveness = "kernel"
    """How a dead owner is told from a living one.

    By the kernel: by something that the kernel drops with the process.  It is exact, and time alone
    takes no session away from a process that is slow or suspended.  By time: by signs of life and
    the store's own clock, because a lost machine looks like a slow one.  The guess can be wrong;
    the fence makes that harmless for the log, not for the world: an owner must stop its commands
    before the others may take it for dead.
    """

    tenant: str = ""
    """Whose data this is, where one database holds that of several."""

    def lease_seconds_left(self) -> float | None:
        """How long the leases of this process are safe without another word from the store; None
        where time takes none away (`liveness`).
        """
        return None

    # -- the core

    async def append(self, *appends: Append) -> None:
        """Add to one or several streams, all or nothing; returns when it is durable.

        One stream may be named several times, each append following on the one before.
        `check_appends` and `check_place` are the checks.

        Raises:
            Conflict: a stream is not at `expected_seq`.
            Fenced: a lease was taken over or given back, or `fence` is missing on a session's
                stream.
            UsageError: the records do not follow on `expected_seq`; the row is another session's; a
                blob is named that is not there.
            OutcomeUnknown: the answer was lost; the batch is stored whole or not at all.
        """
        ...

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        """Records with a higher `seq` than `after`, oldest first.

        Empty at the end and for unknown streams.
        """
        ...

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        """Exactly these records, in the order asked for.

        A missing one raises `Corrupt` with its `seq`.
        """
        ...

    def read_now(self, stream: str, seqs: Sequence[int]) -> list[Record] | None:
        """`read_at` without waiting, for those that cannot: a few records that are at hand, or that
        a look at a local file has.  None where the store is further away.
        """
        return None

    def blob_now(self, blob_id: BlobId) -> bytes | None:
        """`blob` without waiting, where `read_now` answers."""
        return None

    async def last_seq(self, stream: str) -> int:
        """The highest `seq`, 0 for an unknown stream."""
        ...

    def follow(self, stream: str, *, after: int = 0) -> RecordStream:
        """Records after `after`, then new ones as they are committed by any process: no gap, no
        repeat.
        """
        ...

    async def take_lease(self, stream: str, *, steal: bool = False) -> Lease:
        """Become the one writer of `stream`; a dead owner is replaced at once, with a higher fence.

        An owner that holds it already gets a new one, and its first one is stale.

        Raises:
            Owned: a living process holds it and `steal` is not set; says which, and its address.
            TooNew: only a newer program understands the session (`check_reader`).
            UsageError: the stream takes appends from any process (`check_leasable`).
        """
        ...

    async def release_lease(self, lease: Lease) -> None:
        """Give the lease back; nothing happens when it has been taken over."""
        ...

    async def take_leases(self, streams: Sequence[str], *, steal: bool = False) -> list[Lease]:
        """Become the one writer of many streams in one go, of all or of none: a family moves
        together, and a dead owner may have had thousands.

        A stream that is named twice counts once.  Inherited, it takes one after the other.

        Raises:
            Owned, TooNew, UsageError: as `take_lease`, of one of them.
        """
        leases: list[Lease] = []
        try:
            for stream in dict.fromkeys(streams):
                lease = await self.take_lease(stream, steal=steal)
                leases.append(lease)
        except BaseException:
            await self.release_leases(leases)
            raise
        return leases

    async def release_leases(self, leases: Sequence[Lease]) -> None:
        """Give many leases back; nothing happens to those that have been taken over."""
        for lease in leases:
            await self.release_lease(lease)

    async def leave_lease(self, lease: Lease) -> None:
        """Give the lease back of a session whose turn goes on by itself: the next host that looks
        for such (`adopt`) takes it.  Where none looks, it is given back like any other.
        """
        await self.release_lease(lease)

    async def adopt(self, limit: int = 50, *, only: str | None = None) -> list[Lease]:
        """Take leases that dead hosts held, or that were left: those of at most so many sessions,
        each with all that work for it, which no other process takes meanwhile; or of one session.
        """
        return []

    async def lease_of(self, stream: str) -> Lease | None:
        """The lease of the stream, if the process that holds it lives."""
        ...

    # -- lists and search

    async def row(self, session_id: SessionId) -> SessionRow | None:
        """The row of one session."""
        ...

    async def rows(
        self,
        *,
        project_path: str | None = None,
        query: str | None = None,
        limit: int = 100,
        archived: bool = False,
        children: bool = False,
        after: RowPlace | None = None,
    ) -> list[SessionRow]:
        """Sessions, last active first; archived ones and children too where asked for.  Of those
        that were last active at the same time, the greatest id comes first.

        `after` is the `last_active` and the id of a row: the rows that stand behind it are read,
        whether or not it is there still.
        `query` finds words in titles and in what was said, some here and some there; `words` says
        what is found.  A blank one finds all.
        """
        ...

    async def due(
        self, before: float, *, project_path: str | None = None, limit: int = 100
    ) -> list[SessionRow]:
        """Sessions with a turn that is to be woken by this time (`SessionRow.wake_at`), the one due
        longest first, whoever holds their leases; those of one project where asked for.

        Archived and damaged ones and children are left out, and the limit does not count them: they
        may stay due for ever (a child is woken by the turn that it works for), and enough of them
        would hide all others.

        Asked for every few seconds, so that it should look at those that wait alone.  A store
        without an index for them inherits this, which looks at all sessions.
        """
        due: list[SessionRow] = []
        place: RowPlace | None = None
        while page := await self.rows(project_path=project_path, limit=1000, after=place):
            due = due_rows((*due, *page), before, project_path)[:limit]
            place = page[-1].last_active, page[-1].id
        return due

    async def ids_with_prefix(self, prefix: str, *, limit: int = 10) -> list[SessionId]:
        """Ids that begin with `prefix`, taken literally."""
        ...

    async def nodes_with_prefix(self, prefix: str, *, limit: int = 10) -> list[NodePlace]:
        """Messages whose ids begin with `prefix`, taken literally, the newest first; of those that
        an append named in `said`, with words or without.  An id that is the prefix itself comes
        before all others; one that several logs have is there once for each.

        A store without an index for it inherits this, which reads all logs.
        """
        from weft.store.node_scan import scan_nodes  # only here: start-up time

        found = await scan_nodes(self, lambda node: node.startswith(prefix))
        found.sort(key=lambda each: each[0] != prefix)
        return [NodePlace(NodeId(node), session_id) for node, session_id in found[:limit]]

    async def nodes_named(self, nodes: Collection[NodeId]) -> list[NodePlace]:
        """The same of exactly these ids, many at a time; in no order."""
        from weft.store.node_scan import scan_nodes  # as above

        wanted = frozenset(nodes)
        found = await scan_nodes(self, wanted.__contains__)
        return [NodePlace(NodeId(node), session_id) for node, session_id in found]

    async def search(self, query: str, *, limit: int = 20) -> list[SearchHit]:
        """Places where all the words were said, as `words` reads them."""
        ...

    async def mark_damaged(self, session_id: SessionId, reason: str) -> None:
        """Remember that a session could not be read, so that lists can say so, also of one that has
        no row; a hidden one stays hidden.
        """
        ...

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session, its drafts, snapshots, words and the blobs that no other stream names;
        a living owner elsewhere raises `Owned`.

        Once the store is closed, no file of it holds readable bytes of what was removed.

        Its lease is void, and the fence goes on growing.  A log that forks name (`parent_id` of a
        row that is no child's) is only hidden: its facts stay readable, its row and its words are
        gone; it goes with the last fork.
        """
        ...

    async def overwrite(self, stream: str, records: Sequence[Record]) -> None:
        """Put these in the place of the records with the same `seq`, all or nothing: for words that
        must not stay.  Only on a stream without a lease.

        Once the store is closed, no file of it holds readable bytes of what was there before.

        A store whose records cannot change inherits this.

        Raises:
            UsageError: the stream is a session's, which is deleted as a whole; or this store never
                changes a record.
            Corrupt: one of them is not there.
        """
        raise UsageError("this store cannot take words out of its logs")

    # -- beside the log

    def save_draft(self, chunk: DraftChunk) -> None:
        """Hand in more text in flight; not waited for, dropped when the fence is old, never an
        error.

        Each node has a draft of its own, so that several answers of a session can be in flight;
        one that restarts replaces what was kept of its node (`ends_draft`).
        """
        ...

    async def load_drafts(self, stream: str) -> list[Draft]:
        """What was left of answers in flight, in the order in which they began; only those of which
        something came.
        """
        ...

    async def blob(self, blob_id: BlobId) -> bytes | None:
        """The content of a blob."""
        ...

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        """Those of these that are not stored; many at a time, and without their content.

        With a project, also those that the trees of its sessions do not name, so that a later
        append need not bring the others.
        """
        return {each for each in blob_ids if await self.blob(each) is None}

    async def sessions_with(self, blob_id: BlobId) -> list[SessionId]:
        """The sessions that refer to a blob: by their own streams, hidden ones too, or by the files
        of their project.

        Whether a file's content may be shown is up to the rules of those that know the file.  A
        store without an index for it inherits this, which names all that could.
        """
        found: list[SessionId] = []
        place: RowPlace | None = None
        while page := await self.rows(limit=1000, archived=True, children=True, after=place):
            found += [row.id for row in page]
            place = page[-1].last_active, page[-1].id
        return found

    async def sweep_blobs(self) -> int:
        """Drop blobs that no stream names; returns how many bytes that freed."""
        ...

    async def history_contents(self, project_path: str) -> list[KeptContent]:
        """The contents that a project's sessions have as file history, the newest first: in the
        other order `trim_history` drops them.  Each is there once.  A store that keeps everything
        inherits this.
        """
        return []

    async def trim_history(
        self, project_path: str, most_bytes: int, newest: BlobId | None = None
    ) -> int:
        """Drop the oldest file history of a project's sessions until it has at most so many bytes;
        returns how many that freed.

        What anything else names stays, and so do the contents of the tree `newest`, unless they
        alone are more: however old they are, they are the files of now.  A store that keeps
        everything inherits this.
        """
        return 0

    async def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Keep the newest snapshot of a stream.

        One that is older, or beyond the stream's end, is dropped, one of another version replaces
        it.
        """
        ...

    async def load_snapshot(self, stream: str, version: str) -> Snapshot | None:
        """The newest snapshot, if it was made by this version of the fold."""
        ...

    async def register_address(self, address: str, *, accepting: bool = True) -> None:
        """Publish to other processes where this one takes commands, and whether it takes further
        sessions.

        `owner` carries both from now on, and so does every lease that this process holds.

        Raises:
            UsageError: it is no address (`check_address`).
        """
        ...

    async def publish_load(self, load: float) -> None:
        """Tell other hosts how busy this one is; nothing where there are none."""
        del load

    async def hosts(self) -> list[StoreHost]:
        """The living processes that take commands over a network, this one too; none where the
        store is of one machine.
        """
        return []

    # -- life

    async def aclose(self) -> None:
        """Finish what was handed in, give back all leases, and close."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def due_rows(
    rows: Iterable[SessionRow], before: float, project_path: str | None
) -> list[SessionRow]:
    """Those that `Store.due` finds, without its limit."""
    due = [
        (row.wake_at, row.id, row)
        for row in rows
        if row.wake_at is not None
        and row.wake_at <= before
        and project_path in (None, row.project_path)
        and not (row.archived or row.is_child or row.damaged)
    ]
    return [row for _, _, row in sorted(due, key=lambda one: one[:2])]


def project_stream(project_id: str) -> str:
    """The stream of a project."""
    return f"{PROJECT_STREAM}{project_id}"


def files_stream(project_path: str) -> str:
    """The name under which a store keeps the files in the trees of a project's sessions; it has no
    records."""
    return f"{FILES_STREAM}{project_path}"


def path_of_files(stream: str) -> str | None:
    """The project whose files are kept under this name; None for any other stream."""
    return stream.removeprefix(FILES_STREAM) if stream.startswith(FILES_STREAM) else None


def needs_lease(stream: str) -> bool:
    """True for session streams."""
    return not stream.startswith(PROJECT_STREAM)
