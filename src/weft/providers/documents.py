"""PDF documents in a request: as they are to the vendors that take them, as text to the others.

Each document that the conversation holds comes twice, as itself and as its text.  Here one of the
two is chosen for the model that is asked, for every request anew: the user may have switched models
since.  A vendor refuses the whole request for one document too many, so the newest that fit within
its limits go as they are, and those before them as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from weft.messages import PDF_TYPE, CallResults, ChatMessage, File, Image, Message, Part, Text
from weft.providers.base import CallResult, ModelInfo

_MB: Final = 1024 * 1024
SHOWN: Final = "The document itself is shown with this."


class DocumentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a vendor takes of PDF documents in one request."""

    documents: int = 100
    bytes_each: int = 20 * _MB
    """Before base64, which adds a third."""
    bytes_together: int = 20 * _MB
    pages: int = 100
    """Of all documents together."""


# By provider, as their guides give them in November 2026. Anthropic and Vertex take 32 and 30 MB of
# request, OpenAI 50 MB of files, Gemini 20 MB of request with its files inline; the numbers here
# leave room for the rest of the conversation. OpenAI names no number of pages any more; its first
# was 100, and more would not fit into the window.
_LIMITS: Final = {
    "anthropic": DocumentLimits(),
    "openai": DocumentLimits(bytes_each=30 * _MB, bytes_together=30 * _MB),
    "google": DocumentLimits(bytes_each=13 * _MB, bytes_together=13 * _MB, pages=1_000),
    "vertex": DocumentLimits(bytes_each=13 * _MB, bytes_together=13 * _MB),
    # Of Converse, which takes fewer and smaller ones than the models' own forms there.
    "bedrock": DocumentLimits(documents=5, bytes_each=4_500_000, bytes_together=13 * _MB),
}
_SIMILAR: Final = {"azure": "openai", "openai-chat": "openai"}
_LONG_WINDOW: Final = 1_000_000
_PAGES_OF_LONG_WINDOW: Final = 600
"""What Anthropic takes where a model has a window of a million tokens."""


def document_limits(info: ModelInfo) -> DocumentLimits:
    """The limits of the vendor of a model; the strictest of them for one that is not known."""
    provider = _SIMILAR.get(info.provider, info.provider)
    limits = _LIMITS.get(provider, _LIMITS["bedrock"])
    if provider == "anthropic" and info.context_window >= _LONG_WINDOW:
        return msgspec.structs.replace(limits, pages=_PAGES_OF_LONG_WINDOW)
    return limits


def document_name(document: Image) -> str:
    """The name under which a document is sent: that of its file, without the folders."""
    return document.name.rpartition("/")[2][-200:] or "document.pdf"


def data_url(image: Image) -> str:
    """The content of a picture or a document as an address."""
    return f"data:{image.media_type};base64,{image.data}"


def with_documents(messages: Sequence[Message], info: ModelInfo) -> Sequence[Message]:
    """The messages with each PDF either as it is or as its text, never as both."""
    documents = list(_documents(messages))
    if not documents:
        return messages
    shown = _fitting(documents, info) if info.reads_pdf else set()
    why = "it is more than the vendor takes" if info.reads_pdf else "this model reads no PDF"
    holding = {at for at, _ in documents}
    return [
        _chosen(message, {key for place, key in shown if place == at}, why)
        if at in holding
        else message
        for at, message in enumerate(messages)
    ]


def _documents(messages: Sequence[Message]) -> Iterator[tuple[int, Image]]:
    """Every PDF with the number of its message, oldest first."""
    for at, message in enumerate(messages):
        if isinstance(message, CallResults):
            parts = [image for result in message.results for image in result.images]
        else:
            parts = [part for part in message.parts if isinstance(part, Image)]
        for part in parts:
            if part.is_pdf:
                yield at, part


def _fitting(documents: list[tuple[int, Image]], info: ModelInfo) -> set[tuple[int, int]]:
    """The documents that go as they are: number of the message and identity of the part."""
    limits = document_limits(info)
    count, room, pages = limits.documents, limits.bytes_together, limits.pages
    found: set[tuple[int, int]] = set()
    for at, document in reversed(documents):
        size = len(document.data) * 3 // 4
        if not size or size > limits.bytes_each or document.pages > limits.pages:
            continue
        count, room, pages = count - 1, room - size, pages - max(document.pages, 1)
        # Not a smaller one before it instead: which ones are shown would change with every new one,
        # and with it what the vendor has in its cache.
        if min(count, room, pages) < 0:
            break
        found.add((at, id(document)))
    return found


def _chosen(message: Message, shown: set[int], why: str) -> Message:
    if isinstance(message, CallResults):
        results = tuple(_chosen_result(result, shown, why) for result in message.results)
        return CallResults(results=results)
    return msgspec.structs.replace(message, parts=tuple(_chosen_parts(message, shown, why)))


def _chosen_parts(message: ChatMessage, shown: set[int], why: str) -> Iterator[Part]:
    # The text of a document that is shown would be paid for twice: vendors read both out of a PDF.
    said = {
        part.name
        for part in message.parts
        if isinstance(part, Image) and id(part) in shown and part.text_beside
    }
    for part in message.parts:
        if isinstance(part, Image) and _is_out(part, shown):
            yield Text(text=_left_out(part, why))
        elif not (isinstance(part, File) and part.media_type == PDF_TYPE and part.name in said):
            yield part


def _chosen_result(result: CallResult, shown: set[int], why: str) -> CallResult:
    if not any(image.is_pdf for image in result.images):
        return result
    kept = tuple(image for image in result.images if not _is_out(image, shown))
    notes = [_left_out(image, why) for image in result.images if _is_out(image, shown)]
    is_said = any(image.is_pdf and image.text_beside for image in kept)
    text = "\n".join([SHOWN if is_said else result.text, *notes])
    return msgspec.structs.replace(result, images=kept, text=text)


def _is_out(image: Image, shown: set[int]) -> bool:
    return image.is_pdf and id(image) not in shown


def _left_out(document: Image, why: str) -> str:
    beside = "; its text is here instead" if document.text_beside else ""
    return f"[document {document.name or PDF_TYPE!r} left out: {why}{beside}]"
