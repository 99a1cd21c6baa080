"""Text completion: raw text in, the text that follows it out, as OpenAI's old address has it and
most servers still do (vLLM, llama.cpp, LM Studio, gateways).

Only the loom asks for it, so adapters import this with the first such request.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from weft.providers.base import (
    ModelRequest,
    StopReason,
    StreamEvent,
    StreamFinished,
    TextPiece,
)
from weft.providers.credentials import as_json
from weft.providers.openai_chat.chunk_decoder import ChunkDecoder, StreamChunk
from weft.transport import HttpRequest

Json: TypeAlias = dict[str, Any]
PATH = "/completions"
GAP_PATH = "/fim/completions"
"""Mistral: the answer comes as one of Chat Completions."""

_MOST_STOPS = 4
_MOST_LOGPROBS = 5
"""OpenAI refuses more here; other servers take them, but the same request must do for all."""


def completion_request(like: HttpRequest, request: ModelRequest, url: str) -> HttpRequest:
    """The request for raw text, with the headers and limits of a chat request."""
    return msgspec.structs.replace(like, url=url, body=as_json(encode_completion(request)))


def encode_completion(request: ModelRequest) -> Json:
    """The body of `POST /v1/completions`."""
    body: Json = {
        "model": request.model,
        "prompt": request.prompt or "",
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(request),
    }
    if request.logprobs is not None:
        # Here the number itself asks for them; there is no switch beside it.
        body["logprobs"] = min(max(request.logprobs, 1), _MOST_LOGPROBS)
    return body


def encode_gap(request: ModelRequest) -> Json:
    """The body of Mistral's `POST /v1/fim/completions`, which knows no other fields."""
    sampling = _sampling(request)
    if "seed" in sampling:
        sampling["random_seed"] = sampling.pop("seed")
    return {
        "model": request.model,
        "prompt": request.prompt or "",
        "stream": True,
        **sampling,
    }


def _sampling(request: ModelRequest) -> Json:
    given: Json = {
        "suffix": request.suffix or None,
        "max_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": list(request.stop[:_MOST_STOPS]) or None,
    }
    return {name: value for name, value in given.items() if value is not None}


class _Choice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


_DECODER = msgspec.json.Decoder(StreamChunk[_Choice])


class CompletionDecoder(ChunkDecoder[_Choice]):
    """Decodes one stream of raw text."""

    def __init__(self, provider: str, secret: str = "") -> None:
        super().__init__(provider, secret, _DECODER)

    def _choice(self, choice: _Choice, events: list[StreamEvent]) -> None:
        if choice.text:
            events.append(TextPiece(choice.text))
        self._reason = choice.finish_reason or self._reason

    def _finish(self) -> list[StreamEvent]:
        self.is_finished = True
        said = self._reason or "stop"
        reason: StopReason = "other"
        if said in ("stop", "eos", "stop_sequence"):
            reason = "stop"
        elif said in ("length", "max_tokens"):
            reason = "length"
        elif said == "content_filter":
            reason = "content_filter"
        return [StreamFinished(reason=reason, detail=said if reason != "stop" else "")]
