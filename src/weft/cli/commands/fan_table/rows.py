"""The rows of the table of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from weft.cli.commands.table import money
from weft.cli.sanitize import clean_line

if TYPE_CHECKING:
    from weft.api.fan import FanCandidate, KeepOutcome

HEAD: Final = ("#", "model", "state", "verify", "tests", "diff", "agree", "cost", "time")
_SIGNS: Final[Mapping[str, str]] = {"passed": "✓", "flaky": "~", "failed": "✗", "": ""}


def table_lines(candidates: Sequence[FanCandidate], running: float = 0.0) -> list[str]:
    """The table of candidates, with its head."""
    rows = [HEAD, *(tuple(map(clean_line, row(each, running))) for each in candidates)]
    widths = [max(len(cells[place]) for cells in rows) for place in range(len(HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in rows
    ]


def row(each: FanCandidate, running: float = 0.0) -> tuple[str, ...]:
    """One candidate as the table shows it; `running` is how long those at work have been."""
    verify = ""
    if each.verify:
        verify = f"{_SIGNS[each.verify]} {each.verify_passed}/{each.verify_runs}"
        verify += " (✗ base)" if each.base_verify == "failed" else ""
    tests = "–"
    if each.touches_checks:
        tests = "⚠ edits tests" + (" (✗ base's)" if each.base_tests == "failed" else "")
    has_ended = each.state not in ("working", "interrupted")
    count = f"{len(each.files)}f" if each.files else ""
    seconds = each.seconds if has_ended else running
    return (
        f"{each.index}{'★' if each.is_best else ''}",
        each.model.partition(":")[2].rpartition("/")[2] or each.model or "(default)",
        each.state if each.state != "failed" else f"failed ({each.reason or 'error'})",
        verify,
        tests,
        f"+{each.added} −{each.removed}  {count}" if each.files else ("none" if has_ended else ""),
        f"{each.agree} of {each.of}" if each.agree > 1 else "",
        money(each.cost_usd),
        f"{int(seconds) // 60}:{int(seconds) % 60:02}",
    )


def kept_lines(outcome: KeepOutcome, *, is_preview: bool) -> list[str]:
    """What keeping a candidate did, or would do, for the user."""
    words = {"put": "take", "remove": "remove", "merge": "merge", "same": "same"}
    words["marked"] = "markers"
    lines = [
        f"  {words.get(file.action, 'CONFLICT'):8}  {clean_line(file.path)}"
        + (f"  ({file.why})" if file.why else "")
        for file in outcome.plan.files
    ]
    lines += [f"  left out  {clean_line(each)}" for each in outcome.plan.left_out]
    if is_preview:
        return lines or ["  nothing"]
    if not outcome.is_kept and not outcome.left:
        tail = "\n".join(outcome.output.splitlines()[-15:])
        why = "the check fails on the project with these changes, so nothing was put there"
        return [*lines, f"{why} (--force does it all the same):", tail]
    lines += [clean_line(remark) for remark in outcome.remarks]
    if outcome.aside:
        lines.append(
            "where both changed the same lines yours stayed; the candidate's versions are in "
            f"{outcome.aside}"
        )
    if not outcome.is_kept:
        lines.append("nothing was put into the project")
    elif outcome.left:
        lines.append(f"not taken over: {clean_line(', '.join(outcome.left))}")
    return lines


def taken_back(session_id: str) -> str:
    """What is said of a candidate that was kept."""
    return f"kept; to take it back: `weft -r {session_id}`, and /rewind there"
