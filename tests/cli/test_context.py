"""`weft context`, and the zones in the snapshot."""

from __future__ import annotations

import json

import pytest

from tests.support.compaction import SummarizingModel
from tests.support.counting_model import CountingModel
from tests.support.weft_program import WeftProgram
from tests.support.world import World
from weft.app.context_report import context_report


def test_the_command_shows_the_last_session_as_bars_and_as_json(weft: WeftProgram) -> None:
    none = weft.call("context")
    assert (none.returncode, none.stdout) == (2, "")
    assert "there is no session in this folder" in none.stderr
    (weft.project / "AGENTS.md").write_text("Be kind.\n" * 300)
    weft.call("memory", "add", "use tabs")
    (weft.project / "a.txt").write_text("word " * 900)
    weft.call("-p", "-m", weft.script("Hello."), "look at @a.txt")
    shown = weft.call("context").stdout.splitlines()
    labels = [line[:14].strip() for line in shown[:8]]
    assert labels == [
        *("used", "system prompt", "tools", "AGENTS.md", "memory", "messages", "files", "notes")
    ]
    assert max(map(len, shown[:9])) <= 80
    assert all("█" in line for line in shown[1:8])
    report = json.loads(weft.call("context", "--json").stdout)
    zones = {zone["name"]: zone["tokens"] for zone in report["zones"]}
    assert zones["files"] > zones["memory"] > 0
    assert sum(zones.values()) == pytest.approx(report["used"], abs=len(zones))
    plain = weft.run("context", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}).stdout
    assert "####" in plain
    assert plain.isascii()


@pytest.mark.anyio
async def test_the_snapshot_says_who_uses_what_as_the_vendor_counts(world: World) -> None:
    counting = CountingModel(window=64_000, ratio=1.5)
    world.write("AGENTS.md", "Be kind.\n" * 400)
    async with world.open(counting.model) as app:
        await app.memory.add("use tabs")
        session = await app.sessions.start_session()
        assert (await session.editor_snapshot()).context_zones == ()
        await session.send_message("word " * 2_000)
        snapshot = await session.editor_snapshot()
    zones = {zone.name: zone for zone in snapshot.context_zones}
    assert list(zones) == ["system", "tools", "instructions", "memory", "conversation"]
    assert sum(zone.tokens for zone in zones.values()) == snapshot.context_used
    assert zones["instructions"].tokens == pytest.approx(3_600 / 4 * 1.5, rel=0.05)
    assert zones["instructions"].budget == 8_000
    assert zones["conversation"].tokens == pytest.approx(10_000 / 4 * 1.5, rel=0.1)


@pytest.mark.anyio
async def test_a_report_that_can_be_no_count_of_the_request_is_left_aside(world: World) -> None:
    # As a server says that leaves out what it had in its cache.
    counting = CountingModel(window=64_000, ratio=0.01)
    async with world.open(counting.model) as app:
        session = await app.sessions.start_session()
        await session.send_message("word " * 2_000)
        report = await context_report(session, app.host)
        snapshot = await session.editor_snapshot()
    assert report is not None
    zones = {zone.name: zone.tokens for zone in report.zones}
    assert zones["messages"] == pytest.approx(10_000 / 4, rel=0.1)
    assert sum(zones.values()) == pytest.approx(report.used, abs=len(zones))
    assert snapshot.context_used == report.used


@pytest.mark.anyio
async def test_a_summary_has_a_zone_of_its_own(world: World) -> None:
    summarizing = SummarizingModel()
    async with world.open(summarizing.model) as app:
        session = await app.sessions.start_session()
        for number in range(4):
            await session.send_message(f"{number} " * 2_000)
        await session.compact()
        await session.send_message("and now?")
        report = await context_report(session, app.host)
    assert report is not None
    zones = {zone.name: zone.tokens for zone in report.zones}
    assert zones["summary"] > 0
    assert zones["messages"] < report.used / 2


@pytest.mark.anyio
async def test_what_is_used_follows_a_compaction_its_undo_and_a_rewind(world: World) -> None:
    async def used() -> tuple[int, int]:
        report = await context_report(session, app.host)
        assert report is not None
        assert sum(zone.tokens for zone in report.zones) == pytest.approx(report.used, abs=9)
        tools.add(next(zone.tokens for zone in report.zones if zone.name == "tools"))
        return report.used, (await session.editor_snapshot()).context_used

    counting = CountingModel(window=64_000, ratio=1.5)
    tools: set[int] = set()
    async with world.open(counting.model) as app:
        session = await app.sessions.start_session()
        for number in range(4):
            await session.send_message(f"{number} " * 4_000)
        whole, _ = await used()
        await session.compact()
        short = await used()
        assert short[0] == short[1] < whole / 2
        await session.undo_compaction()
        again = await used()
        assert again == pytest.approx((whole, whole), rel=0.05)
        await session.send_message("and now? " * 9)
        after = await used()
        assert after[0] == after[1] > whole
        await session.rewind(1, files=False)
        early = await used()
        assert early[0] == early[1] < whole / 2
        await session.undo_rewind()
        assert await used() == after
    assert max(tools) - min(tools) <= 0.1 * max(tools)
