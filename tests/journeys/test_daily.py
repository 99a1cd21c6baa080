"""Twenty days with the chat, in a real terminal: what a user does, and what the screen shows then.

`make screens` runs these and keeps their pictures in docs/images.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.terminal_picture import keep_picture
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram, call, text

pytestmark = [needs_tmux, pytest.mark.process]

READY = "asks first ·"
"""On the screen while the chat waits for a message."""
ASK = "Esc stops the turn"
"""On the screen while a question waits for its answer."""
INFO = {
    "provider": "scripted",
    "name": "sonnet-5-5",
    "context_window": 200_000,
    "price_input": 3,
    "price_output": 15,
}


class DailyUser:
    """A user of the chat, at a window of some size."""

    def __init__(self, weft: WeftProgram, window: TmuxTerminal, columns: int) -> None:
        self.weft = weft
        self.window = window
        self.columns = columns

    def start(self, *answers: Any, flags: tuple[str, ...] = (), **fields: Any) -> None:
        self.weft.script(*answers, info=INFO, **fields)
        # Its name is on every screen.
        script = (self.weft.home / "script1.json").rename(self.weft.home / "demo")
        self.window.start("-m", f"scripted:{script}", *flags, COLORTERM="truecolor")
        self.window.wait_for("context 0%")

    def say(self, message: str) -> None:
        self.window.type(message)
        self.window.keys("Enter")

    def sees(self, *texts: str) -> str:
        return self.window.wait_for(*texts)

    def picture(self, name: str, title: str) -> None:
        """Keep what is on the screen, where pictures are wanted."""
        keep_picture(self.window, name, title, self.columns)


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


@pytest.fixture
def user_at(weft: WeftProgram, tmp_path: Path) -> Iterator[Callable[..., DailyUser]]:
    windows = []

    def user(columns: int = 80, rows: int = 30) -> DailyUser:
        windows.append(TmuxTerminal(weft, tmp_path, width=columns, height=rows))
        return DailyUser(weft, windows[-1], columns)

    yield user
    for window in windows:
        window.close()


@pytest.fixture
def user(user_at: Callable[..., DailyUser]) -> DailyUser:
    return user_at()


CALC = "def add(a, b):\n    # add two numbers\n    return a - b\n"
TESTS = """import unittest

import calc


class AddTest(unittest.TestCase):
    pass


for n in range(12):

    def test(self, n=n):
        self.assertEqual(calc.add(n, 1), n + 1)

    setattr(AddTest, f"test_{n}", test)
"""
RUN_TESTS = f"{Path(sys.executable).name} -m unittest -v"


def calculator(weft: WeftProgram) -> list[Any]:
    """A project with a bug, and what a model says and does about it."""
    (weft.project / "calc.py").write_text(CALC)
    (weft.project / "test_calc.py").write_text(TESTS)
    return [
        [
            {"do": "thinking", "text": "The test adds, so add() must be wrong.", "signature": "s"},
            text("I'll look at the code and its test."),
            call("read", path="calc.py"),
            call("read", path="test_calc.py"),
            call("grep", pattern="def "),
        ],
        [
            text("`add` subtracts: one character in `calc.py:3`."),
            call("edit", path="calc.py", old_string="return a - b", new_string="return a + b"),
        ],
        [call("shell", command=RUN_TESTS, description="Run the tests")],
        [text("Fixed: `add` subtracted. All **12 tests** pass now.")],
    ]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_bug_is_fixed(user_at: Callable[..., DailyUser], columns: int) -> None:
    user = user_at(columns)
    user.start(*calculator(user.weft))
    user.picture(f"start-{columns}", "The chat has just started")
    user.say("fix the failing test")
    user.sees("Edit calc.py ─ +1 −1", "3 -     return a - b", "3 +     return a + b", ASK)
    user.picture(f"edit-{columns}", "The model asks to edit a file")
    assert "● Read calc.py, test_calc.py" in user.window.screen(history=True).replace("\n  ", " ")
    user.window.keys("1")
    user.sees("Run a command ─", RUN_TESTS, '"Run the tests"', ASK)
    user.picture(f"command-{columns}", "The model asks to run a command")
    user.window.keys("1")
    user.sees("Fixed: add subtracted.", "5 calls ·", "· shown: ", "context ")
    user.picture(f"fixed-{columns}", "The bug is fixed: cards, a diff and the output of a command")
    screen = user.window.screen(history=True)
    assert screen.replace("\n", "").count("● Edited calc.py  +1 −1") == 1
    assert screen.count("return a + b") == 1, "a diff is printed once, with its outcome"
    assert all(len(line) <= columns for line in screen.split("\n"))
    assert (user.weft.project / "calc.py").read_text() == CALC.replace("a - b", "a + b")


def test_an_edit_is_allowed_in_a_small_window(user_at: Callable[..., DailyUser]) -> None:
    user = user_at(40, 16)
    user.start(*calculator(user.weft))
    user.say("fix the failing test")
    # The end of the hint has no room; its beginning says that the question takes keys.
    user.sees("3 +     return a + b", "Allow this edit?", "❯ 1 Yes", "Tab adds a note")
    user.window.keys("1")
    user.sees("Allow this command?", "❯ 1 Yes", "Tab adds a note")
    screen = user.window.screen(history=True)
    assert "Allow this edit?" not in screen, "a question leaves nothing behind"


PROSE = """## What it does

