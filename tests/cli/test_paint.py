"""Blocks on a terminal, judged by a terminal."""

from __future__ import annotations

from typing import Any

import pyte
import pytest

from tests.support.terminal_attacks import ATTACKS, RecordingTerminal
from weft.cli.chat.screens.render import BlockRenderer
from weft.messages import ToolResult
from weft.view import (
    AnswerBlock,
    AnyBlock,
    NoteBlock,
    PermissionBlock,
    QuestionBlock,
    TableBlock,
    ThinkingBlock,
    ToolCard,
    UserBlock,
    thousands,
)


def on_screen(block: AnyBlock, width: int = 80, **fields: Any) -> list[str]:
    """The lines that a terminal shows."""
    screen = pyte.Screen(width, 200)
    stream: Any = pyte.Stream(screen)
    stream.feed(BlockRenderer(width=width, **fields).paint(block).replace("\n", "\r\n"))
    lines = [line.rstrip() for line in screen.display]
    return lines[: max((i + 1 for i, line in enumerate(lines) if line), default=0)]


def test_an_address_stays_in_one_piece() -> None:
    address = f"https://example.com/login?{'x' * 90}"
    painted = BlockRenderer(width=40, styled=False, coloured=False).paint(
        NoteBlock(text=f"open this in a browser on another machine:\n{address}")
    )
    assert painted.split("\n")[-2] == address, "the terminal breaks it, so that a copy is whole"


@pytest.mark.parametrize(
    ("count", "shown"), [(99, "99"), (100, "0.1k"), (999_949, "999.9k"), (999_977, "1.0M")]
)
def test_numbers_are_short(count: int, shown: str) -> None:
    assert thousands(count) == shown


def card(name: str, result: str, *, is_error: bool = False, **fields: Any) -> ToolCard:
    data = fields.pop("data", {})
    return ToolCard(
        name=name,
        args=fields.pop("args", {}),
        # An id.
        result=ToolResult(call_uid="c", text=result, is_error=is_error, data=data, **fields),  # type: ignore[arg-type]
    )


def blocks_with(text: str) -> list[AnyBlock]:
    """Every kind of block, with a text in every place where foreign words can stand."""
    return [
        UserBlock(text=text, attached=(text,)),
        AnswerBlock(text=text),
        AnswerBlock(
            text=f"# {text}\n\n- {text}\n\n```{text}\n{text}\n```\n\n| {text} |\n|---|\n| {text} |"
        ),
        AnswerBlock(text=f"[{text}](http://x/{text}) `{text}` ![{text}]({text})"),
        ThinkingBlock(text=text),
        card(text, text, args={"path": text}),
        card("shell", text, args={"command": text}, is_error=True),
        card("edit", "ok", args={"path": text}, data={"diff": f"--- a\n+++ a\n-{text}\n+{text}"}),
        PermissionBlock(tool=text, target=text, preview=text, reason=text),
        PermissionBlock(tool="edit", target="a", preview=f"--- a\n+++ a\n-{text}\n+{text}"),
        QuestionBlock(text=text),
        NoteBlock(text=text),
        TableBlock(title=text, rows=((text, text),)),
    ]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_foreign_word_in_any_block_does_anything_but_show(attack: str) -> None:
    """Colours are ours; a title, a mode, a margin, an answer, a jump upward would be theirs."""
    fresh = RecordingTerminal()
    for block in blocks_with(attack[:300]):
        screen = RecordingTerminal()
        stream: Any = pyte.Stream(screen)
        painted = BlockRenderer(width=80).paint(block)
        stream.feed("top\r\n" + painted.replace("\n", "\r\n"))
        assert (screen.title, screen.icon_name) == ("", "")
        assert (screen.mode, screen.margins, screen.charset) == (
            *(fresh.mode, fresh.margins),
            fresh.charset,
        )
        assert (screen.answers, screen.savepoints) == ([], [])
        plain = BlockRenderer(width=80, styled=False).paint(block)
        assert not any(letter in plain for letter in "\x1b\x9b\x07\r\x08")


def test_an_answer_is_drawn_as_markdown_with_where_links_lead() -> None:
    text = (
        "# Title\n\nSome **bold** `code`.\n\n1. one\n2. "
        "two\n\n[docs](http://x.org/y)\n\n```python\nx = 1\n```"
    )
    lines = on_screen(AnswerBlock(text=text))
    assert lines[1] == "Title"
    assert "Some bold code." in lines
    assert "1. one" in lines
    assert "docs (http://x.org/y)" in lines
    assert lines[-2:] == ["python", "x = 1"]


def test_a_card_says_what_was_done_and_how_it_ended() -> None:
    assert on_screen(card("read", "1\n2\n3", args={"path": "a.py"})) == ["● Read a.py"]
    failed = card("shell", "boom", args={"command": "make"}, is_error=True, data={"exit_code": 2})
    assert on_screen(failed) == ["● Failed: make  exit 2", "  boom"]
    denied = card("shell", "Denied: no.", args={"command": "rm x"}, status="denied", is_error=True)
    assert on_screen(denied) == ["● Not allowed: rm x  — no"]


def test_long_output_is_shortened_in_the_middle() -> None:
    lines = on_screen(card("shell", "\n".join(str(n) for n in range(100)), args={"command": "seq"}))
    assert lines[1:3] == ["  0", "  … 95 more lines · Ctrl+O"]
    assert lines[3:] == ["  96", "  97", "  98", "  99"]


def test_a_change_is_shown_with_its_lines() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new"
    assert on_screen(card("edit", "edited", args={"path": "a"}, data={"diff": diff})) == [
        *("● Edited a  +1 −1", "   1 - old", "   1 + new"),
    ]


def test_what_needs_permission_is_shown_whole_however_long() -> None:
    command = " && ".join(f"step{number}" for number in range(200))
    lines = on_screen(PermissionBlock(tool="shell", target=command, preview=command), width=40)
    shown = "".join(lines).replace(" ", "")
    assert shown == command.replace(" ", "")
    diff = "--- a\n+++ a\n@@ -0,0 +1,50 @@\n" + "\n".join(f"+line {number}" for number in range(50))
    shown_lines = on_screen(PermissionBlock(tool="edit", target="a", preview=diff))
    assert "  50 + line 49" in shown_lines


def test_padding_hides_nothing_on_a_small_screen() -> None:
    command = "ls" + " " * 400 + "; rm -rf /"
    lines = on_screen(PermissionBlock(tool="shell", target=command, preview=command))
    assert lines[-1] == "  ls<400 spaces>; rm -rf /"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_but_code_is_wider_than_the_window(width: int) -> None:
    text = "word " * 60 + "\u4e2d\u6587" * 30
    for block in blocks_with(text):
        for line in BlockRenderer(width=width, styled=False).paint(block).split("\n"):
            if line == text:
                continue  # code, which the terminal breaks, so that a copy is the code
            assert sum(2 if letter > "\u2e80" else 1 for letter in line) <= width


def test_without_colours_there_are_none_and_plain_has_no_escape() -> None:
    painted = "".join(BlockRenderer(width=80, coloured=False).paint(b) for b in blocks_with("text"))
    assert "\x1b[1m" in painted, "bold is no colour"
    assert not any(f"\x1b[{code}m" in painted for code in range(30, 50))
    plain = "".join(
        BlockRenderer(width=80, styled=False, unicode=False).paint(b)
        for b in blocks_with("t\u00e9xt")
    )
    assert "\x1b" not in plain
    assert plain.isascii()
