"""What a turn needs from the world, and what it hands out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias

import anyio
import msgspec
from msgspec import Meta

from weft.clock import Clock
from weft.context import (
    HARD_SHARE,
    SOFT_SHARE,
    LineEntry,
    PromptPrefix,
    RenderedLine,
    RenderedPrefix,
    RoomLevel,
    estimate_text,
    room_level,
)
from weft.events import (
    Compacted,
    Fact,
    FactBase,
    FinishReason,
    PermissionResolved,
    QuestionAnswered,
    Signal,
    Status,
    UnattendedPermission,
)
from weft.ids import BlobId, CallUid, NodeId, RequestId, TurnId
from weft.loop.hooks import TurnHooks
from weft.messages import DraftPart, Usage
from weft.permissions import PermissionRule, PolicyDecision, ToolAction
from weft.providers import Model
from weft.request_sign import do_nothing
from weft.state import SessionState
from weft.thinking_levels import ThinkingLevel
from weft.tools import ChangedFile, Tool, ToolContext

if TYPE_CHECKING:  # loaded with the first structured result: it costs start-up time
    from weft.tools import SubmitTool


class ProjectFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for the stream of a project, which any session may add to."""

    project_id: str
    facts: tuple[FactBase, ...]


class TreeBlobs(msgspec.Struct, frozen=True, kw_only=True):
    """Trees of files that a commit brings; `Append` says what becomes of each part."""

    trees: frozenset[BlobId] = frozenset()
    """Their hashes; what is stored already need not come again."""
    listings: frozenset[BlobId] = frozenset()
    """Those of the commit's blobs that are listings of folders."""
    contents: frozenset[BlobId] = frozenset()
    """Those that are contents of files."""

    def __or__(self, other: TreeBlobs) -> TreeBlobs:
        return TreeBlobs(
            trees=self.trees | other.trees,
            listings=self.listings | other.listings,
            contents=self.contents | other.contents,
        )


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that become durable in one instant, with what must be stored beside them."""

    facts: tuple[Fact, ...]
    blobs: Mapping[BlobId, bytes] = {}
    ends_drafts: tuple[NodeId, ...] = ()
    """Nodes whose drafts end with it, besides those that become messages here."""
    drop_draft: bool = False
    """All drafts of the session end with it."""
    trees: TreeBlobs = TreeBlobs()
    """What of it are snapshots of files."""
    projects: tuple[ProjectFacts, ...] = ()
    """What goes onto streams of projects in the same instant: all of it, or nothing."""
    ends_work: bool = False
    """The work that commits this is over with it.  A turn is over with its `TurnFinished` in any
    case; work without a turn (a compaction) says so here."""
    results: tuple[Commit, ...] = ()
    """Of `facts` and `blobs`, what tool calls that have run came to, one for each call: it is true
    whether or not this is stored, so that it is kept where it is not."""


Build: TypeAlias = Callable[[SessionState], Commit]
"""Makes the facts of a commit from the state just before it.

Runs once, in the session's actor, and does not wait.
"""


class ContextLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line as the model is to see it: what was compacted as one text, and the entries
    after it.
    """

    entries: tuple[LineEntry, ...]
    summary: str = ""
    upto: NodeId | None = None
    """The last node that the summary stands for."""
    pinned: tuple[LineEntry, ...] = ()
    """What is pinned in the part that the summary stands for."""
    unpinned: tuple[LineEntry, ...] = ()
    """What was pinned when it was made, and is no more."""
    compacted: Compacted | None = None
    """The compaction that `summary` is of; None where there is none."""
    cleared: Mapping[CallUid, int] = {}
    """Results that `entries` have only so many characters of."""
    excluded: Mapping[NodeId, LineEntry] = {}
    """Of the entries that say nothing because they were excluded: what they said."""
    rendered: RenderedLine = msgspec.field(default_factory=RenderedLine)
    """What was made of the entries before; goes with what holds them."""


