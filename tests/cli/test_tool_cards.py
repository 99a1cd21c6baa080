"""Tool cards, notes and the closing line, as texts at 40, 80 and 200 columns."""

from __future__ import annotations

import pytest

from tests.support.tool_cards import DIFF, card, edit, read, shell
from weft.cli.chat.paint.text_cells import cells
from weft.cli.chat.paint.theme import PaintTheme, theme_of
from weft.cli.chat.paint.tool_cards import agents_lines
from weft.cli.chat.screens.render import BlockRenderer
from weft.events import Todo
from weft.view import (
    AgentEnd,
    AgentsCard,
    AnyBlock,
    LookupCard,
    NoteBlock,
    PermissionBlock,
    QuestionBlock,
    TableBlock,
    ThinkingBlock,
    TodoBlock,
    TurnEndBlock,
    UserBlock,
)

PLAIN = PaintTheme(is_styled=False, folder="/work/calc")


def lines(block: AnyBlock, width: int = 80, theme: PaintTheme = PLAIN) -> list[str]:
    return BlockRenderer(width=width, theme=theme).lines(block)


def test_an_edit_shows_its_change_with_line_numbers() -> None:
    assert lines(edit(was_shown=True)) == [
        "● Edited calc.py  +1 −1 · you allowed it",
        "   8   def add(a, b):",
        "   9       # add two numbers",
        "  10 -     return a - b",
        "  10 +     return a + b",
        "  11",
        "  12   def sub(a, b):",
    ]
    assert lines(edit(), 60)[1:] == [
        "   9       # add two numbers",
        "  10 -     return a - b",
        "  10 +     return a + b",
        "  11",
    ]
    assert lines(edit(was_shown=True), 40) == [
        "● Edited calc.py",
        "  +1 −1 · you allowed it",
        "  10 -     return a - b",
        "  10 +     return a + b",
    ]


def test_rows_have_a_background_only_with_256_colours_and_signs_always() -> None:
    changed = lines(edit(), theme=PaintTheme(depth="true", folder="/work/calc"))
    assert any("48;2;58;29;29m- " in line for line in changed)
    assert any("48;2;42;92;53m+" in line for line in changed), "the changed word is darker"
    light = lines(edit(), theme=PaintTheme(depth="256", background="light"))
    assert any("48;5;224" in line for line in light)
    sixteen = "".join(lines(edit(), theme=PaintTheme()))
    assert "48;" not in sixteen
    assert "\x1b[31m" in sixteen
    colourless = "".join(lines(edit(), theme=PaintTheme(is_coloured=False)))
    assert "\x1b[31" not in colourless
    assert "- " in colourless


def test_words_are_compared_only_in_lines_that_share_more_than_half() -> None:
    diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-alpha beta gamma delta\n-one\n+alpha beta gamma\n+2"
    shown = "".join(
        lines(card("edit", args={"path": "a"}, data={"diff": diff}), theme=PaintTheme(depth="true"))
    )
    assert "48;2;107;43;43m delta" in shown
    assert "48;2;107;43;43mone" not in shown


def test_a_long_change_says_how_much_is_left_and_which_key_shows_it() -> None:
    rows = "".join(f"@@ -{n} +{n} @@\n-old {n}\n+new {n}\n" for n in range(1, 500, 10))
    long = card("edit", args={"path": "a"}, data={"diff": f"--- a\n+++ a\n{rows}".rstrip()})
    shown = lines(long)
    assert len(shown) == 42
    assert shown[-1] == "  … 73 more lines in 37 places · Ctrl+O"


def test_a_line_that_is_too_long_is_wrapped_under_itself() -> None:
    diff = f"--- a\n+++ a\n@@ -0,0 +1,1 @@\n+{'word ' * 20}"
    shown = lines(card("edit", args={"path": "a"}, data={"diff": diff}), 40)
    assert shown[2].startswith("   1 + word")
    assert shown[3].startswith("       ")
    assert "".join(line[7:] for line in shown[2:]).split() == ["word"] * 20


