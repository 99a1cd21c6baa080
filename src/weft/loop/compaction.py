"""Compacting: the older part of a line is told to the model as a summary from now on.

The log is untouched: a compaction is one more fact about a line, and can be undone.  It happens on demand, by itself before a request
would not fit, and once after a vendor said that it did not.  It is never made twice for the same content: the cut must lie beyond
the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import msgspec

from weft.context import (
    INSTRUCTIONS,
    KEPT_SHARE,
    Entry,
    carried,
    choose_cut,
    estimate_text,
    room,
    transcript,
)
from weft.errors import ContextTooLong
from weft.events import Compacted, ErrorRaised, Fact, UsageRecorded
from weft.faults import Boundary
from weft.ids import NodeId, TurnId, new_id, new_node_id
from weft.loop.answer import Answer
from weft.loop.base import Commit, ContextLine, TurnEnvironment
from weft.loop.budget import refusal
from weft.loop.hooks import Hooks, Trigger
from weft.loop.notebook import Notebook
from weft.loop.request import BrokenAnswer, Request
from weft.messages import NOTHING_USED, Said, Text, Usage
from weft.providers import ModelRequest
from weft.state import SessionState

_COMPACT = Boundary("loop.compact")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be summarised, and up to where."""

    entries: tuple[Entry, ...]
    upto: NodeId
    before: str
    """The summary that stands there already."""


def plan(
    line: ContextLine, window: int, most_output: int, *, all_of_it: bool = False
) -> Plan | None:
    """What to compact of a line; None when there is nothing (new) to gain."""
    space = room(window, most_output)
    cut = len(line.entries) if all_of_it else choose_cut(line.entries, int(space * KEPT_SHARE))
    if cut <= 0:
        return None
    return Plan(
        entries=tuple(line.entries[:cut]),
        upto=line.entries[cut - 1].node.id,
        before=line.summary,
    )


async def agreed(
    hooks: Hooks | None, trigger: Trigger, focus: str = ""
) -> tuple[str, Sequence[Fact]]:
    """Ask the hooks: why there is to be no compaction (empty when there may be one), and what they want on record."""
    if hooks is None:
        return "", ()
    ruling = await hooks.before_compaction(trigger, focus)
    return (ruling.reason if ruling.verdict == "deny" else ""), ruling.facts


class NotSummarised(Exception):
    """The model could not be made to write a summary; `facts` say what that cost."""

    def __init__(self, broken: BrokenAnswer, facts: Sequence[Fact]) -> None:
        super().__init__(str(broken))
        self.facts = tuple(facts)


async def summarise(
    environment: TurnEnvironment,
    wanted: Plan,
    focus: str,
    turn_id: TurnId | None,
    *,
    trigger: Trigger,
) -> list[Fact]:
    """Have the model write the summary; returns the facts that make it count.

    Raises:
        NotSummarised: the model could not be made to write it.
    """
    info = environment.model.info
    space = room(info.context_window, info.max_output_tokens) // 2
    used: list[Fact] = []
    while True:
        told = transcript(wanted.entries, space, wanted.before)
        request = Request(environment, new_node_id(environment.clock.now()), is_quiet=True)
        try:
            answer = await request.answer(_model_request(environment, told, focus))
        except BrokenAnswer as broken:
            lost = [*request.discarded, *([broken.partial] if broken.partial.usage else [])]
            used += [_used(environment, each, told, turn_id) for each in lost]
            if not isinstance(broken.error, ContextTooLong) or space < 1_000:
                raise NotSummarised(broken, used) from broken
            space //= 2
            continue
        used += [_used(environment, each, told, turn_id) for each in (*request.discarded, answer)]
        break
    text = _said(answer).strip() or "(The model gave no summary.)"
    blocks = carried(environment.journal.state, wanted.entries)
    compacted = Compacted(
        upto=wanted.upto,
        summary=text,
        carried=blocks,
        tokens_before=estimate_text(len(told)),
        tokens_after=estimate_text(len(text) + sum(map(len, blocks))),
    )
    return [*used, *await _shown(environment.hooks, trigger, compacted)]


