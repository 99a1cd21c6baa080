"""What the chat shows for good: each block is one thing that happened, still in foreign words.

A screen paints them; only painting makes text fit for a terminal.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from weft.messages import ToolResult


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Something to show."""


class UserSaid(Block, frozen=True):
    """The person's words, with what was sent along."""

    text: str
    attached: tuple[str, ...] = ()


class Answer(Block, frozen=True):
    """A piece of the model's answer: whole Markdown blocks."""

    text: str


class Thought(Block, frozen=True):
    """The model's reasoning, of which one line is shown."""

    text: str


class ToolCard(Block, frozen=True):
    """A call and what came of it."""

    name: str
    args: dict[str, Any]
    result: ToolResult
    duration_ms: int = 0
    was_shown: bool = False
    """The person has just seen what it would do, and allowed it."""


class Leave(Block, frozen=True):
    """What a call is about to do, for somebody who has to allow it: shown whole."""

    tool: str
    target: str
    preview: str
    reason: str = ""


class Asked(Block, frozen=True):
    """A question of the model."""

    text: str


class PlanShown(Block, frozen=True):
    """A plan of architect mode, for somebody who has to approve it: shown whole."""

    plan: dict[str, Any]


class Note(Block, frozen=True):
    """A line about what happened."""

    text: str
    level: Literal["quiet", "info", "warning", "error"] = "info"


class Table(Block, frozen=True):
    """Rows of two or more columns."""

    title: str
    rows: tuple[tuple[str, ...], ...]


AnyBlock: TypeAlias = (
    UserSaid | Answer | Thought | ToolCard | Leave | Asked | PlanShown | Note | Table
)