def test_files_that_are_new_or_gone() -> None:
    args = {"path": "notes.md", "content": "x\n" * 33}
    new = {"diff": "--- notes.md\n+++ notes.md\n@@ -0,0 +1,33 @@\n+x"}
    assert lines(card("write", "wrote notes.md", args=args, data=new)) == [
        "● Created notes.md  33 lines"
    ]
    assert lines(card("delete", "deleted", args={"path": "old.py"})) == ["● Deleted old.py"]


TESTS = "\n".join([*(f"ok {number} add 1 2 3" for number in range(12)), "12 tests"])


def test_a_command_shows_its_first_line_and_its_last_four() -> None:
    ran = shell("python3 test_calc.py", TESTS, duration_ms=800)
    assert lines(ran) == [
        "● Ran python3 test_calc.py  0.8 s",
        "  ok 0 add 1 2 3",
        "  … 8 more lines · Ctrl+O",
        "  ok 9 add 1 2 3",
        "  ok 10 add 1 2 3",
        "  ok 11 add 1 2 3",
        "  12 tests",
    ]
    assert lines(shell("ls", "a\nb")) == ["● Ran ls", "  a", "  b"]
    assert lines(shell("true", "(no output)")) == ["● Ran true"]
    narrow = lines(shell("python3 -m pytest tests/cli -q", TESTS, duration_ms=800), 40)
    assert narrow[:3] == ["● Ran python3 -m pytest tests/cli -q", "  0.8 s", "  ok 0 add 1 2 3"]


def test_a_command_that_failed_shows_its_last_ten_lines_and_its_code_once() -> None:
    text = "cat: nothere.txt: No such file or directory\n(exit code 3)"
    assert lines(shell("cat nothere.txt", text, code=3, duration_ms=100)) == [
        "● Failed: cat nothere.txt  exit 3 · 0.1 s",
        "  cat: nothere.txt: No such file or directory",
    ]
    many = shell("make", "\n".join(str(n) for n in range(30)) + "\n(exit code 2)", code=2)
    assert lines(many)[1:3] == ["  … 20 earlier lines · Ctrl+O", "  20"]
    assert lines(many)[-1] == "  29"


def test_a_command_that_was_stopped_keeps_what_it_had_printed() -> None:
    ticks = "\n".join(f"tick {n}" for n in range(14))
    stopped = shell("for i in *; do x; done", status="aborted", output=ticks, duration_ms=6300)
    assert lines(stopped) == [
        "● Stopped: for i in *; do x; done  after 6.3 s",
        "  … 10 earlier lines · Ctrl+O",
        *(f"  tick {n}" for n in range(10, 14)),
    ]
    coloured = lines(stopped, theme=PaintTheme())
    assert coloured[0].startswith("\x1b[33m● ")


def test_what_was_not_allowed_has_the_users_words() -> None:
    args = {"path": "/work/calc/calc.py"}
    said = "Denied by the user. They said: use sum() instead"
    denied = card("edit", said, args=args, status="denied", is_error=True)
    assert lines(denied) == ['● Not allowed: edit calc.py  — "use sum() instead"']
    bare = card("shell", "Denied by the user.", args={"command": "rm x"}, status="denied")
    assert lines(bare) == ["● Not allowed: rm x"]


def test_an_approval_that_reaches_further_is_said() -> None:
    allowed = shell("ls", was_shown=True, allowed_for="session")
    assert lines(allowed) == ["● Ran ls  you allowed it in this session"]


def test_a_rule_that_allowed_is_named() -> None:
    assert lines(shell("git status", allowed_by="git *")) == [
        '● Ran git status  allowed by "git *"'
    ]


def test_a_failed_read_says_why_and_another_tool_is_named() -> None:
    failed = card("read", "there is no file 'x'", args={"path": "x"}, is_error=True)
    assert lines(failed) == ["● Failed: read x", "  there is no file 'x'"]
    assert lines(card("mcp__docs__get", "one", args={"query": "add"})) == [
        "● Used mcp__docs__get add",
        "  one",
    ]


