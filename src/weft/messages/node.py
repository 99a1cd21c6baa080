"""Nodes of the conversation, and the results that hang on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.ids import BlobId, CallUid, NodeId
from weft.messages.parts import File, Image, Part, Text, ToolCall
from weft.messages.usage import Usage

Role: TypeAlias = Literal["user", "assistant", "system"]
"""A tool result is not a node: it hangs on the assistant node that called."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One position of the tree: what was said, by whom, after what."""

    id: NodeId
    role: Role
    parts: tuple[Part, ...] = ()
    parent: NodeId | None = None
    parent_revision: int = 0
    """Which revision of the parent this node grew from."""
    model: str = ""
    """`provider:model` that made an assistant node."""
    usage: Usage | None = None
    revision: int = 0
    # msgspec copies an empty default for each instance, so nodes share no map.
    metadata: dict[str, Any] = {}
    """An open map: bookmark, label, hidden, rating, partial, origin, …"""

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the model's order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def is_partial(self) -> bool:
        """True when the stream broke off before the model had finished."""
        return bool(self.metadata.get("partial"))

    @property
    def is_cut_off(self) -> bool:
        """True when the output limit cut it off; the next answer goes on with its text."""
        return bool(self.metadata.get("cut_off"))


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a tool answered.  `text` is what the model reads."""

    call_uid: CallUid
    text: str = ""
    images: tuple[Image, ...] = ()
    is_error: bool = False
    status: Literal["done", "denied", "aborted", "interrupted", "invalid"] = "done"
    """`interrupted`: the process died meanwhile and the effect is unknown."""
    full_text: BlobId | None = None
    """The whole output, where `text` was cut."""
    data: dict[str, Any] = {}
    """For programs and screens: exit code, counts, diff, …; never sent to the model."""


Content: TypeAlias = str | Text | Image | File | Sequence[str | Text | Image | File]
"""What a user or a program may send."""


def as_parts(content: Content) -> tuple[Part, ...]:
    """Content as parts; empty text gives no part at all.

    Raises:
        UsageError: it is neither text nor parts.
    """
    given: object = (content,) if isinstance(content, str | Text | Image | File) else content
    # Bytes are a sequence too: of numbers.
    if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray):
        raise UsageError(
            f"a message is text or a list of Text, Image and File, not {type(given).__name__}"
        )
    parts = [Text(text=each) if isinstance(each, str) else each for each in given]
    # Vendors refuse a message with an empty text block, and with it the whole conversation from
    # then on.
    return tuple(part for part in parts if not (isinstance(part, Text) and not part.text))
