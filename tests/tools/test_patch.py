"""Exact replacements, as properties."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weft.errors import FinalToolError
from weft.tools.diff import MAX_LINES, bounded, unified
from weft.tools.fuzzy_match import nearest
from weft.tools.patch import TextReplacement, apply
from weft.tools.text import decode, in_lf

lines = st.lists(st.text(alphabet="ab \té→", max_size=6), min_size=1, max_size=12)
FORMS = [
    ("\n", "utf-8", b""),
    ("\r\n", "utf-8", b""),
    ("\n", "utf-8", codecs.BOM_UTF8),
    ("\r\n", "utf-8", codecs.BOM_UTF8),
    ("\r\n", "utf-16-le", codecs.BOM_UTF16_LE),
    ("\n", "utf-16-be", codecs.BOM_UTF16_BE),
]


def is_once(text: str, piece: str) -> bool:
    """True when the piece is there, and at one place only."""
    first = text.find(piece)
    return first >= 0 and text.find(piece, first + 1) < 0


@pytest.mark.parametrize(("end", "encoding", "bom"), FORMS)
@given(content=lines, data=st.data(), new=st.text(alphabet="ab\né→", max_size=8))
def test_an_edit_and_its_inverse_give_the_very_same_bytes(
    end: str, encoding: str, bom: bytes, content: list[str], data: st.DataObject, new: str
) -> None:
    text = "\n".join(content)
    original = bom + text.replace("\n", end).encode(encoding)
    start = data.draw(st.integers(0, len(text)))
    old = text[start : data.draw(st.integers(start, len(text)))]
    decoded = decode(original)
    assume(decoded is not None and old and old != new and is_once(text, old))
    assert decoded is not None
    assume(end == "\n" or "\n" in text)  # a file of one line does not tell its line ends
    edited, count = apply(decoded.text, TextReplacement(old=old, new=new))
    assert count == 1
    assert in_lf(edited) == text.replace(old, new)
    assume(new and is_once(in_lf(edited), new))
    assume(end == "\n" or "\n" in in_lf(edited))
    back, _ = apply(edited, TextReplacement(old=new, new=old))
    assert decoded.encode(back, "f") == original


@given(
    ends=st.lists(st.sampled_from(["\n", "\r\n"]), min_size=1, max_size=12),
    data=st.data(),
    new=st.text(alphabet="ab\n", max_size=5),
)
def test_nothing_outside_the_edited_piece_changes_in_a_file_of_mixed_line_ends(
    ends: list[str], data: st.DataObject, new: str
) -> None:
    first = data.draw(st.integers(0, len(ends) - 1))
    last = data.draw(st.integers(first, len(ends) - 1))
    content = [f"<{number}>{end}" for number, end in enumerate(ends)]
    head, tail = "".join(content[:first]), ends[last] + "".join(content[last + 1 :])
    old = "\n".join(f"<{number}>" for number in range(first, last + 1))
    edited, _ = apply("".join(content), TextReplacement(old=old, new=new))
    assert edited.startswith(head)
    assert edited.endswith(tail)
    assert in_lf(edited[len(head) : len(edited) - len(tail)]) == new


def test_overlapping_places_are_several_places() -> None:
    with pytest.raises(FinalToolError, match="occurs 2 times"):
        apply("aaa", TextReplacement(old="aa", new="b"))
    assert apply("aaa", TextReplacement(old="aa", new="b", replace_all=True)) == ("ba", 1)


def test_new_lines_take_the_line_end_of_their_surroundings() -> None:
    assert apply("a\r\nb\r\n", TextReplacement(old="a", new="x\ny"))[0] == "x\r\ny\r\nb\r\n"
    assert apply("a\r\nb\r\n", TextReplacement(old="a\nb", new="x\ny"))[0] == "x\r\ny\r\n"
    assert apply("a\nb\r\nc\n", TextReplacement(old="a\nb", new="x\ny"))[0] == "x\ny\r\nc\n"
    assert apply("a\r\nb", TextReplacement(old="a\r\nb", new="c\r\nd"))[0] == "c\r\nd"


def test_a_miss_in_a_large_file_is_answered_fast() -> None:
    """Letter by letter only for a few candidates: the time-out of the suite would see anything
    else.
    """
    text = "\n".join(f"value_{n} = compute(value_{n - 1}, {n})" for n in range(50_000))
    assert "line 778" in nearest(text, "value_777 = compute(value_776 , 778)")


@given(st.text(alphabet="ab \n", max_size=60), st.text(alphabet="abc \n", min_size=1, max_size=30))
def test_looking_for_near_text_never_fails(text: str, wanted: str) -> None:
    nearest(text, wanted)
    if wanted not in text:
        with pytest.raises(FinalToolError):
            apply(text, TextReplacement(old=wanted, new="zzz"))


def _patched(old: str, diff: str) -> str:
    """Apply a unified diff, to see that it says what it should."""
    source = old.split("\n") if old else []
    result: list[str] = []
    at = 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            # A range of no lines is named by the line before it.
            start = max(0, int(line.split()[1].split(",")[0][1:]) - 1)
            result += source[at:start]
            at = start
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert source[at] == line[1:]
            at += 1
            if line.startswith(" "):
                result.append(line[1:])
    return "\n".join(result + source[at:])


@given(
    st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30),
    st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30),
)
def test_a_diff_turns_the_old_text_into_the_new(before: list[str], after: list[str]) -> None:
    old, new = "\n".join(before), "\n".join(after)
    diff = unified(old, new, "f")
    if old == new:
        assert diff == ""
    else:
        # Of a file that is made, the last line break is no line of its own.
        assert _patched(old, diff) == (new if old else new.removesuffix("\n"))


def test_a_huge_diff_is_cut_and_quick() -> None:
    old = "\n".join(f"a{n}" for n in range(20_000))
    diff = unified(old, "\n".join(f"b{n}" for n in range(20_000)), "f")
    assert diff.count("\n") == 40_000 + 2, "what is about to be approved is shown whole"
    assert bounded(diff).count("\n") <= MAX_LINES
    assert bounded(diff).endswith("more lines)")
