"""Whatever legal conversation goes in, each encoder makes a request that the vendor's
rules accept.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.example_count import examples
from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)
from tests.support.legality.conversations import requests
from tests.support.legality.vendor_requests import (
    CLAUDES,
    GEMINIS,
    GPTS,
    info,
    own_proofs,
    sendable,
)
from weft.ids import CallUid
from weft.messages import CallResults, ChatMessage, Message, ToolCall
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.normalize import turns
from weft.providers.openai.encode import encode as encode_responses
from weft.providers.openai_chat.encode import COMPATIBLE, DEEPSEEK, MISTRAL, OPENAI
from weft.providers.openai_chat.encode import encode as encode_chat

many = settings(
    max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
INFO = ModelInfo(provider="anthropic", name="m")


@many
@given(request=requests("anthropic", CLAUDES))
def test_anthropic_requests_are_legal(request: ModelRequest) -> None:
    body = sendable(encode_anthropic(request, info("anthropic", request)))
    assert validate_anthropic(body, signed=own_proofs(request, "anthropic")) == []


@many
@given(request=requests("openai", GPTS))
def test_responses_requests_are_legal(request: ModelRequest) -> None:
    body = sendable(encode_responses(request, info("openai", request)))
    assert validate_openai_responses(body, signed=own_proofs(request, "openai")) == []


@many
@given(request=requests("openai-chat", GPTS))
def test_chat_requests_are_legal(request: ModelRequest) -> None:
    for server, dialect in (("openai", OPENAI), ("", COMPATIBLE), ("mistral", MISTRAL)):
        body = sendable(encode_chat(request, info("openai-chat", request), dialect))
        assert validate_openai_chat(body, server=server) == []


@many
@given(request=requests("deepseek", ["deepseek-v4-pro"]))
def test_deepseek_requests_are_legal(request: ModelRequest) -> None:
    body = sendable(encode_chat(request, info("deepseek", request), DEEPSEEK))
    assert validate_openai_chat(body, server="deepseek") == []


@many
@given(request=requests("google", GEMINIS))
def test_gemini_requests_are_legal(request: ModelRequest) -> None:
    body = sendable(encode_gemini(request, info("google", request)))
    signed = own_proofs(request, "google")
    assert validate_gemini(body, model=request.model, signed=signed) == []


@settings(max_examples=examples(20), deadline=None)
@given(request=requests("anthropic", CLAUDES))
def test_a_model_without_eyes_gets_no_picture_in_any_protocol(request: ModelRequest) -> None:
    blind = info("anthropic", request, sees=False)
    for encode in (encode_anthropic, encode_responses, encode_chat, encode_gemini):
        body = msgspec.json.encode(encode(request, blind))
        assert b"iVBORw0KGgo" not in body


@many
@given(request=requests("anthropic", CLAUDES), data=st.data())
def test_what_is_remembered_of_earlier_requests_changes_nothing(
    request: ModelRequest, data: st.DataObject
) -> None:
    """Grown, cut or doubled, and asked of two models in turn: the same as if nothing were
    remembered.
    """
    scratch: dict[int, Any] = {}
    asked = [info("anthropic", request), info("openai", request)]
    pieces = _pieces(request)
    for turn in range(6):
        chosen = data.draw(st.lists(st.sampled_from(pieces), max_size=8))
        messages = tuple(message for piece in chosen for message in piece)
        fresh = msgspec.structs.replace(request, messages=messages, scratch=_Forgetful())
        again = msgspec.structs.replace(fresh, scratch=scratch)
        assert turns(again, asked[turn % 2]) == turns(fresh, asked[turn % 2])


class _Forgetful(dict[int, Any]):
    """Keeps nothing, not even within one request."""

    def __setitem__(self, key: int, value: Any) -> None:
        pass


def _pieces(request: ModelRequest) -> list[tuple[Message, ...]]:
    """Each message, an answer with the results behind it."""
    pieces: list[tuple[Message, ...]] = []
    for message in request.messages:
        if isinstance(message, CallResults) and pieces:
            pieces[-1] = (*pieces[-1], message)
        else:
            pieces.append((message,))
    return pieces


def test_an_answer_is_made_ready_once() -> None:
    said = ChatMessage(
        role="assistant", parts=(ToolCall(call_uid=CallUid("cal_1"), name="read", args={}),)
    )
    scratch: dict[int, Any] = {}
    one, two = (
        turns(ModelRequest(model="m", messages=(said,), scratch=scratch), INFO) for _ in range(2)
    )
    assert one[1] is two[1]
