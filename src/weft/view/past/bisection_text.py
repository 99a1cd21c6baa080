"""A bisection in words, the same on every screen: each check as it ends, and what was found.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.evidence import BisectCheck, Bisection

_WORDS: Final = {"good": ("✓", "passes"), "bad": ("✗", "fails"), "none": ("?", "no verdict")}
_NAMED: Final = 3
_SHOWN_LINES: Final = 3


def check_line(check: BisectCheck) -> str:
    """One check that has ended."""
    mark, word = _WORDS.get(check.verdict, ("?", check.verdict))
    again = ", again" if check.is_again else ""
    # The exit code says the same of what passes.
    detail = "" if check.verdict == "good" else f": {check.detail}"
    return f"{mark} {check.name}{again} {word}{detail} ({check.seconds:.1f} s)"


def bisection_rows(found: Bisection) -> list[tuple[str, str]]:
    """What is known of the break: a word, and what it says."""
    rows: list[tuple[str, str]] = []
    reasons = dict.fromkeys(call.reason for call in found.calls if call.reason)
    rows += [("reason", reason) for reason in list(reasons)[:_NAMED]]
    for decision in found.decisions[:_NAMED]:
        why = f" ({decision.reason})" if decision.reason else ""
        rows.append(("decision", f"{decision.title}{why} [{decision.id}]"))
    if found.paths:
        more = len(found.paths) - _NAMED
        rest = f" and {more} more" if more > 0 else ""
        rows.append(("files", f"{', '.join(found.paths[:_NAMED])}{rest}"))
    output = _output(found.checks)
    rows += [("output", output)] if output else []
    rows += [("not checked", f"{each.name}: {each.why}") for each in found.skipped[:_NAMED]]
    rows += [("note", note) for note in found.notes]
    rows.append(("checks", _counted(found)))
    return rows


def _counted(found: Bisection) -> str:
    again = sum(check.is_again for check in found.checks)
    inside = sum(check.call is not None and not check.is_again for check in found.checks)
    said = ["1 state" if found.count == 1 else f"{found.count} states"]
    said += [f"{again} once more beside the break"] if again else []
    said += [f"{inside} inside the turn"] if inside else []
    return ", ".join(said)


def _output(checks: Sequence[BisectCheck]) -> str:
    """The end of what the last failing check printed."""
    failing = [check.output for check in checks if check.verdict == "bad" and check.output.strip()]
    if not failing:
        return ""
    return " / ".join(failing[-1].strip().splitlines()[-_SHOWN_LINES:])
