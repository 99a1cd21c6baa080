"""The session as one reads it: section *Reading* of the API."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, Self

import msgspec

from weft.api.handle import SessionBase, cursor_of, number_of, path_of
from weft.api.history import history
from weft.api.reports import (
    SessionMetadata,
    UsageReport,
    ZoneCounter,
    may_be_count,
    may_be_outdated,
    metadata_of,
    snapshot_of,
    usage_of,
)
from weft.errors import UsageError
from weft.events import Event, LeftOutFile, SessionStatus, Status
from weft.ids import NodeId
from weft.messages import ToolCall, ToolResult, typed_text

# Handed on under its own name: the screens show models, and may not import providers.
from weft.providers import ModelInfo as ModelInfo
from weft.session import Subscription
from weft.state import Request, TouchedFile
from weft.state.files import OriginalFile
from weft.store import Draft, Store
from weft.view.snapshot import EditorSnapshot, HistoryMessage

if TYPE_CHECKING:  # loaded with the first page or command: they cost start-up time
    from weft.api.evidence.opened_past import OpenedPast
    from weft.api.evidence.sent_requests import SentRequest
    from weft.api.evidence.session_bisection import AskCopies
    from weft.api.file_changes import FileDifference
    from weft.api.pages import Page
    from weft.api.unattended.coming_back import ComingBack
    from weft.api.unattended.told_asides import SideQuestion
    from weft.evidence import BisectCheck, Bisection, Receipt
    from weft.project.markdown_commands import Ask, ExpandedCommand, MarkdownCommand
    from weft.project.mentions import AskRead
    from weft.runtime.snapshots.node_files import NodeFiles
    from weft.runtime.workspaces.file_view import ProjectFile

DEFAULT_LIMIT: Final = 200
"""Messages of a page."""


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """A session as one moment has it, and all that comes after that moment."""

    seq: int
    """The last fact of that moment."""
    drafts: tuple[Draft, ...]
    """The answers in flight in that moment, each with what has come of its text, reasoning and
    tool calls; the one that was begun last at the end.
    """
    requests: tuple[Request, ...]
    """What waits for an answer of the user in that moment."""
    events: Subscription
    """What was missed since the cursor, up to `seq`; then new events, which go on from `drafts`."""


class InspectionCalls(SessionBase):
    """What a session tells of itself."""

    async def messages(
        self, before: str | None = None, after: str | None = None, limit: int | None = None
    ) -> list[HistoryMessage]:
        """The whole present line, oldest first; with a limit or a place, a page of it as `line`
        gives.
        """
        if before is None and after is None and limit is None:
            return [message for _, message in await self.messages_with_ids()]
        page = await self.line(before, after, DEFAULT_LIMIT if limit is None else limit)
        return [message for _, message in page.items]

    async def messages_with_ids(self) -> list[tuple[str, HistoryMessage]]:
        """The whole present line, each message with its stable id."""
        port = await self._port()
        return history(await port.line(), port.state)

    async def line(
        self, before: str | None = None, after: str | None = None, limit: int = DEFAULT_LIMIT
    ) -> Page:
        """A page of the present line, oldest first: the last `limit` messages, or those just before
        or just after the message with an id.

        Only the words of these messages are read, however long the line is.

        Raises:
            UsageError: both places are given, the limit is not positive, or the line has no such
                message.
        """
        from weft.api.pages import line_page  # as above

        most = number_of("the limit of a page", limit, least=1)
        return await line_page(await self._port(), before, after, most)

    async def get_status(self) -> Status:
        """idle, thinking, executing_tool, awaiting_permission, waiting, interrupted or error."""
        return (await self._port()).status

    async def editor_snapshot(self) -> EditorSnapshot:
        """What a screen needs to draw itself."""
        port = await self._port()
        state = port.state
        window = self._host.context_window(state.settings.model)
        if state.ledger.last_call is None:
            return await snapshot_of(port, window)
        counter = ZoneCounter(self._host, state)
        is_doubtful = may_be_outdated(state) != "no"
        snapshot = await snapshot_of(port, window)
        zones = await counter.count(snapshot.context_used)
        in_prefix = sum(zone.tokens for zone in zones[:-1])
        if is_doubtful or not may_be_count(snapshot.context_used, in_prefix):
            from weft.api.context_size import estimated_use  # hardly ever needed: start-up time

            used = await estimated_use(port, self._host)
            if used is not None:
                snapshot = msgspec.structs.replace(snapshot, context_used=used)
                zones = await counter.count(used)
        return msgspec.structs.replace(snapshot, context_zones=zones)

    async def metadata(self) -> SessionMetadata:
        """Title, model, counts, cost and status."""
        return metadata_of(await self._port())

    async def usage(self) -> UsageReport:
        """Tokens and cost: in all, per model, per turn, per branch and per purpose."""
        return usage_of((await self._port()).state)

    async def touched_files(self) -> list[TouchedFile]:
        """The files that tools changed, newest first."""
        return (await self._port()).state.files.newest_first()

    async def differences(self) -> list[FileDifference]:
        """The files that are not what the log tells of: made by another program, or by a command of
        the session that was interrupted or still runs.

        It looks at the disk, and changes nothing.  Ignored files are compared only where a tool of
        the session changed them.

        Raises:
            UsageError: the files are not known: the folder is not a project, the session has files
                of its own (a candidate of a fan-out), or they cannot be read.
        """
        from weft.api.file_changes.differences import differences  # few look

        port = await self._port()
        state, project = port.state, port.state.about.project_path
        if state.settings.get("place"):
            raise UsageError("a candidate of a fan-out has files of its own: see its changes")
        async with self._host.registry.reading(self.id) as store:
            files = self._host.services.workspaces.file_history(project, store)
            return await differences(state, store, files)

    async def coming_back(self) -> ComingBack:
        """How the session stands to a turn that a crash has cut off: whether one is open, what the
        user has chosen for it, and what its next model call costs at most.
        """
        from weft.api.unattended.coming_back import coming_back  # few look

        return await coming_back(await self._port(), self._host)

    async def asides(self) -> tuple[SideQuestion, ...]:
        """The side questions whose place is on the present line, with their answers, oldest
        first.
        """
        from weft.api.unattended.told_asides import told_asides  # few sessions have some

        return await told_asides(await self._port(), self._host)

    async def receipts(self, turn: str | int | None = None) -> tuple[Receipt, ...]:
        """What the answer of a turn claims, beside what is on record: one receipt for each claim
        about tests, builds, checks and searches.

        `turn` is a message of it (its id, or its index in `get_history()`); without one, the last
        answer.  Green is a run that covers the claim and ended with 0 on the files as they are now,
        grey one on other files, amber none or one that says otherwise.  No model is asked and
        nothing is stored.

        Raises:
            UsageError: there is no such message.
        """
        from weft.api.evidence import session_receipts  # few look
        from weft.session import node_at

        state = (await self._port()).state
        node = state.tree.head if turn is None else node_at(state, turn)
        return await session_receipts(self, node, state)

    async def request(
        self, turn: str | int | None = None, call: int = -1, *, diff: bool = False
    ) -> SentRequest:
        """What the model was sent: the request of one call, made again from the log and compared
        by its digest with the one that went out; what each part of it cost, what the vendor read
        from its cache, and why not more.

        `turn` is its number on the present line, from 1 on (negative: from the end), or the id of
        a message of it; without one, the last turn.  `call` is the number of its call, the last
        one by default.  `diff` adds what changed since the request before, line by line.  No model
        is asked, nothing is stored, and no header is shown.

        Raises:
            UsageError: there is no such turn or call.
        """
        from weft.api.evidence.sent_requests import sent_request  # few look

        state = (await self._port()).state
        node = state.tree.head if turn is None else await turn_node(self, turn)
        return await sent_request(self, node, call, diff=diff)

    async def bisect(
        self,
        check: str,
        good: str | int | None = None,
        bad: str | int | None = None,
        *,
        jobs: int = 1,
        timeout_seconds: float = 600.0,
        in_copies: bool | AskCopies = False,
        on_check: Callable[[BisectCheck], None] | None = None,
    ) -> Bisection:
        """Find the turn at which a check began to fail: a shell command, run on the files of some
        turns of the present line, each in an overlay of its own that is thrown away.

        0 is good, 125 says that these files cannot be judged; 126, 127, a signal and a time-out are
        no verdict, all else is bad.  `good` and `bad` are turns by their numbers, or messages by
        their ids; without them, before the first turn and the files as they are now.  Ignored files
        are today's.  `on_check` is told of each check.  Where there are no overlays, the checks run
        in copies, outside the sandbox, with `in_copies` alone; a function is asked, with the reason
        why there are none.  No model is asked, nothing goes on
        record, and a cancel leaves nothing.

        Raises:
            UsageError: the files are not known, an end is no turn, or there is no place for the
                checks.
        """
        from weft.api.evidence.session_bisection import BisectRequest, session_bisection

        asked = BisectRequest(
            check,
            good,
            bad,
            jobs=jobs,
            timeout_seconds=timeout_seconds,
            in_copies=in_copies,
            on_check=on_check,
        )
        return await session_bisection(self, (await self._port()).state, asked)

    async def open_at(
        self, message: str | int, *, in_copies: bool | AskCopies = False
    ) -> OpenedPast:
        """Open the project's files as they were when a message (its id, or its index in
        `get_history()`) was done: `read(path)` and `run(["make", "test"])` work in an overlay that
        is thrown away when it is closed (`async with`).  Ignored files are today's.  Where there
        are no overlays, in a copy, outside the sandbox, with `in_copies` alone.

        Raises:
            UsageError: there is no such message, its files are not known or not all stored, or
                there is no place for them.
        """
        from weft.api.evidence.opened_past import opened_past
        from weft.session import node_at

        state = (await self._port()).state
        node = node_at(state, message)
        if node is None:
            raise UsageError("the files are known at a message, and this is before the first")
        return await opened_past(self, state, node, in_copies)

    async def files_at(self, message: str | int) -> NodeFiles:
        """The project's files as they were when a message (its id, or its index in `get_history()`)
        and its tool calls were done, rebuilt from the log.

        Raises:
            UsageError: there is no such message, or the session has no snapshot that could tell.
        """
        async with self._host.registry.reading(self.id) as store:
            return await self._files_at(message, store)

    async def write_files(self, folder: str | os.PathLike[str], at: str | int) -> list[LeftOutFile]:
        """Put the project's files as they were at a message below a new folder.

        Returns those that are not there, because a limit kept their content out of the store.

        Raises:
            UsageError: there is no such message, or the folder cannot be made.
        """
        from weft.runtime.snapshots.node_files import write_files  # as below

        async with self._host.registry.reading(self.id) as store:
            new = path_of("folder", folder)
            return await write_files(await self._files_at(at, store), new, store)

    async def _files_at(self, message: str | int, store: Store) -> NodeFiles:
        from weft.runtime.snapshots.node_files import files_at  # few look back
        from weft.session import node_at

        state = (await self._port()).state
        node = node_at(state, message)
        if node is None:
            raise UsageError("the files are known at a message, and this is before the first")
        return await files_at(node, state, store)

    async def subscribe(
        self, *, after: int | None = None, live: bool | Literal["status"] = True
    ) -> Subscription:
        """Events: those after the cursor, then new ones.

        No gap, no repeat.  `live="status"` leaves out all signals but the status and retries;
        `live=False` leaves out those too, and ends at the end of the log.
        """
        place = cursor_of(after)
        if live not in (True, False, "status"):
            raise UsageError(f'live is True, False or "status", not {live!r:.80}')
        subscription = (await self._port()).subscribe(after=place, live=live)
        self._subscriptions = [weakref.ref(each) for each in (*self._readers(), subscription)]
        return subscription

    async def join(self, after: int | None = None) -> Joined:
        """Begin to show a session, in one step: where its log stands, what is in flight, and the
        events that go on from there, or from the cursor.

        Each fact comes once, in order, and a piece of an answer at `offset` stands behind that many
        characters of what was shown.  A reader so slow that pieces were lost is handed the answer
        so far again, as a piece at offset 0, which takes the place of what was shown.
        """
        place, port = cursor_of(after), await self._port()
        # No wait between these: what came in between would be shown twice or never.
        events = port.subscribe(after=place, live=True, retell=True)
        state = port.state
        requests = tuple(state.turn.requests.values())
        joined = Joined(seq=state.seq, drafts=port.drafts, requests=requests, events=events)
        self._subscriptions = [weakref.ref(each) for each in (*self._readers(), events)]
        return joined

    def _readers(self) -> list[Subscription]:
        """The subscriptions of this handle that are still read, the newest last."""
        held = [each() for each in self._subscriptions]
        return [each for each in held if each is not None and each.is_open]

    async def unsubscribe(self) -> None:
        """End the newest subscription of this handle."""
        for subscription in self._readers()[-1:]:
            subscription.close()

    async def read_file(
        self, path: str, at: str | int | None = None, *, ask: AskRead | None = None
    ) -> ProjectFile:
        """A file of the project as it is now, or as it was when the message `at` (its id, or its
        index in `get_history()`) was done.

        The rules of `@file` hold: `ask` is called with the path of a file that lies outside the
        project or that a rule asks about, and without it such a file is refused.  Secrets in a text
        are masked.

        Raises:
            UsageError: it may not be read, was not there, is not kept any more, or is neither text,
                an image nor a PDF.
        """
        return await self._host.read_file(self.id, path_of("file", path), at, ask)

    async def get_provider(self) -> str:
        """The provider of the session's model."""
        return (await self._port()).state.settings.model.partition(":")[0]

    async def get_available_models(self) -> list[ModelInfo]:
        """Every model that could be used."""
        return await self._host.available_models()

    async def get_commands(self) -> list[str]:
        """The slash commands that screens offer: those that are built in, and those from Markdown
        files.
        """
        found = [f"/{command.name}" for command in await self.list_commands()]
        return [*self._host.command_names(), *found]

    async def list_commands(self) -> list[MarkdownCommand]:
        """The slash commands from Markdown files, of the project and of the user."""
        project = (await self._port()).state.about.project_path
        return list((await self._host.commands(project)).found.values())

    async def expand_command(
        self, text: str, *, ask: Ask | None = None, ask_read: AskRead | None = None
    ) -> ExpandedCommand:
        """What a line `/name arguments` stands for, for a command from a Markdown file: send its
        `content` with its `options`.

        `ask` is called for each shell command in it that needs permission, `ask_read` with the path
        of each file outside the project that it names; each says whether it is allowed, and without
        it the command is refused.  What is run is put on record first.  A cancel ends what runs.

        Raises:
            UsageError: there is no such command, a shell command in it may not be run, or a file
                may not be read; nothing was sent.
        """
        return await self._host.expand_command(self.id, text, ask, self._client, ask_read)


