"""A history as each vendor would get it, judged by validators that know neither our context nor our
encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)
from tests.support.legality.vendor_requests import own_proofs, sendable
from weft.context import ContextTarget, LineEntry, build
from weft.ids import NodeId
from weft.providers import ModelInfo, ModelRequest, ThinkingLevel, ToolSpec
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.openai.encode import encode as encode_responses
from weft.providers.openai_chat.encode import OPENAI
from weft.providers.openai_chat.encode import encode as encode_chat

Json = dict[str, Any]


class Vendor(msgspec.Struct, frozen=True):
    """A model, how a request to it is written, and how that is judged."""

    info: ModelInfo
    encode: Callable[[ModelRequest, ModelInfo], Json]
    validate: Callable[[Json, Collection[str]], list[str]]


def _info(provider: str, name: str) -> ModelInfo:
    return ModelInfo(provider=provider, name=name, thinks=True, price_input=1.0, price_output=1.0)


_GEMINI = "gemini-3-pro-preview"

VENDORS: dict[str, Vendor] = {
    "anthropic": Vendor(
        _info("anthropic", "claude-sonnet-4-6"),
        encode_anthropic,
        lambda body, signed: validate_anthropic(body, signed=signed),
    ),
    "openai": Vendor(
        _info("openai", "gpt-5"),
        encode_responses,
        lambda body, signed: validate_openai_responses(body, signed=signed),
    ),
    "openai-chat": Vendor(
        _info("openai-chat", "gpt-4.1"),
        lambda request, info: encode_chat(request, info, OPENAI),
        lambda body, signed: validate_openai_chat(body),
    ),
    "google": Vendor(
        _info("google", _GEMINI),
        encode_gemini,
        lambda body, signed: validate_gemini(body, model=_GEMINI, signed=signed),
    ),
}


def illegal_request(request: ModelRequest, name: str) -> list[str]:
    """Which of the vendor's rules a request breaks."""
    vendor = VENDORS[name]
    asked = msgspec.structs.replace(request, model=vendor.info.name)
    body = sendable(vendor.encode(asked, vendor.info))
    return [f"{name}: {rule}" for rule in vendor.validate(body, own_proofs(asked, name))]


def illegal(
    line: Sequence[LineEntry],
    notes: Mapping[NodeId | None, Sequence[str]],
    tools: Sequence[ToolSpec],
) -> list[str]:
    """Which rules of which vendors the history breaks, asked with reasoning and without."""
    levels: tuple[ThinkingLevel, ...] = ("off", "high")
    return [
        broken
        for name, vendor in VENDORS.items()
        for level in levels
        for broken in illegal_request(
            ModelRequest(
                model=vendor.info.name,
                messages=build(line, ContextTarget(name, vendor.info.name), notes=notes),
                system="You work here.",
                tools=tuple(tools),
                thinking=level,
            ),
            name,
        )
    ]
