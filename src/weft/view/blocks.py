"""View blocks: the finished things that a screen shows, one struct for each kind.

A block holds foreign words as they came.  The screen makes them fit for where they go: a terminal
removes escape sequences, a page builds elements and never markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from weft.messages import File, Image, Part, Text, ToolResult

NoteLevel: TypeAlias = Literal["quiet", "info", "warning", "error"]


class ViewBlock(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="block", tag=True, omit_defaults=True
):
    """Something to show.  Once it is handed out it never changes, so a screen may print it."""


class UserBlock(ViewBlock, frozen=True, tag="user"):
    """The user's message, with the names of what was attached."""

    text: str
    attached: tuple[str, ...] = ()
    node_id: str = ""
    """The message in the tree; empty for an answer to a question, and for a typed command."""


class AnswerBlock(ViewBlock, frozen=True, tag="answer"):
    """A piece of the model's answer: whole Markdown blocks."""

    text: str
    node_id: str = ""


class ThinkingBlock(ViewBlock, frozen=True, tag="thinking"):
    """The model's reasoning, folded to one line until it is opened."""

    text: str
    node_id: str = ""


class ToolCard(ViewBlock, frozen=True, tag="tool"):
    """A tool call and its result."""

    name: str
    args: dict[str, Any]
    result: ToolResult
    duration_ms: int = 0
    was_shown: bool = False
    """The user has just seen what it would do, in the request that asked for approval."""


class PermissionBlock(ViewBlock, frozen=True, tag="permission"):
    """What a call is about to do, for the user who has to approve it: shown whole."""

    tool: str
    target: str
    preview: str
    reason: str = ""


class QuestionBlock(ViewBlock, frozen=True, tag="question"):
    """A question of the model."""

    text: str


class PlanBlock(ViewBlock, frozen=True, tag="plan"):
    """A plan of architect mode, for the user who has to approve it: shown whole."""

    plan: dict[str, Any]


class NoteBlock(ViewBlock, frozen=True, tag="note"):
    """A sentence about what happened."""

    text: str
    level: NoteLevel = "info"


class TableBlock(ViewBlock, frozen=True, tag="table"):
    """Rows of two or more columns."""

    title: str
    rows: tuple[tuple[str, ...], ...]


AnyBlock: TypeAlias = (
    UserBlock
    | AnswerBlock
    | ThinkingBlock
    | ToolCard
    | PermissionBlock
    | QuestionBlock
    | PlanBlock
    | NoteBlock
    | TableBlock
)


def user_block(parts: Iterable[Part], node_id: str = "") -> UserBlock:
    """The user's message, with the names of what was attached."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    attached = [part.name for part in parts if isinstance(part, File | Image)]
    return UserBlock(text="".join(texts), attached=tuple(attached), node_id=node_id)
