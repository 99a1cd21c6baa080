"""Diagnostics as the model reads them."""

from __future__ import annotations

import msgspec

from weft.lsp.client import MOST_PROBLEMS, KnownDiagnostics
from weft.lsp.diagnostic_text import FileFindings, ShownProblems, said_by
from weft.lsp.wire import CodeDiagnostic, TextPosition, TextRange


def problem(
    line: int, message: str, severity: int | None = 1, character: int = 0
) -> CodeDiagnostic:
    place = TextPosition(line=line, character=character)
    return CodeDiagnostic(
        range=TextRange(start=place, end=place), message=message, severity=severity
    )


def findings(
    *items: CodeDiagnostic,
    path: str = "a.py",
    is_edited: bool = True,
    text: str = "",
    is_sure: bool = True,
) -> FileFindings:
    known = KnownDiagnostics(version=1, items=items, is_sure=is_sure)
    return FileFindings(path=path, text=text, encoding="utf-16", known=known, is_edited=is_edited)


def test_errors_come_before_warnings_and_hints_are_left_out() -> None:
    said = said_by(
        "ty",
        [findings(problem(5, "warn", 2), problem(9, "worse"), problem(1, "hint", 4))],
        ShownProblems(),
    )
    assert said == ["ty: 2 problems", "a.py:10:1 error: worse", "a.py:6:1 warning: warn"]


def test_a_problem_without_a_severity_counts_as_an_error() -> None:
    assert said_by("ty", [findings(problem(0, "x", None))], ShownProblems())[1].endswith("error: x")


def test_columns_are_counted_in_characters() -> None:
    said = said_by("ty", [findings(problem(0, "x", 1, 3), text="🎉é!")], ShownProblems())
    assert said[1] == "a.py:1:3 error: x"


def test_no_more_than_ten_lines_and_the_rest_is_counted() -> None:
    said = said_by("ty", [findings(*(problem(n, f"e{n}") for n in range(30)))], ShownProblems())
    assert len(said) == 12
    assert said[0] == "ty: 30 problems"
    assert said[-1] == "… and 20 more"


def test_a_message_of_many_lines_becomes_one_that_is_not_too_long() -> None:
    said = said_by("ty", [findings(problem(0, "a\n\tb  c" + "x" * 999))], ShownProblems())
    assert said[1].startswith("a.py:1:1 error: a b cx")
    assert len(said[1]) < 250


def test_of_files_that_import_the_edited_one_only_errors_are_shown() -> None:
    said = said_by(
        "ty",
        [
            findings(),
            findings(problem(0, "broken"), problem(1, "w", 2), path="b.py", is_edited=False),
        ],
        ShownProblems(),
    )
    assert said == ["ty: 1 problem", "in files that import it:", "b.py:1:1 error: broken"]


def test_old_warnings_are_counted_and_errors_of_the_edited_file_repeated() -> None:
    shown = ShownProblems()
    said_by("ty", [findings(problem(0, "e"), problem(1, "w", 2))], shown)
    again = said_by("ty", [findings(problem(4, "e"), problem(5, "w", 2))], shown)
    assert again == ["ty: 2 problems, 1 of them shown before", "a.py:5:1 error: e"]
    said_by("ty", [findings()], shown)
    back = said_by("ty", [findings(problem(5, "w", 2))], shown)
    assert back == ["ty: 1 problem", "a.py:6:1 warning: w"], "it was gone in between"


def test_a_warning_that_was_left_out_of_an_importer_is_new_when_that_file_is_edited() -> None:
    shown = ShownProblems()
    said_by("ty", [findings(problem(0, "w", 2), path="b.py", is_edited=False)], shown)
    said = said_by("ty", [findings(problem(0, "w", 2), path="b.py")], shown)
    assert said == ["ty: 1 problem", "b.py:1:1 warning: w"]


def test_what_names_no_version_says_so() -> None:
    said = said_by("x", [findings(is_sure=False)], ShownProblems())
    assert said == ["x: no problems (it names no version: this may lag behind the last edit)"]


def test_what_was_cut_does_not_count_as_shown() -> None:
    shown = ShownProblems()
    found = findings(*(problem(n, f"w{n:02}", 2) for n in range(12)))
    assert said_by("ty", [found], shown)[-1] == "… and 2 more"
    assert said_by("ty", [found], shown) == [
        "ty: 12 problems, 10 of them shown before",
        "a.py:11:1 warning: w10",
        "a.py:12:1 warning: w11",
    ]
    assert said_by("ty", [found], shown) == ["ty: 12 problems, 12 of them shown before"]


def test_a_second_problem_with_the_same_words_is_a_new_one() -> None:
    shown = ShownProblems()
    said_by("ty", [findings(problem(3, "unused", 2))], shown)
    said = said_by("ty", [findings(problem(1, "unused", 2), problem(5, "unused", 2))], shown)
    assert said == ["ty: 2 problems, 1 of them shown before", "a.py:6:1 warning: unused"]
    gone = said_by("ty", [findings()], shown)
    assert gone == ["ty: no problems"]
    again = said_by("ty", [findings(problem(0, "unused", 2))], shown)
    assert again == ["ty: 1 problem", "a.py:1:1 warning: unused"]


def test_codes_and_messages_in_other_forms_are_shown_all_the_same() -> None:
    """Some servers send an object with a link as the code, and newer ones marked-up messages."""
    raw = (
        b'{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},'
        b'"message":{"kind":"markdown","value":"bad `x`"},"severity":1,'
        b'"code":{"value":"E7","target":"https://example.org"}}'
    )
    item = msgspec.json.decode(raw, type=CodeDiagnostic)
    assert said_by("ty", [findings(item)], ShownProblems())[1] == "a.py:1:1 error: bad `x` [E7]"


def test_where_only_some_are_kept_there_may_be_more() -> None:
    many = findings(*(problem(line, f"bug {line}") for line in range(MOST_PROBLEMS)))
    assert said_by("ty", [many], ShownProblems())[0] == f"ty: {MOST_PROBLEMS} problems or more"
