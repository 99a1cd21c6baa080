"""The line editor: text, cursor, words, undo, the kill ring, pastes, history."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.chat.paint.text_cells import graphemes, row_cells
from weft.cli.chat.screens.line_input.editing_keys import ShellKeys, edit
from weft.cli.chat.screens.line_input.history_search import HistorySearch
from weft.cli.chat.screens.line_input.input_rows import input_rows
from weft.cli.chat.screens.line_input.line_editor import LineEditor
from weft.cli.chat.screens.line_input.line_history import LineHistory
from weft.cli.chat.screens.terminal.styles import RowStyles

PLAIN = RowStyles(coloured=False)
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


def typed(*keys: str, text: str = "", cursor: int | None = None) -> LineEditor:
    editor = LineEditor()
    editor.set_text(text, cursor)
    shell = ShellKeys(editor)
    for key in keys:
        assert shell.press(key), key
    return editor


def shown(editor: LineEditor) -> str:
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}"


@pytest.mark.parametrize(
    ("text", "cursor", "keys", "result"),
    [
        ("one two", None, ["m-b", "X"], "one X|two"),
        ("one two", 0, ["m-f", "X"], "oneX| two"),
        ("one two", None, ["c-w"], "one |"),
        ("a.b/c.d e", None, ["c-w", "c-w"], "|"),
        ("a.b/c.d", None, ["m-backspace"], "a.b/c.|"),
        ("one two", 3, ["c-k"], "one|"),
        ("one two", 3, ["c-u"], "| two"),
        ("one two", 0, ["m-d"], "| two"),
        ("one two", 3, ["c-a", "X", "c-e", "Y"], "Xone twoY|"),
        ("ab", None, ["c-t"], "ba|"),
        ("word", 0, ["m-u"], "WORD|"),
        ("a\nbc", None, ["home", "X"], "a\nX|bc"),
        ("one two", None, ["c-w", "c-y", "c-y"], "one twotwo|"),
        ("one two three", None, ["c-w", "c-w", "c-y"], "one two three|"),
        ("abc", 1, ["delete"], "a|c"),
        (f"x{FAMILY}", None, ["backspace"], "x|"),
        (f"{FAMILY}x", 0, ["right", "-"], f"{FAMILY}-|x"),
        ("नमस्ते", None, ["left", "backspace"], "न|स्ते"),
        ("alpha bETA", 0, ["m-c", "m-c"], "Alpha Beta|"),
        ("alpha", 1, ["m-c"], "aLpha|"),
        ("foo_bar baz", None, ["m-b", "m-b"], "foo_|bar baz"),
        ("foo_bar", None, ["m-backspace"], "foo_|"),
        ("नमस्ते दुनिया", None, ["m-b"], "नमस्ते |दुनिया"),
        ("می\u200cروم خانه", None, ["m-b", "m-b"], "|می\u200cروم خانه"),
        (f"a {FAMILY} b", None, ["m-b", "m-b"], f"|a {FAMILY} b"),
        ("one two three", None, ["c-w", "c-w", "c-_"], "one two |"),
        ("one    two", 4, ["m-\\"], "one|two"),
        ("one two", None, ["c-w", "m-r"], "|"),
        ("one two three", None, ["m-2", "m-b"], "one |two three"),
        ("one two three", 0, ["m--", "m-b", "X"], "oneX| two three"),
        ("ab", None, ["m-1", "2", "x"], "abxxxxxxxxxxxx|"),
        ("ab", None, ["m-3", "c-]", "b"], "ab|"),
        ("foo bar baz", 0, ["c-]", "a"], "foo b|ar baz"),
        ("foo bar baz", 0, ["m-2", "c-]", "a"], "foo bar b|az"),
        ("foo bar baz", None, ["m-c-]", "b"], "foo bar |baz"),
        ("abc", None, ["c-x", "c-u"], "|"),
    ],
)
def test_keys_edit_as_in_a_shell(
    text: str, cursor: int | None, keys: list[str], result: str
) -> None:
    assert shown(typed(*keys, text=text, cursor=cursor)) == result


def test_yanks_go_round_the_ring() -> None:
    editor = typed("c-w", "left", "c-w", "c-e", "c-y", text="one two")
    assert editor.text.endswith("one")
    edit(editor, "m-y")
    assert editor.text.endswith("two")


def test_a_cut_after_a_yank_from_the_ring_leaves_the_ring_in_its_order() -> None:
    editor = typed("c-w", "left", "c-w", "c-y", "m-y", text="one two three")
    editor.set_text("five")
    for key in ("c-u", "c-y", "m-y", "m-y"):
        edit(editor, key)
    assert editor.text == "three", "five, then two, then three: the latest cut first"


def test_a_key_without_meaning_ends_a_count() -> None:
    editor = LineEditor()
    shell = ShellKeys(editor)
    assert shell.press("m-3")
    assert shell.notice == "(arg: 3)"
    assert not shell.press("enter")
    shell.press("x")
    assert (editor.text, shell.notice) == ("x", "")


def test_undo_takes_back_a_word_at_a_time_and_redo_brings_it_again() -> None:
    editor = typed(*"one", "space", *"two")
    edit(editor, "c-_")
    assert editor.text == "one "
    edit(editor, "c-_")
    edit(editor, "c-_")
    assert editor.text == ""
    for _ in range(3):
        edit(editor, "m-_")
    assert editor.text == "one two"


@given(
    st.lists(st.sampled_from([*"ab", "space", "c-w", "c-k", "c-y", "left", "c-a", "c-t", "m-d"]))
)
def test_undo_ends_at_the_beginning_and_redo_where_it_was(keys: list[str]) -> None:
    editor = typed(*keys)
    end = editor.text
    for _ in range(len(keys) + 1):
        editor.undo()
    assert editor.text == ""
    for _ in range(len(keys) + 1):
        editor.redo()
    assert editor.text == end


@given(st.text(alphabet="ab \n中é" + FAMILY + "नमस्ते", max_size=30), st.data())
def test_the_cursor_never_stands_inside_a_character(text: str, data: st.DataObject) -> None:
    editor = typed(text=text)
    for key in data.draw(st.lists(st.sampled_from(["left", "right", "m-b", "m-f", "home", "end"]))):
        edit(editor, key)
    ends = [0]
    for each in graphemes(text):
        ends.append(ends[-1] + len(each))
    if "left" in text or set(text) <= set("ab \n中é"):
        assert editor.cursor in ends
    assert 0 <= editor.cursor <= len(text)


# --- pastes ------------------------------------------------------------------------------------


LONG = "\n".join(f"line {number}" for number in range(62))


def test_a_long_paste_is_one_token_and_is_sent_in_full() -> None:
    editor = typed(*"see")
    editor.paste(LONG)
    assert input_rows(editor, width=80, limit=9, styles=PLAIN).rows == [
        "\x1b[1m› \x1b[0msee[Pasted 62 lines]"
    ]
    assert editor.whole_text == f"see{LONG}"
    edit(editor, "backspace")
    assert editor.text == "see"
    edit(editor, "c-_")
    assert editor.whole_text == f"see{LONG}"


def test_the_same_paste_again_unfolds_it() -> None:
    editor = typed(*"a")
    editor.paste(LONG)
    edit(editor, "b")
    editor.paste(LONG)
    assert editor.text == f"a{LONG}b"


def test_a_paste_of_eight_lines_stays_as_it_is() -> None:
    editor = LineEditor()
    editor.paste("\n".join("12345678"))
    assert editor.text == "\n".join("12345678")
    editor.paste("x" * 1001)
    assert "x" not in editor.text
    assert editor.whole_text.count("x") == 1001


def test_foreign_text_cannot_forge_a_token() -> None:
    editor = LineEditor()
    editor.paste(LONG)
    editor.insert(editor.text)
    assert editor.whole_text == LONG


def test_a_folded_paste_that_comes_back_is_folded_again() -> None:
    editor = typed(*"see ")
    editor.paste(LONG)
    sent = editor.whole_text + " there"
    editor.reset()
    editor.bring_back(sent)
    assert [editor.label(each) or each for each in editor.text] == [
        *"see ",
        "[Pasted 62 lines]",
        *" there",
    ]
    assert editor.whole_text == sent
    assert editor.folded == ((4, 4 + len(LONG)),)
    editor.paste(LONG)
    assert editor.text == sent


def test_a_very_long_text_of_an_earlier_chat_is_folded_behind_its_first_line() -> None:
    editor = LineEditor()
    editor.bring_back(LONG)
    assert editor.text == LONG, "it could have been typed"
    editor.reset()
    much = f"what is in this log?\n{LONG}\n{LONG}"
    editor.bring_back(much)
    assert editor.text.startswith("what is in this log?\n")
    assert editor.label(editor.text[-1]) == "[Pasted 124 lines]"
    assert len(editor.text) == len("what is in this log?\n") + 1
    assert editor.whole_text == much


# --- rows --------------------------------------------------------------------------------------


def test_the_input_is_wrapped_and_scrolls_with_the_cursor() -> None:
    editor = typed(text="x" * 100)
    rows = input_rows(editor, width=23, limit=3, styles=PLAIN)
    assert [row_cells(row) for row in rows.rows] == [22, 22, 22]
    assert (rows.row, rows.column) == (2, 22)
    editor.start()
    rows = input_rows(editor, width=23, limit=3, styles=PLAIN)
    assert (rows.row, rows.column) == (0, 2)


@given(st.text(max_size=60), st.integers(8, 40), st.integers(1, 6), st.data())
def test_rows_fit_and_hold_the_cursor_whatever_is_typed(
    text: str, width: int, limit: int, data: st.DataObject
) -> None:
    editor = LineEditor()
    editor.insert(text)
    editor.move_to(data.draw(st.integers(0, len(editor.text))))
    rows = input_rows(editor, width=width, limit=limit, styles=_Bare())
    assert 1 <= len(rows.rows) <= limit
    assert 0 <= rows.row < len(rows.rows)
    assert 2 <= rows.column <= width
    assert all("\x1b" not in row and "\n" not in row and "\r" not in row for row in rows.rows)


class _Bare(RowStyles):
    """No attributes at all."""

    def __call__(self, style: str, text: str) -> str:
        return text


# --- history -----------------------------------------------------------------------------------


def test_history_goes_back_and_forth_and_keeps_the_draft(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "history")
    history = LineHistory(path)
    for line in ("one", "two\nlines", "two\nlines", "three"):
        history.add(line)
    again = LineHistory(path)
    assert again.entries() == ["one", "two\nlines", "three"]
    assert again.back("draft") == "three"
    assert again.back("three") == "two\nlines"
    assert again.back("two\nlines") == "one"
    assert again.back("one") is None
    assert [again.forth() for _ in range(4)] == ["two\nlines", "three", "draft", None]
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_a_history_that_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    history = LineHistory(str(tmp_path / "file" / "history"))
    history.add("one")
    assert history.back("") == "one"


def test_history_is_searched_the_newest_first() -> None:
    history = LineHistory(None)
    for line in ("fix the test", "run it", "fix the parser"):
        history.add(line)
    search = HistorySearch(history, "draft")
    matches = [search.match]
    for letter in "FIX":
        search.type(letter)
    matches.append(search.match)
    search.older()
    matches.append(search.match)
    search.newer()
    search.newer()
    matches.append(search.match)
    search.type("x")
    matches.append(search.match)
    search.erase()
    matches.append(search.match)
    newest = "fix the parser"
    assert matches == ["draft", newest, "fix the test", newest, None, newest]
