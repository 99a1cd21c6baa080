"""PDFs: as they are to the vendors that take them, as text to the others, within each's limits."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.support.pdf_samples import pdf
from weft.messages import PDF_TYPE, File, Image, Text, ToolCall
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.base import (
    CallResult,
    CallResults,
    ChatMessage,
    Message,
    ModelInfo,
    ModelRequest,
)
from weft.providers.catalogue import shipped
from weft.providers.documents import SHOWN, document_limits, with_documents
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.ollama.encode import encode as encode_ollama
from weft.providers.openai.encode import encode as encode_responses
from weft.providers.openai_chat.encode import OPENAI
from weft.providers.openai_chat.encode import encode as encode_chat

DATA = base64.b64encode(pdf("Hello there")).decode()
PAPER = Image(media_type=PDF_TYPE, data=DATA, name="a/paper.pdf", pages=1, text_beside=True)
WORDS = File(name="a/paper.pdf", media_type=PDF_TYPE, text="--- page 1 of 1\nHello there\n")
READS = ModelInfo(provider="anthropic", name="x", reads_pdf=True, sees_images=True)
CALL = ToolCall(call_uid="c1", name="read", args={"path": "a/paper.pdf"})  # type: ignore[arg-type]


def said(*parts: Any) -> ChatMessage:
    return ChatMessage(role="user", parts=parts)


def read(*images: Image, text: str = "Hello there") -> tuple[Message, ...]:
    result = CallResult(call_uid="c1", provider_id="", tool_name="read", text=text, images=images)
    return (
        said(Text(text="read it")),
        ChatMessage(role="assistant", parts=(CALL,)),
        CallResults(results=(result,)),
    )


def blocks(found: Any) -> list[dict[str, Any]]:
    """Every object of a body that has a type, or holds inline data."""
    if isinstance(found, dict):
        inner = [block for value in found.values() for block in blocks(value)]
        return [found, *inner]
    if isinstance(found, list):
        return [block for value in found for block in blocks(value)]
    return []


URL = f"data:application/pdf;base64,{DATA}"
FORMS: list[tuple[str, str, Callable[..., dict[str, Any]], dict[str, Any]]] = [
    (
        "anthropic",
        "claude-sonnet-5",
        encode_anthropic,
        {
            "type": "document",
            "source": {"type": "base64", "media_type": PDF_TYPE, "data": DATA},
            "title": "paper.pdf",
        },
    ),
    (
        "openai",
        "gpt-5.5",
        encode_responses,
        {"type": "input_file", "filename": "paper.pdf", "file_data": URL},
    ),
    (
        "openai-chat",
        "gpt-5.5",
        lambda request, info: encode_chat(request, info, OPENAI),
        {"type": "file", "file": {"filename": "paper.pdf", "file_data": URL}},
    ),
    (
        "google",
        "gemini-2.5-pro",
        encode_gemini,
        {"inlineData": {"mimeType": PDF_TYPE, "data": DATA}},
    ),
]


def without_marks(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


@pytest.mark.parametrize(
    ("provider", "model", "encode", "form"), FORMS, ids=[each[0] for each in FORMS]
)
@pytest.mark.parametrize("place", ["prompt", "result"])
def test_a_vendor_that_takes_pdfs_gets_the_document_and_not_its_text(
    provider: str, model: str, encode: Callable[..., Any], form: dict[str, Any], place: str
) -> None:
    info = shipped().info(provider, model)
    assert info.reads_pdf
    messages = (said(Text(text="see"), PAPER, WORDS),) if place == "prompt" else read(PAPER)
    body = encode(ModelRequest(model=model, messages=messages), info)
    assert form in map(without_marks, blocks(body))
    assert b"Hello there" not in msgspec.json.encode(body)


@pytest.mark.parametrize("place", ["prompt", "result"])
def test_another_model_gets_the_text_and_is_told_of_the_document(place: str) -> None:
    info = shipped().info("ollama", "llama3.2")
    messages = (said(Text(text="see"), PAPER, WORDS),) if place == "prompt" else read(PAPER)
    body = encode_ollama(ModelRequest(model="llama3.2", messages=messages), info)
    text = msgspec.json.encode(body).decode()
    assert DATA not in text
    assert "Hello there" in text
    assert "reads no PDF; its text is here instead" in text


def test_a_scan_without_text_is_named_to_a_model_that_reads_no_pdf() -> None:
    scan = msgspec.structs.replace(PAPER, text_beside=False)
    (message,) = with_documents([said(scan)], msgspec.structs.replace(READS, reads_pdf=False))
    assert message == said(Text(text="[document 'a/paper.pdf' left out: this model reads no PDF]"))


def test_a_conversation_without_documents_is_left_as_it_is() -> None:
    messages = read()
    assert with_documents(messages, READS) is messages


def sized(size: int, pages: int = 1, name: str = "big.pdf") -> Image:
    data = "A" * (size * 4 // 3)
    return Image(media_type=PDF_TYPE, data=data, name=name, pages=pages, text_beside=True)


def shown_names(messages: Any) -> list[str]:
    return [part.name for message in messages for part in message.parts if isinstance(part, Image)]


def test_the_newest_documents_that_fit_go_as_they_are_and_older_ones_as_text() -> None:
    limit = document_limits(READS)
    half = limit.bytes_together // 2
    messages = [said(sized(half, name=f"{n}.pdf")) for n in range(4)]
    assert shown_names(with_documents(messages, READS)) == ["2.pdf", "3.pdf"]


@pytest.mark.parametrize(
    "document",
    [sized(document_limits(READS).bytes_each + 99), sized(9, document_limits(READS).pages + 1)],
    ids=["bytes", "pages"],
)
def test_a_document_too_large_for_the_vendor_goes_as_text_and_keeps_no_other_back(
    document: Image,
) -> None:
    before = sized(9, name="small.pdf")
    first, last = with_documents([said(before), said(document)], READS)
    assert shown_names([first]) == ["small.pdf"]
    assert last == said(
        Text(
            text="[document 'big.pdf' left out: it is more than the vendor takes; "
            "its text is here instead]"
        )
    )


def test_pages_are_counted_over_all_documents() -> None:
    limit = document_limits(READS).pages
    messages = [said(sized(9, pages=limit, name="old.pdf")), said(sized(9, name="new.pdf"))]
    assert shown_names(with_documents(messages, READS)) == ["new.pdf"]


def test_a_window_of_a_million_tokens_takes_more_pages_at_anthropic() -> None:
    wide = msgspec.structs.replace(READS, context_window=1_000_000)
    assert document_limits(wide).pages == 600


def test_bedrock_takes_five_documents_of_four_and_a_half_megabytes() -> None:
    limits = document_limits(msgspec.structs.replace(READS, provider="bedrock"))
    assert (limits.documents, limits.bytes_each) == (5, 4_500_000)


def test_in_a_result_the_document_stands_in_the_place_of_its_text() -> None:
    *_, results = with_documents(read(PAPER), READS)
    assert isinstance(results, CallResults)
    assert results.results[0].text == SHOWN
    assert results.results[0].images == (PAPER,)
