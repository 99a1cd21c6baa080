"""Branches of a node, written by several models at once.

The work runs in a task of its own: tokens reach the consumer through a queue, and a consumer that
leaves cancels it.  Every branch has its node id before its first token.  What comes is kept beside
the log as a draft, and each branch that ends is one commit; whatever a crash leaves becomes partial
nodes (`weft.loop.lost_branches`).
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias

import anyio
import anyio.lowlevel
import msgspec

from weft.context import estimate_text
from weft.errors import (
    AuthFailed,
    ContextTooLong,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRefused,
    UsageError,
    WeftError,
)
from weft.events import (
    BranchesEnded,
    BranchesStarted,
    BranchFailed,
    BranchSlot,
    Fact,
    NewMessage,
    SubtreeDeleted,
    TextDelta,
    TokenReceived,
    UsageRecorded,
)
from weft.ids import BlobId, NodeId, new_id, new_text_id
from weft.loom.branches.adaptive_branches import (
    BranchStart,
    branch_starts,
    read_gap,
    whole_text,
)
from weft.loom.branches.branch_request import BranchStream, branch_request, prompt_tokens
from weft.loom.branches.foreign_errors import foreign_category, foreign_status
from weft.loom.branches.generation_events import (
    BranchFailure,
    ClosingEvent,
    FailureCategory,
    GenerationCancelled,
    GenerationComplete,
    GenerationError,
    GenerationEvent,
)
from weft.loom.branches.token_scores import stored_scores
from weft.loom.branches.tree_name import name_tree, wants_name
from weft.loom.continuation import ContinuationOptions, Strategy, choose_strategy
from weft.loom.model_plan import MOST_BRANCHES, ModelPlanEntry
from weft.loom.node import LOGPROBS
from weft.loom.trees.tree_edits import text_node
from weft.loop import Commit, TurnLimits, wait_before_retry, with_retry_time
from weft.messages import NOTHING_USED, Node, Usage
from weft.providers import (
    Model,
    ModelRequest,
    ScoredPiece,
    StreamEvent,
    StreamFinished,
    TextPiece,
    TokenLogprob,
    UsageSeen,
)

if TYPE_CHECKING:
    from weft.loom.host import LoomHost
    from weft.loom.trees.loom_tree import LoomTree

logger = logging.getLogger(__name__)

DRAFT_SECONDS: Final = 0.25
"""How often what has come is kept beside the log."""
PIECES_BETWEEN_SUMS: Final = 16
"""Pieces of text between two looks at what a race has cost."""
RETRIES: Final = 2
"""How often a branch is asked for again of which nothing has come."""
SETTLE_SECONDS: Final = 5.0
"""How long a program that closes waits for what has come to be stored; it is in drafts, too."""

EndReason: TypeAlias = Literal["complete", "failed", "cancelled", "stopped", "interrupted"]


class GeneratingView(Protocol):
    """The view that a generation is asked for by."""

    @property
    def loom_tree(self) -> LoomTree: ...

    @property
    def current_node_id(self) -> NodeId:
        """Where it stands."""
        ...

    @property
    def model_plan(self) -> Sequence[ModelPlanEntry]: ...

    def begun(self, run: Any) -> None:
        """A generation of this view has begun, or (None) ended."""
        ...

    def show_new(self, source: NodeId, new: Sequence[NodeId]) -> None:
        """The nodes that came of it."""
        ...


class StopRule(msgspec.Struct, frozen=True):
    """When a race is over before all branches are."""

    done: int | None = None
    """So many are finished."""
    cost_usd: float | None = None

    @classmethod
    def read(cls, text: str) -> StopRule:
        """A rule as it was written: `first`, `2 done`, `$0.50`, several of them with commas between
        (the one that holds first ends it), or nothing.

        Raises:
            UsageError: it is none of these.
        """
        done: int | None = None
        cost: float | None = None
        for part in filter(None, (each.strip() for each in text.split(","))):
            if part == "first":
                done = 1
            elif (number := part.removesuffix(" done")) != part and number.isdecimal():
                done = int(number)
            else:
                cost = _dollars(part)
        if done == 0:
            raise UsageError("a race that stops when 0 are done has no branches")
        return cls(done=done, cost_usd=cost)


def _dollars(text: str) -> float:
    try:
        cost = float(text.removeprefix("$"))
    except ValueError:
        cost = math.nan
    if not 0 <= cost < math.inf:
        raise UsageError(
            f"{text!r} is no rule to stop by; write 'first', '2 done' or '$0.50'"
        ) from None
    return cost


class _Branch:
    """One branch on its way."""

    def __init__(self, number: int, slot: BranchSlot, model_idx: int, stream: BranchStream) -> None:
        self.number = number
        self.slot = slot
        self.model_idx = model_idx
        self.stream = stream
        self.strategy: Strategy = "system"
        self.model: Model | None = None
        self.pieces: list[str] = []
        self.length = 0
        self.unsaved: list[str] = []
        self.tokens: list[TokenLogprob] = []
        """With their probabilities, where the model reports them."""
        self.usage: Usage | None = None
        self.is_out = False
        """It was sent: the vendor bills it, whatever has come of it."""
        self.is_settled = False
        """Its end is on record."""
        self.is_whole = False
        self.failure: BranchFailure | None = None
        self.lead: _Branch | None = None
        """The branch that this one shares a beginning with, if there is a place for it."""
        self.start: BranchStart | None = None
        self.is_written = anyio.Event()
        """Nothing more comes of it."""

    @property
    def own_length(self) -> int:
        """Characters that were written for this branch itself."""
        return self.length - (len(self.start.text) if self.start is not None else 0)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class GenerationRun:
    """An async iterator over the events of one generation.  Leaving it at any point is safe."""

    def __init__(self, work: GenerationWork) -> None:
        self._work = work
        self._has_begun = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> GenerationEvent:
        self.begin()
        return await self._work.next()

    def begin(self) -> None:
        """Begin now, where the view stands, and not when the first event is asked for."""
        if not self._has_begun:
            self._has_begun = True
            self._work.begin()

    async def aclose(self) -> None:
        """Cancel what runs, and wait until what has come of it is stored."""
        self._work.cancel(keep_partial=True)
        if self._has_begun:
            await self._work.ended.wait()

    async def settled(self) -> None:
        """Wait for what follows the closing event: a long tree without a name is named.  A program
        that ends sooner has paid for a name that is not stored.
        """
        if self._has_begun:
            await self._work.settled.wait()

    def __del__(self) -> None:
        # A consumer that left the loop: nothing else would ever end the work.
        if self._has_begun:
            self._work.cancel(keep_partial=True)

    def cancel(self, *, keep_partial: bool = True) -> None:
        """Stop at once."""
        self._work.cancel(keep_partial=keep_partial)


def run_branches(
    view: GeneratingView,
    max_context_tokens: int | None,
    *,
    stop_when: str,
    adaptive: bool | float,
    plan: Sequence[ModelPlanEntry] | None = None,
) -> GenerationRun:
    """The generation that a view asks for; it begins when its first event is asked for.

    `plan` holds in the place of the tree's.
    """
    rule, gap = StopRule.read(stop_when), read_gap(adaptive)
    return GenerationRun(GenerationWork(view, max_context_tokens, rule, gap, plan))


class _Refused(Exception):
    """No branch was begun."""

    def __init__(self, category: FailureCategory, sentence: str) -> None:
        super().__init__(sentence)
        self.category = category


class GenerationWork:
    """The branches of one generation."""

    def __init__(
        self,
        view: GeneratingView,
        max_context: int | None,
        rule: StopRule,
        gap: float | None,
        plan: Sequence[ModelPlanEntry] | None = None,
    ) -> None:
        self._given_plan = plan
        self._view = view
        self._gap = gap
        self._tree = view.loom_tree
        self._host: LoomHost = view.loom_tree.host
        self._max_context = max_context
        self._rule = rule
        self._queue: deque[GenerationEvent] = deque()
        self._news = anyio.Event()
        self._scope = anyio.CancelScope()
        self._is_cancelled = False
        self._is_stopped = False
        self._pieces = 0
        self._keeps_partial = True
        self.ended = anyio.Event()
        self.settled = anyio.Event()
        """Nothing is done for it any more."""
        self._is_over = False
        self._branches: list[_Branch] = []
        self._text = ""
        self._context = ""
        self.gen_id = ""
        self._source = self._here()
        self._source_revision = 0
        self._blobs: dict[BlobId, bytes] = {}
        """What the next commit stores beside its facts."""
        self._input_tokens = 0

    def _here(self) -> NodeId:
        return self._tree.resolve(self._view.current_node_id)

    # -- the consumer

    def begin(self) -> None:
        self._source = self._here()
        self._view.begun(self)
        self._tree.works.add(self)
        self._host.start(self._run, f"branches of {self._source}")

    async def next(self) -> GenerationEvent:
        while not self._queue:
            if self._is_over:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        return self._queue.popleft()

    def _put(self, event: GenerationEvent) -> None:
        self._queue.append(event)
        if not self._news.is_set():
            self._news.set()

    def cancel(self, *, keep_partial: bool) -> None:
        """Stop at once."""
        if not self._is_over:
            self._is_cancelled, self._keeps_partial = True, keep_partial
            self._scope.cancel()

    # -- the work

    async def _run(self) -> None:
        closing: ClosingEvent | None = None
        try:
            closing = await self._generate()
        except _Refused as refused:
            closing = GenerationError(error=str(refused), category=refused.category)
        except WeftError as error:
            # The log could not be written: what was paid for is in drafts, as after a crash.
            logger.exception("a generation failed", extra={"generation": self.gen_id})
            closing = GenerationError(error=str(error), category="provider_error")
        finally:
            self._tree.live_generations.discard(self.gen_id)
            self._tree.works.discard(self)
            self._view.begun(None)
            self._is_over = True
            self._put(GenerationCancelled() if closing is None else closing)
            self.ended.set()
            if closing is None:
                self.settled.set()
        try:
            if isinstance(closing, GenerationComplete):
                await self._name(closing)
        finally:
            self.settled.set()

    async def _name(self, done: GenerationComplete) -> None:
        """Have a tree named that has grown long and has no name."""
        whole = self._text + done.completions[0]
        if wants_name(self._tree, whole):
            try:
                await name_tree(self._tree, self._host, done.new_nodes[0].model or "", whole)
            except WeftError:
                logger.exception("a tree was not named", extra={"generation": self.gen_id})

    async def _generate(self) -> ClosingEvent:
        self._plan()
        await self._start()
        with self._scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._save_drafts)
                async with anyio.create_task_group() as branches:
                    for branch in self._branches:
                        branches.start_soon(self._grow, branch)
                group.cancel_scope.cancel()
        # Shielded: a program that closes must still store what was paid for, if it can.
        with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_SECONDS):
            return await self._finish()
        raise WeftError("what had come of the branches could not be stored in time")

    def _plan(self) -> None:
        """Slots for all branches of all enabled models.

        Raises:
            _Refused: there are none, or the text is too long, or the money is spent.
        """
        tree = self._tree
        plan = self._view.model_plan if self._given_plan is None else self._given_plan
        entries = [each for each in plan if each.enabled and each.model]
        if not entries:
            raise _Refused("no_models", "no model is enabled; choose one")
        self._text = tree.sent_text(self._source)
        self._context = tree.context_of(self._source)
        self._input_tokens = estimate_text(len(self._text) + len(self._context))
        self._check_budget()
        self.gen_id = new_id("gen", self._host.now())
        for model_idx, entry in enumerate(entries):
            lead: _Branch | None = None
            for _ in range(entry.n_branches):
                if len(self._branches) < MOST_BRANCHES:
                    self._add_slot(entry, model_idx)
                    self._branches[-1].lead = lead
                    lead = lead or (self._branches[-1] if self._gap is not None else None)
        self._check_size()

    def _add_slot(self, entry: ModelPlanEntry, model_idx: int) -> None:
        number = len(self._branches)
        strategy: Strategy = "system"
        model = None
        try:
            model = self._host.model(entry.model)
            strategy = choose_strategy(model.info, entry.strategy or None)
        except WeftError as error:
            problem: WeftError | None = error
        else:
            problem = None
        slot = BranchSlot(
            node_id=new_text_id(),
            model=entry.model,
            strategy=strategy,
            max_tokens=entry.max_tokens,
            temperature=entry.temperature,
        )
        branch = _Branch(
            number, slot, model_idx, BranchStream(self._text, strategy, entry.max_tokens)
        )
        branch.model, branch.strategy = model, strategy
        if problem is not None:
            branch.failure = self._failure(branch, problem)
        self._branches.append(branch)

    def _check_size(self) -> None:
        """Refuse a prompt that is too long as it would be sent: instructions and context count."""
        most = self._max_context
        for branch in self._branches if most is not None else ():
            size = prompt_tokens(self._request(branch)) if branch.failure is None else 0
            if most is not None and size > most:
                raise _Refused(
                    "context_overflow",
                    f"the prompt of {branch.slot.model} has about {size} tokens, more than the "
                    f"{most} that are allowed",
                )

    def _check_budget(self) -> None:
        budget = self._tree.setting("budget") or {}
        most = budget.get("max_budget_usd") if isinstance(budget, dict) else None
        spent = self._tree.state.ledger.total.cost_usd
        if most is not None and spent is not None and spent >= most:
            raise _Refused("budget", f"${spent:.2f} of ${most:.2f} are spent; raise the budget")

    async def _start(self) -> None:
        self._source_revision = self._tree.require(self._source).revision
        started = BranchesStarted(
            gen_id=self.gen_id,
            source=self._source,
            source_revision=self._source_revision,
            plan=tuple(branch.slot for branch in self._branches),
            input_tokens=self._input_tokens,
        )
        self._tree.live_generations.add(self.gen_id)
        # What a view has written before comes first: the source itself may not be stored yet.
        await self._tree.saved()
        await self._tree.actor.append(lambda state: Commit(facts=(started,)))

    # -- one branch

    async def _grow(self, branch: _Branch) -> None:
        if branch.failure is None:
            try:
                await self._follow_lead(branch)
                await self._ask(branch)
            except WeftError as error:
                branch.failure = self._failure(branch, error)
            # A model of the program's own, or a fault of ours: it hurts this branch alone.
            except Exception as error:
                branch.failure = self._failure(branch, error)
            else:
                branch.is_whole = True
        branch.is_written.set()
        if branch.is_whole and not branch.text.strip():
            branch.is_whole = False
            branch.failure = self._failure(branch, None)
        # Before anything is awaited: a cancel in between must not store it a second time.
        branch.is_settled = True
        try:
            with anyio.CancelScope(shield=True):
                await self._commit(self._ending(branch))
        except WeftError:
            # The others end too, and the last commit of all tries it once more.
            branch.is_settled = False
            self._scope.cancel()
            return
        if self._stops():
            self._stop()

    def _stop(self) -> None:
        self._is_stopped = True
        self._scope.cancel()

    async def _follow_lead(self, branch: _Branch) -> None:
        """Wait for the branch that another one shares a beginning with, and take that over.

        Where its model reports no tokens, or was decided everywhere, both are independent.
        """
        lead = branch.lead
        if lead is None or self._gap is None:
            return
        await lead.is_written.wait()
        followers = [each for each in self._branches if each.lead is lead]
        if not lead.is_whole or not lead.tokens:
            return
        starts = branch_starts(lead.tokens, lead.stream.result(), self._gap, len(followers))
        number = followers.index(branch)
        if number < len(starts):
            branch.start = starts[number]
            self._take(branch, branch.start.text)

    def _before(self, branch: _Branch) -> str:
        """The text that a branch goes on from."""
        return self._text if branch.start is None else self._text + branch.start.text

    def _request(self, branch: _Branch) -> ModelRequest:
        assert branch.model is not None
        logprobs = int(self._tree.setting("logprobs", 0))
        if self._gap is not None:
            logprobs = max(logprobs, 2)
        return branch_request(
            branch.model.info,
            branch.strategy,
            self._before(branch),
            ContinuationOptions(
                max_tokens=_room(branch),
                temperature=branch.slot.temperature,
                context=self._context,
                seed=branch.slot.seed,
                logprobs=logprobs or None,
                session_id=self._tree.port.session_id,
            ),
        )

    async def _ask(self, branch: _Branch) -> None:
        assert branch.model is not None
        request = self._request(branch)
        retries, waited, limits = 0, 0.0, TurnLimits(retries=RETRIES)
        while True:
            # Anew for each try: the one before may hold back a word that nobody saw.
            branch.stream = BranchStream(self._before(branch), branch.strategy, _room(branch))
            branch.tokens.clear()
            try:
                branch.is_out = True
                async with branch.model.stream(request) as events:
                    finished = await self._read(branch, events)
                if finished is None and not branch.stream.is_full:
                    raise ProviderUnavailable("the model's answer broke off")
                was_cut = finished is None or finished.reason == "length"
                self._take(branch, branch.stream.finish(was_cut=was_cut))
                return
            except ProviderError as error:
                wait = wait_before_retry(error, retries=retries, waited=waited, limits=limits)
                # What was shown stays: another try would write something else.
                if branch.own_length or wait is None:
                    raise with_retry_time(error, self._host.now()) from error
                retries, waited = retries + 1, waited + wait
                branch.is_out = False
            await self._host.sleep(wait)

    async def _read(
        self, branch: _Branch, events: AsyncIterator[StreamEvent]
    ) -> StreamFinished | None:
        """Take the text in, up to the branch's limit; returns what the vendor says of the end."""
        async for event in events:
            # A piece may come with the probabilities of its tokens: it is text all the same.
            if isinstance(event, TextPiece):
                if isinstance(event, ScoredPiece):
                    branch.tokens += event.tokens
                self._take(branch, branch.stream.feed(event.text))
                if branch.stream.is_full:
                    return None
                self._pieces += 1
                # What the branches cost is a sum over all of them.
                if not self._pieces % PIECES_BETWEEN_SUMS and self._is_spent():
                    self._stop()
                    # Now, and not where the model next waits for something.
                    await anyio.lowlevel.checkpoint()
            elif type(event) is UsageSeen:
                branch.usage = event.usage
            elif type(event) is StreamFinished:
                return event
        return None

    def _take(self, branch: _Branch, text: str) -> None:
        if not text:
            return
        slot, log = branch.slot, self._tree.actor.log
        log.signal(TextDelta(node_id=slot.node_id, offset=branch.length, text=text))
        branch.pieces.append(text)
        branch.unsaved.append(text)
        is_first, branch.length = not branch.length, branch.length + len(text)
        if is_first:
            # What was shown of a branch at all is kept at once; the rest every now and then.
            self._flush()
        self._put(
            TokenReceived(
                branch_idx=branch.number,
                token=text,
                model=slot.model,
                model_idx=branch.model_idx,
                node_id=slot.node_id,
            )
        )

    async def _save_drafts(self) -> None:
        while True:
            await anyio.sleep(DRAFT_SECONDS)
            self._flush()

    def _flush(self) -> None:
        log = self._tree.actor.log
        for branch in self._branches:
            if branch.unsaved and not branch.is_settled:
                chunk, branch.unsaved = "".join(branch.unsaved), []
                log.save_draft(branch.slot.node_id, "text", chunk, index=0, tool="", restart=False)

    # -- endings

    def _ending(self, branch: _Branch, *, keeps: bool = True) -> list[Fact]:
        """What goes on record of a branch that is over."""
        facts: list[Fact] = []
        # What was held back for the seam belongs to the node, whoever ended the branch.
        self._take(branch, branch.stream.finish(was_cut=False))
        usage = self._used(branch)
        # A beginning that it shares with another is nothing of its own yet.
        has_words = branch.is_whole or branch.own_length > 0
        has_node = bool(branch.text.strip()) and keeps and has_words
        if has_node:
            facts.append(NewMessage(node=self._node(branch, usage), advance=False))
        if branch.is_out:
            facts.append(
                UsageRecorded(
                    usage=usage,
                    model=branch.slot.model,
                    purpose="branch",
                    estimated=branch.usage is None,
                    node=branch.slot.node_id if has_node else None,
                )
            )
        if branch.failure is not None:
            if has_node:
                branch.failure = msgspec.structs.replace(
                    branch.failure, partial_node=branch.slot.node_id
                )
            facts.append(self._failed(branch, branch.failure))
        return facts

    def _node(self, branch: _Branch, usage: Usage) -> Node:
        metadata: dict[str, object] = {"gen_id": self.gen_id, "slot": branch.number}
        if not branch.is_whole:
            metadata["partial"] = True
        written, tokens = branch.stream.result(), tuple(branch.tokens)
        if branch.start is not None and branch.lead is not None:
            written = whole_text(branch.start, written)
            tokens = (*branch.start.tokens, *tokens) if tokens else ()
            metadata |= {"branched_from": branch.lead.slot.node_id, "token": branch.start.token}
        if written.is_healed:
            # The text is not letter for letter what the model wrote.
            metadata["healed"] = True
        node = text_node(
            branch.slot.node_id,
            branch.text,
            parent=self._source,
            parent_revision=self._source_revision,
            model=branch.slot.model,
            strategy=branch.slot.strategy,
            max_tokens=branch.slot.max_tokens,
            temperature=branch.slot.temperature,
            metadata=metadata,
            usage=usage,
        )
        if tokens:
            blob_id, data = stored_scores(tokens, written)
            self._blobs[blob_id] = data
            node.metadata[LOGPROBS] = blob_id
        return node

    def _failed(self, branch: _Branch, failure: BranchFailure) -> BranchFailed:
        return BranchFailed(
            gen_id=self.gen_id,
            slot=branch.number,
            category=failure.category,
            status=failure.status,
            incident_id=failure.incident_id,
            sentence=failure.sentence,
        )

    def _used(self, branch: _Branch) -> Usage:
        """What a branch used; estimated where the vendor did not say."""
        if not branch.is_out:
            return NOTHING_USED
        usage = branch.usage or Usage(
            input_tokens=self._input_tokens, output_tokens=estimate_text(branch.own_length)
        )
        if usage.cost_usd is None:
            cost = self._host.cost(branch.slot.model, usage)
            usage = msgspec.structs.replace(usage, cost_usd=cost)
        return usage

    async def _commit(self, facts: Sequence[Fact], ends: Sequence[NodeId] = ()) -> None:
        if facts:
            blobs, self._blobs = self._blobs, {}
            commit = Commit(facts=tuple(facts), blobs=blobs, ends_drafts=tuple(ends))
            stored = await self._tree.actor.append(lambda state: commit)
            for fact in stored:
                self._tree.words.take(fact)

    def _stops(self) -> bool:
        rule = self._rule
        done = sum(branch.is_settled and branch.is_whole for branch in self._branches)
        if rule.done is not None and done >= rule.done:
            return True
        return self._is_spent()

    def _is_spent(self) -> bool:
        """Whether the branches have cost what the race may cost, as far as that is known."""
        rule = self._rule
        if rule.cost_usd is None:
            return False
        costs = [self._used(branch).cost_usd for branch in self._branches if branch.is_out]
        return sum(cost or 0.0 for cost in costs) >= rule.cost_usd

    async def _finish(self) -> ClosingEvent:
        left = [branch for branch in self._branches if not branch.is_settled]
        facts: list[Fact] = []
        for branch in left:
            branch.is_settled = True
            facts += self._ending(branch, keeps=self._keeps_partial)
        whole = [branch for branch in self._branches if branch.is_whole]
        reason = self._reason(bool(whole))
        ended = BranchesEnded(gen_id=self.gen_id, reason=reason)
        await self._commit([*facts, ended], [branch.slot.node_id for branch in left])
        return self._closing(whole)

    def _reason(self, has_whole: bool) -> EndReason:
        if self._is_stopped:
            return "stopped"
        if self._is_cancelled or self._scope.cancel_called:
            return "cancelled"
        return "complete" if has_whole else "failed"

    def _closing(self, whole: Sequence[_Branch]) -> ClosingEvent:
        tree = self._tree
        made = [branch.slot.node_id for branch in self._branches]
        kept = [node for node in made if tree.find(node) is not None]
        failures = tuple(branch.failure for branch in self._branches if branch.failure is not None)
        if kept:
            tree.push_undo(lambda: [SubtreeDeleted(node=node) for node in kept])
            self._view.show_new(self._source, kept)
        if self._is_cancelled and not self._is_stopped:
            return GenerationCancelled(new_nodes=tuple(tree.node(node) for node in kept))
        if not whole:
            return self._no_success(failures)
        failed = {failure.partial_node for failure in failures}
        nodes = tuple(tree.node(node) for node in kept if node not in failed)
        return GenerationComplete(
            completions=tuple(node.text for node in nodes),
            new_nodes=nodes,
            failures=failures,
            reason="stopped" if self._is_stopped else "complete",
        )

    def _no_success(self, failures: Sequence[BranchFailure]) -> GenerationError:
        worst = failures[0]
        return GenerationError(
            error=worst.sentence,
            category=worst.category,
            status=worst.status,
            incident_id=worst.incident_id,
            failures=tuple(failures),
        )

    def _failure(self, branch: _Branch, error: Exception | None) -> BranchFailure:
        incident = new_id("inc", self._host.now())
        category: FailureCategory = "empty_response" if error is None else category_of(error)
        sentence = "the model wrote nothing" if error is None else str(error)
        is_unforeseen = error is not None and not isinstance(error, WeftError)
        if is_unforeseen:
            # Its words were not written for users, and may say anything.
            sentence = f"the model failed unexpectedly; the log has the details under {incident}"
        logger.warning(
            "a branch failed: %s",
            category,
            extra={"incident": incident, "model": branch.slot.model, "generation": self.gen_id},
            exc_info=error if is_unforeseen else None,
        )
        return BranchFailure(
            branch_idx=branch.number,
            model=branch.slot.model,
            category=category,
            sentence=sentence,
            status=foreign_status(error),
            incident_id=incident,
        )


def _room(branch: _Branch) -> int:
    """The tokens that a branch may have behind what it shares with another."""
    shared = 0 if branch.start is None else len(branch.start.tokens)
    return max(1, branch.slot.max_tokens - shared)


def category_of(error: Exception) -> FailureCategory:
    """What kind of failure an error is."""
    match error:
        case AuthFailed():
            return "authentication"
        case RateLimited():
            return "rate_limit"
        case ContextTooLong():
            return "context_overflow"
        case ProviderError(timed_out=True):
            return "timeout"
        case ProviderUnavailable(status=None):
            return "network"
        case ProviderUnavailable():
            return "provider_unavailable"
        case RequestRefused() | UsageError():
            return "invalid_request"
        case _:
            return foreign_category(error)
