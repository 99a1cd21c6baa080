"""The tables of commands: every row can be read, has a reason, and says one thing."""

from __future__ import annotations

import pytest

from tests.support.attack_corpus import action_of
from weft.data_tables import read_table
from weft.permissions import decide
from weft.permissions.shell import tables
from weft.permissions.shell.tables import code_rows, read_only_rows, why_wary, wrapper_rows

KINDS = {
    *("none", "text", "paths", "path1", "pattern", "revs", "listing", "find", "sed", "awk", "jq"),
    *("test", "echo", "printf", "date", "cd", "ps"),
}


@pytest.mark.parametrize(
    ("name", "columns"),
    [("read_only.tsv", 5), ("wrappers.tsv", 5), ("code_runners.tsv", 3), ("wary_options.tsv", 3)],
)
def test_every_row_has_a_reason(name: str, columns: int) -> None:
    rows = read_table(tables.__file__, name, columns)
    assert all(len(row[-1]) > 4 for row in rows)


def test_no_command_has_two_rows_in_a_table() -> None:
    for name, columns in (("read_only.tsv", 5), ("wrappers.tsv", 5), ("code_runners.tsv", 3)):
        names = [row[0] for row in read_table(tables.__file__, name, columns)]
        assert sorted(names) == sorted(set(names))


def test_the_words_of_every_read_only_row_are_of_a_known_kind() -> None:
    assert {row.words for row in read_only_rows().values()} <= KINDS


def test_no_command_that_only_reads_also_runs_others() -> None:
    both = set(read_only_rows()) & set(wrapper_rows())
    assert both == set()
    # These are read where they do no more than print.
    assert set(read_only_rows()) & set(code_rows()) == {"awk", "gawk", "mawk", "sed", "find"}


@pytest.mark.parametrize("command", sorted(read_only_rows()))
def test_an_option_that_is_not_in_the_row_asks(command: str) -> None:
    assert decide(action_of("shell", f"{command} --not-in-the-row"), mode="default").verdict == (
        "allow" if read_only_rows()[command].words == "echo" else "ask"
    )


def test_long_options_may_be_shortened_and_short_ones_joined() -> None:
    assert why_wary("git", "--upload-pa=x")
    assert why_wary("tar", "-xCf")
    assert not why_wary("git", "-m")
    assert not why_wary("pytest", "-q")
