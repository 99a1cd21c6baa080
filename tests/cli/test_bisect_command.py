"""`weft bisect`: what stands behind `--` is the check, and a mistake is one sentence."""

from __future__ import annotations

import pytest

from weft.cli.evidence.bisect import check_of, end_of
from weft.cli.parse import parse
from weft.errors import UsageError


def test_what_stands_behind_two_dashes_is_the_check_and_before_it_the_session() -> None:
    parsed = parse(["bisect", "ses_1", "--good", "3", "--", "make", "test", "--fast"])
    assert parsed.words[:1] == ("ses_1",)
    assert parsed.literal == ("make", "test", "--fast")
    assert check_of(parsed.literal) == "make test --fast"


def test_one_word_is_a_line_for_the_shell_and_several_are_a_program_with_its_words() -> None:
    assert check_of(("make test && ./lint",)) == "make test && ./lint"
    assert check_of(("grep", "-q", "two words", "a file")) == "grep -q 'two words' 'a file'"


@pytest.mark.parametrize("words", [["make", "test"], ["--"], ["--", " "]])
def test_without_a_check_the_way_to_say_it_is_shown(words: list[str]) -> None:
    with pytest.raises(UsageError, match="weft bisect -- make test"):
        check_of(parse(["bisect", *words]).literal)


def test_an_end_is_a_turn_by_its_number_or_a_message_by_its_id() -> None:
    assert (end_of("12"), end_of("0"), end_of("nod_1"), end_of(None)) == (12, 0, "nod_1", None)
