"""`/context` and `/cost`: what fills the window, what it cost, how long it took, what changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.app.context_report import ContextReport, LargeOutput
from weft.cli.chat.commands.usage_commands import context_rows
from weft.cli.chat.paint.plain_words import plain_lines
from weft.view import TableBlock

pytestmark = pytest.mark.anyio

REPORT = ContextReport(
    used=60_000,
    window=200_000,
    system=2_000,
    tools=6_000,
    instructions=0,
    messages=12_000,
    outputs=40_000,
    largest=(LargeOutput(name="shell", args={"command": "make test"}, tokens=30_000),),
    compacts_at=140_000,
)


async def tables(talk: ChatDriver, typed: str) -> list[TableBlock]:
    talk.screen.blocks.clear()
    talk.screen.typed(typed)
    talk.screen.typed("/todo")
    await talk.screen.noted("no to-do list yet")
    return talk.screen.of(TableBlock)


def test_the_window_is_shown_with_a_bar_its_parts_and_when_it_is_compacted() -> None:
    assert context_rows(REPORT) == [
        ("used", "60.0k of 200.0k tokens (30%)"),
        ("", "█████████░░░░░░░░░░░░░░░░░░░░░"),
        ("system prompt", "2.0k (1.0%)"),
        ("tools", "6.0k (3.0%)"),
        ("AGENTS.md", "none"),
        ("messages", "12.0k (6.0%)"),
        ("tool output", "40.0k (20.0%)"),
        ("largest", "30.0k  shell make test"),
        ("free", "140.0k (70.0%)"),
        ("compacted", "at 140.0k (70%); /compact does it now"),
    ]


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
        (shown,) = await tables(talk, "/context")
        rows = {row[0]: row[1] for row in shown.rows if row[0]}
        assert rows["used"].endswith("%)")
        for part in ("system prompt", "tools", "AGENTS.md", "messages", "tool output", "free"):
            assert rows[part] != "none", part
        largest = [row[1] for row in shown.rows if row[0] in ("largest", "")][1:]
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
    window = TableBlock(title="Context", rows=tuple(context_rows(REPORT)))
    assert plain_lines(window)[:4] == [
        "Context:",
        "used: 60.0k of 200.0k tokens (30%)",
        "system prompt: 2.0k (1.0%)",
        "tools: 6.0k (3.0%)",
    ]
