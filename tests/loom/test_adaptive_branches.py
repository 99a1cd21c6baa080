"""Branches that begin where a model was undecided, and races that stop by a rule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.loom_views import events_of, scripted, view_of
from tests.support.world import World
from weft.errors import UsageError
from weft.events import TokenReceived
from weft.loom import GenerationComplete, GenerationEvent
from weft.loom.boundary_repair import RepairedText
from weft.loom.branches.adaptive_branches import branch_starts, whole_text
from weft.loom.branches.token_scores import TokenScores, text_with_alternative
from weft.messages import Usage
from weft.providers import (
    ModelInfo,
    ModelRequest,
    ScoredPiece,
    StreamEvent,
    StreamFinished,
    TextPiece,
    TokenLogprob,
    UsageSeen,
)
from weft.providers.script import SayText, Spend, Stall

pytestmark = pytest.mark.anyio


def token(text: str, other: str = "", gap: float = 0.1) -> TokenLogprob:
    """A token, and what could as well have stood there."""
    others = ((text, -0.2), (other, -0.2 - gap)) if other else ((text, -0.2),)
    return TokenLogprob(text, -0.2, others)


class UndecidedModel:
    """A model that reports its tokens; what it writes depends on the last word it is shown."""

    def __init__(self, **answers: Sequence[TokenLogprob]) -> None:
        self.info = ModelInfo(provider="scripted", name="undecided")
        self._answers = answers
        self.shown: list[str] = []
        self.asked: list[int | None] = []
        """How many alternatives of each token, by request."""
        self.fails = 0

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        part = request.messages[-1].parts[0]  # type: ignore[union-attr] # a message of the user
        self.shown.append(part.text)  # type: ignore[union-attr] # a text
        self.asked.append(request.logprobs)
        yield self._pieces(self._answers[self.shown[-1].split()[-1]])

    async def _pieces(self, tokens: Sequence[TokenLogprob]) -> AsyncIterator[StreamEvent]:
        self.fails -= 1
        if self.fails == 0:
            raise RuntimeError
        for each in tokens:
            # As a vendor does: what can be cancelled waits.
            await anyio.lowlevel.checkpoint()
            yield ScoredPiece(each.text, (each,))
        yield StreamFinished()


def complete(events: list[GenerationEvent]) -> GenerationComplete:
    assert isinstance(events[-1], GenerationComplete)
    return events[-1]


TALE = (token("there"), token(" was", " lived", 0.05), token(" a"), token(" fox", " crow", 0.3))
LIVED = (token("in"), token(" peace"))
CROW = (token("there"),)


async def test_branches_begin_where_the_model_was_undecided(world: World) -> None:
    model = UndecidedModel(time=TALE, lived=LIVED, crow=CROW)
    async with world.open() as app:
        view = await view_of(app, text="Once upon a time")
        view.set_model(model)
        view.set_n_branches(3)
        events = await events_of(view.generate(adaptive=True))
        first, second, third = complete(events).new_nodes
        assert first.text == " there was a fox"
        # The least decided place first, then the next.
        assert second.text == " there lived in peace"
        assert third.text == " there was a crow there"
        assert (second.metadata["branched_from"], second.metadata["token"]) == (first.id, 1)
        assert len({node.parent_id for node in (first, second, third)}) == 1
        # Without the tree's asking for them, they are asked for.
        assert view.tree_settings().logprobs == 0
        assert model.asked == [2, 2, 2]
        # What is shared was sent as text and not written again.
        assert [shown.split()[-1] for shown in model.shown] == ["time", "lived", "crow"]
        assert second.tokens is not None
        assert [each.text for each in second.tokens] == ["there", " lived", "in", " peace"]
        # A token of it is branched at again.
        other = view.branch_at_token(third.id, 1)
        assert other.text == " there lived"


async def test_streams_of_such_branches_show_what_they_share(plain_world: World) -> None:
    async with plain_world.open() as app:
        view = await view_of(app, text="Once upon a time")
        view.set_model(UndecidedModel(time=TALE, lived=LIVED))
        view.set_n_branches(2)
        shown: dict[str, str] = {}
        done = None
        async for event in view.generate(adaptive=0.1):
            if isinstance(event, GenerationComplete):
                done = event
            elif isinstance(event, TokenReceived):
                shown[event.node_id] = shown.get(event.node_id, "") + event.token
        assert done is not None
        assert shown == {node.id: node.text for node in done.new_nodes}


async def test_without_probabilities_or_doubts_branches_are_independent(
    plain_world: World,
) -> None:
    decided = UndecidedModel(time=[token("there"), token(" was", " lived", 4.0)])
    async with plain_world.open(scripted("plain", " one", " two")) as app:
        view = await view_of(app, {"model": "scripted:plain", "n_branches": 2})
        done = complete(await events_of(view.generate(adaptive=True)))
        assert done.completions == (" one", " two")
        view = await view_of(app, text="Once upon a time")
        view.set_model(decided)
        view.set_n_branches(2)
        done = complete(await events_of(view.generate(adaptive=True)))
        assert done.completions == (" there was", " there was")
        assert "branched_from" not in done.new_nodes[1].metadata
        for wrong in (-1.0, 0.0, 100.0):
            with pytest.raises(UsageError):
                view.generate(adaptive=wrong)


async def test_a_cancel_before_the_others_began_leaves_the_first_alone(world: World) -> None:
    async with world.open() as app:
        view = await view_of(app, text="Once upon a time")
        view.set_model(UndecidedModel(time=TALE, lived=LIVED))
        view.set_n_branches(3)
        async for event in view.generate(adaptive=True):
            if isinstance(event, TokenReceived):
                view.cancel()
        [child] = await app.loom.children(view.root_id)
        assert child.partial
        # Nobody paid for what was never sent.
        assert view.get_state().usage.output_tokens == (child.usage and child.usage.output_tokens)


async def test_where_the_first_fails_the_others_are_independent(plain_world: World) -> None:
    model = UndecidedModel(time=TALE)
    model.fails = 1
    async with plain_world.open() as app:
        view = await view_of(app, text="Once upon a time")
        view.set_model(model)
        view.set_n_branches(2)
        done = complete(await events_of(view.generate(adaptive=True)))
        assert done.completions == (" there was a fox",)
        assert [failure.category for failure in done.failures] == ["provider_error"]


@given(st.lists(st.tuples(st.text(min_size=1, max_size=4), st.text(max_size=4)), max_size=8))
def test_a_shared_beginning_has_the_tokens_of_its_text(words: list[tuple[str, str]]) -> None:
    tokens = [token(text, other) for text, other in words]
    raw = "".join(each.text for each in tokens)
    for start in branch_starts(tokens, RepairedText(raw), 1.0, 8):
        whole = whole_text(start, RepairedText("!"))
        assert whole.text == start.text + "!"
        own = [*start.tokens, TokenLogprob("!", 0.0, (("!", 0.0), ("?", -1.0)))]
        scores = TokenScores(tuple(own), whole.edits)
        assert text_with_alternative(whole.text, scores, len(own) - 1, None) == start.text + "?"


# --- races ------------------------------------------------------------------------------------


async def test_a_race_stops_when_so_many_are_done(plain_world: World) -> None:
    slow = scripted("slow", [SayText(text=" late"), Stall(gate="never")])
    async with plain_world.open(scripted("a", " one", " two"), slow) as app:
        view = await view_of(
            app, {"model": "scripted:a", "n_branches": 2}, {"model": "scripted:slow"}
        )
        done = complete(await events_of(view.generate(stop_when="2 done")))
        assert done.reason == "stopped"
        assert {" one", " two"} <= {node.text for node in done.new_nodes}


class DearModel:
    """A model that says at once what its answer costs, and goes on for ever."""

    info = ModelInfo(provider="scripted", name="dear")

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        yield self._pieces()

    async def _pieces(self) -> AsyncIterator[StreamEvent]:
        yield UsageSeen(Usage(output_tokens=1, cost_usd=0.75))
        while True:
            yield TextPiece(" on")


async def test_a_race_stops_at_its_cost_while_all_still_write(plain_world: World) -> None:
    async with plain_world.open() as app:
        view = await view_of(app)
        view.set_model(DearModel())
        view.set_max_tokens(8_000)
        done = (await events_of(view.generate(stop_when="9 done, $0.50")))[-1]
        [node] = await app.loom.children(view.root_id)
        assert node.partial
        assert len(node.text) < 1_000
        assert getattr(done, "reason", "stopped") == "stopped"


@pytest.mark.parametrize("rule", ["soon", "0 done", "-1 done", "$nan", "$-1", "first second", "$"])
async def test_a_rule_that_is_none_is_refused(rule: str, plain_world: World) -> None:
    async with plain_world.open(scripted("a", Spend(usage=Usage(output_tokens=1)))) as app:
        view = await view_of(app)
        with pytest.raises(UsageError):
            view.generate(stop_when=rule)
