"""Crash recovery: what an interrupted turn left open, and the facts that settle it.

A turn stands open in the log when its process died.  Several things can be open, and each has one
answer:

- A model call.  The draft beside the log becomes a `partial` node: its text is kept and shown to
  the model, reasoning and half arguments are dropped, the cost is estimated and marked.  One that
  room was still made for was never sent, and costs nothing.
- An intended effect.  If it can be checked (file hashes) it is: done, or not begun.  One that had
  not begun may run again.  Anything else is settled as interrupted, effect unknown, and both the
  model and the user read of it.  It is never run again silently.
- A call that a session of its own works on.  It stays open: the turn attaches to that session
  again, which itself comes back by these same rules.  When the turn does not go on, what the child
  had used is counted all the same.
- A request to the user.  It stays open under its id; the turn offers it again when it gets there.
- A command in the background.  It ended with the program; what is left of it is killed, and both
  the model and the user read of it.

Nothing here waits or reads a disk: the hashes that files have now are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from weft.context import estimate_text
from weft.events import (
    ChildFinished,
    CommandEnd,
    Fact,
    FileTouched,
    FinishReason,
    InputQueued,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    UsageRecorded,
    finish_words,
)
from weft.ids import BlobId, CallUid, EntryId, NodeId, SessionId, new_id
from weft.loop.answer import ModelAnswer
from weft.loop.tool_results import (
    DONE_BEFORE_INTERRUPTION,
    INSIDE_BY_OUTAGE,
    INTERRUPTED,
    INTERRUPTED_BY_OUTAGE,
    INTERRUPTED_INSIDE,
    refused,
)
from weft.loop.turn_facts import answer_node, settle_open_calls, tip_after, usage_recorded
from weft.messages import NOTHING_USED, Text, ToolResult, Usage, clean_text
from weft.state import BackgroundCommand, SessionState

Verdict: TypeAlias = Literal["done", "not_begun", "unknown"]


class PartialDraft(msgspec.Struct, frozen=True, kw_only=True):
    """Text in flight that was found beside the log."""

    node: NodeId
    text: str


class RecoveredCall(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one call that ran in the sandbox."""

    text: str
    """A sentence or two, for the model and for the user."""
    touched: tuple[FileTouched, ...] = ()
    """What it has changed in the project."""
    blobs: Mapping[BlobId, bytes] = {}
    """Contents that `touched` names."""


class RecoveryEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of the work of a dead process."""

    draft: PartialDraft | None = None
    hashes: Mapping[str, str] = {}
    """The hash that each file of `hashes_needed` has now."""
    cost: Callable[[str, Usage], float | None] = lambda model, usage: None
    """What so much use of a model costs, as far as its price is known."""
    children: Mapping[SessionId, Mapping[str, Usage]] = {}
    """What each child of `unsettled_children` has used in all, by model."""
    modes: Mapping[str, int] = {}
    """The mode that each file of `hashes_needed` has now."""
    touched: tuple[FileTouched, ...] = ()
    """What calls changed, or may have, before they were interrupted.

    Those of no call belong to the last one.
    """
    blobs: Mapping[BlobId, bytes] = {}
    """Contents that `touched` names."""
    remains: Mapping[CallUid, str] = {}
    """What is known of calls that ran in the sandbox, a sentence or two for each.

    What they touched is among `touched`.
    """
    by_outage: bool = False
    """The program has not ended: its store was out of reach."""
    not_begun: Container[CallUid] = frozenset()
    """Calls that this very program did not begin, for their intents could not be stored at once."""


def hashes_needed(state: SessionState) -> set[str]:
    """The files whose present hash would settle a doubt."""
    return {
        path
        for intent in state.turn.intents.values()
        if intent.effect == "checkable"
        for path in (*intent.pre_hashes, *intent.post_hashes)
    }


def unsettled_children(state: SessionState) -> list[SessionId]:
    """The children whose use is not on record, should the turn end here."""
    return state.children.at_work(background=False) if state.turn.open is not None else []


def child_finished(
    state: SessionState,
    child: SessionId,
    reason: FinishReason,
    used: Mapping[str, Usage],
    *,
    text: str = "",
    descendants: int = 0,
) -> ChildFinished:
    """The end of a child: how, and what it has used (in all, by model) beyond what is on record."""
    known = state.children.known.get(child)
    counted = known.counted if known is not None else {}
    models = {
        model: usage - counted[model] if model in counted else usage
        for model, usage in used.items()
    }
    models = {model: usage for model, usage in models.items() if usage.total_tokens}
    return ChildFinished(
        child=child,
        **finish_words(reason),
        usage=sum(models.values(), NOTHING_USED),
        models=models,
        text=text,
        turn_id=known.turn_id if known is not None else None,
        node=known.node if known is not None else None,
        descendants=descendants,
    )


def judge(intent: ToolExecuting, hashes: Mapping[str, str]) -> Verdict:
    """What became of an intended effect, as far as the files can tell."""
    if intent.effect == "pure":
        return "not_begun"
    if intent.effect != "checkable" or not intent.post_hashes:
        return "unknown"
    if all(hashes.get(path) == digest for path, digest in intent.post_hashes.items()):
        return "done"
    # Each file that it would have written must be known to be as before: one that is not known of
    # may have been written.
    if all(hashes.get(path, "?") == intent.pre_hashes.get(path) for path in intent.post_hashes):
        return "not_begun"
    return "unknown"


def settle_interrupted(
    state: SessionState, found: RecoveryEvidence, calls: Container[CallUid] | None = None
) -> list[Fact]:
    """The facts that close what the dead process left in doubt; the turn itself stays open, to go
    on.

    With `calls`, only those, which no turn has made.
    """
    # The answer in progress is the turn's: it is kept and counted once, when the turn is settled.
    facts: list[Fact] = _keep_draft(state, found) if calls is None else []
    unknown: CallUid | None = None
    for intent in state.turn.intents.values():
        # Calls of no node are not the turn's.  One of them may run in this very process, beside a
        # turn that comes back; the others are named by `calls`.
        if not intent.node if calls is None else intent.call_uid not in calls:
            continue
        # A call that a child session works on is not in doubt: the child's own log says how far it
        # came.
        if state.children.for_call(intent.call_uid) is None:
            is_begun = intent.call_uid not in found.not_begun
            verdict: Verdict = judge(intent, found.hashes) if is_begun else "not_begun"
            facts += _settle_intent(state, intent, verdict, found)
            facts += _touched_by(intent, verdict, found)
            unknown = intent.call_uid if verdict == "unknown" else unknown
    # Changes that no call can be named for go to the last effect in doubt: one of the effects made
    # them, and a rewind must be able to find them.
    if unknown is not None:
        facts += [
            msgspec.structs.replace(each, call_uid=each.call_uid or unknown)
            for each in found.touched
        ]
    return facts


def count_lost(
    state: SessionState, calls: Iterable[NodeId], cost: Callable[[str, Usage], float | None]
) -> list[Fact]:
    """What model calls beside the answers of turns used, whose process died before it could say."""
    facts: list[Fact] = []
    for node in calls:
        aside = state.ledger.asides.get(node)
        if aside is None:
            continue
        usage = Usage(input_tokens=aside.input_tokens)
        facts.append(
            UsageRecorded(
                usage=msgspec.structs.replace(usage, cost_usd=cost(aside.model, usage)),
                model=aside.model,
                purpose=aside.purpose,
                estimated=True,
                turn_id=aside.turn_id,
                node=node,
            )
        )
    return facts


def command_ends(
    state: SessionState, left: Mapping[str, BackgroundCommand], now: float
) -> list[Fact]:
    """The ends of background commands that died with their program, for the user and for
    the model.
    """
    facts: list[Fact] = []
    node = tip_after(state, ())
    for name, about in left.items():
        title = " ".join(about.command.split())[:80]
        text = (
            f"The background command {name} ({title}) is over: the program that ran it "
            "was interrupted, and what was left of it was killed. "
            "It was not started again."
        )
        # Queued as steering and not only noted: the model must read of it before it relies on a
        # server that is gone.
        end = CommandEnd(id=name, why="lost")
        facts.append(SystemNote(text=text, level="warning", node=node, background=end))
        facts.append(
            InputQueued(
                entry_id=EntryId(new_id("ent", now)),
                delivery="steering",
                parts=(Text(text=f"[{text}]"),),
            )
        )
    return facts


def end_interrupted(
    state: SessionState, found: RecoveryEvidence, detail: str, reason: FinishReason = "halted"
) -> list[Fact]:
    """The facts that end an interrupted turn where it stands, because something else comes next."""
    if state.turn.open is None:
        return []
    facts = settle_interrupted(state, found)
    facts += [
        child_finished(state, child, "halted", found.children.get(child, {}), text=detail)
        for child in unsettled_children(state)
    ]
    # Calls are closed before the turn: a finished turn with an open call would leave a history that
    # no vendor accepts.
    facts += settle_open_calls(state, facts, by="weft", reason=detail)
    facts.append(
        TurnFinished(
            turn_id=state.turn.open.turn_id,
            **finish_words(reason),
            detail=detail,
            iterations=state.turn.open.iterations,
        )
    )
    return facts


def _keep_draft(state: SessionState, found: RecoveryEvidence) -> list[Fact]:
    turn = state.turn.open
    # A call that is held was never sent: room was made for it first, and nothing was used.
    if turn is None or turn.call is None or turn.call.is_held:
        return []
    call, draft = turn.call, found.draft
    text = clean_text(draft.text) if draft is not None and draft.node == call.node else ""
    facts: list[Fact] = []
    if text.strip():
        partial = ModelAnswer(parts=(Text(text=text),), usage=None, stop=None)
        facts.append(answer_node(state, call.node, partial, model=call.model, usage=None))
    # The lost call has read about all that the last call on record read and wrote.
    read = state.ledger.measured_tokens
    usage = Usage(input_tokens=read, output_tokens=estimate_text(len(text)))
    facts.append(
        usage_recorded(
            msgspec.structs.replace(usage, cost_usd=found.cost(call.model, usage)),
            turn_id=turn.turn_id,
            node=call.node,
            model=call.model,
            estimated=True,
        )
    )
    return facts


def _touched_by(
    intent: ToolExecuting, verdict: Verdict, found: RecoveryEvidence
) -> list[FileTouched]:
    """The files that an interrupted effect changed, or may have: they can be taken back like any
    other.
    """
    if verdict == "not_begun" or intent.effect != "checkable":
        return []
    facts: list[FileTouched] = []
    for path, before in intent.pre_hashes.items():
        now, mode = found.hashes.get(path, ""), found.modes.get(path, 0)
        # As it was before: nothing to take back, whatever the verdict says of the other files.
        if now == before:
            continue
        # Writing a file keeps its mode; of one that is deleted only the intent knows it.
        mode_before = intent.pre_modes.get(path, mode)
        facts.append(
            FileTouched(
                path=path,
                action="created" if not before else "modified" if now else "deleted",
                before=BlobId(before) or None,
                after=BlobId(now) or None,
                call_uid=intent.call_uid,
                mode_before=mode_before if before else 0,
                mode_after=mode,
                is_certain=verdict == "done",
            )
        )
    return facts


def _written(state: SessionState, intent: ToolExecuting) -> dict[str, str]:
    """The versions that the model knows, having written them; none where it knew those before
    not.
    """
    known = state.reads.seen
    befores = {path: before for path, before in intent.pre_hashes.items() if before}
    if any(known.get(path) != before for path, before in befores.items()):
        return {}
    return {path: after for path, after in intent.post_hashes.items() if after}


def _settle_intent(
    state: SessionState, intent: ToolExecuting, verdict: Verdict, found: RecoveryEvidence
) -> list[Fact]:
    if verdict == "not_begun":
        return []
    if verdict == "done":
        data = {"read": seen} if (seen := _written(state, intent)) else {}
        result = ToolResult(call_uid=intent.call_uid, text=DONE_BEFORE_INTERRUPTION, data=data)
        return [ToolComplete(call_uid=intent.call_uid, node=intent.node, result=result)]
    remains = found.remains.get(intent.call_uid, "")
    doubt = remains or "Whether it took effect is unknown."
    holder = state.tree.nodes.get(intent.node)
    is_models = holder is not None and intent.call_uid in holder.calls
    note = SystemNote(
        text=f"{intent.tool_name} ({intent.target or 'no target'}) was interrupted, "
        f"and was not run again. {doubt}",
        level="warning",
        node=intent.node or tip_after(state, ()),
        # The model reads the result of a call of its own.  A call that no answer holds has no place
        # in its context, and the note is all that it can learn of it.
        to_model=not is_models,
    )
    text = INTERRUPTED_BY_OUTAGE if found.by_outage else INTERRUPTED
    if remains:
        text = f"{INSIDE_BY_OUTAGE if found.by_outage else INTERRUPTED_INSIDE} {remains}"
    return [refused(intent.call_uid, intent.node, text, status="interrupted"), note]
