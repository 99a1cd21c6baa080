"""A goal in words, the same on every screen: what its checks came to, and why it ended.  Pure."""

from __future__ import annotations

from typing import Final, Protocol

from weft.events import GoalChecked, GoalEnded, GoalPaused, GoalSet
from weft.view.blocks import NoteBlock
from weft.view.goal_line import GOAL_PAUSES, cut_line

GOAL_ENDS: Final = {
    "done": "the goal is reached",
    "no_progress": "the goal ended: two rounds in a row brought no progress",
    "max_rounds": "the goal ended: all its rounds are used",
    "max_budget": "the goal ended: its budget is used up",
    "max_time": "the goal ended: its time is over",
    "cleared": "the goal was cleared",
}
"""By the words of `goal_ended`."""
LONGEST_LINE: Final = 160


def goal_note(event: GoalSet | GoalPaused | GoalChecked | GoalEnded) -> NoteBlock:
    """What happened to a goal, in a line."""
    match event:
        case GoalSet(revision=0, text=text):
            return NoteBlock(text=f"goal: {cut_line(text, LONGEST_LINE)}", level="quiet")
        case GoalSet(text=text):
            said = f"the goal was changed: {cut_line(text, LONGEST_LINE)}"
            return NoteBlock(text=said, level="quiet")
        case GoalPaused(paused=False):
            return NoteBlock(text="the goal goes on", level="quiet")
        case GoalPaused(reason=reason, detail=detail):
            said = _with(f"the goal is paused: {GOAL_PAUSES.get(reason, reason)}", detail)
            return NoteBlock(text=f"{said}; /goal resume goes on", level="warning")
        case GoalChecked():
            is_usual = event.done or event.progress
            return NoteBlock(text=checked_text(event), level="quiet" if is_usual else "warning")
        case GoalEnded(reason=reason, detail=detail):
            is_well = reason in ("done", "cleared") and not detail
            said = _with(GOAL_ENDS.get(reason, reason), detail)
            return NoteBlock(text=said, level="info" if is_well else "warning")


class CheckedRound(Protocol):
    """What is shown of a check."""

    @property
    def round(self) -> int: ...

    @property
    def by(self) -> str: ...

    @property
    def done(self) -> bool: ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def progress(self) -> bool: ...

    @property
    def detail(self) -> str: ...


def checked_text(event: CheckedRound) -> str:
    """What the check of a round came to, in a line."""
    if event.done:
        return f"round {event.round}: reached"
    last = next((line for line in reversed(event.detail.splitlines()) if line.strip()), "")
    how = "the judge says no" if event.by == "judge" else f"exit code {event.exit_code}"
    said = _with(f"round {event.round}: not reached, {how}", cut_line(last.strip(), LONGEST_LINE))
    return said if event.progress else f"{said} (no progress)"


def _with(said: str, detail: str) -> str:
    return f"{said}: {' '.join(detail.split())}" if detail else said
