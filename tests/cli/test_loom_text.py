"""Branches as `weft loom` shows them: lines that grow, differences, names of models."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from weft.cli.loom.branch_text import diff_text, short_model, tail
from weft.cli.loom.live_branches import LiveBranches
from weft.cli.loom.node_references import short_id
from weft.cli.loom.tree_files import write_file
from weft.errors import UsageError


def test_more_branches_than_rows_are_counted() -> None:
    live = LiveBranches(["haiku"] * 64, is_quiet=False)
    lines = live.lines(80, 24)
    assert len(lines) == 22
    assert lines[-1] == "  and 43 more"


def test_a_branch_that_is_longer_than_its_line_shows_its_end() -> None:
    assert tail("one two three", 20) == "one two three"
    assert tail("one two\nthree four", 11) == "…three four"
    assert tail("見出しの長い文", 7) == "…長い文"


def test_blanks_between_words_that_differ_are_part_of_the_difference() -> None:
    parts = [
        ("same", "a ", "a "),
        ("changed", "red", "blue"),
        ("same", " ", " "),
        ("changed", "fox", "bird"),
        ("same", " ran\n\n", " ran\n\n"),
        ("changed", "", "away"),
    ]
    assert diff_text(parts) == "a [-red fox-]{+blue bird+} ran\n\n{+away+}"


def test_a_model_is_shown_without_its_provider_and_path() -> None:
    assert short_model("anthropic:claude-haiku-4-5") == "claude-haiku-4-5"
    assert short_model("openrouter:meta/llama") == "llama"
    assert short_model(None) == ""


def test_the_short_form_of_an_id_tells_ids_of_one_moment_apart() -> None:
    assert short_id("nod_5dg5czt92xf81ssze3v6") == "5dg5czt9"
    assert short_id("nod_01m7jrs4n89q8bx1y2z3w4v5t6") == "01m7jrs4n89q8b"
    assert short_id("another-program/1") == "another-program/1"


def test_an_export_that_does_not_fit_leaves_what_was_there_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tree.json"
    write_file(str(path), b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(UsageError, match="cannot write"):
            write_file(str(path), b"x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [each.name for each in tmp_path.iterdir()] == ["tree.json"]
    assert path.read_bytes() == b"before"
