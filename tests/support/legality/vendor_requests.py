"""Requests as each vendor's models receive them."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.messages import ChatMessage, Thinking, ToolCall
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.catalogue import shipped

CLAUDES = [
    *("claude-sonnet-4-6", "claude-sonnet-4-5", "claude-opus-4-7", "claude-3-5-haiku-latest"),
    *("claude-sonnet-5", "claude-opus-5", "claude-opus-5-5", "claude-sonnet-5-5"),
    *("claude-haiku-5-5", "claude-fable-5-1", "claude-opus-4-5"),
]


GPTS = [
    *("gpt-5", "gpt-5.2", "gpt-4.1", "o3", "gpt-6-sol", "gpt-6.1-sol", "gpt-5-pro", "gpt-5.4"),
    *("gpt-5.1-codex-mini", "gpt-5.6-luna"),
]


GEMINIS = [
    *("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-flash-preview"),
    *("gemini-3.8-flash", "gemini-3.7-flash", "gemini-4-argon"),
]


def info(provider: str, request: ModelRequest, *, sees: bool = True) -> ModelInfo:
    known = shipped().info(provider, request.model)
    return msgspec.structs.replace(known, sees_images=sees)


def own_proofs(request: ModelRequest, provider: str) -> set[str]:
    """Every proof in the conversation that the asked model made itself."""
    proofs = {""}
    for message in request.messages:
        for part in message.parts if isinstance(message, ChatMessage) else ():
            if isinstance(part, Thinking) and (part.provider, part.model) == (
                provider,
                request.model,
            ):
                proofs |= {*part.signature.split(), *part.redacted.split()}
            is_theirs = isinstance(message, ChatMessage) and message.model.endswith(":another")
            if isinstance(part, ToolCall) and part.provider == provider and not is_theirs:
                proofs.add(part.signature)
    return proofs


def sendable(body: dict[str, Any]) -> dict[str, Any]:
    """The body as it arrives at the other end."""
    arrived: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(body))
    return arrived