class SessionEvents:
    """An async iterator that ends when a session of this process does.

    Where another process has the session and goes, it reads on: no event is missed or comes twice.
    """

    def __init__(
        self,
        session: InspectionCalls,
        events: Subscription,
        *,
        live: bool | Literal["status"],
        work: bool,
        moved: Callable[[], None] | None,
    ) -> None:
        """`moved` is called when the session was opened anew."""
        self._wants_work = work
        self._moved = moved
        self._session = session
        self._events = events
        self._live = live
        self._is_local = self._looks_local()
        self._status: SessionStatus | None = None
        """What the session does where it was opened anew; handed out first."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._events.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._status is not None:
                status, self._status = self._status, None
                return status
            try:
                return await anext(self._events)
            except StopAsyncIteration:
                if self._is_local:
                    raise
            await self._move()

    async def _move(self) -> None:
        cursor = self._events.cursor
        await self._events.aclose()
        # Opens the session where it is now: here, or in the process that was quicker.
        self._events = await self._session.subscribe(after=cursor, live=self._live)
        if not self._wants_work:
            self._events.leave_out_work()
        self._is_local = self._looks_local()
        if self._live is not False:
            # A status is sent when it changes, and the last change may have been before this: a
            # reader would show for ever that the owner that is gone is at work.
            port = await self._session._port()
            self._status = SessionStatus(
                session_id=self._session.id, after_seq=cursor, status=port.status
            )
        if self._moved is not None:
            self._moved()

    def _looks_local(self) -> bool:
        return self._session._host.runs_here(self._session.id)


async def session_events(
    session: InspectionCalls,
    *,
    after: int | None = None,
    live: bool | Literal["status"] = True,
    work: bool = True,
    moved: Callable[[], None] | None = None,
) -> SessionEvents:
    """Begin to read the events of a session: those after the cursor, or from now on.

    Without `work`, no status that says that a turn goes on.
    """
    events = await session.subscribe(after=after, live=live)
    if not work:
        events.leave_out_work()
    return SessionEvents(session, events, live=live, work=work, moved=moved)


async def original_files(session: InspectionCalls) -> dict[str, OriginalFile]:
    """What was at each path that the session changed, before it first did."""
    return dict((await session._port()).state.files.originals)


class LineTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the present line: a message of the user's and what was answered to it."""

    node: NodeId
    parent: NodeId | None
    text: str
    calls: tuple[tuple[ToolCall, ToolResult], ...]
    """The calls that have a result."""
    changes: int
    """How many changes of files the log has of it."""


