"""The steps of a plan of architect mode, as lines of text.

A plan is the model's own JSON: whatever is not what it should be is passed over, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.events import ArchitectStep
from weft.view.blocks import NoteBlock


def steps_of(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of a plan as the log has it."""
    steps = plan.get("steps")
    if not isinstance(steps, list | tuple):
        return []
    return [step for step in steps if isinstance(step, dict)]


def step_title(step: Mapping[str, Any]) -> str:
    """A step in one line."""
    place = f" {step['file']}" if step.get("file") else ""
    return f"{step.get('action', '')}{place}: {step.get('description', '')}"


def step_note(plan: Mapping[str, Any], event: ArchitectStep) -> NoteBlock:
    """How a step stands, as a note."""
    steps = steps_of(plan)
    # A step may come of a plan that was replaced meanwhile, so its number can be out of range.
    is_known = event.index < len(steps)
    title = f" ({step_title(steps[event.index])})" if is_known else ""
    step = f"step {event.index + 1}{f' of {len(steps)}' if is_known else ''}"
    why = f": {event.detail}" if event.detail else ""
    match event.status:
        case "started":
            return NoteBlock(text=f"{step}{title}")
        case "passed":
            return NoteBlock(text=f"{step} done{why}", level="quiet")
        case "skipped":
            return NoteBlock(text=f"{step} skipped{why}", level="quiet")
        case "failed":
            return NoteBlock(text=f"{step} failed{why}", level="error")
        case "replanned":
            return NoteBlock(text=f"{step} failed{why}; replanning the rest", level="warning")