class SessionWork(Protocol):
    """What runs in a session, one at a time: a turn, a compaction, a plan that is carried out."""

    turn_id: TurnId
    scope: anyio.CancelScope
    """Cancelling it aborts the work, or suspends it."""
    abort_reason: str
    ends_as: FinishReason
    """The word for its end where it is aborted: by the user, or by a limit."""
    is_suspended: bool
    """Set before `scope` is cancelled when the program closes: a turn stays open then, to go on."""
    is_compaction: bool
    """It has no turn that is open until its end."""
    stops_after_step: bool
    """Set by the user: end before the next model call, or the next step of a plan."""

    async def run(self) -> None:
        """Work to the end, which is an append."""
        ...

    def settled(self, state: SessionState) -> Commit:
        """What ends the work in the log when it does not end by itself."""
        ...


class CallJournal(Protocol):
    """What a tool call needs of its session: the log, the subscribers, and answers to requests."""

    @property
    def state(self) -> SessionState:
        """The state as it is now; only to be read."""
        ...

    async def commit(self, build: Build) -> Sequence[Fact]:
        """Append what `build` makes, then apply and publish it; returns the facts as stored.

        A cancel ends the wait: the commit still happens, whole, in its turn.
        """
        ...

    def signal(self, signal: Signal) -> None:
        """Publish a live event."""
        ...

    def status(self, status: Status) -> None:
        """Say what the turn is doing."""
        ...

    async def resolution(self, request_id: RequestId) -> PermissionResolved | QuestionAnswered:
        """Wait until the request is answered."""
        ...

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the state."""
        ...


class TurnJournal(CallJournal, Protocol):
    """What a turn needs of its session besides: its line, and drafts."""

    def draft(
        self,
        node: NodeId,
        part: DraftPart,
        chunk: str,
        *,
        index: int = 0,
        tool: str = "",
        restart: bool = False,
    ) -> None:
        """Keep text in flight beside the log; of arguments, `index` and `tool` name the call.

        Not waited for.  `restart` throws away what was kept of this node before.
        """
        ...

    async def line(self) -> ContextLine:
        """The turn's line, oldest first, with all words; what was compacted as its summary."""
        ...


class PermissionGate(Protocol):
    """The policy: whether an action may happen."""

    def decide(self, action: ToolAction) -> PolicyDecision:
        """Judge one action by mode, rules and grants."""
        ...

    def sealed(
        self, name: str, said: str, *, is_plain: bool = False
    ) -> UnattendedPermission | None:
        """What the session may do now (`is_plain`: nothing), given to what has this id and says
        this; None where nothing can be given.
        """
        return None

    def is_sealed(self, name: str, given: UnattendedPermission | None, said: str) -> bool:
        """Whether the user gave this to what has the id and says this."""
        return False

    @property
    def read_rules(self) -> tuple[PermissionRule, ...]:
        """The rules that keep some files from being read."""
        return ()

    @property
    def network_rules(self) -> tuple[PermissionRule, ...]:
        """The rules that say which hosts commands in the sandbox may reach; none where none
        allows any."""
        return ()

    @property
    def reads_lines(self) -> bool:
        """False when no word of a command could change what is decided."""
        return True

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        """What to do with an ask: wait for the user, take yes for the answer, or take no (there is
        no one to ask).
        """
        ...


class SnapshotTaker(Protocol):
    """The project's files as a whole, for the log."""

    async def before_effect(self, state: SessionState) -> Commit:
        """What was changed from outside since the last snapshot, for the append that records
        the first effect after it; nothing where that is not known without a look at everything.
        """
        ...

    async def at_end(
        self, state: SessionState, noted: Sequence[Fact], turn_id: TurnId, node: NodeId | None
    ) -> Commit:
        """The snapshot of a turn that ends, with the contents that it brings; nothing for a turn
        that had no effect.

        `noted` goes on record with it, and `node` is the turn's last.
        """
        ...

    @property
    def saves(self) -> bool:
        """Whether other hosts may go on with the session, and so with its files."""
        ...

    async def saved(self, state: SessionState, noted: Sequence[Fact]) -> Commit:
        """What another host needs to go on with the files as they are now, as far as it is not on
        record; `noted` goes on record with it.
        """
        ...