The parser reads *one line at a time* and keeps **no state** between lines.

| Step | Function | Cost |
|---|---|---|
| split | `split_line` | O(n) |
| check | `check_row` | O(1) |

1. Split the line.
2. Check each row.

```python
def split_line(line: str, separator: str = ",", *, strict: bool = True) -> list[str]:
    return [part.strip() for part in line.split(separator)]  # a comment that makes this line long
```

See `parser.py:12` for the rest.
"""


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_an_answer_is_read_and_its_code_copied(
    user_at: Callable[..., DailyUser], columns: int
) -> None:
    user = user_at(columns, 36)
    user.start([text(PROSE, 7)], pace_seconds=0.001)
    user.say("explain the parser")
    user.sees("for the rest.", "context ")
    user.window.wait_gone("Esc stops")
    user.picture(f"answer-{columns}", "An answer with a table, a list and code")
    # What is selected with the mouse: the terminal joins what it has wrapped itself.
    selected = user.window._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "main")
    code = PROSE.split("```python\n")[1].split("```")[0]
    assert code.rstrip() in "\n".join(line.rstrip() for line in selected.split("\n"))


def test_a_refusal_with_a_reason_changes_the_plan(user: DailyUser) -> None:
    (user.weft.project / "calc.py").write_text(CALC)
    user.start(
        [call("read", path="calc.py")],
        [call("edit", path="calc.py", old_string="a - b", new_string="sum((a, b))")],
        [call("edit", path="calc.py", old_string="a - b", new_string="a + b")],
        "Now with a plus.",
    )
    user.say("fix add")
    user.sees("sum((a, b))", ASK)
    user.window.keys("4")
    user.sees("What should it do instead?")
    user.say("use a plain plus")
    user.sees("Not allowed: edit calc.py", "use a plain plus", "return a + b", ASK)
    user.picture("refused", "A refused edit, and the next try")
    user.window.keys("1")
    user.sees("Now with a plus.")
    assert "a + b" in (user.weft.project / "calc.py").read_text()


def test_five_thousand_lines_are_pasted(user: DailyUser) -> None:
    user.start("It has 5000 lines.")
    log = "\n".join(f"line {number} of the log" for number in range(1, 5001))
    user.window.type("what is in this log? ")
    user.window.paste(log)
    user.sees("what is in this log? [Pasted 5000 lines]")
    user.picture("pasted", "Five thousand pasted lines are one word in the input")
    user.window.keys("Enter")
    user.sees("It has 5000 lines.", "more pasted lines")
    screen = user.window.wait_gone("Esc stops")
    assert "line 1 of the log" in screen
    assert "line 4000 of the log" not in screen
    user.picture("paste-sent", "The record shows the first lines of what was pasted")
    said = user.weft.run("session", "show", "--json", user.weft.sessions()[0]["id"]).stdout
    assert "line 5000 of the log" in said


WRITINGS = {
    "Chinese": "你好，世界。这是一个很长的句子，用来测试换行和宽度。",
    "Japanese": "こんにちは。テストです。",
    "Korean": "안녕하세요 여러분",
    "family": "👨‍👩‍👧‍👦 and 👩🏽‍💻 and 🏳️‍🌈",
    "Hindi": "नमस्ते दुनिया",
    "Persian": "سلام دنیا",
    "accents": "e\u0301 a\u0308 o\u0302",
}


def test_any_writing_is_typed_shown_and_kept(user: DailyUser) -> None:
    answer = "\n\n".join(f"{name}: {words}" for name, words in WRITINGS.items())
    user.start([text(answer, 3)])
    asked = "翻译 👨‍👩‍👧‍👦 e\u0301 please"
    user.say(asked)
    user.sees("accents:", READY)
    user.picture("writings", "Wide, joined and combining characters")
    show = user.weft.run("session", "show", "--json", user.weft.sessions()[0]["id"]).stdout
    assert json.loads(show)["messages"][0]["content"] == asked
    screen = user.window.screen(history=True)
    for words in ("你好，世界。", "こんにちは。", "안녕하세요", "नमस्ते", "سلام"):
        assert words in screen
    # Wide characters are counted as two cells: the row is full, and no wider than the window.
    assert "世界" in screen


def test_a_message_is_changed_while_it_waits(user: DailyUser) -> None:
    after = {"when": {"user_says": "README"}, "steps": [text("Checked it.")]}
    user.start(after, [text("word " * 20_000, 5)], pace_seconds=0.01)
    user.say("write a long story")
    user.sees("Writing", "Esc stops")
    user.say("and chek the README")
    user.sees("next", "and chek the README")
    user.picture("queue", "A message waits for the next step")
    user.window.keys("Up")
    user.sees("\n› and chek the README")
    for _ in range(len("chek the README")):
        user.window.keys("BSpace")
    user.window.type("check the README")
    user.window.keys("Enter")
    user.sees("next", "and check the README")
    user.window.keys("Escape")
    user.sees("■ Stopped", "\n› and check the README")
    user.picture("stopped", "A stopped turn gives the waiting message back")
    user.window.keys("Enter")
    user.sees("Checked it.")
    screen = user.window.screen(history=True)
    assert "chek" not in screen.split("Checked it.")[0].rsplit("› and", 1)[1]


def test_a_long_output_is_folded_and_viewed(user: DailyUser) -> None:
    command = "for n in $(seq 1 300); do echo row $n; done"
    user.start([call("shell", command=command)], "Three hundred rows.")
    user.say("count")
    user.sees("Run a command", ASK)
    user.window.keys("1")
    screen = user.sees("Three hundred rows.", "more lines · Ctrl+O", "1 call ·")
    assert "row 300" in screen
    assert "row 150" not in screen
    before = user.window.screen(history=True).rpartition(READY)[0]
    user.window.keys("C-o")
    user.sees("row 1", "q returns")
    user.window.type("/row 150")
    user.window.keys("Enter")
    user.sees("row 150")
    user.picture("viewer", "The viewer, at a line that was searched for")
    user.window.keys("q")
    user.sees("Three hundred rows.", READY)
    after = user.window.screen(history=True).rpartition(READY)[0]
    assert after == before, "the scrollback is as it was"


def test_a_stopped_command_keeps_its_output(user: DailyUser) -> None:
    command = "for n in 1 2 3; do echo tick $n; done; sleep 1000"
    user.start([call("shell", command=command)], "Never said.")
    user.say("wait")
    user.sees("Run a command", ASK)
    user.window.keys("1")
    user.sees("Running", "tick 3")
    user.picture("running", "A command runs, with its last lines")
    user.window.keys("Escape")
    screen = user.sees("● Stopped: ", "■ Stopped")
    assert "tick 3" in screen


def test_a_refused_key_says_what_to_do_and_enter_tries_again(user: DailyUser) -> None:
    refused = {"do": "error", "error": "AuthFailed", "status": 401, "times": 1}
    user.start([{**refused, "message": "invalid x-api-key"}, text("Hello!")])
    user.say("hello")
    user.sees("✗ Invalid x-api-key", "Enter on the empty line tries again")
    user.picture("refused-key", "A refused key, and what to do")
    user.window.keys("Enter")
    user.sees("Hello!")
    assert user.window.screen(history=True).count("› hello") == 1


def test_a_shell_line_of_the_users_own(user: DailyUser) -> None:
    (user.weft.project / "notes.txt").write_text("one\ntwo\n")
    seen = {"when": {"since": "notes.txt"}, "steps": [text("I see notes.txt.")]}
    user.start(seen, "I see nothing.")
    user.say("!ls")
    user.sees("! ls", "notes.txt")
    user.say("!!echo only for me")
    user.sees("only for me")
    user.picture("shell-line", "Commands of the user's own")
    user.say("what is here?")
    user.sees("I see notes.txt.")


def test_mixed_line_endings_are_kept(user: DailyUser) -> None:
    mixed = user.weft.project / "mixed.txt"
    mixed.write_bytes(b"one\r\ntwo\nthree\r\n")
    edit = call("edit", path="mixed.txt", old_string="two", new_string="2")
    user.start([call("read", path="mixed.txt")], [edit], "Done.")
    user.say("write 2")
    user.sees("Edit mixed.txt", ASK)
    user.window.keys("1")
    user.sees("Done.")
    assert mixed.read_bytes() == b"one\r\n2\nthree\r\n"


def test_a_plan_first_and_then_the_work(user: DailyUser) -> None:
    (user.weft.project / "calc.py").write_text(CALC)
    user.start(
        [call("read", path="calc.py"), text("Plan: replace the minus in `calc.py:3`.")],
        "Replace the minus.",
        [call("edit", path="calc.py", old_string="a - b", new_string="a + b")],
        "Done as planned.",
    )
    user.window.keys("BTab")
    user.sees("edits allowed ·")
    user.window.keys("BTab")
    user.sees("plan only ·")
    user.say("how would you fix add?")
    user.sees("Replace the minus.", "plan only ·")
    assert (user.weft.project / "calc.py").read_text() == CALC
    user.sees("· Plan only: /plan go carries it out, without asking about each edit", "1 call ·")
    user.picture("plan", "Plan mode: the model reads and changes nothing")
    user.say("/plan go")
    user.sees("edits allowed ·", "Done as planned.", "● Edited calc.py  +1 −1")
    user.window.wait_gone("Esc stops")
    assert user.window.screen(history=True).count("Plan only:") == 1
    user.picture("edits-allowed", "Edits are allowed: nothing is asked")


def test_a_message_is_written_in_an_editor(user: DailyUser) -> None:
    editor = user.weft.home / "editor"
    editor.write_text("#!/bin/sh\nprintf 'a longer\\nmessage' >> \"$1\"\n")
    editor.chmod(0o755)
    model = user.weft.script("Understood.", info=INFO)
    user.window.start("-m", model, EDITOR=shlex.quote(str(editor)))
    user.sees("context 0%")
    user.window.type("this is ")
    user.window.keys("C-g")
    user.sees("› this is a longer", "message")
    user.window.keys("Enter")
    user.sees("Understood.")


def test_the_next_day_goes_on_where_it_ended(user: DailyUser) -> None:
    user.start(*calculator(user.weft), "You asked me to fix a test.")
    user.say("fix the failing test")
    user.sees("Edit calc.py", ASK)
    user.window.keys("2")
    user.sees("Run a command", ASK)
    user.window.keys("1")
    user.sees("12 tests pass now.")
    user.window.keys("C-d")
    assert user.window.exit_code() == 0
    screen = user.window.screen()
    assert "Resume with: weft -c" in screen
    assert "calc.py +1 −1" in screen
    user.picture("exit", "What is printed at the end")
    user.window.again("-c", COLORTERM="truecolor")
    screen = user.sees("› fix the failing test", "12 tests pass now.", READY)
    assert "no model" not in screen
    assert re.search(r"context \d%", screen), "the window is known before the first answer"
    user.picture("resumed", "The conversation of yesterday")
    user.say("what did I ask?")
    user.sees("You asked me to fix a test.")


def test_it_is_killed_in_the_middle_and_goes_on(user: DailyUser) -> None:
    user.start([text("word " * 2_000, 5)], "And so it ended.", pace_seconds=0.01)
    user.say("tell me a story")
    # What has arrived is stored four times a second.
    user.sees("\n".join(["word " * 15 + "word"] * 8), "Writing")
    os.kill(user.window.pid(), 9)
    user.window.exit_code()
    user.window.again("-c")
    screen = user.sees("› tell me a story", "The last turn was interrupted.", "1-2; Esc is no")
    assert "no model" not in screen
    assert "word word" in screen, "what had arrived is seen before it goes on"
    user.picture("killed", "After a kill, the turn can go on")
    user.window.keys("1")
    screen = user.sees("And so it ended.")
    assert screen.count("› tell me a story") == 1
    assert "word word" in screen, "the words that had arrived are kept"
    told = user.window.screen(history=True).split("› tell me a story")[1].count("word")
    shown = user.weft.run("session", "show", "--json", user.weft.sessions()[0]["id"]).stdout
    said = "".join(message["content"] for message in json.loads(shown)["messages"])
    assert told == said.count("word "), "and shown once"


def test_keys_are_shown_and_go_away(user: DailyUser) -> None:
    user.start("Hello.")
    before = user.window.screen()
    user.window.type("?")
    user.sees("Ctrl+R", "Shift+Tab", "more · /help")
    user.picture("keys", "The keys, under the input")
    user.window.keys("Escape")
    user.window.wait_gone("Ctrl+R")
    assert user.window.screen() == before


def test_todos_are_worked_off(user: DailyUser) -> None:
    def todos(*done: bool) -> dict[str, Any]:
        names = ("Fix the bug in add()", "Run the tests", "Write the changelog")
        status = ["done" if each else "pending" for each in done]
        if "pending" in status:
            status[status.index("pending")] = "in_progress"
        items = [{"text": n, "status": s} for n, s in zip(names, status, strict=True)]
        return call("todo", todos=items)

    stall = {"do": "pause", "seconds": 0.5}
    user.start(
        [todos(True, False, False), {"do": "text", "text": "One down."}],
        [text("Now the tests."), stall, stall, stall, stall, todos(True, True, True)],
        "All done.",
    )
    user.say("do all three")
    user.sees("☐ 1/3 Run the tests")
    user.window.keys("C-t")
    user.sees("☑ Fix the bug in add()", "☐ Write the changelog")
    user.picture("todos", "The list of what is to be done")
    user.sees("All done.")


def test_lists_have_one_shape(user: DailyUser) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=user.weft.project, check=True)
    user.start("It adds now.", "It parses.", "Two rows.")
    user.weft.run("-p", "-m", user.weft.script("Renamed."), "rename parse() everywhere")
    for said in ("fix the failing test", "explain the parser", "list the rows"):
        user.say(said)
        user.sees(f"› {said}", READY)
        user.window.wait_gone("Esc stops")
    before = user.window.screen(history=True)
    keys = {"model": "Enter this session", "tree": "Enter go there", "resume": "Space preview"}
    for name, hint in keys.items():
        user.say(f"/{name}")
        screen = user.sees(name.title(), "type to filter", hint)
        assert ("just now   main" in screen) == (name == "resume")
        user.picture(f"list-{name}", f"The list of /{name}")
        user.window.keys("Escape")
        user.window.wait_gone(hint)
    user.window.keys("Escape")
    user.sees("Esc again")
    user.window.keys("Escape")
    user.sees("Rewind to just before…", "❯ ● you are here")
    user.picture("list-rewind", "The list of Esc Esc")
    user.window.keys("Up", "Enter")
    user.sees("→ Before “list the rows”")
    user.picture("rewind", "What a rewind will do")
    user.window.keys("Escape")
    user.window.wait_gone("→ Before")
    user.window.keys("Escape")
    user.window.wait_gone("Rewind to just before…")
    assert user.window.screen(history=True).count("› list the rows") == 1
    assert len(user.window.screen(history=True)) <= len(before) + 200, "lists leave nothing behind"


def test_two_agents_work_at_once(user: DailyUser) -> None:
    def agent(task: str) -> dict[str, Any]:
        return call("agent", description=task, prompt=task, agent="general")

    found = "Found 3 callers of add(): a.py:1, b.py:2, c.py:3."
    user.start(
        {"when": {"user_says": "Find callers"}, "steps": [text(found)]},
        {"when": {"user_says": "Find tests"}, "steps": [text("Found test_calc.py.")]},
        [agent("Find callers of add"), agent("Find tests of add")],
        "Both are known now.",
    )
    user.say("who uses add?")
    user.sees("Both are known now.")
    user.picture("agents", "Two agents, and what they found")


def test_a_rate_limit_is_waited_out(user: DailyUser) -> None:
    limit = {
        "do": "error",
        "error": "RateLimited",
        "status": 429,
        "message": "Rate limit (429): Number of request tokens has exceeded your "
        "per-minute rate limit",
        "retry_after_seconds": 3,
        "times": 1,
    }
    user.start([limit, text("Here I am.")])
    user.say("hello")
    screen = user.sees("next try in", "per-minute rate limit")
    assert re.search(r"Rate limit \(429\): next try in \d s, 2 of \d · Esc stops", screen)
    user.picture("rate-limit", "A rate limit counts down")
    user.sees("Here I am.")


def test_the_model_asks_a_question(user: DailyUser) -> None:
    asked = call(
        "ask",
        question="Which database should it use?",
        options=["PostgreSQL", "SQLite"],
        descriptions=["A server, many writers", "One file, nothing to run"],
    )
    user.start([asked], "SQLite it is.")
    user.say("add a database")
    user.sees("Which database should it use?", "1 PostgreSQL", "One file, nothing to run", ASK)
    user.picture("question", "The model asks")
    user.window.keys("2")
    user.sees("SQLite it is.", "→ SQLite")
