"""Switching models mid-conversation, between all protocols: no request is ever one that the vendor
would reject.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from tests.support.example_count import cases, examples
from tests.support.image_samples import PIXEL_DATA
from tests.support.vendor_models import VENDOR_PROFILES, VendorModel, illegal_anywhere
from tests.support.vendor_session import open_app, start
from tests.support.world import PATIENCE
from weft.api.session import Session
from weft.errors import WeftError
from weft.messages import ChatMessage, Content, Image, Text, Thinking
from weft.providers import ModelRequest
from weft.providers.script import Break, CallRaw, Garbage, SayText, Step

PIXEL = Image(media_type="image/png", data=PIXEL_DATA, name="pixel.png")


def full_turn(model: VendorModel) -> list[Sequence[Step]]:
    """Reasoning, words, two calls, then reasoning and words."""
    return [
        [
            model.thinks("where?"),
            SayText(text="I look."),
            model.calls("look", {"where": "left"}, {"where": "right"}),
        ],
        [model.thinks("hidden", redacted=True), model.calls("look", {"where": "up"})],
        [model.thinks("so"), SayText(text="Nothing anywhere.")],
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(("first", "second"), cases(itertools.permutations(VENDOR_PROFILES, 2)))
async def test_a_conversation_that_one_vendor_began_goes_on_with_any_other_and_back(
    tmp_path: Path, first: str, second: str
) -> None:
    models = {name: VendorModel(name) for name in (first, second)}
    one, two = models[first], models[second]
    async with open_app(tmp_path) as app:
        session = await start(app, models, thinking="high")
        for speaker in (one, two, one, two):
            await session.update_model(speaker.name)
            speaker.laid_out = [*full_turn(speaker)]
            reply = await session.send_message([Text(text="look around"), PIXEL])
            assert (reply.finish_reason, reply.text) == ("stop", "Nothing anywhere.")
            assert reply.model == speaker.name
            # Where both have spoken: to whom else this conversation could be sent.
            if speaker is two:
                assert await illegal_anywhere(session) == []
    assert one.wrong == []
    assert two.wrong == []


@pytest.mark.anyio
@pytest.mark.requirement("session:update_model:thinking")
async def test_reasoning_and_ids_go_back_only_to_who_made_them(tmp_path: Path) -> None:
    models = {name: VendorModel(name) for name in ("claude", "gpt")}
    claude, gpt = models.values()
    async with open_app(tmp_path) as app:
        session = await start(app, models)
        claude.laid_out = full_turn(claude)
        await session.send_message("look")
        await session.update_model(gpt.name)
        await session.send_message("go on")
        assert not [part for part in parts(gpt.model.last_request) if isinstance(part, Thinking)]
        await session.update_model(claude.name)
        await session.send_message("and again")
        assert [
            part.signature or part.redacted
            for part in parts(claude.model.last_request)
            if isinstance(part, Thinking)
        ] == [
            claude.thinks("where?").signature,
            claude.thinks("hidden", redacted=True).redacted,
            claude.thinks("so").signature,
        ]


def parts(request: ModelRequest) -> list[Any]:
    return [
        p for message in request.messages if isinstance(message, ChatMessage) for p in message.parts
    ]


@pytest.mark.anyio
async def test_one_message_can_be_answered_by_another_model(tmp_path: Path) -> None:
    models = {name: VendorModel(name) for name in ("claude", "gemini")}
    claude, gemini = models.values()
    async with open_app(tmp_path) as app:
        session = await start(app, models)
        claude.laid_out = full_turn(claude)
        await session.send_message("look")
        reply = await session.send_message("you too", model=gemini.name)
        assert reply.model == gemini.name
        assert (await session.send_message("and you")).model == claude.name
        assert (await session.metadata()).model == claude.name
    assert claude.wrong + gemini.wrong == []


@pytest.mark.anyio
@pytest.mark.parametrize(("first", "second"), cases(itertools.permutations(VENDOR_PROFILES, 2)))
async def test_a_model_that_is_set_while_a_turn_runs_makes_the_next_call_of_that_turn(
    tmp_path: Path, first: str, second: str
) -> None:
    models = {name: VendorModel(name) for name in (first, second)}
    one, two = models[first], models[second]
    async with open_app(tmp_path) as app:
        session = await start(app, models, thinking="high")

        async def choose(where: str) -> str:
            """Look somewhere."""
            await session.update_model(two.name)
            await session.set_thinking_level("low")
            return where

        tool = weft.tool(effect="pure")(choose)
        called = one.calls("choose", {"where": "left"}, {"where": "right"})
        one.laid_out = [[one.thinks("where?"), SayText(text="I look."), called]]
        two.laid_out = [[two.thinks("so"), SayText(text="Nothing.")]]
        reply = await session.send_message("look around", tools=[tool])
        assert (reply.text, reply.model, one.asked) == ("Nothing.", two.name, 1)
        assert set((await session.usage()).by_model) == {one.name, two.name}
        assert two.model.last_request.thinking == "low"
        assert not [p for p in parts(two.model.last_request) if isinstance(p, Thinking)]
        assert await illegal_anywhere(session) == []
    assert one.wrong + two.wrong == []


@pytest.mark.anyio
async def test_a_model_for_one_message_stays_whatever_is_set_meanwhile(tmp_path: Path) -> None:
    models = {name: VendorModel(name) for name in ("claude", "gemini", "gpt")}
    claude, gemini, gpt = models.values()
    async with open_app(tmp_path) as app:
        session = await start(app, models)

        async def choose(where: str) -> str:
            """Look somewhere."""
            await session.update_model(gpt.name)
            return where

        tool = weft.tool(effect="pure")(choose)
        gemini.laid_out = [[gemini.calls("choose", {"where": "left"})], [SayText(text="Left.")]]
        reply = await session.send_message("look", model=gemini.name, tools=[tool])
        assert (reply.model, reply.text) == (gemini.name, "Left.")
        assert (await session.send_message("and now")).model == gpt.name
    assert claude.wrong + gemini.wrong + gpt.wrong == []


@pytest.mark.anyio
async def test_a_budget_that_is_set_while_a_turn_runs_holds_for_it(tmp_path: Path) -> None:
    claude = VendorModel("claude")
    async with open_app(tmp_path) as app:
        session = await start(app, {"claude": claude})

        async def save(where: str) -> str:
            """Look somewhere."""
            await session.set_budget(tokens=1)
            return where

        tool = weft.tool(effect="pure")(save)
        claude.laid_out = [[claude.calls("save", {"where": "x"})], [SayText(text="Too late.")]]
        reply = await session.send_message("look", tools=[tool])
        assert reply.finish_reason == "max_budget"


# --- anything at all -------------------------------------------------------------------

VENDORS = sorted(VENDOR_PROFILES)

said = st.sampled_from(["hello", "picture", " ."])
answers = st.lists(
    st.sampled_from(
        [
            "text",
            "thinking",
            "calls",
            "thinking+calls",
            "redacted+calls",
            "nonsense",
            "raw",
            "break",
            "silence",
        ]
    ),
    max_size=3,
)
moves = st.one_of(
    st.tuples(st.just("say"), said, answers),
    st.tuples(st.just("model"), st.sampled_from(VENDORS), st.none()),
    st.tuples(st.just("think"), st.sampled_from(["off", "low", "high", "max"]), st.none()),
    st.tuples(st.just("branch"), st.integers(0, 30), st.none()),
    st.tuples(st.just("switch"), st.integers(0, 5), st.none()),
    st.tuples(st.just("compact"), st.none(), st.none()),
    st.tuples(st.just("undo"), st.none(), st.none()),
    st.tuples(st.just("note"), st.none(), st.none()),
)


def steps(kind: str, model: VendorModel) -> list[Step]:
    match kind:
        case "text":
            return [SayText(text="words")]
        case "thinking":
            return [model.thinks("t" * (model.asked % 5)), SayText(text="words")]
        case "calls":
            return [model.calls("look", {"where": "left"}, {"where": "right"})]
        case "thinking+calls":
            return [
                model.thinks("go"),
                SayText(text="I look."),
                model.calls("look", {"where": "x"}),
            ]
        case "redacted+calls":
            return [model.thinks("deep", redacted=True), model.calls("look", {"where": "x"})]
        case "nonsense":
            return [Garbage(kind="unknown_tool"), Garbage(kind="same_id")]
        case "raw":
            return [CallRaw(name="look", args_text='{"where": ', id="call_1")]
        case "break":
            return [model.thinks("cut"), SayText(text="half a"), Break()]
        case _:
            return [model.thinks("only thoughts")]


async def play(folder: Path, sequence: list[tuple[str, Any, Any]]) -> list[str]:
    """Do all of it; what was wrong with any request, or with the history as any vendor would get
    it.
    """
    models = {name: VendorModel(name) for name in VENDORS}
    async with open_app(folder) as app:
        session = await start(app, models)
        for move, what, more in sequence:
            try:
                await do(session, models, move, what, more)
            except WeftError:
                # there is no such message or branch, or nothing to compact: refused, and nothing
                # happened
                continue
        wrong = await illegal_anywhere(session)
    return wrong + [each for model in models.values() for each in model.wrong]


async def do(
    session: Session, models: dict[str, VendorModel], move: str, what: Any, more: Any
) -> None:
    match move:
        case "say":
            present = (await session.metadata()).model
            model = next(each for each in models.values() if each.name == present)
            model.laid_out = [steps(kind, model) for kind in more]
            content: Content = [Text(text="see"), PIXEL] if what == "picture" else str(what)
            await session.send_message(content, retries=0, max_turns=6)
        case "model":
            await session.update_model(models[what].name)
        case "think":
            await session.set_thinking_level(what)
        case "branch":
            await session.branch_at(what)
        case "switch":
            await session.switch_branch(what)
        case "compact":
            await session.compact()
        case "undo":
            await session.undo_compaction()
        case _:
            await session.add_system_message("by the way", to_model=True)


@settings(max_examples=examples(60))
@given(sequence=st.lists(moves, min_size=3, max_size=14))
def test_whatever_happened_no_vendor_gets_a_request_that_it_would_reject(
    sequence: list[tuple[str, Any, Any]],
) -> None:
    async def in_time() -> list[str]:
        with anyio.fail_after(20 * PATIENCE):
            return await play(Path(folder), sequence)

    with tempfile.TemporaryDirectory(prefix="switch-") as folder:
        assert asyncio.run(in_time()) == []
