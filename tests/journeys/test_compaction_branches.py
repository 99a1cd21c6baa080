"""A compaction is a fact about a line: it counts where its last message is an ancestor, nests, is
shared by forks, and carries what matters.
"""

from __future__ import annotations

import pytest

from tests.support.compaction import SummarizingModel, compactions, send_prompts, start
from tests.support.image_samples import PIXEL_DATA
from tests.support.world import World, facts, request_lines
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import CompactionUndone
from weft.messages import File, Image, Text
from weft.providers import ModelRequest
from weft.providers.script import CallTool, SayText, Step

pytestmark = pytest.mark.anyio


async def seen_by(session: Session, teller: SummarizingModel, prompt: str = "?") -> list[str]:
    """What the model is told before `prompt`, on the line as it is."""
    await send_prompts(session, prompt)
    assert teller.seen[-1] == f"user: {prompt}"
    return teller.seen[:-1]


async def test_a_compaction_counts_only_on_lines_that_contain_its_last_message(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two", "three")
        await session.compact()
        assert await seen_by(session, teller) == ["user: <summary 1>"]
        await session.branch_at(3, "earlier")
        assert await seen_by(session, teller, "e") == [
            "user: one",
            "assistant: answer 1",
            "user: two",
            "assistant: answer 2",
        ]
        await session.switch_branch("main")
        assert (await seen_by(session, teller))[0] == "user: <summary 1>"
        await session.branch_at(5, "later")
        assert await seen_by(session, teller) == ["user: <summary 1>"]
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        await session.switch_branch("earlier")
        assert (await seen_by(session, teller))[:2] == ["user: one", "assistant: answer 1"]


async def test_compactions_of_two_branches_do_not_meet(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "shared")
        await session.branch_at(1, "left")
        await send_prompts(session, "left one")
        await session.compact()
        await session.switch_branch("main")
        assert await seen_by(session, teller, "right one") == [
            "user: shared",
            "assistant: answer 1",
        ]
        await session.compact()
        assert await seen_by(session, teller) == ["user: <summary 2>"]
        assert "left one" not in str(teller.summaries[1].messages)
        await session.switch_branch("left")
        assert await seen_by(session, teller) == ["user: <summary 1>"]


async def test_undoing_on_one_branch_leaves_the_others_alone(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "shared")
        await session.branch_at(1, "left")
        await send_prompts(session, "left one")
        await session.compact()
        await session.switch_branch("main")
        with pytest.raises(UsageError, match="nothing on this line"):
            await session.undo_compaction()
        await send_prompts(session, "right one")
        await session.compact()
        await session.undo_compaction()
        await session.switch_branch("left")
        assert await seen_by(session, teller) == ["user: <summary 1>"]


async def test_a_shared_compaction_counts_on_both_branches_and_is_undone_on_both(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "shared")
        await session.compact()
        await send_prompts(session, "right one")
        await session.branch_at(1, "left")
        assert await seen_by(session, teller, "left one") == ["user: <summary 1>"]
        await session.undo_compaction()
        await session.switch_branch("main")
        assert (await seen_by(session, teller))[0] == "user: shared"


async def test_compactions_nest_and_are_undone_one_by_one(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        for number in (1, 2, 3):
            await send_prompts(session, f"say {number}")
            await session.compact()
        assert await seen_by(session, teller) == ["user: <summary 3>"]
        await session.undo_compaction()
        assert (await seen_by(session, teller))[:2] == ["user: <summary 2>", "user: say 3"]
        await session.undo_compaction()
        assert (await seen_by(session, teller))[:2] == ["user: <summary 1>", "user: say 2"]
        await session.undo_compaction()
        assert (await seen_by(session, teller))[0] == "user: say 1"


# --- forks -----------------------------------------------------------------------------


async def test_a_fork_shares_the_compactions_of_its_line(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        await session.compact()
        await send_prompts(session, "three")
        fork = await app.sessions.fork_session("s")
        assert (await seen_by(fork, teller))[:2] == ["user: <summary 1>", "user: three"]
        early = await app.sessions.fork_session("s", at=1)
        assert await seen_by(early, teller) == ["user: one", "assistant: answer 1"]
        assert await compactions(fork) == []


async def test_a_fork_can_undo_what_it_shares_and_its_source_keeps_it(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        fork = await app.sessions.fork_session("s")
        await fork.undo_compaction()
        [undone] = await facts(fork, CompactionUndone)
        assert undone.log == "s"
        assert await seen_by(fork, teller) == ["user: one", "assistant: answer 1"]
        assert await seen_by(session, teller) == ["user: <summary 1>"]
        fork_id = fork.id
    async with world.open(teller.model) as app:
        fork = await app.sessions.get(fork_id)
        assert (await seen_by(fork, teller))[0] == "user: one"


async def test_what_a_fork_compacts_is_its_own(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        fork = await app.sessions.fork_session("s")
        await fork.compact()
        assert await seen_by(fork, teller) == ["user: <summary 1>"]
        assert await seen_by(session, teller) == ["user: one", "assistant: answer 1"]
        grandchild = await app.sessions.fork_session(fork.id)
        assert (await seen_by(grandchild, teller))[0] == "user: <summary 1>"
        await grandchild.undo_compaction()
        assert (await seen_by(grandchild, teller))[0] == "user: one"


# --- what is carried -------------------------------------------------------------------


async def first_id(session: Session) -> str:
    return (await session.messages_with_ids())[0][0]


PINNED = "[Pinned, said by the user:]\nnever push"


@pytest.mark.requirement("session:pin")
async def test_a_pinned_message_outlives_every_compaction_word_for_word(world: World) -> None:
    """Also the second one, which knows the message only from the summary before."""
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "never push")
        await session.pin(await first_id(session))
        for number in (1, 2, 3):
            await send_prompts(session, f"say {number}")
            await session.compact()
            assert await seen_by(session, teller) == [f"user: <summary {number}>"]
            assert teller.carried[0] == PINNED
        assert str(teller.asked[-1].messages).count("never push") == 1


async def test_what_is_pinned_after_it_was_compacted_comes_back(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "never push")
        await session.compact()
        await session.pin(await first_id(session))
        assert await seen_by(session, teller) == ["user: <summary 1>"]
        assert PINNED in teller.carried
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert (await seen_by(session, teller))[0] == "user: <summary 1>"
        assert PINNED in teller.carried


async def test_a_pin_is_carried_only_on_lines_that_have_the_message(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "shared", "never push")
        await session.pin((await session.messages_with_ids())[2][0])
        await session.branch_at(1, "other")
        await send_prompts(session, "elsewhere")
        await session.compact()
        assert await seen_by(session, teller) == ["user: <summary 1>"]
        assert "never push" not in str(teller.carried)


async def test_the_rules_of_a_message_that_is_pinned_no_more_stay(world: World) -> None:
    """While it is pinned it is carried whole, and nothing of it is kept besides."""
    teller = SummarizingModel()
    said = "Never push to main. " + "The weather is fine. " * 100 + "The port is 48213."
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, said)
        await session.pin(await first_id(session))
        for number in (1, 2):
            await send_prompts(session, f"say {number}")
            await session.compact()
    # Another program knows of the pin only what is stored.
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        await session.unpin(await first_id(session))
        for number in (3, 4):
            await send_prompts(session, f"say {number}")
            await session.compact()
            await send_prompts(session, "now")
            carried = "\n".join(teller.carried)
            assert "[Pinned" not in carried
            assert "\n- Never push to main." in carried
            assert "\n- The port is 48213." in carried


async def test_changed_files_and_open_tasks_are_carried_whatever_the_summary_says(
    world: World,
) -> None:
    tasks = [
        {"text": "mend the door", "status": "in_progress"},
        {"text": "find the door", "status": "done"},
    ]
    steps: list[Step] = [
        CallTool(name="write", args={"path": "door.txt", "content": "blue\n"}),
        CallTool(name="todo", args={"todos": tasks}),
        SayText(text="half done"),
    ]
    teller = SummarizingModel(say=lambda request: steps.pop(0) if steps else SayText(text="ok"))
    async with world.open(teller.model) as app:
        session = await start(app, tools=["write", "todo"], permission_mode="accept_edits")
        await send_prompts(session, "paint the door")
        await session.compact()
        await seen_by(session, teller)
        assert teller.carried[:3] == [
            "[Files changed so far:]\ndoor.txt (created, +1 −0)",
            "[Open tasks:]\n- mend the door (in_progress)",
            "[Finished tasks; they are not to be done again:]\n- find the door",
        ]


# --- notes -----------------------------------------------------------------------------


async def test_what_the_system_told_the_model_is_told_to_who_summarises_it(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.add_system_message("the build is broken", to_model=True)
        await session.add_system_message("only for the person")
        await send_prompts(session, "two")
        await session.compact()
    asked = str(teller.summaries[0].messages)
    assert "SYSTEM: the build is broken" in asked
    assert "only for the person" not in asked


async def test_what_the_system_says_after_a_compaction_reaches_the_model(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        await session.compact()
        await session.add_system_message("the build is broken", to_model=True)
        assert await seen_by(session, teller) == [
            "user: <summary 1>",
            "user: the build is broken",
        ]


async def test_what_was_learned_on_a_branch_reaches_a_line_that_was_just_compacted(
    world: World,
) -> None:
    def say(request: ModelRequest) -> Step:
        if request.system.startswith("A line of work"):
            return SayText(text="the red door is locked")
        return SayText(text="ok")

    teller = SummarizingModel(say=say)
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "try the red door")
        left = (await session.messages_with_ids())[-1][0]
        await session.branch_at(1)
        await session.compact()
        await session.summarize_branch(left)
        seen = await seen_by(session, teller)
        assert seen[0] == "user: <summary 1>"
        assert "the red door is locked" in seen[1]


async def test_a_message_with_a_picture_and_a_file_is_summarised_with_both_named(
    world: World,
) -> None:
    pixel = Image(media_type="image/png", data=PIXEL_DATA, name="door.png")
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await session.send_message(
            [Text(text="see"), pixel, File(name="spec.md", text="it is blue")]
        )
        await session.compact()
    [message] = request_lines(teller.summaries[0])
    assert "[image: door.png]" in message
    assert "[file: spec.md]\n  it is blue" in message
