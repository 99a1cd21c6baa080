"""The V4A patch format: random edits, written as patches, give the edited text."""

from __future__ import annotations

import difflib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.errors import FinalToolError
from weft.tools.v4a_patch import PatchedFile, PatchPiece, parse_patch, patched

MARKS = ["*** Begin Patch", "*** End Patch", "*** End of File", "*** Add File: x"]
LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d e", "@@ x", "*** y", "+", "-z", *MARKS]))


def as_patch(old: list[str], new: list[str], context: int) -> str:
    """The edit from one to the other, as a model would write it."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines = ["*** Begin Patch", "*** Update File: f"]
    for group in matcher.get_grouped_opcodes(context):
        lines.append("@@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [f"-{line}" for line in old[i1:i2]]
                lines += [f"+{line}" for line in new[j1:j2]]
        if group[-1][2] == len(old):
            lines.append("*** End of File")
    return "\n".join([*lines, "*** End Patch"])


def outcome(text: str, file: PatchedFile) -> str:
    try:
        return patched(text, file.pieces)
    except FinalToolError as error:
        return "refused" if "places" in str(error) else str(error)


def text_of(lines: list[str], end: str = "\n") -> str:
    return "".join(f"{line}{end}" for line in lines)


@given(old=LINES, new=LINES, end=st.sampled_from(["\n", "\r\n"]))
@example(old=["a", "a"], new=["a"], end="\n")
def test_an_edit_with_all_its_context_gives_the_edited_text(
    old: list[str], new: list[str], end: str
) -> None:
    if old == new:
        return
    (file,) = parse_patch(as_patch(old, new, context=len(old)))
    # A new text takes LF; nothing tells what else it should have.
    expected = text_of(new, end if old else "\n")
    assert patched(text_of(old, end), file.pieces) == expected


@given(old=LINES, new=LINES, context=st.integers(0, 3))
def test_an_edit_with_less_context_gives_the_edited_text_or_is_refused(
    old: list[str], new: list[str], context: int
) -> None:
    """A piece that could stand in two places is never put into the wrong one."""
    if old == new:
        return
    (file,) = parse_patch(as_patch(old, new, context))
    # Lines that come, without any that tell where, go to the end of the file.
    if all(piece.old for piece in file.pieces):
        assert outcome(text_of(old), file) in (text_of(new), "refused")


@given(
    old=st.lists(st.integers(0, 10_000).map(str), unique=True, min_size=1),
    data=st.data(),
    ends=st.booleans(),
)
def test_distinct_lines_need_one_line_of_context(
    old: list[str], data: st.DataObject, ends: bool
) -> None:
    at = data.draw(st.integers(0, len(old) - 1))
    added = data.draw(st.lists(st.sampled_from(["x", "y", ""])))
    new = [*old[: at + 1], *added, *old[at + 2 :]]
    if old == new:
        return
    text = text_of(old) if ends else text_of(old).removesuffix("\n")
    wanted = text_of(new) if ends else text_of(new).removesuffix("\n")
    (file,) = parse_patch(as_patch(old, new, context=1))
    assert patched(text, file.pieces) == wanted


@given(st.text(), st.text())
def test_any_text_is_a_patch_or_refused_in_a_sentence(text: str, body: str) -> None:
    for each in (text, f"*** Begin Patch\n{body}\n*** End Patch"):
        with suppress(FinalToolError):
            assert parse_patch(each)


def piece(text: str) -> PatchPiece:
    (file,) = parse_patch(f"*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch")
    (found,) = file.pieces
    return found


def test_files_are_added_changed_moved_and_deleted_in_one_patch() -> None:
    text = (
        "*** Begin Patch\n*** Add File: a b.txt\n+one\n+\n+ two\n"
        "*** Update File: c\n*** Move to: d/e\n@@ def f():\n-x\n+y\n z\n"
        "*** Delete File: g\n*** End Patch\n"
    )
    assert parse_patch(text) == (
        PatchedFile(action="add", path="a b.txt", content="one\n\n two\n"),
        PatchedFile(
            action="update",
            path="c",
            move_to="d/e",
            pieces=(
                PatchPiece(headings=("def f():",), lines=(("-", "x"), ("+", "y"), (" ", "z"))),
            ),
        ),
        PatchedFile(action="delete", path="g"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF",
        "```\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n```",
        "\r\n*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch\r\n",
        "*** Begin Patch \n\n*** Delete File: a \n\n*** End Patch",
    ],
)
def test_what_models_wrap_around_a_patch_does_not_matter(text: str) -> None:
    assert parse_patch(text) == (PatchedFile(action="delete", path="a"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must begin with the line '*** Begin Patch'"),
        ("*** Begin Patch\n*** Add File: a\n+x", "must end with the line '*** End Patch'"),
        ("*** Begin Patch\n*** End Patch", "the patch names no file"),
        ("*** Begin Patch\nfoo\n*** End Patch", "line 2 of the patch should be"),
        ("*** Begin Patch\n*** Update File:\n+x\n*** End Patch", "line 2 of the patch should be"),
        ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", "line 3 of the patch of a new file"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "nothing of what to change in 'a'"),
        ("*** Begin Patch\n*** Update File: a\nfoo\n*** End Patch", "line 3 of the patch must"),
        ("*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch", "nothing of what to change"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(FinalToolError) as refused:
        parse_patch(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mark", MARKS)
def test_a_line_of_a_file_that_looks_like_a_mark_is_one_of_the_file(mark: str) -> None:
    change = piece(f" a\n {mark}\n-b\n+c")
    assert patched(f"a\n{mark}\nb\n", [change]) == f"a\n{mark}\nc\n"


@pytest.mark.parametrize("behind", ["*** Add File: b\n+x", "*** Begin Patch", "+x\n*** End Patch"])
def test_what_stands_behind_the_end_is_not_dropped_in_silence(behind: str) -> None:
    text = f"*** Begin Patch\n*** Delete File: a\n*** End Patch\n{behind}\n"
    with pytest.raises(
        FinalToolError, match=r"line \d of the patch stands behind '\*\*\* End Patch'"
    ):
        parse_patch(text)


@pytest.mark.parametrize(
    ("lines", "content"),
    [
        ("+a\n\n+b\n", "a\n\nb\n"),
        ("\n+a\n \n\n+b\n\n\n", "\na\n\n\nb\n"),
        ("+a\n+\n\n", "a\n\n"),
        ("\n\n", ""),
    ],
)
@pytest.mark.parametrize("behind", ["", "*** Delete File: c\n"])
def test_an_empty_line_of_a_new_file_that_lost_its_plus_stays(
    lines: str, content: str, behind: str
) -> None:
    text = f"*** Begin Patch\n*** Add File: a\n{lines}{behind}*** End Patch"
    assert parse_patch(text)[0].content == content


def test_a_heading_says_which_of_two_places_is_meant() -> None:
    text = "def f():\n    pass\ndef g():\n    pass\n"
    change = piece("@@ def g():\n-    pass\n+    return 1")
    assert patched(text, [change]) == "def f():\n    pass\ndef g():\n    return 1\n"


def test_a_piece_that_fits_twice_is_refused_with_the_lines() -> None:
    with pytest.raises(FinalToolError, match=r"fits in 2 places \(lines 1, 3\)"):
        patched("a\nb\na\n", [piece("-a\n+c")])


def test_a_piece_that_fits_nowhere_names_the_line_that_is_missing() -> None:
    with pytest.raises(FinalToolError, match=r"the file has no line 'x'"):
        patched("a\nb\n", [piece(" a\n-x\n+c")])
    with pytest.raises(FinalToolError, match="not one after the other"):
        patched("a\nb\nc\n", [piece(" a\n-c\n+d")])
    with pytest.raises(FinalToolError, match=r"there is no line 'def f\(\):'.*after @@"):
        patched("a\n", [piece("@@ def f():\n-a\n+b")])


def test_blanks_that_a_model_lost_do_not_matter_and_the_files_own_stay() -> None:
    assert patched("\tif x:  \n\t\ty\n", [piece(" if x:\n-y\n+\t\tz")]) == "\tif x:  \n\t\tz\n"


def test_lines_alone_go_behind_the_heading_or_to_the_end() -> None:
    assert patched("a\nb\n", [piece("@@ a\n+x")]) == "a\nx\nb\n"
    assert patched("a\nb\n", [piece("+x")]) == "a\nb\nx\n"
    assert patched("a", [piece("+x")]) == "a\nx"


def test_mixed_line_ends_stay_where_nothing_is_changed() -> None:
    assert patched("a\r\nb\nc\r\n", [piece(" a\n-b\n+x\n c")]) == "a\r\nx\r\nc\r\n"
