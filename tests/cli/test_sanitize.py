"""Foreign text cannot drive the terminal: a corpus of attacks, cut at every place, judged by a
terminal that is not ours.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.example_count import examples
from tests.support.terminal_attacks import ATTACKS, RecordingTerminal
from weft.cli.sanitize import HIDDEN, TerminalSanitizer, clean, clean_line, visible


def shown_by_a_terminal(text: str) -> RecordingTerminal:
    screen = RecordingTerminal()
    stream: Any = pyte.ByteStream(screen)
    stream.feed(text.replace("\n", "\r\n").encode("utf-8", "replace"))
    return screen


def is_untouched(screen: RecordingTerminal) -> bool:
    """Nothing but text happened: no title, no mode, no margin, no answer, no attribute."""
    fresh = RecordingTerminal()
    styled = [cell for row in screen.buffer.values() for cell in row.values() if _is_styled(cell)]
    return (
        screen.title == screen.icon_name == ""
        and screen.mode == fresh.mode
        and screen.margins == fresh.margins
        and screen.charset == fresh.charset
        and not screen.answers
        and not screen.savepoints
        and not styled
    )


def _is_styled(cell: Any) -> bool:
    return bool(cell._replace(data=" ") != pyte.screens.Char(" "))


def fits(text: str) -> bool:
    """Only what a terminal prints, tabs and newlines."""
    return all(
        letter in "\t\n"
        or (unicodedata.category(letter) not in ("Cc", "Cf", "Cs") or letter in "\ufe0e\ufe0f")
        for letter in text
    )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_is_text_wherever_it_is_cut(attack: str) -> None:
    whole = clean(f"before {attack} behind")
    assert fits(whole)
    assert whole.startswith("before ")
    screen = shown_by_a_terminal(whole)
    assert is_untouched(screen)
    for cut in range(0, len(attack) + 1, 1 + len(attack) // examples(500)):
        sanitizer = TerminalSanitizer()
        pieces = [f"before {attack[:cut]}", f"{attack[cut:]} behind"]
        assert "".join(sanitizer.feed(piece) for piece in pieces) == whole


def does_harm(attack: str) -> bool:
    """Does a terminal that gets it as it is do more than print?"""
    screen = shown_by_a_terminal(f"before\n{attack}")
    return not is_untouched(screen) or "before" not in "".join(screen.display)


def test_the_corpus_has_teeth() -> None:
    """Most of the attacks do something to a terminal that gets them as they are."""
    harmful = [name for name, attack in ATTACKS.items() if does_harm(attack)]
    assert len(harmful) >= 18


@given(
    st.text(alphabet=st.sampled_from("\x1b\x9b\x9d\x07\x9c[]PX^_;0123mHJ\\\n\r\tab\u202e\x08")),
    st.data(),
)
def test_no_text_at_all_drives_the_terminal_and_no_cut_matters(
    text: str, data: st.DataObject
) -> None:
    whole = clean(text)
    assert fits(whole)
    assert is_untouched(shown_by_a_terminal(whole))
    cut = data.draw(st.integers(0, len(text)))
    sanitizer = TerminalSanitizer()
    assert sanitizer.feed(text[:cut]) + sanitizer.feed(text[cut:]) == whole


@given(st.text(alphabet=st.sampled_from("\x1b[]0;mab \x07\x9d")), st.text(alphabet="ab\x1b[m"))
def test_lines_may_be_cleaned_one_by_one(first: str, second: str) -> None:
    assert clean(f"{first}\n{second}") == f"{clean(first)}\n{clean(second)}"


def test_what_follows_an_unfinished_sequence_is_shown() -> None:
    assert clean("\x1b]0;never ends\nrm -rf /") == "\nrm -rf /"
    assert clean("\x1b]0;" + "A" * 10_000).endswith("A")


@given(
    st.text(alphabet=st.characters(exclude_categories=("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")))
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    if not re.search(f"[{HIDDEN}]", text):
        assert clean(text) == text


def test_every_format_character_is_shown_by_its_number() -> None:
    """None of those that Unicode knows (and that are not assigned to scripts as visible signs)
    slips through.
    """
    visible_signs = set(
        "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    )
    missed = [
        f"U+{number:04X}"
        for number in range(0x20000)
        if unicodedata.category(chr(number)) == "Cf"
        and chr(number) not in visible_signs
        and not 0x13430 <= number <= 0x1345F
        and clean(chr(number)) == chr(number)
    ]
    assert missed == []


def test_colours_tabs_and_newlines_of_tools_read_well() -> None:
    assert clean("\x1b[32mok\x1b[0m\tx\r\ny\rz") == "ok\tx\ny\nz"
    assert (
        clean("h\u00e9 \u4e2d \U0001f600 \u2764\ufe0f") == "h\u00e9 \u4e2d \U0001f600 \u2764\ufe0f"
    )
    assert clean_line("a\nb\x1b[1m  c") == "a b c"


def test_joined_emoji_persian_and_hindi_are_read_as_they_are_written() -> None:
    for text in (
        "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥",
        "می\u200cخواهم کتاب\u200cها",
        "क्\u200dष और र\u200dय",
    ):
        assert clean(text) == text
        sanitizer = TerminalSanitizer()
        assert "".join(sanitizer.feed(letter) for letter in text) == text


def test_a_joiner_cannot_hide_between_latin_letters_or_behind_another() -> None:
    assert clean("pass\u200dword\u200c") == "pass<U+200D>word<U+200C>"
    assert clean("👩\u200d\u200d\u200d") == "👩\u200d<U+200D><U+200D>"
    assert clean("\u200d") == "<U+200D>"
    assert visible("می\u200cخواهم") == "می<U+200C>خواهم", "a question shows everything"


# --- what a person is asked to allow ------------------------------------------------------


def test_nothing_is_hidden_from_the_user_who_is_asked() -> None:
    shown = visible("ls\x1b[2K\r\u202e\t\x00x")
    assert shown == "ls<U+001B>[2K<U+000D><U+202E><TAB><U+0000>x"
    assert is_untouched(shown_by_a_terminal(shown))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attack_in_a_command_is_seen(attack: str) -> None:
    shown = visible(attack)
    assert is_untouched(shown_by_a_terminal(shown[:1000]))
    suspicious = [letter for letter in attack if not letter.isprintable() and letter != "\n"]
    assert shown.count("<U+") >= len(suspicious)


def test_padding_cannot_push_a_command_out_of_sight() -> None:
    assert visible("ls" + " " * 400 + "; rm -rf /") == "ls<400 spaces>; rm -rf /"
    assert visible("ls" + "\u2003" * 400 + "; rm") == "ls<400 spaces>; rm"
    assert visible("ls" + "\n" * 100 + "rm -rf /") == "ls\n<99 empty lines>\nrm -rf /"
    assert visible("if x:\n    y\n\n    z") == "if x:\n    y\n\n    z"
