"""Branches that several models write at once: tokens, endings, failures, cancels and crashes."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.support.world import World, crash
from weft.errors import UsageError
from weft.events import TokenReceived
from weft.loom import (
    GenerationCancelled,
    GenerationComplete,
    GenerationError,
    GenerationEvent,
    LoomSession,
)
from weft.messages import Usage
from weft.providers import (
    ModelInfo,
    ModelRequest,
    ScoredPiece,
    StreamEvent,
    StreamFinished,
    TextPiece,
    TokenLogprob,
)
from weft.providers.script import Break, Fail, SayText, Spend, Stall
from weft.testing import ScriptedModel

pytestmark = pytest.mark.anyio

MILLION = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
PRICES = {"price_input": 1.0, "price_output": 2.0}


def model(name: str, *answers: Any, **info: Any) -> ScriptedModel:
    """A scripted model of this name."""
    known = ModelInfo(provider="scripted", name=name, **info)
    return ScriptedModel(list(answers), info=known)


async def view_of(app: Any, *plan: dict[str, Any], text: str = "Once") -> LoomSession:
    """A view of a new tree with this plan."""
    root = await app.loom.create_root(text)
    view: LoomSession = await app.loom.open(root.id)
    view.set_model_plan(list(plan))
    return view


async def events_of(run: AsyncIterator[GenerationEvent]) -> list[GenerationEvent]:
    with anyio.fail_after(20):
        return [event async for event in run]


async def until(holds: Callable[[], bool]) -> None:
    """Let the others run until something holds."""
    with anyio.fail_after(20):
        while not holds():
            await anyio.lowlevel.checkpoint()


async def drafts_of(app: Any, session: Any, number: int) -> None:
    """Wait until so many answers in flight are kept beside the log."""
    found: list[Any] = []
    with anyio.fail_after(20):
        while len(found) < number:
            found = await app.store.load_drafts(session)
            await anyio.lowlevel.checkpoint()


def tokens(events: list[GenerationEvent]) -> dict[int, str]:
    """What came of each branch, by its number."""
    found: dict[int, str] = {}
    for event in events:
        if isinstance(event, TokenReceived):
            found[event.branch_idx] = found.get(event.branch_idx, "") + event.token
    return found


async def test_row_token_received_counts_branches_in_plan_order(world: World) -> None:
    one, two = model("a", " x1", " x2"), model("b", " y")
    async with world.open(one, two) as app:
        view = await view_of(app, {"model": "scripted:a", "n_branches": 2}, {"model": "scripted:b"})
        events = await events_of(view.generate())
        done = events[-1]
        assert isinstance(done, GenerationComplete)
        assert [type(event) for event in events[:-1]] == [TokenReceived] * (len(events) - 1)
        assert tokens(events) == dict(enumerate(done.completions))
        assert [node.model for node in done.new_nodes] == ["scripted:a", "scripted:a", "scripted:b"]
        by_branch = {e.branch_idx: e for e in events if isinstance(e, TokenReceived)}
        assert [by_branch[at].node_id for at in range(3)] == [node.id for node in done.new_nodes]
        assert [by_branch[at].model_idx for at in range(3)] == [0, 0, 1]
        assert {node.parent_id for node in done.new_nodes} == {view.root_id}
        assert done.new_nodes[0].strategy == "system"


async def test_row_complete_is_in_plan_order_whatever_the_order_of_arrival(world: World) -> None:
    slow, fast = model("slow", (Stall(gate="g"), SayText(text=" late"))), model("fast", " soon")
    async with world.open(slow, fast) as app:
        view = await view_of(app, {"model": "scripted:slow"}, {"model": "scripted:fast"})
        run, events = view.generate(), list[GenerationEvent]()
        async for event in run:
            events.append(event)
            if tokens(events).get(1) == " soon":
                slow.gate("g").opened.set()
        done = events[-1]
        assert isinstance(done, GenerationComplete)
        assert done.completions == (" late", " soon")
        # The same everywhere: a number that one screen shows means the same branch in another.
        state = view.get_state()
        assert [child.text for child in state.children] == [" late", " soon"]
        assert state.selected_child_idx == 0
        assert [child.text for child in await app.loom.children(view.root_id)] == [" late", " soon"]
        assert (await app.loom.select_branch(view.root_id, 1)).text == " late"


async def test_children_of_one_generation_stand_together_where_the_first_of_them_came(
    world: World,
) -> None:
    slow, fast = model("slow", (Stall(gate="g"), SayText(text=" late"))), model("fast", " soon")
    async with world.open(slow, fast) as app:
        view = await view_of(app, {"model": "scripted:slow"}, {"model": "scripted:fast"})
        await app.loom.add_child(view.root_id, " before")
        run, events = view.generate(), list[GenerationEvent]()
        async for event in run:
            events.append(event)
            if tokens(events).get(1) == " soon" and not slow.gate("g").opened.is_set():
                await until(lambda: len(view.get_state().children) == 2)
                await app.loom.add_child(view.root_id, " meanwhile")
                slow.gate("g").opened.set()
        texts = [child.text for child in await app.loom.children(view.root_id)]
        assert texts == [" before", " late", " soon", " meanwhile"]


async def test_row_complete_exactly_one_closing_event_ends_every_generation(
    plain_world: World,
) -> None:
    good = model("good", " fine", " fine")
    bad = model("bad", *[(Fail(error="AuthFailed", status=401),)] * 2)
    stuck = model("stuck", (SayText(text=" begun and"), Stall(gate="g")))
    async with plain_world.open(good, bad, stuck) as app:
        for names, closing in (
            (["good"], GenerationComplete),
            (["good", "bad"], GenerationComplete),
            (["bad"], GenerationError),
            (["stuck"], GenerationCancelled),
        ):
            view = await view_of(app, *({"model": f"scripted:{name}"} for name in names))
            events = []
            with anyio.fail_after(20):
                async for event in view.generate():
                    events.append(event)
                    if names == ["stuck"]:
                        view.cancel()
            ends = [type(event) for event in events if not isinstance(event, TokenReceived)]
            assert ends == [closing], names
            assert type(events[-1]) is closing


@pytest.mark.requirement("event:BranchesStarted", "event:BranchFailed", "event:BranchesEnded")
async def test_row_complete_keeps_the_others_when_one_branch_fails(world: World) -> None:
    good, bad = model("good", " fine"), model("bad", (Fail(error="AuthFailed", status=401),))
    async with world.open(good, bad) as app:
        view = await view_of(app, {"model": "scripted:bad"}, {"model": "scripted:good"})
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert done.completions == (" fine",)
        [failure] = done.failures
        assert (failure.branch_idx, failure.model, failure.category, failure.status) == (
            0,
            "scripted:bad",
            "authentication",
            401,
        )
        assert failure.incident_id.startswith("inc_")
        assert failure.sentence
        assert failure.partial_node is None


@pytest.mark.parametrize(
    ("step", "category"),
    [
        (Fail(error="AuthFailed", status=401), "authentication"),
        (Fail(error="RateLimited", status=429), "rate_limit"),
        (Fail(error="RequestRefused", status=400), "invalid_request"),
        (Fail(error="ContextTooLong", status=400), "context_overflow"),
        (Fail(error="ProviderUnavailable", status=503), "provider_unavailable"),
        (Fail(error="ProviderUnavailable"), "network"),
        (Fail(error="ProviderError"), "provider_error"),
        (SayText(text="  \n"), "empty_response"),
    ],
)
async def test_row_error_has_a_category_only_when_no_branch_succeeded(
    plain_world: World, step: Any, category: str
) -> None:
    bad = model("bad", *[(step,)] * 6)
    async with plain_world.open(bad) as app:
        view = await view_of(app, {"model": "scripted:bad", "n_branches": 2})
        closing = (await events_of(view.generate()))[-1]
        assert isinstance(closing, GenerationError)
        assert closing.category == category
        assert [failure.category for failure in closing.failures] == [category] * 2
        assert await app.loom.children(view.root_id) == []


async def test_row_error_no_models_budget_and_too_long_a_text_call_no_model(
    plain_world: World,
) -> None:
    good = model("good", (SayText(text=" x"), Spend(usage=Usage(**MILLION))), **PRICES)
    async with plain_world.open(good) as app:
        view = await view_of(app, {"model": "scripted:good", "enabled": False})
        found = [(await events_of(view.generate()))]
        view.set_model_plan([{"model": "scripted:good"}])
        found.append(await events_of(view.generate(max_context_tokens=0)))
        session = await app.sessions.get(await app.loom.session_of(view.root_id))
        await events_of(view.generate())
        await session.set_budget(usd=0.5)
        found.append(await events_of(view.generate()))
        closings = [events[-1] for events in found]
        assert [len(events) for events in found] == [1, 1, 1]
        assert [getattr(each, "category", "") for each in closings] == [
            "no_models",
            "context_overflow",
            "budget",
        ]
        assert good.request_count == 1


async def test_an_unknown_model_is_a_failure_of_its_branch(plain_world: World) -> None:
    good = model("good", " fine")
    async with plain_world.open(good) as app:
        view = await view_of(app, {"model": "nowhere:x"}, {"model": "scripted:good"})
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert [failure.category for failure in done.failures] == ["invalid_request"]


async def test_row_cancelled_keeps_what_was_paid_for_as_partial_nodes(world: World) -> None:
    slow = model("slow", *[(SayText(text=" half done"), Stall(gate="g"))] * 2)
    async with world.open(slow) as app:
        view = await view_of(app, {"model": "scripted:slow", "n_branches": 2})
        events: list[GenerationEvent] = []
        async for event in view.generate():
            events.append(event)
            if isinstance(event, TokenReceived) and len(tokens(events)) == 2:
                assert view.get_state().is_generating
                view.cancel()
        closing = events[-1]
        assert isinstance(closing, GenerationCancelled)
        assert [(node.text, node.partial) for node in closing.new_nodes] == [
            (" half done", True)
        ] * 2
        # All new ones are selected and shown, the place stays.
        assert view.get_state().current_node_id == view.root_id
        assert await app.store.load_drafts(await app.loom.session_of(view.root_id)) == []
        used = view.get_state().usage
        assert used.output_tokens > 0
        assert not view.get_state().is_generating
        again = view.generate()
        view.cancel()  # before it has begun: it changes nothing
        slow.gate("g").opened.set()
        await again.aclose()


async def test_row_cancelled_can_drop_what_had_come(plain_world: World) -> None:
    slow = model("slow", (SayText(text=" half done"), Stall(gate="g")))
    async with plain_world.open(slow) as app:
        view = await view_of(app, {"model": "scripted:slow"})
        closing: Any = None
        async for event in view.generate():
            closing = event
            view.cancel(keep_partial=False)
        assert closing == GenerationCancelled()
        assert view.get_state().children == ()
        assert view.get_state().usage.output_tokens > 0


async def test_row_cancelled_when_the_consumer_leaves_the_loop(world: World) -> None:
    slow = model("slow", (SayText(text=" half done"), Stall(gate="g")))
    async with world.open(slow) as app:
        view = await view_of(app, {"model": "scripted:slow"})
        async for _ in view.generate():
            break
        gc.collect()
        await until(lambda: not view.get_state().is_generating)
        [node] = await app.loom.children(view.root_id)
        assert (node.text, node.partial) == (" half done", True)


async def test_row_cancelled_by_aclose_in_another_task(world: World) -> None:
    slow = model("slow", (SayText(text=" half done"), Stall(gate="g")))
    async with world.open(slow) as app:
        view = await view_of(app, {"model": "scripted:slow"})
        run = view.generate()
        assert isinstance(await anext(run), TokenReceived)
        async with anyio.create_task_group() as group:
            group.start_soon(run.aclose)
        assert [node.partial for node in await app.loom.children(view.root_id)] == [True]


async def test_row_after_generate_one_child_becomes_current_and_several_leave_the_place(
    world: World,
) -> None:
    writer = model("w", " one", " two", " three")
    async with world.open(writer) as app:
        view = await view_of(app, {"model": "scripted:w"})
        await events_of(view.generate())
        assert view.get_state().full_text == "Once one"
        view.navigate_parent()
        view.set_n_branches(2)
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        state = view.get_state()
        assert state.current_node_id == view.root_id
        # The fault of the seed: what is shown is what is stored, the first new child.
        assert state.children[state.selected_child_idx].id == done.new_nodes[0].id
        await view.save()
        assert await app.loom.checked_out_child(view.root_id) == done.new_nodes[0].id


async def test_row_after_generate_a_view_that_moved_on_stays(world: World) -> None:
    slow = model("slow", (Stall(gate="g"), SayText(text=" late")))
    async with world.open(slow) as app:
        view = await view_of(app, {"model": "scripted:slow"})
        other = await app.loom.add_child(view.root_id, " else")
        run = view.generate()
        async with anyio.create_task_group() as group:

            async def consume() -> None:
                await events_of(run)

            group.start_soon(consume)
            await slow.gate("g").reached.wait()
            view.checkout(other.id)
            slow.gate("g").opened.set()
        assert view.get_state().current_node_id == other.id
        assert len(await app.loom.children(view.root_id)) == 2


async def test_usage_and_cost_are_recorded_for_each_branch(world: World) -> None:
    priced = model(
        "p",
        *[(SayText(text=" x"), Spend(usage=Usage(**MILLION)))] * 2,
        **PRICES,
    )
    async with world.open(priced) as app:
        view = await view_of(app, {"model": "scripted:p", "n_branches": 2})
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert [node.cost_usd for node in done.new_nodes] == [3.0, 3.0]
        assert view.get_state().cost == 6.0
        session = await app.sessions.get(await app.loom.session_of(view.root_id))
        assert (await session.usage()).total.cost_usd == 6.0


async def test_a_race_stops_with_the_first_or_at_a_cost(world: World) -> None:
    fast = model("fast", " soon", price_input=1.0, price_output=1.0)
    slow = model("slow", *[(SayText(text=" half done"), Stall(gate="g"))] * 2)
    async with world.open(fast, slow) as app:
        plan = [{"model": "scripted:slow"}, {"model": "scripted:fast"}]
        view = await view_of(app, *plan)
        done = (await events_of(view.generate(stop_when="first")))[-1]
        assert isinstance(done, GenerationComplete)
        assert done.reason == "stopped"
        assert " soon" in done.completions
        with pytest.raises(UsageError):
            view.generate(stop_when="soon")


async def test_two_generations_of_one_view_are_refused_and_two_views_may(world: World) -> None:
    slow = model("slow", *[(SayText(text=" half done"), Stall(gate="g"))] * 2)
    async with world.open(slow) as app:
        view = await view_of(app, {"model": "scripted:slow"})
        other = await app.loom.open(view.root_id)
        one, two = view.generate(), other.generate()
        await anext(one)
        await anext(two)
        with pytest.raises(UsageError):
            view.generate()
        slow.gate("g").opened.set()
        await events_of(one)
        await events_of(two)
        assert len(await app.loom.children(view.root_id)) == 2


async def test_undo_takes_a_generation_back(world: World) -> None:
    writer = model("w", " one", " two")
    async with world.open(writer) as app:
        view = await view_of(app, {"model": "scripted:w", "n_branches": 2})
        await events_of(view.generate())
        assert len(view.get_state().children) == 2
        assert view.undo().children == ()
        await view.save()


async def test_context_goes_along_and_a_retry_helps_where_nothing_has_come(world: World) -> None:
    shaky = model("s", (Fail(error="RateLimited", status=429),), " fine")
    async with world.open(shaky) as app:
        view = await view_of(app, {"model": "scripted:s"})
        view.update_context("in verse")
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert done.completions == (" fine",)
        assert "in verse" in shaky.last_request.system


async def test_a_branch_that_breaks_off_is_a_failure_with_a_partial_node(world: World) -> None:
    broken = model("b", (SayText(text=" half done"), Fail(error="ProviderUnavailable", status=500)))
    async with world.open(broken) as app:
        view = await view_of(app, {"model": "scripted:b"})
        closing = (await events_of(view.generate()))[-1]
        assert isinstance(closing, GenerationError)
        [failure] = closing.failures
        [node] = await app.loom.children(view.root_id)
        assert (failure.partial_node, node.text, node.partial) == (node.id, " half done", True)


async def test_drafts_of_a_dead_process_become_partial_nodes_and_money_is_counted(
    world: World,
) -> None:
    slow = model(
        "slow",
        *[(SayText(text=" half done"), Stall(gate="g"))] * 3,
        price_input=1.0,
        price_output=1.0,
    )
    app = world.open(slow)
    await app.__aenter__()
    view = await view_of(app, {"model": "scripted:slow", "n_branches": 3})
    run, events = view.generate(), list[GenerationEvent]()
    while len(tokens(events)) < 3:
        events.append(await anext(run))
    session = await app.loom.session_of(view.root_id)
    await drafts_of(app, session, 3)
    await crash(app)
    async with world.open(slow) as app:
        nodes = await app.loom.children(view.root_id)
        assert [(node.text, node.partial) for node in nodes] == [(" half", True)] * 3
        seen = {e.node_id for e in events if isinstance(e, TokenReceived)}
        assert {node.id for node in nodes} == seen
        assert await app.store.load_drafts(session) == []
        state = (await app.loom.open(view.root_id)).get_state()
        assert state.usage.output_tokens == sum(n.usage.output_tokens for n in nodes if n.usage)
        assert (await app.sessions.get(session)).id == session


async def test_a_branch_of_which_nothing_came_before_a_crash_is_an_empty_partial_node(
    world: World,
) -> None:
    slow = model(
        "slow",
        SayText(text=" whole."),
        (Stall(gate="g"), SayText(text=" late")),
        (Stall(gate="g"), SayText(text=" later")),
        price_input=1.0,
        price_output=1.0,
    )
    app = world.open(slow)
    await app.__aenter__()
    view = await view_of(app, {"model": "scripted:slow", "n_branches": 3})
    run = view.generate()
    await anext(run)
    while len(await app.loom.children(view.root_id)) < 1:
        await anyio.lowlevel.checkpoint()
    await crash(app)
    async with world.open(slow) as app:
        # A reader sees them, and so does the next who opens the tree.
        nodes = await app.loom.children(view.root_id)
        assert sorted((node.text, node.partial) for node in nodes) == [
            ("", True),
            ("", True),
            (" whole.", False),
        ]
        empty = [node for node in nodes if not node.text]
        assert all(node.metadata["empty"] is True and node.cost_usd for node in empty)
        assert all("empty" not in node.metadata for node in nodes if node.text)
        again = (await app.loom.open(view.root_id)).get_state()
        assert [node.id for node in again.children] == [node.id for node in nodes]
        assert again.cost == pytest.approx(sum(node.cost_usd or 0.0 for node in nodes))
        assert (await app.loom.get(empty[0].id)).id == empty[0].id


async def test_a_prompt_to_the_session_settles_lost_branches_first(world: World) -> None:
    slow = model("slow", (SayText(text=" half done"), Stall(gate="g")))
    app = world.open(slow)
    await app.__aenter__()
    view = await view_of(app, {"model": "scripted:slow"})
    run = view.generate()
    await anext(run)
    session_id = await app.loom.session_of(view.root_id)
    await drafts_of(app, session_id, 1)
    await crash(app)
    talker = model("script", "Answer.")
    async with world.open(talker) as app:
        session = await app.sessions.start_session(session_id=session_id, tools=[])
        await session.send_message("go on")
        texts = [node.text for node in await app.loom.tree(view.root_id)]
        assert " half" in texts


async def test_row_fault_a_fim_model_in_the_plan_raises_nothing(plain_world: World) -> None:
    writer = model("w", "there", " was")
    async with plain_world.open(writer) as app:
        view = await view_of(
            app,
            {"model": "ollama:starcoder2:3b", "strategy": "fim"},
            {"model": "scripted:w"},
            {"model": "nowhere:x", "strategy": "no such"},
        )
        view.update_context("in verse")
        assert view.get_state().n_branches == 3
        prompts = view.prompt_entries()
        assert [each.model for each in prompts] == [
            "ollama:starcoder2:3b", "scripted:w", "nowhere:x",
        ]  # fmt: skip
        assert prompts[1].strategy == "system"
        assert "in verse" in prompts[1].parts[0].text
        assert any("Once" in part.text for part in prompts[0].parts)


async def test_a_seam_is_mended_and_the_node_says_so(plain_world: World) -> None:
    writer = model("w", "there was a loom")
    async with plain_world.open(writer) as app:
        view = await view_of(app, {"model": "scripted:w"}, text="Once upon a time")
        events = await events_of(view.generate())
        done = events[-1]
        assert isinstance(done, GenerationComplete)
        assert done.completions == (" there was a loom",)
        # What was streamed is what is stored.
        assert tokens(events) == {0: " there was a loom"}
        assert done.new_nodes[0].metadata["healed"] is True


async def test_a_branch_is_held_to_its_limit_whatever_the_vendor_sends(
    plain_world: World,
) -> None:
    writer = model("w", " word" * 1000)
    async with plain_world.open(writer) as app:
        view = await view_of(app, {"model": "scripted:w", "max_tokens": 10})
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert 0 < len(done.completions[0]) <= 60


class ScoringModel:
    """A model that reports the probabilities of its tokens."""

    def __init__(self) -> None:
        self.info = ModelInfo(provider="scripted", name="scoring")
        self.requests: list[ModelRequest] = []

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        self.requests.append(request)
        yield self._pieces()

    async def _pieces(self) -> AsyncIterator[StreamEvent]:
        for text, other in (("there", "then"), (" was", " were"), (" one", "")):
            others = ((text, -0.1), (other, -2.0)) if other else ()
            yield ScoredPiece(text, (TokenLogprob(text, -0.1, others),))
        yield StreamFinished()


async def test_row_logprobs_are_kept_and_a_branch_starts_with_an_alternative(
    world: World,
) -> None:
    async with world.open(model("w", " plain")) as app:
        view = await view_of(app, {"model": "scripted:w"}, text="Once upon a time")
        view.set_model(ScoringModel())
        assert view.set_logprobs(2).model_plan[0].model == "scripted:scoring"
        assert view.tree_settings().logprobs == 2
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        [node] = done.new_nodes
        assert node.text == " there was one"
        assert node.tokens is not None
        assert [token.text for token in node.tokens] == ["there", " was", " one"]
        other = view.branch_at_token(node.id, 1)
        assert (other.text, other.parent_id) == (" there were", view.root_id)
        assert view.get_state().current_node_id == other.id
        assert view.branch_at_token(node.id, 0, "they").text == " they"
        for index in (2, 3, -1):
            with pytest.raises(UsageError):
                view.branch_at_token(node.id, index)
        with pytest.raises(UsageError):
            view.branch_at_token(other.id, 0)
        await view.save()
    async with world.open() as app:
        again = await app.loom.get(node.id)
        assert again.tokens == node.tokens
        assert "logprobs" not in again.metadata


async def test_row_logprobs_a_node_without_them_says_so(plain_world: World) -> None:
    async with plain_world.open(model("w", " plain")) as app:
        view = await view_of(app, {"model": "scripted:w"})
        view.set_logprobs(2)
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        [node] = done.new_nodes
        assert node.tokens is None
        with pytest.raises(UsageError, match="reports none"):
            view.branch_at_token(node.id, 0)
        assert await app.loom.children(view.root_id) == [node]


async def test_a_tree_that_has_grown_gets_a_name_once(world: World) -> None:
    writer = model("w", " on.", '"The Loom, and its Threads."\nmore', " on.", " on.")
    async with world.open(writer) as app:
        view = await view_of(app, {"model": "scripted:w"}, text="a word or two " * 200)
        await events_of(view.generate())
        await until(lambda: view.get_state().name == "The Loom, and its Threads")
        view.navigate_parent()
        await events_of(view.generate())
        assert writer.request_count == 3
        session = await app.sessions.get(await app.loom.session_of(view.root_id))
        assert (await session.metadata()).title == "The Loom, and its Threads"


class BrokenModel(ScoringModel):
    """A model with a fault that no provider knows of."""

    async def _pieces(self) -> AsyncIterator[StreamEvent]:
        yield TextPiece(" before it")
        raise RuntimeError("secret-looking details")


async def test_a_fault_of_a_model_hurts_its_branch_alone_and_says_nothing_of_itself(
    plain_world: World,
) -> None:
    async with plain_world.open(model("w", " fine")) as app:
        view = await view_of(app, {"model": "scripted:scoring"}, {"model": "scripted:w"})
        view.set_model(BrokenModel())
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert done.completions == (" fine",)
        [failure] = done.failures
        assert failure.category == "provider_error"
        assert "secret-looking" not in failure.sentence
        assert failure.incident_id in failure.sentence
        assert (await app.loom.get(failure.partial_node or "")).text == " before it"


async def test_a_try_that_broke_off_in_its_first_word_leaves_nothing_behind(world: World) -> None:
    """The word is held back for the seam, so the view saw nothing of it and it is tried again."""
    async with world.open(model("a", [SayText(text="ther"), Break()], "there was")) as app:
        view = await view_of(app, {"model": "scripted:a", "n_branches": 1})
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)
        assert list(done.completions) == [" there was"]


async def test_row_generate_can_have_other_numbers_for_once(plain_world: World) -> None:
    one, two, off = model("a", *[" x"] * 4), model("b", *[" y"] * 4), model("c")
    async with plain_world.open(one, two, off) as app:
        view = await view_of(
            app,
            {"model": "scripted:a", "n_branches": 3},
            {"model": "scripted:b"},
            {"model": "scripted:c", "enabled": False},
        )
        before = view.model_plan
        done = (await events_of(view.generate(n_branches=2, max_tokens=1)))[-1]
        assert isinstance(done, GenerationComplete)
        assert [(node.model, node.max_tokens) for node in done.new_nodes] == [
            *[("scripted:a", 10)] * 2,
            *[("scripted:b", 10)] * 2,
        ]
        assert view.model_plan == before


async def test_row_generate_begins_where_the_view_stood(plain_world: World) -> None:
    async with plain_world.open(model("a", " new")) as app:
        view = await view_of(app, {"model": "scripted:a"})
        child = await app.loom.add_child(view.root_id, " old")
        run = view.generate()
        run.begin()
        view.go(child.id)
        done = (await events_of(run))[-1]
        assert isinstance(done, GenerationComplete)
        assert done.new_nodes[0].parent_id == view.root_id
        assert view.current_node_id == child.id
