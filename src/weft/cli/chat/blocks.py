"""What the chat shows for good: each block is one thing that happened, still in foreign words.

A screen paints them; only painting makes text fit for a terminal.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from weft.messages import ToolResult


class ViewBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Something to show."""


class UserSaid(ViewBlock, frozen=True):
    """The person's words, with what was sent along."""

    text: str
    attached: tuple[str, ...] = ()


class AnswerBlock(ViewBlock, frozen=True):
    """A piece of the model's answer: whole Markdown blocks."""

    text: str


class ThinkingBlock(ViewBlock, frozen=True):
    """The model's reasoning, of which one line is shown."""

    text: str


class ToolCard(ViewBlock, frozen=True):
    """A call and what came of it."""

    name: str
    args: dict[str, Any]
    result: ToolResult
    duration_ms: int = 0
    was_shown: bool = False
    """The person has just seen what it would do, and allowed it."""


class PermissionBlock(ViewBlock, frozen=True):
    """What a call is about to do, for somebody who has to allow it: shown whole."""

    tool: str
    target: str
    preview: str
    reason: str = ""


class QuestionBlock(ViewBlock, frozen=True):
    """A question of the model."""

    text: str


class PlanShown(ViewBlock, frozen=True):
    """A plan of architect mode, for somebody who has to approve it: shown whole."""

    plan: dict[str, Any]


class NoteBlock(ViewBlock, frozen=True):
    """A line about what happened."""

    text: str
    level: Literal["quiet", "info", "warning", "error"] = "info"


class TableBlock(ViewBlock, frozen=True):
    """Rows of two or more columns."""

    title: str
    rows: tuple[tuple[str, ...], ...]


AnyBlock: TypeAlias = (
    UserSaid
    | AnswerBlock
    | ThinkingBlock
    | ToolCard
    | PermissionBlock
    | QuestionBlock
    | PlanShown
    | NoteBlock
    | TableBlock
)
