"""The terminal screen on a terminal in memory: what is drawn, when, and what is written beside."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.support.idle_loop import all_tasks_blocked
from tests.support.memory_terminal import DrivenScreen, driven_screen
from tests.support.tool_cards import edit
from weft.cli.chat.screens.screen import (
    ChatClosed,
    InterruptPressed,
    LineSubmitted,
    NextMode,
    TakeBack,
)
from weft.cli.chat.screens.terminal.cursor_report import QUIET_SECONDS
from weft.cli.chat.screens.terminal.window_title import AttentionBell, background_of
from weft.cli.chat.screens.terminal_screen import ScreenSettings
from weft.clock import ManualClock
from weft.events import Todo
from weft.view import (
    AnswerBlock,
    LiveArea,
    LookupCard,
    NoteBlock,
    QueuedInput,
    RunningTool,
    UserBlock,
)

pytestmark = pytest.mark.anyio

UP, DOWN, ALT_ENTER, SHIFT_TAB = "\x1b[A", "\x1b[B", "\x1b\r", "\x1b[Z"
PASTE = "\x1b[200~{}\x1b[201~"


def busy(driven: DrivenScreen, **fields: object) -> LiveArea:
    # Fields of the struct.
    live = LiveArea(model="x:model", status="thinking", **fields)  # type: ignore[arg-type]
    driven.screen.watch(live)
    return live


async def test_a_key_is_drawn_at_once_and_a_message_with_its_activity(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        driven.screen.watch(LiveArea(model="x:model"))
        await driven.type("hello")
        assert "› hello" in driven.terminal.text
        await driven.type("\r")
        assert driven.sent() == [LineSubmitted("hello")]
        assert "› hello\n\n⠋ Waiting for model · Esc stops" in driven.terminal.text
        driven.screen.show(UserBlock(text="hello", node_id="n"))
        await driven.terminal.until(lambda: "Waiting" not in driven.terminal.text)
        assert "\n".join(driven.terminal.history).count("› hello") == 1


async def test_keys_of_the_input(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        busy(driven)
        await driven.type("now\r")
        await driven.type(f"later{ALT_ENTER}")
        await driven.type(SHIFT_TAB)
        assert driven.sent() == [LineSubmitted("now"), LineSubmitted("later", True), NextMode()]
        driven.screen.input.press("escape")
        await driven.type("\x03")
        assert driven.sent() == [InterruptPressed(), InterruptPressed()]
        busy(driven, queue=[QueuedInput(entry_id="e", text="later")])
        await driven.type(UP)
        assert driven.sent() == [TakeBack()]
        driven.screen.watch(LiveArea())
        await driven.type(f"two{ALT_ENTER}lines")
        assert driven.screen.input.editor.text == "two\nlines"
        await driven.type("\x03")
        assert driven.screen.input.editor.text == ""
        await driven.type("\x04")
        assert driven.sent() == [ChatClosed()]


async def test_question_mark_on_an_empty_line_shows_the_keys_and_prints_nothing(
    tmp_path: Path,
) -> None:
    async with driven_screen(tmp_path, rows=40) as driven:
        await driven.type("?")
        assert "Shift+Tab   next permission mode" in driven.terminal.text
        driven.screen.input.press("escape")
        driven.screen.redraw()
        assert "Shift+Tab" not in driven.terminal.text
        await driven.type("why?")
        assert "› why?" in driven.terminal.text
        assert driven.sent() == []


async def test_a_long_paste_is_one_token(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        pasted = "\r".join(f"line {number}" for number in range(5000))
        await driven.type(PASTE.format(pasted))
        assert "› [Pasted 5000 lines]" in driven.terminal.text
        await driven.type("\r")
        [sent] = driven.sent()
        assert isinstance(sent, LineSubmitted)
        assert sent.text == pasted.replace("\r", "\n")


def has_shown(driven: DrivenScreen, word: str) -> bool:
    return word in "\n".join(driven.terminal.history)


async def test_text_in_flight_is_settled_where_it_stands_and_never_twice(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=15) as driven:
        live = busy(driven)
        words = [f"w{number:03}" for number in range(300)]
        for at in range(0, 300, 20):
            live.text = " ".join(words[: at + 20])
            driven.screen.refresh()
            await driven.terminal.until(partial(has_shown, driven, words[at]))
        driven.screen.show(AnswerBlock(text=live.text))
        live.text, live.status = "", "idle"
        driven.screen.refresh()
        await driven.terminal.until(lambda: "Writing" not in driven.terminal.text)
        shown = "\n".join(driven.terminal.history)
        assert [shown.count(word) for word in words] == [1] * 300
        drawn = driven.terminal.written
        assert max(drawn.count(word) for word in words[:-20]) < 40


async def test_the_region_takes_half_of_the_window_at_most(tmp_path: Path) -> None:
    async with driven_screen(tmp_path, rows=20) as driven:
        tools = {str(n): RunningTool(name=f"shell {n}", output="x\n" * 9) for n in range(30)}
        busy(driven, running=tools, text="word " * 400, thinking="t " * 400)
        await driven.terminal.shows("Running 30 commands")
        assert len(driven.screen._painter.rows) <= 10 + 7


async def test_the_to_do_list_is_one_row_until_it_is_unfolded(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        todos = (
            Todo(id="1", text="Read", status="done"),
            Todo(id="2", text="Fix the bug in add()", status="in_progress"),
            Todo(id="3", text="Test"),
        )
        busy(driven, todos=todos)
        screen = await driven.terminal.shows("☐ 1/3 Fix the bug in add()")
        assert "Test" not in screen
        await driven.type("\x14")
        assert "☑ Read\n☐ Fix the bug in add()\n☐ Test" in driven.terminal.text


async def test_reads_that_may_be_joined_by_others_wait_in_the_region(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        busy(driven, lookups=LookupCard(cards=()))
        await driven.terminal.shows("Waiting for model")


async def test_what_was_drawn_is_gone_when_the_screen_closes(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        driven.screen.show(NoteBlock(text="kept"))
        await driven.type("draft")
        entered = [driven.terminal.is_entered]
        driven.screen.close()
        await all_tasks_blocked()
        entered.append(driven.terminal.is_entered)
        assert entered == [True, False]
        assert "kept" in driven.terminal.text
        assert "draft" not in driven.terminal.text


async def test_a_terminal_that_hangs_up_ends_the_chat(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        driven.terminal.hang_up()
        with anyio.fail_after(5):
            assert await driven.screen.next_input() == ChatClosed()


async def test_a_resize_draws_once_at_the_new_size(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type("a draft")
        for columns in (70, 60, 50):
            driven.terminal.resize(columns, 24)
        await driven.terminal.until(lambda: "─" * 50 in driven.terminal.text)
        screen = driven.terminal.text
        assert screen.count("› a draft") == 1
        assert screen.count("asks first") == 1


# --- outside of the window ---------------------------------------------------------------------


async def test_the_title_says_what_it_is_about_and_is_given_back(tmp_path: Path) -> None:
    folder = tmp_path / "calc"
    folder.mkdir()
    async with driven_screen(folder) as driven:
        driven.screen.watch(LiveArea(model="x:model"))
        await driven.type("fix the test\r")
        await driven.terminal.until(
            lambda: "\x1b]0;calc: fix the test\x07" in driven.terminal.written
        )
        busy(driven, title="Fix a test")
        await driven.terminal.until(
            lambda: "\x1b]0;⠂ calc: Fix a test\x07" in driven.terminal.written
        )
    assert driven.terminal.written.startswith("\x1b[22;0t")
    assert "\x1b[23;0t" in driven.terminal.written


async def test_the_user_is_called_only_when_they_look_elsewhere(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        assert isinstance(driven.clock, ManualClock)
        for focus, bells in (("I", 0), ("O", 1)):
            await driven.type(f"\x1b[{focus}")
            driven.terminal.written = ""
            live = busy(driven)
            await driven.terminal.shows("Waiting")
            driven.clock.advance(30)
            live.status = "idle"
            driven.screen.refresh()
            await driven.terminal.until(lambda: "Waiting" not in driven.terminal.text)
            rest = re.sub("\x1b]0;[^\x07]*\x07", "", driven.terminal.written)
            assert rest.count("\x07") == bells


def test_terminals_that_can_are_told_in_words() -> None:
    written: list[str] = []
    bell = AttentionBell(written.append, {"TERM_PROGRAM": "WezTerm"})
    bell.has_focus = False
    bell.look(LiveArea(status="awaiting_permission"), seconds=0, asks=True)
    bell.look(LiveArea(status="awaiting_permission"), seconds=0, asks=True)
    assert written == ["\x1b]9;Weft asks\x07"]


@pytest.mark.parametrize(
    ("reply", "background"),
    [
        ("rgb:1e1e/1e1e/2e2e", "dark"),
        ("rgb:ffff/ffff/ffff", "light"),
        ("rgb:f/f/e", "light"),
        ("rgba:00/00/00/ff", "dark"),
        ("rgb:", ""),
        ("#ffffff", ""),
        ("rgb:zz/zz/zz", ""),
    ],
)
def test_a_background_is_dark_or_light_or_unknown(reply: str, background: str) -> None:
    assert background_of(reply) == background


async def test_a_message_carries_the_marks_of_a_prompt(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        driven.screen.show(UserBlock(text="hello", node_id="n"))
        await driven.terminal.shows("› hello")
        assert "\x1b]133;A;redraw=0\x1b\\" in driven.terminal.written


async def test_the_record_keeps_typed_words_and_folds_the_paste_between_them(
    tmp_path: Path,
) -> None:
    pasted = "".join(f"row {number}\n" for number in range(1, 63))
    async with driven_screen(tmp_path) as driven:
        driven.screen.watch(LiveArea(model="x:model"))
        await driven.type("Explain this:\n" + PASTE.format(pasted))
        assert "[Pasted 62 lines]" in driven.terminal.text
        await driven.type("\nand be short please\r")
        shown = "› Explain this:\n  row 1\n  row 2\n  row 3\n  … 59 more pasted lines\n"
        assert shown[: shown.index("  row 3")] in driven.terminal.text
        (sent,) = driven.sent()
        assert isinstance(sent, LineSubmitted)
        driven.screen.show(UserBlock(text=sent.text, node_id="n"))
        await driven.terminal.until(lambda: "Waiting" not in driven.terminal.text)
        assert f"{shown}  and be short please\n" in "\n".join(driven.terminal.history)


async def test_a_command_that_was_sent_with_words_comes_first_the_next_time(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type("/copy code\r")
        await driven.type("/co")
        driven.redraw()
        await driven.terminal.shows("/context")
        listed = [row.strip() for row in driven.terminal.text.split("\n")]
        assert next(row.split()[0] for row in listed if row.startswith("/co")) == "/copy"


async def test_keys_that_outrun_the_list_of_completions_are_what_is_sent(tmp_path: Path) -> None:
    (tmp_path / "calc.py").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    async with driven_screen(tmp_path) as driven:
        await driven.type("/")
        driven.redraw()
        await driven.terminal.shows("/help")
        await driven.type("cost\r")
        assert driven.sent() == [LineSubmitted("/cost")]
        await driven.type("/")
        driven.redraw()
        await driven.terminal.shows("/help")
        await driven.type("cos\r")
        assert driven.sent() == [LineSubmitted("/cost")]
        await driven.type("/")
        driven.redraw()
        await driven.terminal.shows("/help")
        await driven.type("nothing such\r")
        assert driven.sent() == [LineSubmitted("/nothing such")]
        await driven.type("@")
        driven.redraw()
        await driven.terminal.shows("calc.py")
        await driven.type("notes.txt\r")
        assert driven.sent() == [LineSubmitted("@notes.txt")]
        await driven.type("@")
        driven.redraw()
        await driven.terminal.shows("calc.py")
        await driven.type("not\t")
        await driven.terminal.shows("(1/1)")
        await driven.type("\t\r")
        assert driven.sent() == [LineSubmitted("@notes.txt ")]


async def test_a_file_that_the_conversation_is_about_is_offered_first(tmp_path: Path) -> None:
    for name in ("calc.py", "notes.txt"):
        (tmp_path / name).write_text("")
    async with driven_screen(tmp_path) as driven:
        driven.screen.show(UserBlock(text="look", attached=("notes.txt",)))
        await driven.type("@")
        driven.redraw()
        await driven.terminal.shows("calc.py")
        await driven.type("\t\r")
        assert driven.sent() == [LineSubmitted("@notes.txt ")]


@pytest.mark.process
async def test_a_command_of_the_user_may_be_the_status_line(tmp_path: Path) -> None:
    command = """tr ',' '\\n' | grep -c model; printf '\\033[2Jsecond'"""
    settings = ScreenSettings(status_command=f"printf '\\033[31mmy line \\n'; {command}")
    async with driven_screen(tmp_path, settings=settings) as driven:
        driven.screen.watch(LiveArea(model="x:model"))
        await driven.terminal.until(lambda: driven.terminal.text.endswith(" my line"))
        assert "asks first" not in driven.terminal.text
    failing = ScreenSettings(status_command="echo no; exit 1")
    async with driven_screen(tmp_path, settings=failing) as driven:
        driven.screen.watch(LiveArea(model="x:model"))
        await driven.terminal.shows("asks first · model")


async def test_a_resize_while_another_program_has_the_terminal_writes_nothing(
    tmp_path: Path,
) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type("a draft")
        async with driven.screen._away():
            driven.terminal.written = ""
            driven.terminal.resize(50, 20)
            driven.screen.show(NoteBlock(text="later"))
            await all_tasks_blocked()
            await anyio.sleep(QUIET_SECONDS * 2)  # a resize would be drawn after so long
            assert driven.terminal.written == ""
        await driven.terminal.shows("later", "› a draft", "─" * 50)


async def test_after_the_editor_ctrl_u_is_no_undo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "true")
    async with driven_screen(tmp_path) as driven:
        await driven.type("abc def\x17")
        for key in ("c-x", "c-e", "c-u"):
            driven.screen.input.press(key)
        assert driven.screen.input.editor.text == ""


async def test_a_message_that_a_command_sends_is_shown_while_it_is_on_its_way(
    tmp_path: Path,
) -> None:
    async with driven_screen(tmp_path) as driven:
        driven.screen.watch(LiveArea(model="x:model"))
        driven.screen.sending("/init")
        await driven.terminal.shows("› /init\n\n⠋ Waiting for model · Esc stops")
        driven.screen.show(UserBlock(text="/init", node_id="n"))
        await driven.terminal.until(lambda: "Waiting" not in driven.terminal.text)
        assert "\n".join(driven.terminal.history).count("› /init") == 1


async def test_another_theme_holds_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    light, dark = "48;2;223;245;225", "48;2;22;48;28"
    async with driven_screen(tmp_path) as driven:

        async def edited() -> str:
            before = len(driven.terminal.written)
            driven.screen.show(edit())
            driven.redraw()
            await all_tasks_blocked()
            return driven.terminal.written[before:]

        driven.screen.paint("light")
        assert light in await edited()
        driven.screen.paint("none")
        shown = await edited()
        assert light not in shown
        assert dark not in shown
        driven.screen.paint("auto")
        assert driven.terminal.written.count("\x1b]11;?") == 1, "the terminal is asked"
        driven.terminal.type("\x1b]11;rgb:0000/0000/0000\x07")
        await all_tasks_blocked()
        assert dark in await edited()
