"""Ollama's `/api/generate` for raw text: the model's template is left out.

Imported with the first such request; only the loom sends them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from weft.providers.base import (
    ModelInfo,
    ModelRequest,
    StreamDecoder,
    StreamEvent,
    StreamFinished,
    TextPiece,
    UsageSeen,
)
from weft.providers.http_model import broke_off, decoded, error_in_stream
from weft.providers.ollama.encode import sampling_options
from weft.providers.usage import OLLAMA_USAGE, read_usage

Json: TypeAlias = dict[str, Any]


def encode_raw(request: ModelRequest, info: ModelInfo) -> Json:
    """The body of `POST /api/generate`."""
    body: Json = {
        "model": request.model,
        "prompt": request.prompt or "",
        "raw": True,
        "stream": True,
        "options": sampling_options(request, info),
    }
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    return body


class _Line(msgspec.Struct):
    response: str | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Line)


class GenerateDecoder(StreamDecoder):
    """Decodes one stream of raw text.  Reasoning tags are text here: the model saw no template."""

    def __init__(self, provider: str) -> None:
        self.is_finished = False
        self._provider = provider

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one line means."""
        line = decoded(self._provider, data, _DECODER)
        if line.error:
            raise error_in_stream(self._provider, {"message": str(line.error)})
        events: list[StreamEvent] = [TextPiece(line.response)] if line.response else []
        if line.done:
            self.is_finished = True
            events.append(UsageSeen(read_usage(msgspec.structs.asdict(line), OLLAMA_USAGE)))
            events.append(_finished(line.done_reason or "stop"))
        return events

    def end(self) -> Iterable[StreamEvent]:
        """This vendor always says when it is done."""
        raise broke_off(self._provider)


def _finished(said: str) -> StreamFinished:
    if said in ("stop", "length"):
        return StreamFinished(reason="stop" if said == "stop" else "length")
    return StreamFinished(reason="other", detail=said)
