"""Words in, arguments out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from weft.cli.options import RUN, VERBS, options_of, run_options
from weft.cli.parse import parse
from weft.errors import UsageError


def test_words_are_the_prompt_and_options_may_stand_anywhere() -> None:
    arguments = parse(["-p", "fix", "--max-turns", "3", "the bug", "-m", "a:b"])
    assert arguments.verb == ""
    assert arguments.words == ("fix", "the bug")
    assert arguments.flag("print")
    assert arguments.whole("max_turns") == 3
    assert arguments.text("model") == "a:b"


@pytest.mark.parametrize(
    ("argv", "key", "value"),
    [
        (["--model=a:b"], "model", "a:b"),
        (["-ma:b"], "model", "a:b"),
        (["-m", "a:b"], "model", "a:b"),
        (["--max-budget-usd", "0.5"], "max_budget_usd", 0.5),
        (["--resume"], "resume", ""),
        (["--resume", "--print"], "resume", ""),
        (["-r", "ses_1"], "resume", "ses_1"),
        (["-s", "ses_1"], "resume", "ses_1"),
        (["--no-session"], "ephemeral", True),
        (["--yolo"], "dangerously_skip_permissions", True),
        (["--allowed-tools", "read"], "allowedTools", ["read"]),
        (["--set", "a=1", "--set=b=2"], "set", ["a=1", "b=2"]),
    ],
)
def test_every_way_to_write_an_option_means_the_same(
    argv: list[str], key: str, value: object
) -> None:
    assert parse(argv).values[key] == value


def test_short_flags_may_stand_together() -> None:
    arguments = parse(["-pcm", "a:b"])
    assert (arguments.flag("print"), arguments.flag("continue"), arguments.text("model")) == (
        *(True, True),
        "a:b",
    )


def test_a_value_that_looks_like_an_option_is_never_taken_for_one() -> None:
    arguments = parse(["--append-system-prompt=--yolo", "-p", "--", "--yolo", "-c"])
    assert arguments.words == ("--yolo", "-c")
    assert arguments.text("append_system_prompt") == "--yolo"
    assert not arguments.flag("dangerously_skip_permissions")
    assert not arguments.flag("continue")


def parts_of(argv: list[str]) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    parsed = parse(argv)
    return parsed.verb, parsed.words, parsed.values


def test_only_the_first_word_can_be_a_command_and_none_after_print() -> None:
    assert parse(["session", "list", "stats"]).verb == "session list"
    assert parse(["sessions", "ls"]).verb == "session list"
    assert parse(["session"]).verb == "session list"
    assert parts_of(["exec", "stats"]) == ("run", ("stats",), {})
    assert parse(["explain", "stats"]).verb == ""
    assert parts_of(["-p", "stats"]) == ("", ("stats",), {"print": True})
    assert parse(["--", "stats"]).verb == ""


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--modle", "x"], "'--model'"),
        (["-px", "y"], "'-px'"),
        (["--model"], "--model needs a value"),
        (["--model", "--print"], "--model needs a value"),
        (["--print=yes"], "takes no value"),
        (["--effort", "hihg"], "'high'"),
        (["--max-turns", "many"], "a whole number above 0"),
        (["--max-turns", "0"], "above 0"),
        (["--max-budget-usd", "nan"], "above 0"),
        (["--max-budget-usd", "inf"], "above 0"),
        (["session", "lst"], "'list'"),
        (["session", "list", "--forse"], "'--forse'"),
        (["--print", "--fork", "session"], ""),
        (["-c", "session", "list"], "takes no --continue"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(argv: list[str], told: str) -> None:
    if not told:
        assert parse(argv).words == ("session",)
        return
    with pytest.raises(UsageError, match=re.escape(told)):
        parse(argv)


def test_no_two_options_share_a_name_and_every_one_says_what_it_does() -> None:
    every = [run_options(), *(options_of(v) for verb in VERBS for v in (verb, *verb.verbs))]
    for options in every:
        names = [name for option in options for name in (*option.names, *option.hidden)]
        assert len(names) == len(set(names))
        keys = [option.key for option in options]
        assert len(keys) == len(set(keys))
        assert all(option.about.endswith(".") for option in options)
        assert all(bool(option.metavar) == option.takes_value for option in options)
    assert all(section.options for section in RUN)