async def _shown(hooks: Hooks | None, trigger: Trigger, compacted: Compacted) -> list[Fact]:
    """Show the summary to the hooks; what they add is carried with it."""
    if hooks is None:
        return [compacted]
    ruling = await hooks.after_compaction(trigger, compacted.summary)
    if ruling.context:
        carried = (*compacted.carried, ruling.context)
        compacted = msgspec.structs.replace(compacted, carried=carried)
    return [compacted, *ruling.facts]


def _used(
    environment: TurnEnvironment, answer: Answer, told: str, turn_id: TurnId | None
) -> UsageRecorded:
    usage = answer.usage or Usage(
        input_tokens=estimate_text(len(told)), output_tokens=estimate_text(len(_said(answer)))
    )
    if usage.cost_usd is None:
        usage = msgspec.structs.replace(usage, cost_usd=environment.model.info.cost(usage))
    return UsageRecorded(
        usage=usage,
        model=environment.model_name,
        purpose="compaction",
        estimated=answer.usage is None,
        turn_id=turn_id,
    )


def _said(answer: Answer) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Text))


def _model_request(environment: TurnEnvironment, told: str, focus: str) -> ModelRequest:
    asked = "Write the handover of this conversation."
    if focus:
        asked += f" Pay special attention to: {focus}"
    return ModelRequest(
        model=environment.model.info.name,
        system=INSTRUCTIONS,
        messages=(
            Said(
                role="user",
                parts=(Text(text=f"<conversation>\n{told}\n</conversation>\n\n{asked}"),),
            ),
        ),
        session_id=environment.journal.state.session_id,
    )


class Compaction:
    """A compaction that a person asked for; runs where a turn would."""

    def __init__(self, environment: TurnEnvironment, focus: str) -> None:
        self._env = environment
        self._focus = focus
        self._notebook = Notebook(environment.journal)
        self.turn_id = TurnId(new_id("cmp", environment.clock.now()))
        self.scope = anyio.CancelScope()
        self.abort_reason = ""

    async def run(self) -> None:
        """Write the summary and commit it; whatever happens ends in one append, so that nobody waits in vain."""
        facts: Sequence[Fact] = ()
        with self.scope:
            facts = await self._work()
        if self.scope.cancelled_caught:
            facts = [ErrorRaised(message="it was stopped", where="compaction")]
        self._notebook.note(*facts)
        await self._notebook.commit(_COMPACT)

    def settled(self, state: SessionState) -> Commit:
        """What ends it when the model does not let go."""
        return Commit(facts=(ErrorRaised(message="it was stopped", where="compaction"),))

    async def _work(self) -> list[Fact]:
        info = self._env.model.info
        line = await self._env.journal.line()
        wanted = plan(line, info.context_window, info.max_output_tokens) or plan(
            line, info.context_window, info.max_output_tokens, all_of_it=True
        )
        if wanted is None:
            return [ErrorRaised(message="there is nothing to compact", where="compaction")]
        if why := self._beyond_budget():
            return [ErrorRaised(message=why, where="compaction")]
        self._env.journal.status("thinking")
        refused, told = await agreed(self._env.hooks, "manual", self._focus)
        if refused:
            return [*told, ErrorRaised(message=refused, where="compaction")]
        try:
            facts = await summarise(self._env, wanted, self._focus, None, trigger="manual")
        except NotSummarised as failure:
            facts = [*failure.facts, ErrorRaised(message=str(failure), where="compaction")]
        return [*told, *facts]

    def _beyond_budget(self) -> str | None:
        """Why there is no money or tokens left for a summary; it is a model call like any other."""
        is_priced = self._env.model.info.cost(Usage()) is not None
        total = self._env.journal.state.ledger.total
        why = refusal(self._env.limits, total, model=self._env.model_name, is_priced=is_priced)
        purse = self._env.purse
        if why is not None or purse is None or not purse.is_limited:
            return why
        return purse.refuses(self.turn_id, NOTHING_USED, is_priced=is_priced)