class EditReporter(Protocol):
    """What language servers say of the files that tools changed."""

    def after_change(self, touched: Sequence[ChangedFile], *, waits: bool) -> Awaitable[str] | None:
        """What to add to the result of a call that changed these files; empty for nothing, and None
        where no one looks at them.

        `waits`: the call was an edit, and its result may wait for an answer, a bounded time.
        """
        ...

    def late(self) -> str:
        """What has come since, for the next result; empty for nothing."""
        ...


class SharedBudget(Protocol):
    """The money and tokens that a session shares with the ones it works for, counted in
    one place.
    """

    @property
    def is_limited(self) -> bool:
        """False when there is nothing to keep to."""
        ...

    async def refusal(self, turn_id: TurnId, pending: Usage, *, is_priced: bool) -> str | None:
        """Why no further model call may be made, None when one may; nothing is set aside.

        `pending` is what the turn used that is not on record yet.
        """
        ...

    async def reserve(
        self,
        turn_id: TurnId,
        pending: Usage,
        outstanding: Callable[[], Usage],
        *,
        is_priced: bool,
    ) -> str | None:
        """Set aside what the turn has used, or is about to use, beyond what is on record; or say
        why no further model call may be made.

        One step where the money is counted: two turns that both look before either sets its share
        aside would spend it twice.  `outstanding` is asked for whenever it matters.
        """
        ...

    def release(self, turn_id: TurnId) -> None:
        """The turn is over."""
        ...


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn stops by itself."""

    max_turns: Annotated[int, Meta(ge=1)] = 100
    """Maximum number of model answers in one turn."""
    max_seconds: Annotated[float, Meta(gt=0)] | None = None
    """How long one turn may work; sleep and open questions do not count."""
    max_tool_calls: Annotated[int, Meta(ge=1)] | None = None
    """Maximum number of tool calls in one turn."""
    max_budget_usd: Annotated[float, Meta(gt=0)] | None = None
    """Money for the session."""
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    """Maximum number of tokens for the session."""
    mistakes: int = 3
    """Answers in a row that cannot be acted on."""
    repeats: int = 3
    """The same calls with the same results in a row, before the model is warned.

    As many again and the turn ends.
    """
    retries: Annotated[int, Meta(ge=0)] = 6
    """How often one model call is made again."""
    retry_seconds: float = 300.0
    """How long all waits for one model call may take together."""
    calls: int = 128
    """Tool calls of one answer; the rest is refused."""
    result_characters: int = 32_000
    """What the model sees of one result; the whole text is kept as a blob."""
    repairs: int = 2
    """How often a structured result may be handed in again after one that did not fit."""
    soft_share: Annotated[float, Meta(gt=0, le=1)] = SOFT_SHARE
    """How full the room gets before the line is compacted at the next natural boundary."""
    hard_share: Annotated[float, Meta(gt=0, le=1)] = HARD_SHARE
    """How full it gets before the line is compacted at once."""
    summary_seconds: float = 300.0
    """How long a summary may take, with all its retries."""
    ask_seconds: float | None = None
    """How long a request for permission stays open.

    Then it counts as denied.  None: until it is answered.
    """

    @property
    def has_budget(self) -> bool:
        """Whether money or tokens of the session are limited."""
        return self.max_budget_usd is not None or self.max_tokens is not None


class ToolCallEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a tool call passes on its way, the model's and any other."""

    journal: CallJournal
    tools: Mapping[str, Tool]
    tool_context: Callable[[CallUid], ToolContext]
    gate: PermissionGate
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    limits: TurnLimits = TurnLimits()
    redact: Callable[[str], str] = str
    """Masks secret-shaped text in tool output, before model and log alike."""
    redact_long: Callable[[str], Awaitable[str]] | None = None
    """The same for megabytes, with room for other tasks in between; never cancelled half-way."""
    hooks: TurnHooks | None = None
    """The user's own programs that have a say; None where there are none."""
    moved_ranges: Callable[[], Commit] = lambda: Commit(facts=())
    """What goes on record with a result that was just obtained: ranges that moved with an edit."""
    unreported_changes: Callable[[], tuple[ChangedFile, ...]] = lambda: ()
    """What commands changed that were cancelled before they could report it; given out once."""
    snapshots: SnapshotTaker | None = None
    """Takes the snapshots of the project's files; None where there are none."""
    result_note: Callable[[Iterable[str]], str] | None = None
    """What the model is told, behind a result, about the files that it read or changed; None where
    there is nothing to tell."""
    reach_rules: Callable[[], Awaitable[None]] | None = None
    """Waits until the gate knows the rules that hold; None where it always does."""
    edit_reports: EditReporter | None = None
    """Says what is wrong with edited files; None where no one does."""


