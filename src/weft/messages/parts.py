"""Content parts: what a turn is made of, in no vendor's words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.ids import BlobId, CallUid

PDF_TYPE: Final = "application/pdf"


# `omit_defaults`: what is stored leaves out a field at its default. New fields are free; a default
# that changes would change the meaning of every stored part.
# Without the garbage collector, as nodes, results and messages: they are made of values and never
# changed, so none is part of a cycle, and to look through those of many sessions again and again
# takes a twentieth of the time of their turns.
class PartBase(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, gc=False
):
    """What all parts share: a `type` tag."""


class Text(PartBase, frozen=True, tag="text"):
    """Plain text.  Very long text is kept as a blob, and `text` is only its beginning."""

    text: str
    blob: BlobId | None = None
    signature: str = ""
    """A vendor's proof that must come back with the text (Gemini's thought signature)."""
    typed: str = ""
    """What the user typed for it, where that is something else (`/init`): screens show this."""


class Thinking(PartBase, frozen=True, tag="thinking"):
    """A model's reasoning, with whatever proof the vendor wants to see again."""

    text: str = ""
    signature: str = ""
    """Opaque; valid only for the provider and model that made it."""
    provider: str = ""
    model: str = ""
    redacted: str = ""
    """Reasoning that the vendor sent encrypted; sent back as it came."""


class ToolCall(PartBase, frozen=True, tag="tool_call"):
    """The model asks for a tool."""

    call_uid: CallUid
    """Ours: unique in all sessions."""
    name: str
    args: dict[str, Any] = {}
    provider_id: str = ""
    """The vendor's own id; sent back only to `provider`."""
    provider: str = ""
    raw_args: str = ""
    """What the model really sent, when it was not a JSON object.

    Then `args` is empty and the call is refused.
    """
    signature: str = ""
    """A vendor's proof that must come back with the call (Gemini's thought signature)."""


class Image(PartBase, frozen=True, tag="image"):
    """A picture or a PDF, by content (base64) or by the blob that holds it."""

    media_type: str
    data: str = ""
    blob: BlobId | None = None
    name: str = ""
    pages: int = 0
    """Of a PDF; 0 where they were not counted."""
    text_beside: bool = False
    """Of a PDF: what it says stands beside it, for models that cannot look at it.

    In a message that is the `File` of the same name and type, in a result the result's text.
    """

    @property
    def is_pdf(self) -> bool:
        """It is a document, not a picture."""
        return self.media_type == PDF_TYPE

    @property
    def kind(self) -> str:
        """What it is, for sentences."""
        return "document" if self.is_pdf else "image"


class File(PartBase, frozen=True, tag="file"):
    """A file that the user attached, as text or as a blob."""

    name: str
    media_type: str = "text/plain"
    text: str = ""
    blob: BlobId | None = None


Part: TypeAlias = Text | Thinking | ToolCall | Image | File
DraftPart: TypeAlias = Literal["text", "thinking", "arguments"]
"""What an answer in flight is made of."""


def typed_text(parts: Iterable[Part]) -> str:
    """What the user typed: the text of a message as screens show it."""
    return "".join(part.typed or part.text for part in parts if isinstance(part, Text))


def clean_value(value: Any) -> Any:
    """Plain data (as JSON has it) with all its text clean."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_value(key): clean_value(each) for key, each in value.items()}
        case list() | tuple():
            return [clean_value(each) for each in value]
        case _:
            return value


def clean_text(text: str) -> str:
    """Text that every codec takes: lone surrogates become U+FFFD.  Done once, where text enters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON can escape half of a surrogate pair, and servers that cut a stream inside an emoji
        # do. Python takes it for a character; UTF-8, and so every store and wire, has no form for
        # it.
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
