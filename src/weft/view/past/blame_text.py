"""A blame in rows, the same on every screen.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.evidence import Blame, BlamedCheck

_NAMED: Final = 3


def blame_rows(
    found: Blame, when: Callable[[float], str], allowed: str = ""
) -> list[tuple[str, str]]:
    """What is known of a line: a word, and what it says.  `allowed` is who allowed the call, and
    `when` writes a time of day.
    """
    rows: list[tuple[str, str]] = [("line", found.text)] if found.text else []
    if found.turn is not None:
        rows += [("message", f"“{found.turn.prompt}”")] if found.turn.prompt else []
        rows.append(("turn", f"session {found.turn.session_id}, {when(found.turn.at)}"))
    if found.call is not None and found.call.reason:
        rows.append(("reason", found.call.reason))
    for decision in found.decisions[:_NAMED]:
        why = f" ({decision.reason})" if decision.reason else ""
        rows.append(("decision", f"{decision.title}{why} [{decision.id}]"))
        rows += [("rejected", each) for each in decision.rejected[:_NAMED]]
    rows += [("allowed", allowed)] if allowed else []
    if found.made_by != "user":
        rows.append(("first check", _check(found.check)))
    rows += _commit(found, when)
    if found.made_by == "user" and found.since is not None:
        until = "now" if found.until is None else when(found.until)
        rows.append(("between", f"{when(found.since)} and {until}"))
    rows += [("name", step) for step in found.steps]
    return rows + [("note", note) for note in found.notes]


def _check(check: BlamedCheck | None) -> str:
    if check is None:
        return "none was run after it"
    code = "did not come to its end" if check.exit_code is None else f"exit code {check.exit_code}"
    tree = f", tree {check.tree[:12]}" if check.tree else ""
    return f"`{check.command}`: {code}{tree}; it may not cover this line"


def _commit(found: Blame, when: Callable[[float], str]) -> list[tuple[str, str]]:
    if found.git_error:
        return [("commit", f"git failed, it is not known: {found.git_error}")]
    if found.commit is None:
        return [("commit", "in none")]
    commit, by = found.commit, found.committed_by
    about = f"{commit.author}, {when(commit.at)[:10]}: {commit.summary}"
    made = "" if by is None else f"; made in session {by.session_id}"
    return [("commit", f"{commit.commit[:12]} ({about}){made}")]
