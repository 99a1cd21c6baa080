"""The viewer: everything unfolded on the alternate screen, and the conversation as it was behind
it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.support.chat_driver import driven_chat
from tests.support.idle_loop import all_tasks_blocked
from tests.support.memory_terminal import DrivenScreen, driven_screen
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, call, text
from weft.app import App
from weft.cli.chat.paint.full_lines import full_lines
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.chat.screens.shown_record import LEFT_OUT, ShownRecord
from weft.errors import UsageError
from weft.ids import CallUid
from weft.messages import ToolResult
from weft.view import (
    AnswerBlock,
    AnyBlock,
    LiveArea,
    LookupCard,
    NoteBlock,
    ThinkingBlock,
    ToolCard,
    UserBlock,
)

pytestmark = pytest.mark.anyio

CTRL_O, DOWN, UP, PAGE_DOWN, PAGE_UP = "\x0f", "\x1b[B", "\x1b[A", "\x1b[6~", "\x1b[5~"
HOME, END = "\x1b[H", "\x1b[F"
HINT = "q returns"


def ran(command: str, output: str, name: str = "shell", **args: str) -> ToolCard:
    given = {"command": command} if command else dict(args)
    return ToolCard(name=name, args=given, result=ToolResult(call_uid=CallUid("c"), text=output))


def numbered(word: str, count: int) -> str:
    return "\n".join(f"{word} {number}" for number in range(1, count + 1))


CONVERSATION: tuple[AnyBlock, ...] = (
    UserBlock(text=numbered("pasted", 12), node_id="n"),
    ThinkingBlock(text="Let me see.\nIt is the sign.", seconds=9),
    LookupCard(cards=(ran("", "def add(a, b):", "read", path="calc.py"),)),
    ran("make test", numbered("test", 30)),
    AnswerBlock(text="All is well.\n\n", node_id="a"),
    AnswerBlock(text="Really.", node_id="a"),
)


async def talked(driven: DrivenScreen) -> None:
    driven.screen.show(*CONVERSATION)
    await driven.terminal.shows("Really.")


async def test_it_opens_at_the_last_folded_thing_and_scrollback_is_as_it_was(
    tmp_path: Path,
) -> None:
    async with driven_screen(tmp_path, rows=20) as driven:
        await talked(driven)
        await driven.type("draft")
        before, cursor = driven.terminal.history, driven.terminal.cursor
        await driven.type(CTRL_O)
        assert driven.terminal.is_alternate()
        rows = driven.terminal.rows
        assert rows[0] == "● Ran make test"
        assert rows[1:19] == [f"  test {number}" for number in range(1, 19)]
        assert HINT in rows[-1]
        assert "card 4 of 4" in rows[-1]
        was_hidden = not driven.terminal.has_cursor
        assert was_hidden
        await driven.type("q")
        assert not driven.terminal.is_alternate()
        assert (driven.terminal.history, driven.terminal.cursor) == (before, cursor)
        assert driven.terminal.has_cursor
        assert driven.sent() == []


async def test_everything_is_unfolded(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=80) as driven:
        await talked(driven)
        await driven.type(CTRL_O)
        shown = driven.terminal.rows
        for line in (
            *(f"  pasted {number}" for number in range(2, 13)),
            "  It is the sign.",
            "● Read calc.py",
            "  def add(a, b):",
            *(f"  test {number}" for number in range(1, 31)),
            "All is well.",
            "Really.",
        ):
            assert shown.count(line) == 1, line
        assert "Ctrl+O" not in driven.terminal.text


async def test_keys_scroll_and_stop_at_both_ends(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=10) as driven:
        await talked(driven)
        await driven.type(CTRL_O)
        assert driven.terminal.rows[0] == "● Ran make test"
        await driven.type(DOWN)
        assert driven.terminal.rows[0] == "  test 1"
        await driven.type(PAGE_DOWN)
        assert driven.terminal.rows[0] == "  test 9"
        await driven.type(PAGE_UP)
        await driven.type(UP)
        assert driven.terminal.rows[0] == "● Ran make test"
        await driven.type(HOME)
        await driven.type(UP)
        assert driven.terminal.rows[0] == "› pasted 1"
        await driven.type(END)
        await driven.type(DOWN)
        assert driven.terminal.rows[8] == "Really."


async def test_n_and_p_go_from_card_to_card(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=10) as driven:
        await talked(driven)
        await driven.type(f"{CTRL_O}n")
        assert "that is the last card" in driven.terminal.rows[-1]
        await driven.type("p")
        assert driven.terminal.rows[0] == "● Read calc.py"
        await driven.type("p")
        assert driven.terminal.rows[0] == "∴ Thought for 9 s"
        assert "card 2 of 4" in driven.terminal.rows[-1]
        assert driven.terminal.style_of("∴ Thought").reverse
        await driven.type("n")
        assert driven.terminal.rows[0] == "● Read calc.py"


async def test_a_search_finds_the_next_row_and_says_when_there_is_none(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=10) as driven:
        await talked(driven)
        await driven.type(f"{CTRL_O}/TEST 1")
        assert driven.terminal.rows[-1] == "/TEST 1"
        await driven.type("\r")
        assert driven.terminal.rows[0] == "  test 1"
        await driven.type("/\r")
        assert driven.terminal.rows[0] == "  test 10"
        await driven.type("/sign\r")
        assert driven.terminal.rows[0] == "  It is the sign."
        await driven.type("/nowhere\r")
        assert '"nowhere" is not here' in driven.terminal.rows[-1]
        # Esc ends what is typed, and not the viewer.
        await driven.type("/q")
        driven.screen._viewer.press("escape")  # type: ignore[union-attr]
        assert driven.terminal.is_alternate()


async def test_c_copies_what_the_card_printed(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await talked(driven)
        await driven.type(f"{CTRL_O}c")
        data = re.findall(r"\x1b\]52;c;([^\x1b]*)", driven.terminal.written)
        assert base64.b64decode(data[-1]).decode() == numbered("test", 30)
        assert "copied 30 lines" in driven.terminal.rows[-1]


async def test_what_comes_meanwhile_is_shown_on_return(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await talked(driven)
        await driven.type(CTRL_O)
        driven.screen.watch(LiveArea(model="x:model", status="thinking"))
        driven.screen.show(NoteBlock(text="something happened"))
        await all_tasks_blocked()
        assert "something happened" not in driven.terminal.text
        await driven.type("q")
        assert driven.terminal.text.count("something happened") == 1
        # Ctrl+O again closes it too, and nothing of that reaches the input.
        await driven.type(f"{CTRL_O}xyz{CTRL_O}")
        assert not driven.terminal.is_alternate()
        assert driven.screen.input.editor.text == ""


async def test_a_question_closes_it(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven, anyio.create_task_group() as group:
        await talked(driven)
        await driven.type(CTRL_O)
        question = ChoiceQuestion(title="Allow this edit?", rows=(ChoiceRow("Yes"),))
        group.start_soon(driven.screen.choose, question)
        await driven.terminal.shows("Allow this edit?", "Really.")
        assert not driven.terminal.is_alternate()
        # Over a question it does not open.
        await driven.type(CTRL_O)
        assert not driven.terminal.is_alternate()
        group.cancel_scope.cancel()


async def test_it_is_drawn_at_the_new_size(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=20) as driven:
        await talked(driven)
        await driven.type(CTRL_O)
        driven.terminal.resize(40, 12)
        await driven.terminal.until(lambda: "card 4 of 4" in driven.terminal.rows[-1])
        assert driven.terminal.rows[0] == "● Ran make test"
        assert driven.terminal.rows[10] == "  test 10"
        await driven.type("q")
        await driven.terminal.shows("Really.", "›")
        assert "\n".join(driven.terminal.history).count("Really.") == 1
        assert driven.terminal.text.count("─" * 40) == 1


async def test_a_chat_that_ends_gives_the_screen_back(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await talked(driven)
        await driven.type(CTRL_O)
        driven.screen.close()
        assert not driven.terminal.is_alternate()
        assert "Really." in driven.terminal.text


async def test_nothing_to_unfold(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type(CTRL_O)
        assert not driven.terminal.is_alternate()
        await driven.terminal.shows("there is nothing to unfold yet")


async def test_escapes_in_an_output_stay_text(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        evil = "a\x1b[?1049lb\x1b]52;c;QUFB\x07" + "\nmore" * 9
        driven.screen.show(ran("cat \x1b[2J evil", evil))
        await driven.terminal.shows("Ran cat")
        await driven.type(CTRL_O)
        assert driven.terminal.is_alternate()
        assert "52;c;QUFB\x07" not in driven.terminal.written


def test_the_record_keeps_so_much_and_says_that_there_was_more() -> None:
    record = ShownRecord(most=5_000)
    for number in range(20):
        record.add(ran(f"echo {number}", "x" * 400))
    blocks = record.blocks()
    assert blocks[0] is LEFT_OUT
    assert 2 < len(blocks) < 8
    last = record.card(1)
    assert isinstance(last, ToolCard)
    assert last.args == {"command": "echo 19"}
    for number in (0, 20):
        with pytest.raises(UsageError, match=r"from 1, the last card, to \d"):
            record.card(number)


async def test_a_card_is_printed_in_full_into_scrollback(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=20) as driven:
        with pytest.raises(UsageError, match="no card to show yet"):
            driven.screen.unfold(1)
        await talked(driven)
        driven.screen.show(ran("echo wide", "wide " * 40))
        driven.screen.unfold(2)
        await driven.terminal.until(lambda: "  test 2" in driven.terminal.history)
        rows = driven.terminal.history
        first = rows.index("  test 2")
        assert rows[first - 2 : first + 29] == [
            "● Ran make test",
            *(f"  test {number}" for number in range(1, 31)),
        ]
        # The second-last once more: what was shown in full is no new card.
        driven.screen.unfold(1)
        await driven.terminal.until(lambda: driven.terminal.text.count("Ran echo wide") == 1)
        assert ("  " + "wide " * 40).rstrip() in driven.terminal.written


async def test_show_takes_a_number(app: App) -> None:
    async with driven_chat(app, "Done.") as talk:
        talk.screen.typed("/show")
        talk.screen.typed("/show 3")
        await talk.screen.until(lambda: talk.screen.unfolded == [1, 3])
        talk.screen.typed("/show all")
        await talk.screen.until(
            lambda: any("takes a number" in note.text for note in talk.screen.of(NoteBlock))
        )


async def test_diff_shows_each_file_as_it_was_before_and_as_it_is(app: App) -> None:
    project = Path(app.project_path)
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "gone.txt").write_text("old\n")
    (project / "same.txt").write_text("one\n")
    steps = [
        [call("read", path=name) for name in ("calc.py", "gone.txt", "same.txt")],
        [call("edit", path="calc.py", old_string="a - b", new_string="b + a")],
        [call("edit", path="calc.py", old_string="b + a", new_string="a + b")],
        [call("write", path="new.txt", content="fresh\n")],
        [call("edit", path="same.txt", old_string="one", new_string="two")],
        [call("edit", path="same.txt", old_string="two", new_string="one")],
        [call("edit", path="gone.txt", old_string="old", new_string="odd")],
    ]
    async with driven_chat(app, *steps, "Done.", flags=("--yolo",)) as talk:
        talk.screen.typed("/diff")
        await talk.screen.until(
            lambda: any("no files were changed" in note.text for note in talk.screen.of(NoteBlock))
        )
        await talk.say("go")
        (project / "gone.txt").unlink()
        talk.screen.typed("/diff")
        await talk.screen.until(lambda: talk.screen.viewed)
    title, *cards = talk.screen.viewed[0]
    shown = [
        line.text
        for card in cards
        if isinstance(card, ToolCard)
        for line in full_lines(card, 80, PaintTheme())
    ]
    assert title == "Changes"
    assert shown == [
        "● Edited calc.py  +1 −1",
        "   1   def add(a, b):",
        "   2 -     return a - b",
        "   2 +     return a + b",
        "● Deleted gone.txt",
        "● Created new.txt  1 line",
        "  fresh",
    ]


async def test_changes_are_viewed_from_the_first_file_on(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=10) as driven:
        await talked(driven)
        driven.screen.view("Changes", ran("", "a", "read", path="a"), ran("b", numbered("b", 30)))
        assert driven.terminal.rows[0] == "● Read a"
        assert driven.terminal.rows[-1].startswith(" Changes · q returns")
        await driven.type("n")
        assert driven.terminal.rows[0] == "● Ran b"
        await driven.type("q")
        assert not driven.terminal.is_alternate()


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path)
    yield window
    window.close()


@needs_tmux
@pytest.mark.process
def test_a_real_terminal_goes_back_to_its_scrollback(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    model = weft.script([call("shell", command="seq 1 40")], [text("Counted.")])
    terminal.start("-m", model, "--permission-mode", "bypass", "count")
    terminal.wait_for("Counted.", "Ran seq 1 40", "· 1 call ·", "· sandbox")
    before = terminal.screen(history=True)
    terminal.keys("C-o")
    shown = terminal.wait_for(HINT, "  20")
    assert "● Ran seq 1 40" in shown.split("\n")[0]
    terminal.resize(40, 20)
    terminal.wait_for("card 2 of 2")
    terminal.resize(80, 24)
    terminal.wait_for("· c copies")
    terminal.keys("q")
    terminal.wait_gone(HINT)
    terminal.wait_for("Counted.", "asks nothing")
    assert terminal.screen(history=True) == before
    # Back at another size: the rows of the region were not broken by it.
    terminal.keys("C-o")
    terminal.wait_for(HINT)
    terminal.resize(40, 24)
    shown = terminal.wait_for("q returns · / · n p · c", "card 2 of 2")
    assert "…" not in shown.rstrip("\n").split("\n")[-1], "the keys are not cut"
    terminal.keys("q")
    terminal.wait_gone(HINT)
    shown = terminal.wait_for("Counted.", "asks nothing")
    assert [row for row in shown.split("\n") if row.startswith("──")] == ["─" * 40]