class ModelFallback(Protocol):
    """Other models for a turn whose model cannot be reached."""

    @property
    def has_next(self) -> bool:
        """Whether another one is left."""
        ...

    def take_next(self, failed: str) -> str:
        """Go on with the next one, from the next call on; returns its name, empty for none."""
        ...


class ModelEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a model call works with, be it for an answer or for a summary."""

    journal: TurnJournal
    model: Model
    model_name: str
    """`provider:model`, as the log has it."""
    prefix: RenderedPrefix
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    limits: TurnLimits = TurnLimits()
    thinking: ThinkingLevel = "default"
    shared_budget: SharedBudget | None = None
    hooks: TurnHooks | None = None
    """The user's own programs that have a say in compaction; None where there are none."""
    fallback: ModelFallback | None = None
    """Models to go on with when this one cannot be reached; None where none are configured."""
    request_sent: Callable[[], None] = do_nothing
    """Called when a request is on its way to the model."""

    def room_level(self, tokens: int) -> RoomLevel:
        """How full so many tokens of conversation make the room for it."""
        output = self.model.info.max_output_tokens
        shares = self.limits.soft_share, self.limits.hard_share
        return room_level(tokens, self.window_left, output, shares)

    @property
    def token_ratio(self) -> float:
        """How many tokens the vendor counts where we estimate one, as far as it has told."""
        return self.journal.state.ledger.ratio(self.model_name)

    @property
    def window_left(self) -> int:
        """What the prefix leaves of the model's window for the conversation, in tokens as we
        estimate them.
        """
        # The window is turned into our tokens, and not each estimate into the vendor's: then all
        # that is compared with it is right, whoever estimates it.
        prefix = estimate_text(len(self.prefix.data))
        return max(1, int(self.model.info.context_window / self.token_ratio) - prefix)

    @property
    def is_window_full(self) -> bool:
        """The prefix alone leaves nothing of it."""
        return self.window_left <= 1


class TurnEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts of a turn work with."""

    models: ModelEnvironment
    calls: ToolCallEnvironment
    """What the tool calls of the model's answers pass."""
    submit: SubmitTool | None = None
    """For a structured result: the tool (one of `calls.tools`) that takes it and ends the turn."""
    renewed: Callable[[TurnEnvironment], TurnEnvironment] = lambda environment: environment
    """The same environment if model, thinking and limits are still what the settings say, else one
    with those that they say now.

    Raises `WeftError` when there is no such model any more, or no key for it.
    """
    notes: Callable[[Sequence[Fact], PromptPrefix], Sequence[Fact]] = lambda noted, prefix: ()
    """What the model has to be told before its next call, besides what is noted: that its
    environment has changed.
    """
    submitted: Callable[[SessionState, Any], Sequence[Fact]] | None = None
    """Where a structured result is not the end of the turn: the facts that stand in the place of
    the end.
    """

    @property
    def journal(self) -> TurnJournal:
        return self.models.journal