def test_what_a_failure_says_is_wrapped_and_its_cut_names_the_key() -> None:
    why = "you have not read 'calc.py' yet; read it first"
    failed = card("edit", why, args={"path": "calc.py"}, is_error=True)
    assert lines(failed, 40) == [
        "● Failed: edit calc.py",
        "  you have not read 'calc.py' yet; read",
        "  it first",
    ]
    long = lines(card("edit", "word " * 40, args={"path": "a"}, is_error=True), 40)
    assert len(long) == 3
    assert long[-1].endswith("… · Ctrl+O")
    assert all(cells(line) <= 40 for line in long)
    ran = lines(shell("make", f"{'x' * 60}\n{'y' * 60}\n(exit code 2)", code=2), 40)
    assert ran[1:] == [
        "  exit 2",
        f"  {'x' * 38}",
        f"  {'x' * 22}",
        f"  {'y' * 38}",
        f"  {'y' * 22}",
    ]


def test_the_sentence_above_the_lines_of_a_failure_is_wrapped() -> None:
    why = "calc.py: old_string is not in the file; nothing was changed. The nearest text is this:"
    text = "\n".join((why, "     3      return a + b", "  you gave:  x", "  it has:  y"))
    failed = card("edit", text, args={"path": "calc.py"}, is_error=True)
    assert lines(failed, 80)[1:4] == [
        "  calc.py: old_string is not in the file; nothing was changed. The nearest text",
        "  is this:",
        "       3      return a + b",
    ]


# -- reads and searches


def test_what_a_search_found_stands_below_it_in_a_narrow_window() -> None:
    found = card("grep", "calc.py:1:def add", args={"pattern": "def add"})
    group = LookupCard(cards=(read("calc.py"), found))
    assert lines(group, 40) == ['● Read calc.py · Searched "def add"', "  (1 match in 1 file)"]
    many = LookupCard(cards=(found, *(read(f"module_{number}.py") for number in range(20))))
    assert lines(many, 40) == [
        '● Searched "def add"',
        "  Read module_0.py, + 19 more · Ctrl+O",
    ]
    long = LookupCard(cards=tuple(read(f"{'long_' * 7}{number}.py") for number in range(9)))
    assert all(cells(line) <= 40 for line in lines(long, 40))
    assert lines(long, 40)[-1].endswith("+ 7 more · Ctrl+O")
    shown = lines(LookupCard(cards=(read("a.py"), *(found for _ in range(9)))), 30)
    assert shown == ["● Read a.py ·", '  Searched "def add"'], "the name before its count"


def test_reads_and_searches_in_a_row_are_one_card_with_names_and_patterns() -> None:
    found = "calc.py:1:def add\ncalc.py:3:def sub\ntest_calc.py:2:def test"
    group = LookupCard(
        cards=(
            read("/work/calc/calc.py"),
            read("test_calc.py"),
            read("calc.py"),
            card("grep", found, args={"pattern": "def "}),
            card("grep", "(no match)", args={"pattern": "class", "path": "src"}),
            card("find", "a.py\nb.py", args={"pattern": "*.py"}),
            card("list", "a\nb", args={}),
        )
    )
    (wide,) = lines(group, 200)
    assert (
        wide
        == (
            '● Read calc.py, test_calc.py · Searched "def " (3 matches in 2 files), '
            '"class" in src (no matches) · Found "*.py" (2 files) · Lis'
        )[: len(wide)]
        or "Listed ." in wide
    )
    assert lines(group)[0].startswith('● Read calc.py, test_calc.py · Searched "def "')
    assert len(lines(group)) == 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_many_names_are_two_lines_and_say_how_many_more(width: int) -> None:
    group = LookupCard(cards=tuple(read(f"src/module_{number}.py") for number in range(60)))
    shown = lines(group, width)
    assert len(shown) == 2
    assert all(len(line) <= width for line in shown)
    named = "".join(shown).count("module_")
    assert shown[-1].endswith(f"+ {60 - named} more · Ctrl+O")


# -- agents, thoughts, notes, the end of a turn


