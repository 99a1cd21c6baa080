"""A neutral request in Ollama's words."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from weft.messages import Image, Text
from weft.providers.base import ModelInfo, ModelRequest, ToolSpec
from weft.providers.normalize import (
    CONTINUE_PROMPT,
    ModelTurn,
    UserTurn,
    WireCall,
    turns,
    wire_name,
)
from weft.providers.schema import as_object, closed, remembered

Json: TypeAlias = dict[str, Any]


def encode(request: ModelRequest, info: ModelInfo) -> Json:
    """The body of `POST /api/chat`."""
    body: Json = {
        "model": request.model,
        "messages": _messages(request, info),
        "stream": True,
        "options": sampling_options(request, info),
    }
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    # Ollama refuses tools for a model whose template has no place for them.
    if request.tools and info.calls_tools:
        body["tools"] = _tools(request.tools)
    if request.schema is not None:
        body["format"] = closed(request.schema)
    level = info.level(request.thinking)
    if level != "default":
        # Most can only be switched on and off; what always thinks has words for how much.
        body["think"] = level != "off" if "off" in info.levels else level
    return body


def sampling_options(request: ModelRequest, info: ModelInfo) -> Json:
    """The `options` of a request."""
    # The same in every request: Ollama reloads the model when it changes.
    options: Json = {"num_ctx": info.context_window}
    if request.max_output_tokens:
        options["num_predict"] = request.max_output_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.seed is not None:
        options["seed"] = request.seed
    if request.stop:
        options["stop"] = list(request.stop)
    return options


@remembered
def _tools(tools: tuple[ToolSpec, ...]) -> list[Json]:
    return [
        {
            "type": "function",
            "function": {
                "name": wire_name(tool.name),
                "description": tool.description,
                "parameters": _parameters(tool.schema),
            },
        }
        for tool in tools
    ]


def _parameters(schema: Json) -> Json:
    # Not among the keywords that its API has for the whole object.
    return {k: v for k, v in as_object(schema).items() if k != "additionalProperties"}


def _messages(request: ModelRequest, info: ModelInfo) -> list[Json]:
    messages: list[Json] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    # Its API has pictures, and no form for documents.
    for turn in turns(request, msgspec.structs.replace(info, reads_pdf=False)):
        if isinstance(turn, UserTurn):
            messages.append(_user(turn.parts))
        else:
            messages += _model(turn)
    if messages[-1]["role"] == "assistant" and not request.prefill:
        messages.append({"role": "user", "content": CONTINUE_PROMPT})
    return messages


def _user(parts: tuple[Text | Image, ...]) -> Json:
    words = "\n".join(part.text for part in parts if isinstance(part, Text))
    message: Json = {"role": "user", "content": words or "(image)"}
    if pictures := [part.data for part in parts if isinstance(part, Image)]:
        message["images"] = pictures
    return message


def _model(turn: ModelTurn) -> list[Json]:
    message: Json = {"role": "assistant", "content": turn.text}
    if calls := [part for part in turn.parts if isinstance(part, WireCall)]:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": call.args}} for call in calls
        ]
    messages = [message]
    for outcome in turn.outcomes:
        words = f"Error: {outcome.text}" if outcome.is_error else outcome.text
        # There are no ids: results belong to calls by name and order.
        result: Json = {"role": "tool", "tool_name": outcome.call.name, "content": words}
        if outcome.images:
            result["images"] = [image.data for image in outcome.images]
        messages.append(result)
    return messages
