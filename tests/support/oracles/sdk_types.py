"""What each vendor's SDK says a request may hold, and the vendor's own rules besides."""

from __future__ import annotations

import functools
from collections.abc import Collection
from importlib import import_module
from types import GenericAlias
from typing import Any

from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)
from tests.support.oracles.converse_shapes import converse_misfits, converse_rules
from tests.support.oracles.type_walk import misfits

Json = dict[str, Any]
SDKS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-chat": "openai",
    "google": "google.genai",
    "ollama": "ollama",
    "bedrock": "botocore",
}
"""The package that speaks each protocol."""
_GOOGLE_FIELDS = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig")


def misfits_of_types(protocol: str, body: Json) -> list[str]:
    """Where a request does not fit the SDK's types."""
    if protocol == "google":
        return _google(body)
    if protocol == "bedrock":
        return [wrong for wrong in converse_misfits(body).split("\n") if wrong]
    found = misfits(body, _request_type(protocol))
    return found or (_ollama(body) if protocol == "ollama" else [])


@functools.cache
def load_types() -> None:
    """Read the types of every SDK once: that takes seconds, in which no server answers."""
    said = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    parts = [{"text": "hi"}]
    for protocol in SDKS:
        words: Json = {"model": "m", "messages": said, "max_tokens": 1, "tools": [{}]}
        items: Json = {"model": "m", "input": [{"type": "message"}], "tools": [{}]}
        contents: Json = {"contents": [{"parts": parts}], "tools": [{}]}
        turns: Json = {"messages": [{"role": "user", "content": parts}]}
        body = {"openai": items, "google": contents, "bedrock": turns}.get(protocol, words)
        misfits_of_types(protocol, body)


def broken_rules(
    protocol: str, body: Json, *, model: str = "", signed: Collection[str] | None = None
) -> list[str]:
    """Which documented rules a request breaks that no type can say."""
    match protocol:
        case "anthropic":
            return validate_anthropic(body, signed=signed)
        case "openai":
            return validate_openai_responses(body, signed=signed)
        case "openai-chat":
            return validate_openai_chat(body, server="openai")
        case "google":
            return validate_gemini(body, model=model, signed=signed)
        case "bedrock":
            return converse_rules(body, signed)
        case _:
            return _ollama_rules(body)


def verdict(
    protocol: str, body: Json, *, model: str = "", signed: Collection[str] | None = None
) -> list[str]:
    """All that is wrong with a request."""
    found = misfits_of_types(protocol, body)
    # The rules read fields that a request of another shape does not have.
    return found or broken_rules(protocol, body, model=model, signed=signed)


@functools.cache
def _request_type(protocol: str) -> Any:
    if protocol == "anthropic":
        # The one with betas: newer fields are there first, with their header.
        module = import_module("anthropic.types.beta.message_create_params")
        return module.MessageCreateParamsStreaming
    if protocol == "openai":
        module = import_module("openai.types.responses.response_create_params")
        return module.ResponseCreateParamsStreaming
    if protocol == "openai-chat":
        module = import_module("openai.types.chat.completion_create_params")
        return module.CompletionCreateParamsStreaming
    return import_module("ollama._types").ChatRequest


def _ollama(body: Json) -> list[str]:
    """The parts for which the request's own type takes any object, by the types that they have."""
    types: Any = import_module("ollama._types")
    return [
        *misfits(body["messages"], _list_of(types.Message), "messages"),
        *misfits(body["options"], types.Options, "options"),
    ]


def _google(body: Json) -> list[str]:
    types: Any = import_module("google.genai.types")
    found = [f"body: unknown field {name!r}" for name in body if name not in _GOOGLE_FIELDS]
    expected = {
        "contents": _list_of(types.Content),
        "systemInstruction": types.Content,
        "tools": _list_of(types.Tool),
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    for name, kind in expected.items():
        if name in body:
            found += misfits(body[name], kind, name)
    return found + ([] if body.get("contents") else ["body: no field 'contents'"])


def _list_of(item: Any) -> Any:
    return GenericAlias(list, (item,))


def _ollama_rules(body: Json) -> list[str]:
    """Results follow the calls that they belong to, by name and order; the user has the last
    word.
    """
    found: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if not waiting or waiting.pop(0) != message.get("tool_name"):
                found.append(f"messages[{place}]: a result of no call")
            continue
        if waiting:
            found.append(f"messages[{place}]: calls without results: {waiting}")
        waiting = [call["function"]["name"] for call in message.get("tool_calls", ())]
        if not (message.get("content") or waiting or message.get("images")):
            found.append(f"messages[{place}]: an empty message")
    if waiting or body["messages"][-1]["role"] not in ("user", "tool"):
        found.append("messages: must end with the user or with results")
    if body.get("think", True) not in (True, False, "low", "medium", "high"):
        found.append(f"think: {body['think']!r}")
    if not body["options"].get("num_ctx"):
        found.append("options: without num_ctx the conversation is cut")
    return found
