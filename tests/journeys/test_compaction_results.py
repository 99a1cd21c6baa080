"""Results of tools give way before anything is summarised, and come back with an undo."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.support.compaction import SummarizingModel, compactions, send_prompts, start
from tests.support.planted_session import next_messages
from tests.support.world import World, facts, request_lines
from weft.api.summaries.compaction_diff import compaction_diff
from weft.app.context_report import context_report
from weft.errors import UsageError
from weft.events import ErrorRaised, ResultsCleared
from weft.providers import ModelRequest
from weft.providers.script import CallTogether, CallTool, SayText, Step

pytestmark = pytest.mark.anyio

WINDOW = 16_000
READS = 10


def reader(window: int = WINDOW) -> SummarizingModel:
    """Reads the file again and again, a line later each time; then it only talks."""

    def say(request: ModelRequest) -> Step:
        number = len(teller.asked)
        if number <= READS:
            return CallTool(name="read", args={"path": "long.txt", "offset": number})
        return SayText(text=f"answer {number}")

    teller = SummarizingModel(window=window, say=say)
    return teller


@pytest.mark.parametrize("form", ["json", "jsonl", "html"])
async def test_an_export_has_every_result_whole_and_knows_which_were_cleared(
    plain_world: World, form: Literal["json", "jsonl", "html"]
) -> None:
    lines = [f"line {number} of the file" for number in range(180)]
    plain_world.write("long.txt", "\n".join(lines))
    teller, file = reader(), plain_world.base / f"export.{form}"
    async with plain_world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it", "go on")
        assert await facts(session, ResultsCleared)
        await app.sessions.export_session(session.id, form, path=file)
        text = file.read_text()
        assert all(text.count(line) >= READS for line in lines[READS:])
        assert "Cleared to make room" not in text
        if form == "html":
            return
        taken = await app.sessions.import_session(file)
        # Else the next request would not fit the window, and pay for room that was made already.
        read = await next_messages(taken.session)
        assert read.count(b"[Cleared to make room: ") == READS - 4


async def test_results_that_can_be_fetched_again_go_before_anything_is_summarised(
    world: World,
) -> None:
    world.write("long.txt", "a line of the file\n" * 180)
    teller = reader()
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it")
        assert await facts(session, ResultsCleared) == []
        full = request_lines(teller.asked[-1])
        await send_prompts(session, "go on")
        [made] = await facts(session, ResultsCleared)
        assert (teller.summaries, made.tokens_after < made.tokens_before) == ([], True)
        seen = request_lines(teller.asked[-1])
        short = [line for line in seen if line.startswith("result: [Cleared to make room: ")]
        assert len(short) == READS - 4  # the last five answers stay; one of them only talks
        assert '{"path":"long.txt","offset":1}' in short[0]
        assert seen[-3:] == [*full[-1:], "assistant: answer 11", "user: go on"]
        # The user still reads all of it.
        whole = [m.content for m in await session.messages() if m.role == "tool"]
        assert not any("Cleared" in text for text in whole)
        await send_prompts(session, "and on")
        assert request_lines(teller.asked[-1])[: len(seen)] == seen
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        await send_prompts(session, "again")
        assert request_lines(teller.asked[-1])[: len(seen)] == seen


async def test_after_an_undo_the_request_is_what_it_was_and_nothing_is_cleared_again(
    world: World,
) -> None:
    world.write("long.txt", "a line of the file\n" * 180)
    teller = reader()
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it")
        before = teller.asked[-1].messages
        await send_prompts(session, "go on")
        assert teller.asked[-1].messages[: len(before)] != before
        await session.undo_compaction()
        await send_prompts(session, "once more")
        assert teller.asked[-1].messages[: len(before)] == before
        assert len(await facts(session, ResultsCleared)) == 1
        with pytest.raises(UsageError, match="nothing on this line"):
            await session.undo_compaction()


async def test_after_an_undo_a_compaction_is_gone_byte_for_byte(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "never push", "three")
        fork = await app.sessions.fork_session("s")
        await session.compact()
        await session.undo_compaction()
        await send_prompts(session, "now")
        compacted_and_undone = teller.asked[-1]
        await send_prompts(fork, "now")
        assert teller.asked[-1].messages == compacted_and_undone.messages
        assert teller.asked[-1].system == compacted_and_undone.system


async def test_results_that_do_not_fit_the_window_are_cut_at_both_ends(world: World) -> None:
    world.write("wide.txt", "w" * 60 + "\n" + ("a line of the file\n" * 1_400))

    def say(request: ModelRequest) -> Step:
        if len(teller.asked) > 1:
            return SayText(text="fine")
        reads = tuple(CallTool(name="read", args={"path": "wide.txt"}) for _ in range(9))
        return CallTogether(calls=reads)

    teller = SummarizingModel(window=WINDOW, say=say)
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it nine times")
        results = [line for line in request_lines(teller.asked[-1]) if line.startswith("result")]
        assert [text.count("characters are left out") for text in results] == [1] * 9
        assert sum(map(len, results)) < WINDOW * 4 * 0.9
        assert await facts(session, ErrorRaised) == []
        assert await compactions(session) == []


async def test_the_report_counts_cleared_results_as_they_are_sent(world: World) -> None:
    world.write("long.txt", "a line of the file\n" * 180)
    teller = reader()
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it", "go on")
        assert await facts(session, ResultsCleared)
        report = await context_report(session, app.host)
    assert report is not None
    assert {each.args["offset"] for each in report.largest} <= {7, 8, 9, 10}


async def test_a_diff_shows_what_the_last_step_cleared_and_not_what_an_earlier_one_did(
    world: World,
) -> None:
    world.write("long.txt", "a line of the file\n" * 180)

    def say(request: ModelRequest) -> Step:
        number = len(teller.asked)
        if number == READS + 1:
            return SayText(text="first")
        if number <= 2 * READS:
            return CallTool(name="read", args={"path": "long.txt", "offset": number})
        return SayText(text=f"answer {number}")

    teller = SummarizingModel(window=WINDOW, say=say)
    async with world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it", "go on", "and on")
        steps = await facts(session, ResultsCleared)
        assert len(steps) > 1
        diff = await compaction_diff(session, app.store)
    assert diff is not None
    new = len(steps[-1].results) - len(steps[-2].results)
    assert sum(line.startswith("read ") for line in diff.before) == new
    assert not any("Cleared to make room" in line for line in diff.before)
    assert all("Cleared to make room" in line for line in diff.after if line.startswith("read "))


async def test_a_result_that_is_excluded_stays_cleared_for_when_it_is_put_back(
    plain_world: World,
) -> None:
    plain_world.write("long.txt", "a line of the file\n" * 180)

    def say(request: ModelRequest) -> Step:
        number = len(teller.asked)
        if number <= READS or ("once more" in str(request.messages) and number < 4 * READS):
            return CallTool(name="read", args={"path": "long.txt", "offset": number})
        return SayText(text=f"answer {number}")

    teller = SummarizingModel(window=WINDOW, say=say)
    async with plain_world.open(teller.model) as app:
        session = await start(app, tools=["read"])
        await send_prompts(session, "read it")
        caller = next(node for node, each in await session.messages_with_ids() if each.tool_calls)
        await send_prompts(session, "go on")
        [first] = await facts(session, ResultsCleared)
        await session.exclude(caller)
        await send_prompts(session, "once more")
        _, second, *_ = await facts(session, ResultsCleared)
        assert set(first.results) <= set(second.results)
