"""What is said of a goal on a command line, and in the chat."""

from __future__ import annotations

import shlex
from typing import Any, Final

from weft.api import Goal
from weft.api.unattended.times import duration_of, shown_duration
from weft.errors import UsageError, did_you_mean
from weft.view import checked_text

OPTIONS: Final = {
    "--check": "check",
    "--judge": "judge",
    "--max-budget-usd": "max_budget_usd",
    "--max-time": "max_seconds",
    "--max-rounds": "max_rounds",
}
OUTSIDE: Final = "--outside-sandbox"
USAGE: Final = "/goal TEXT --check CMD; or pause, resume, edit, clear"


def said_goal(words: str) -> tuple[str, dict[str, Any]]:
    """The text of a goal and its options, as `/goal` takes them.

    Raises:
        UsageError: an option is not known, or has no value.
    """
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"this cannot be read: {error}; put what has quotes in others") from error
    text: list[str] = []
    options: dict[str, Any] = {}
    while parts:
        word = parts.pop(0)
        name, equals, value = word.partition("=")
        if name == OUTSIDE:
            options["outside_sandbox"] = True
        elif name in OPTIONS:
            if not equals and not parts:
                raise UsageError(f"{name} needs a value")
            options[OPTIONS[name]] = option_value(name, value if equals else parts.pop(0))
        elif name.startswith("--"):
            known = (*OPTIONS, OUTSIDE)
            raise UsageError(f"a goal has no option {name}{did_you_mean(name, known) or '.'}")
        else:
            text.append(word)
    return " ".join(text), options


def option_value(name: str, given: str) -> Any:
    """The value of an option of a goal.

    Raises:
        UsageError: it is none.
    """
    match name:
        case "--max-time":
            return duration_of(given)
        case "--max-budget-usd" | "--max-rounds":
            kind = int if name == "--max-rounds" else float
            try:
                return kind(given.removeprefix("$"))
            except ValueError as error:
                raise UsageError(f"{name} takes a number, not {given!r:.60}") from error
        case _:
            return given


def goal_rows(goal: Goal) -> list[tuple[str, str]]:
    """A goal as a table of two columns."""
    state = goal.status if not goal.detail else f"{goal.status}: {goal.detail}"
    if goal.asks:
        state += "; it waits for your answer"
    spent = f"${goal.cost_usd:.2f}" + (
        "" if goal.max_budget_usd is None else f" of ${goal.max_budget_usd:g}"
    )
    time = shown_duration(goal.seconds) + (
        "" if goal.max_seconds is None else f" of {shown_duration(goal.max_seconds)}"
    )
    rows = [
        ("goal", goal.text),
        ("check", goal.check),
        ("judge", goal.judge),
        ("state", state),
        ("rounds", f"{goal.round} of {goal.max_rounds}"),
        ("spent", f"{spent}, {time}"),
        ("mode", goal.mode),
    ]
    return [row for row in rows if row[1]]


def check_lines(goal: Goal) -> list[str]:
    """What its last checks came to."""
    return [checked_text(each) for each in goal.checks]
