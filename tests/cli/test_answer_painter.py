"""Answers as lines: one painter for what is finished and what is still written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.example_count import examples
from weft.cli.chat.paint.answer_flow import AnswerFlow
from weft.cli.chat.paint.markdown_lines import MarkdownPainter
from weft.cli.chat.paint.styled_text import StyledLine
from weft.cli.chat.paint.text_cells import cells
from weft.cli.chat.paint.theme import PaintTheme, theme_of

PLAIN = PaintTheme(is_styled=False)
ANSWER = """\
# What was wrong

`add` **subtracted**: see [the docs](https://docs.example/add) and *calc.py:10*.

1. Read the test, which says that one and two are three
   - and that it is `assert add(1, 2) == 3`
2. Fix it:

   ```python
   def add(a, b):
   \treturn a + b  # a line that is longer than forty columns, and must not be broken
   ```

> It is always the sign.
> Mostly.

| file | change |
|------|--------|
| calc.py | the sign of the second summand was wrong |
| test_calc.py | nothing |

- [ ] commit
- [x] test

---
Done. 5 * 3, snake_case_name and **kwargs stay.
"""


def texts(text: str, width: int, **options: Any) -> list[str]:
    return [line.text.rstrip() for line in MarkdownPainter(width, **options).lines(text)]


def test_an_answer_at_forty_eighty_and_two_hundred_columns() -> None:
    narrow = texts(ANSWER, 40)
    assert narrow[:6] == [
        "What was wrong",
        "",
        "add subtracted: see the docs",
        "(https://docs.example/add) and",
        "calc.py:10.",
        "",
    ]
    assert narrow[6:9] == [
        "1. Read the test, which says that one",
        "   and two are three",
        "   • and that it is assert add(1, 2) ==",
    ]
    assert "☐ commit" in narrow
    assert "☑ test" in narrow
    assert narrow[-1] == "**kwargs stay."
    wide = texts(ANSWER, 200)
    assert "file          change" in wide
    assert "calc.py       the sign of the second summand was wrong" in wide
    assert "│ It is always the sign. Mostly." in wide
    assert texts(ANSWER, 80)[2].startswith(
        "add subtracted: see the docs (https://docs.example/add)"
    )


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_code_is_the_source_whatever_the_width(width: int) -> None:
    """No indent, no hard wraps, tabs as they are: a copy is the code."""
    lines = MarkdownPainter(width).lines(ANSWER)
    code = [line.text for line in lines if line.is_code]
    assert code == [
        "def add(a, b):",
        "\treturn a + b  # a line that is longer than forty columns, and must not be broken",
    ]
    before = lines[[line.is_code for line in lines].index(True) - 1]
    assert (before.text, before.spans[0].style) == ("python", "quiet")


def test_code_stands_apart_from_the_text_around_it() -> None:
    tight = "Look:\n```sh\nls\n```\nand\n```\npwd\n```\n- item:\n  ```\n  x\n  ```\n"
    assert texts(tight, 80) == [
        *("Look:", "", "sh", "ls", "", "and", "", "pwd", "", "• item:", "", "x"),
    ]
    nested = "1. one\n   - two\n     ```\n     x\n     ```\n2. three\n"
    assert texts(nested, 80) == ["1. one", "   • two", "", "x", "", "2. three"]
    assert texts("> ```\n> x\n> ```\nend", 80)[-2:] == ["", "end"]
    loose = (
        tight.replace("```sh", "\n```sh").replace("and", "\nand\n").replace("- item", "\n- item")
    )
    assert texts(loose, 80) == texts(tight, 80), "one empty line, whether or not the model wrote it"


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_but_code_is_wider_than_the_window(width: int) -> None:
    wide = "你好世界，這是一個很長的句子。👩\u200d👩\u200d👧 नमस्ते दुनिया سلام\u200cها " * 5
    for line in MarkdownPainter(width).lines(f"{ANSWER}\n\n{wide}\n\n- {wide}\n\n> {wide}"):
        assert line.is_code or cells(line.text) <= width, line.text


def test_a_joined_emoji_and_a_syllable_are_never_torn() -> None:
    family, syllable = "👩\u200d👩\u200d👧", "स्ते"
    lines = texts((family + syllable) * 30, 21)
    assert all(line.count("\u200d") % 2 == 0 for line in lines)
    assert not any(line.startswith(("\u200d", "\u094d", "\u0947")) for line in lines)
    assert "".join(lines) == (family + syllable) * 30


def test_chinese_is_broken_anywhere_but_before_a_closing_mark() -> None:
    lines = texts("世界，" * 20, 13)
    assert not any(line.startswith("，") for line in lines)
    assert max(cells(line) for line in lines) >= 10


def test_a_table_whose_words_have_no_room_is_read_row_by_row() -> None:
    table = "| File | Purpose |\n|--|--|\n| src/module_10.py | Handles descriptions |"
    assert texts(table, 32) == [
        "File              Purpose",
        "────────────────  ──────────────",
        "src/module_10.py  Handles",
        "                  descriptions",
    ]
    assert texts(table, 28) == ["File: src/module_10.py", "Purpose: Handles", "  descriptions"]


def test_a_long_address_does_not_keep_a_table_from_being_one() -> None:
    table = f"| a | b |\n|--|--|\n| x | https://example.org/{'y' * 40} |"
    shown = texts(table, 40)
    assert shown[0] == "a  b"
    assert all(cells(row) <= 40 for row in shown)
    han = f"| a | b |\n|--|--|\n| one two | {'漢' * 20} |"
    assert texts(han, 30)[0].split() == ["a", "b"], "a script without spaces breaks anywhere"


def test_columns_of_a_table_stand_where_its_dashes_say() -> None:
    table = "| n | Lines | Mid |\n|:--|--:|:-:|\n| a | 37 | x |\n| b | 1444 | long |"
    assert texts(table, 40) == [
        "n  Lines  Mid",
        "─  ─────  ────",
        "a     37   x",
        "b   1444  long",
    ]


def test_a_table_that_has_no_room_is_read_row_by_row() -> None:
    table = "| first column | second | third | fourth |\n|--|--|--|--|\n| a | b | c | d |"
    assert texts(table, 24) == ["first column: a", "second: b", "third: c", "fourth: d"]


def painted(text: str, width: int = 60) -> list[StyledLine]:
    return MarkdownPainter(width).lines(text, is_open=True)


def test_what_is_begun_is_shown_as_if_it_were_ended() -> None:
    (line,) = painted("It is **very impor")
    assert line.text == "It is very impor"
    assert line.spans[-1].style == "bold"
    (line,) = painted("Call `add(1, ")
    assert line.text.rstrip() == "Call add(1,"
    assert [span.style for span in line.spans if span.text == "add(1,"] == ["code"]
    assert [line.text for line in painted("```python\nx = 1\ny")] == ["python", "x = 1", "y"]
    assert [line.text for line in painted("| a | b |\n|---|")] == ["| a | b | |---|"]
    assert painted("| a | b |\n|---|---|\n| 1 | 2")[0].text == "a  b"


def test_a_mark_that_is_never_ended_stands_in_the_finished_text() -> None:
    assert texts("accepts *args and **kwargs, a ` and 5 * 3", 60) == [
        "accepts *args and **kwargs, a ` and 5 * 3"
    ]


def test_a_link_shows_where_it_leads_unless_the_terminal_does() -> None:
    text = "[docs](https://x.org/y) [https://good](https://evil.org)"
    assert texts(text, 80) == ["docs (https://x.org/y) https://good (https://evil.org)"]
    linked = PaintTheme(has_links=True)
    (line,) = MarkdownPainter(80, has_links=True).lines(text)
    assert line.text == "docs https://good (https://evil.org)"
    assert "\x1b]8;;https://x.org/y\x1b\\" in linked.line(line)
    (line,) = MarkdownPainter(80, has_links=True).lines("[x](javascript:alert(1)) [y](/etc/a)")
    assert "\x1b]8" not in linked.line(line)


def test_an_entity_is_its_character_but_never_an_escape_sequence() -> None:
    assert texts("a &lt; b &amp;&amp; c", 60) == ["a < b && c"]
    assert texts("&#27;[2J&#8238;x", 60) == ["[2J<U+202E>x"]


def test_hyperlinks_are_for_terminals_that_say_they_can() -> None:
    assert theme_of({"TERM": "xterm-kitty"}).has_links
    assert theme_of({"TERM": "xterm-256color", "VTE_VERSION": "7600"}).has_links
    assert not theme_of({"TERM": "xterm-256color"}).has_links
    assert not theme_of({"TERM": "dumb", "TERM_PROGRAM": "vscode"}).has_links
    tmux = {"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM": "tmux"}
    assert theme_of({**tmux, "TERM_PROGRAM_VERSION": "3.5a"}).has_links
    assert not theme_of({**tmux, "TERM_PROGRAM_VERSION": "3.3a"}).has_links


# -- in flight


def streamed(text: str, cuts: list[int], widths: list[int], room: int = 4) -> list[str]:
    """What is printed of a text that comes in pieces, with its windows."""
    flow, printed = AnswerFlow(), []
    for number, cut in enumerate(sorted({*cuts, len(text)})):
        width = widths[number % len(widths)]
        printed += flow.settle(text[:cut], room, width=width, theme=PLAIN)
        flow.lines(text[:cut], width=width, theme=PLAIN)
    return printed + flow.finish(text, width=widths[-1], theme=PLAIN)


PARTS = [
    "# Head\n\n",
    "A paragraph with **bold words** and `code in it`, long enough to be wrapped twice or so. ",
    "A *star that is never closed and an_underscore. ",
    "Second sentence [link](http://x.y/z) and `tick. ",
    "\n\n",
    "\n",
    "- item one that is long enough to be wrapped when the window is narrow\n",
    "  - nested **item\n",
    "2. number two\n\n",
    "```python\nx = 1\n\n  y = 'a long line of code that no window of these holds at all'\n```\n",
    "> quoted and quoted and quoted and quoted and quoted and quoted\n",
    "\n| a | b |\n|---|---|\n| one | two |\n| three | four |\n\n",
    "你好世界這是一個很長的句子。",
    "---\n",
    "line with two spaces  \nand the next\n",
]


@settings(max_examples=examples(300), deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=10),
    data=st.data(),
    width=st.sampled_from([20, 40, 80]),
)
def test_what_is_settled_on_the_way_is_what_the_finished_answer_shows(
    parts: list[str], data: st.DataObject, width: int
) -> None:
    text = "".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=30))
    whole = AnswerFlow().finish(text, width=width, theme=PLAIN)
    assert streamed(text, cuts, [width]) == whole


@settings(max_examples=examples(200), deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=8),
    data=st.data(),
)
def test_a_window_that_changes_its_size_repeats_and_loses_nothing(
    parts: list[str], data: st.DataObject
) -> None:
    text = "".join(parts)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=20))
    letters = r"[\W_]"
    whole = re.sub(letters, "", "".join(AnswerFlow().finish(text, width=100, theme=PLAIN)))
    printed = "".join(streamed(text, cuts, [100, 60, 40, 110]))
    assert re.sub(letters, "", printed) == whole


def test_each_sentence_of_a_long_paragraph_is_printed_once_whatever_the_window_does() -> None:
    text = " ".join(f"Sentence number {number} says so." for number in range(120))
    printed = " ".join(streamed(text, list(range(0, len(text), 40)), [100, 60, 40, 110]))
    for number in range(120):
        assert len(re.findall(rf"number\s+{number}\s", printed)) == 1


def test_a_table_is_settled_when_it_has_ended_and_code_line_by_line() -> None:
    flow = AnswerFlow()
    rows = "".join(f"| {number} | x |\n" for number in range(30))
    table = f"| a | b |\n|---|---|\n{rows}"
    assert flow.settle(table, 3, width=40, theme=PLAIN) == []
    assert len(flow.settle(f"{table}\nThen this.", 3, width=40, theme=PLAIN)) > 20
    flow = AnswerFlow()
    code = "```\n" + "".join(f"line {number}\n" for number in range(30))
    assert len(flow.settle(code, 3, width=40, theme=PLAIN)) == 28


def test_an_answer_that_starts_over_is_a_new_text() -> None:
    flow = AnswerFlow()
    flow.settle("word " * 200, 2, width=40, theme=PLAIN)
    assert flow.lines("Another answer.", width=40, theme=PLAIN) == ["Another answer."]
    assert flow.finish("Another answer.", width=40, theme=PLAIN) == ["", "Another answer."]
