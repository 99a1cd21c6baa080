"""The judge of a fan-out breaks ties, blind and in both orders; what a choice teaches is noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.support.fan_stage import (
    LONG,
    VERIFY,
    candidate_model,
    cheat,
    idle,
    make_stage,
    names,
    open_stage,
    right,
)
from tests.support.world import PATIENCE, World
from weft.api.fan import Fan
from weft.errors import UsageError
from weft.messages import Usage
from weft.providers.base import ModelRequest
from weft.providers.script import SayText, Spend, as_answer
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]


@pytest.fixture
def stage(tmp_path: Path) -> World:
    made = World("sqlite", tmp_path)
    make_stage(made)
    return made


async def waited(fan: Fan) -> None:
    with anyio.fail_after(PATIENCE):
        await fan.wait()


def judge(wanted: str) -> ScriptedModel:
    """Finds the change with these words better; `first` is one that always takes the first."""

    def choose(request: ModelRequest) -> Any:
        text = str(request.messages[-1])
        said = "A" if wanted == "first" or wanted in text.partition("<change_b>")[0] else "B"
        spent = Spend(usage=Usage(input_tokens=10, output_tokens=1, cost_usd=0.5))
        return as_answer([SayText(text=f"{said}\nIt reads better."), spent])

    model = ScriptedModel([], choose=choose)
    model.info = msgspec.structs.replace(model.info, name="judge")
    return model


@pytest.mark.requirement("event:FanJudged")
async def test_the_judge_orders_those_that_stand_equal_and_no_others(stage: World) -> None:
    asked = judge("total += b")
    models = [idle("idle"), cheat("cheat"), right("short"), right("long", LONG)]
    async with open_stage(stage, *models, asked) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches(
            "mend it", 4, names(*models), VERIFY, judge="scripted:judge"
        )
        await waited(fan)
        ranked = [(each.model, each.judged) for each in fan.candidates()]
        assert ranked == [
            ("scripted:long", 1),
            ("scripted:short", 2),
            ("scripted:cheat", 0),
            ("scripted:idle", 0),
        ]
        assert "It reads better" in fan.verdict
        assert len(asked.requests) == 2
        assert "scripted" not in str([request.messages for request in asked.requests])
        assert (await session.usage()).total.cost_usd == pytest.approx(1.0 + 0.03 * 3 + 0.02)
        fan_id = fan.id
    async with open_stage(stage, *models, asked) as app:
        fan = await app.fan(fan_id)
        assert fan.candidates()[0].model == "scripted:long"


async def test_an_answer_that_depends_on_the_order_counts_for_neither(stage: World) -> None:
    models = [right("long", LONG), right("short")]
    async with open_stage(stage, *models, judge("first")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches(
            "mend it", 2, names(*models), VERIFY, judge="scripted:judge"
        )
        await waited(fan)
        assert [each.model for each in fan.candidates()] == ["scripted:short", "scripted:long"]
        assert fan.verdict == ""
        with pytest.raises(UsageError):
            await session.generate_branches("mend it", 1, judge="nobody:knows")


async def test_what_was_kept_and_what_spoke_against_the_others_is_a_decision(stage: World) -> None:
    models = [idle("idle"), right("right")]
    async with open_stage(stage, *models) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 2, names(*models), VERIFY)
        await waited(fan)
        assert (await fan.keep(2)).is_kept
        kept = [node for node in await app.decisions.nodes() if "fan" in node.tags]
        assert "candidate 2" in kept[0].title
        graph = await app.decisions.graph()
        told = str(list(graph.nodes.values()))
        assert "I wrote a note." in told
        await session.rewind(None)
        assert (await fan.keep(2)).is_kept


async def test_what_a_candidate_learned_comes_to_the_line_of_its_session(stage: World) -> None:
    model = candidate_model("script", "I tried, and subtraction is wrong.", "Avoid it.", "x")
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)
        assert await fan.bring_lesson(1) == "I tried, and subtraction is wrong."
        assert "subtraction is wrong" in str(model.requests[-1].messages)
        await session.send_message("go on")
        assert "What candidate 1, which worked on the same task, learned" in str(
            model.requests[-1].messages
        )


async def test_what_was_excluded_in_a_candidate_is_in_no_lesson(stage: World) -> None:
    model = candidate_model("script", "I tried.", "Avoid it.", "x")
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend a secret", 1)
        await waited(fan)
        [child] = [each.session for each in fan.candidates()]
        candidate = await app.sessions.get(child)
        line = await candidate.messages_with_ids()
        [asked] = [node for node, each in line if "mend a secret" in each.content]
        await candidate.exclude(asked)
        await fan.bring_lesson(1)
        assert "I tried." in str(model.requests[-1].messages)
        assert "secret" not in str(model.requests[-1].messages)
