"""Summaries that the user asks for: the handover of a session, and what was learned on another
branch.

They are made beside the session, by one question to its model, so that a running turn is not held
up; what they cost goes into the session's ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from weft.context import carried, estimate_text, framed, lone_request_digest, room, transcript
from weft.events import Purpose
from weft.loop import LineEntry
from weft.messages import ChatMessage, Text
from weft.providers import Model
from weft.state import SessionState

HANDOVER: Final = """\
You write a handover document for a later session on the same project. Keep file paths, names, \
commands and numbers as they are. \
Write Markdown with exactly these headings, each with what a stranger needs and nothing else:

# Handover
## Decisions
## Changes
## Conventions
## Open questions
## Key context"""

BRANCH: Final = """\
A line of work in a coding session was left for another one. Say in at most 200 words what was \
learned on it that the other line should \
know: what was tried, what came of it, what to avoid. Keep file paths, names and error messages as \
they are. No preamble."""


class SummaryQuestion(msgspec.Struct, frozen=True):
    """What the model is asked."""

    text: str
    system: str
    purpose: Purpose

    @property
    def tokens(self) -> int:
        """About how much it is sent."""
        return estimate_text(len(self.text) + len(self.system))

    def digest(self, model: str) -> str:
        """The digest of the request to this model."""
        asked = ChatMessage(role="user", parts=(Text(text=self.text),))
        return lone_request_digest(
            model=model, system=self.system, thinking="off", messages=(asked,)
        )


def handover(line: Sequence[LineEntry], state: SessionState, model: Model) -> SummaryQuestion:
    """What makes the handover document of a line."""
    shown = _shown(line, model)
    blocks = "\n\n".join(carried(state, line))
    return SummaryQuestion(f"{shown}\n\n{blocks}".strip(), HANDOVER, "summary")


def branch_summary(line: Sequence[LineEntry], model: Model) -> SummaryQuestion:
    """What makes a summary of a line that was left."""
    return SummaryQuestion(_shown(line, model), BRANCH, "branch")


def _shown(line: Sequence[LineEntry], model: Model) -> str:
    space = room(model.info.context_window, model.info.max_output_tokens) // 2
    return framed("conversation", transcript(line, space))