async def turn_node(session: InspectionCalls, turn: str | int) -> NodeId | None:
    """The message that means a turn: a number on the present line, or a message's id.

    Raises:
        UsageError: there is no such turn.
    """
    from weft.session import node_at  # few look

    if isinstance(turn, str | bool):
        return node_at((await session._port()).state, turn)
    turns = await line_turns(session)
    at = turn - 1 if turn > 0 else turn + len(turns)
    if not 0 <= at < len(turns) or turn == 0:
        raise UsageError(f"there is no turn {turn}; the line has {len(turns)}")
    return turns[at].node


async def line_turns(session: InspectionCalls) -> list[LineTurn]:
    """The present line, cut at each of the user's messages, the oldest first; what stands before
    the first of them is left out.
    """
    port = await session._port()
    state, entries = port.state, await port.line()
    starts = [at for at, entry in enumerate(entries) if entry.node.role == "user"]
    # How many changes came after each message; a turn has those up to the next one.
    nodes = [entries[at].node for at in starts]
    after = state.files.counts_after([state.tree.nodes[node.id].at for node in nodes])
    changes = [now - later for now, later in zip(after, [*after[1:], 0], strict=False)]
    return [
        LineTurn(
            node=node.id,
            parent=node.parent,
            text=typed_text(node.parts),
            calls=tuple(
                (call, entry.results[call.call_uid])
                for entry in entries[start:end]
                for call in entry.node.calls
                if call.call_uid in entry.results
            ),
            changes=count,
        )
        for node, start, end, count in zip(
            nodes, starts, [*starts[1:], len(entries)], changes, strict=False
        )
    ]