def test_agents_are_one_card() -> None:
    first = AgentEnd(
        name="general",
        title="Find callers of add",
        calls=2,
        text="Found 3 callers of add(): a.py:1,\nb.py:2, c.py:3",
        cost_usd=0.004,
        duration_ms=7100,
    )
    second = AgentEnd(
        name="general",
        title="Find tests",
        calls=1,
        text="Found it.",
        cost_usd=0.005,
        duration_ms=7100,
    )
    group = AgentsCard(agents=(first, second))
    assert lines(group, 200) == [
        "● 2 agents  7.1 s · $0.009",
        "  ├ Find callers of add   2 calls   Found 3 callers of add(): a.py:1, b.py:2, c.py:3",
        "  └ Find tests            1 call    Found it.",
    ]
    assert lines(group, 40) == [
        "● 2 agents  7.1 s · $0.009",
        "  ├ Find callers of add   2 calls",
        "  │ Found 3 callers of add(): a.py:1, b…",
        "  └ Find tests   1 call",
        "    Found it.",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_an_agent_that_failed_says_why_and_the_others_are_no_worse(width: int) -> None:
    failed = AgentEnd(name="general", title="Find callers", reason="max_turns")
    done = AgentEnd(name="general", title="Find tests", text="Found it.")
    painted = agents_lines(AgentsCard(agents=(failed, done)), width)
    styles = {span.text.strip(): span.style for line in painted for span in line.spans}
    (said,) = [text for text in styles if text.startswith("reached the limit of model")]
    assert (styles[said], styles["Found it."], styles["●"]) == ("bad", "", "bad")


def test_a_thought_is_one_line() -> None:
    assert lines(ThinkingBlock(text="Hm.\nSo.", seconds=9.2)) == ["∴ Thought for 9 s · Ctrl+O"]
    assert lines(ThinkingBlock(text="Hm.")) == ["∴ Thought · Ctrl+O"]


def test_the_closing_line_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    import time

    time.tzset()
    end = TurnEndBlock(
        seconds=25.0,
        ended_at=10 * 3600 + 17 * 60,
        calls=4,
        input_tokens=12300,
        output_tokens=400,
        cost_usd=0.03,
    )
    assert lines(end) == ["· 25 s · 10:17 · 4 calls · ↑ 12.3k ↓ 0.4k · $0.03"]
    assert lines(end, 45) == ["· 25 s · 4 calls · ↑ 12.3k ↓ 0.4k · $0.03"]
    assert lines(end, 40) == ["· 25 s · 4 calls · $0.03"], "one line, whatever the window"


@pytest.mark.parametrize("width", [30, 40, 60, 80])
def test_a_bar_is_shorter_where_it_has_no_room_and_never_wrapped(width: int) -> None:
    rows = (("used", "12.3k of 200.0k (6%)", "█" * 2 + "░" * 28), ("tools", "1", "░" * 29 + "█"))
    painted = lines(TableBlock(title="Context", rows=rows), width)
    bars = [line for line in painted if "█" in line]
    assert len(bars) == 2
    assert bars[0].split()[-1].startswith("█")
    assert bars[1].endswith("█")
    assert not any("░" in line for line in painted if line not in bars)


def test_an_error_says_what_happened_and_what_to_do_and_is_never_cut() -> None:
    note = NoteBlock(
        text="Anthropic refused the key (401): invalid x-api-key",
        level="error",
        advice="It came from ANTHROPIC_API_KEY. /login saves another.",
    )
    assert lines(note) == [
        "✗ Anthropic refused the key (401): invalid x-api-key",
        "  It came from ANTHROPIC_API_KEY. /login saves another.",
    ]
    narrow = lines(note, 40)
    assert " ".join(narrow).split() == " ".join(lines(note)).split()
    coloured = lines(note, theme=PaintTheme())
    assert coloured[0] == "\x1b[31m✗ \x1b[0mAnthropic refused the key (401): invalid x-api-key"
    stopped = NoteBlock(text="Stopped after 12 s. What should it do instead?", level="stopped")
    assert lines(stopped) == ["■ Stopped after 12 s. What should it do instead?"]


def test_a_question_and_its_answer_are_one_card() -> None:
    block = QuestionBlock(text="Which database?", answer="PostgreSQL")
    assert lines(block) == ["? Which database?  → PostgreSQL"]


def test_a_to_do_list_has_boxes() -> None:
    items = (Todo(id="1", text="Fix it", status="done"), Todo(id="2", text="Test it"))
    assert lines(TodoBlock(items=items)) == ["☑ Fix it", "☐ Test it"]


def test_a_long_paste_is_folded_in_the_record() -> None:
    text = "\n".join(f"line {number}" for number in range(62))
    shown = ["  line 1", "  line 2", "  … 59 more pasted lines"]
    assert lines(UserBlock(text=text, pasted=((0, len(text)),))) == ["› line 0", *shown]
    for end in ("", "\n"):
        said = f"Explain this:\n{text}{end}\nand be short"
        place = len("Explain this:\n")
        block = UserBlock(text=said, pasted=((place, place + len(text + end)),))
        assert lines(block) == ["› Explain this:", "  line 0", *shown, "  and be short"]
    twice = UserBlock(text=text + text, pasted=((0, len(text)), (len(text), 2 * len(text))))
    assert lines(twice) == ["› line 0", *shown, "  line 0", *shown]


def test_one_pasted_line_may_hold_a_whole_file() -> None:
    pasted = "word " * 60_000
    said = f"what is this? {pasted}"
    live = lines(UserBlock(text=said, pasted=((14, len(said)),)), 40)
    assert "what is this? word word" in live[0]
    assert " ".join(live).endswith("… 299,761 more pasted characters")
    assert len(live) < 12
    resumed = lines(UserBlock(text=said), 40)
    assert "more characters … word word" in " ".join(" ".join(resumed).split())
    assert len(resumed) < 20
    rows = "\n".join([pasted] * 20)
    assert len(lines(UserBlock(text=rows), 40)) < 60
    assert len(lines(UserBlock(text=rows, pasted=((0, len(rows)),)), 40)) < 40
    typed = "word " * 500
    assert "more" not in " ".join(lines(UserBlock(text=typed), 80)), "a long paragraph is shown"


def test_a_long_message_of_which_is_not_known_what_was_pasted_is_folded_in_its_middle() -> None:
    text = "\n".join(["Explain this:", *(f"line {number}" for number in range(62)), "be short"])
    first = ["› Explain this:", "  line 0", "  line 1"]
    assert lines(UserBlock(text=text)) == [*first, "  … 59 more lines", "  line 61", "  be short"]


def test_a_new_file_has_no_removed_line() -> None:
    diff = "--- a\n+++ a\n@@ -1,1 +1,1 @@\n-\n+x"
    assert lines(PermissionBlock(tool="write", target="a", preview=diff)) == ["   1 + x"]


def test_a_preview_is_shown_whole_and_in_ascii_where_that_is_all() -> None:
    block = PermissionBlock(tool="edit", target="calc.py", preview=DIFF)
    assert lines(block)[2:4] == ["  10 -     return a - b", "  10 +     return a + b"]
    rows = "\n".join(f"+line {number}" for number in range(300))
    whole = PermissionBlock(
        tool="write", target="a", preview=f"--- a\n+++ a\n@@ -0,0 +1,300 @@\n{rows}"
    )
    assert len(lines(whole)) == 300


def test_ascii_where_the_encoding_has_no_more() -> None:
    theme = theme_of({"TERM": "vt100"}, is_unicode=False)
    for block in (edit(was_shown=True), UserBlock(text="hé"), NoteBlock(text="x", level="stopped")):
        shown = "".join(lines(block, theme=theme))
        assert shown.replace("\x1b", "").isascii()
    assert lines(edit(), theme=PaintTheme(is_styled=False, is_unicode=False))[0].startswith(
        "* Edited"
    )


def test_no_colour_and_a_dumb_terminal() -> None:
    colourless = theme_of({"TERM": "xterm-256color", "NO_COLOR": "1"})
    shown = "".join(lines(UserBlock(text="hi"), theme=colourless))
    assert shown == "\x1b[1m› \x1b[0m\x1b[1mhi\x1b[0m"
    dumb = theme_of({"TERM": "dumb"})
    assert lines(UserBlock(text="hi"), theme=dumb) == ["› hi"]
    assert not theme_of({"TERM": "xterm"}, name="none").is_coloured
