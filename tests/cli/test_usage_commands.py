"""`/context` and `/cost`: what fills the window, what it cost, how long it took, what changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.app.context_report import ContextReport, LargeOutput
from weft.cli.chat.paint.context_rows import BAR, more_rows, zone_rows
from weft.cli.chat.paint.plain_words import plain_lines
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.screens.render import BlockRenderer
from weft.view import ContextZone, TableBlock

pytestmark = pytest.mark.anyio

REPORT = ContextReport(
    used=60_000,
    window=200_000,
    zones=(
        ContextZone(name="system", tokens=2_000),
        ContextZone(name="tools", tokens=5_000),
        ContextZone(name="instructions", tokens=0, budget=8_192),
        ContextZone(name="memory", tokens=1_000, budget=1_000, is_cut=True),
        ContextZone(name="skills", tokens=0, budget=8_192),
        ContextZone(name="messages", tokens=12_000),
        ContextZone(name="outputs", tokens=40_000),
    ),
    reserved=20_000,
    largest=(LargeOutput(name="shell", args={"command": "make test"}, tokens=30_000),),
    compacts_at=140_000,
)


async def tables(talk: ChatDriver, typed: str) -> list[TableBlock]:
    talk.screen.blocks.clear()
    talk.screen.typed(typed)
    talk.screen.typed("/todo")
    await talk.screen.noted("no to-do list yet")
    return talk.screen.of(TableBlock)


def test_the_window_is_shown_with_a_bar_for_each_zone_and_when_it_is_compacted() -> None:
    assert zone_rows(REPORT) == (
        ("used", "60.0k of 200.0k (30%)", "█████████░░░░░░░░░░░░░░░░░░░░░"),
        ("system prompt", "2.0k (1.0%)", "█░░░░░░░░░░░░░░░░░░░░░░░░░░░░░"),
        ("tools", "5.0k (2.5%)", "░███░░░░░░░░░░░░░░░░░░░░░░░░░░"),
        ("AGENTS.md", "none", "░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░"),
        ("memory", "1.0k (0.5%), cut", "░░░█░░░░░░░░░░░░░░░░░░░░░░░░░░"),
        ("messages", "12.0k (6.0%)", "░░░░██████░░░░░░░░░░░░░░░░░░░░"),
        ("tool output", "40.0k (20.0%)", "░░░░░░░░░░████████████████████"),
    )
    assert more_rows(REPORT, "/compact") == (
        ("largest", "30.0k  shell make test"),
        ("free", "140.0k (70.0%), 20.0k of it for the answer"),
        ("compacted", "at 140.0k (70%); /compact does it now"),
    )


@pytest.mark.parametrize("is_unicode", [True, False])
def test_the_rows_fit_into_eighty_columns_without_colours(is_unicode: bool) -> None:
    theme = PaintTheme(is_styled=False, is_coloured=False, is_unicode=is_unicode)
    painter = BlockRenderer(width=80, theme=theme)
    shown = painter.paint(TableBlock(title="Context", rows=zone_rows(REPORT)))
    lines = shown.strip("\n").split("\n")
    assert len(lines) == len(zone_rows(REPORT)) + 1
    assert max(map(len, lines)) <= 80


@given(tokens=st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_bars_follow_one_another_and_are_all_as_long(tokens: list[int]) -> None:
    zones = tuple(ContextZone(name="messages", tokens=each) for each in tokens)
    report = msgspec.structs.replace(REPORT, zones=zones, used=sum(tokens))
    for zone, row in zip(zones, zone_rows(report)[1:], strict=True):
        assert len(row[2]) == BAR
        assert ("█" in row[2]) is bool(zone.tokens)


async def test_the_parts_are_what_was_sent_and_add_up_to_what_was_used(app: App) -> None:
    project = Path(app.project_path)
    (project / "AGENTS.md").write_text("Be kind. " * 200)
    for name, size in (("a.txt", 100), ("b.txt", 4000), ("c.txt", 2000), ("d.txt", 3000)):
        (project / name).write_text("word " * size)
    reads = [call("read", path=name) for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    async with driven_chat(app, reads, "Read.") as talk:
        (nothing,) = await tables(talk, "/context")
        assert nothing.rows[-1] == ("used", "nothing sent yet")
        await talk.say("read them all")
        zones, more = await tables(talk, "/context")
        rows = {row[0]: row[1] for row in (*zones.rows, *more.rows) if row[0]}
        assert rows["used"].endswith("%)")
        for part in ("system prompt", "tools", "AGENTS.md", "messages", "notes", "tool output"):
            assert rows[part] != "none", part
        largest = [row[1] for row in more.rows if row[0] in ("largest", "")]
        assert [each.split("  ")[1] for each in largest] == [
            "read b.txt",
            "read d.txt",
            "read c.txt",
        ]
        assert rows["compacted"].startswith("at ")


async def test_the_cost_comes_with_time_and_lines(app: App) -> None:
    writes = [call("write", path="a.txt", content="one\ntwo\n")]
    async with driven_chat(app, writes, "Made.", flags=("--yolo",)) as talk:
        await talk.say("make it")
        cost, more = await tables(talk, "/cost")
        assert cost.rows[0] == ("", "in", "out", "cache", "cost")
        assert cost.rows[-1][0] == "all"
        assert more.rows[0][0] == "time"
        assert more.rows[0][1].endswith(" s from the first message to the last, 1 turn")
        assert more.rows[1] == ("lines changed", "+2 −0 in 1 file")


def test_a_table_is_read_row_by_row_with_its_headings_and_without_bars() -> None:
    cost = TableBlock(title="Cost", rows=(("", "in", "cost"), ("all", "12", "$1")))
    assert plain_lines(cost) == ["Cost:", "all: in 12, cost $1"]
    window = TableBlock(title="Context", rows=zone_rows(REPORT))
    assert plain_lines(window)[:4] == [
        "Context:",
        "used: 60.0k of 200.0k (30%)",
        "system prompt: 2.0k (1.0%)",
        "tools: 5.0k (2.5%)",
    ]
