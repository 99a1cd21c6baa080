"""A neutral request for a small model: Chat Completions, with tools as a form to fill in.

Small models do not call tools by themselves (0 of 3 tries), but a schema with one branch for each
tool, and one for plain words, always gives a valid call.  The history is written in the same form,
so that the model sees how it is done.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from weft.messages import Image, Text
from weft.providers.base import ModelInfo, ModelRequest, ToolSpec
from weft.providers.normalize import (
    ModelTurn,
    UserTurn,
    WireCall,
    schema_in_words,
    turns,
    wire_name,
)
from weft.providers.schema import as_object, closed, remembered

Json: TypeAlias = dict[str, Any]

TEMPERATURE: Final = 0.2
"""Small models wander at higher ones."""
REPEAT_PENALTY: Final = 1.15
"""Without one they say the same sentence until their output ends."""


def encode(request: ModelRequest, info: ModelInfo) -> Json:
    """The body of `POST /v1/chat/completions` of the child."""
    body: Json = {
        "messages": _messages(request, info),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_output_tokens or info.max_output_tokens,
        # A slot keeps what it has read; a long prompt takes seconds for every thousand tokens.
        "cache_prompt": True,
        "temperature": TEMPERATURE if request.temperature is None else request.temperature,
        "top_p": 0.9,
        "repeat_penalty": REPEAT_PENALTY,
        "repeat_last_n": 256,
    }
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    if request.tools:
        body["response_format"] = _form("step", _one_of(request.tools))
    elif request.schema is not None:
        body["response_format"] = _form("answer", closed(request.schema))
    return body


def encode_raw(request: ModelRequest, info: ModelInfo) -> Json:
    """The body of `POST /v1/completions` of the child: the model's template is left out."""
    body: Json = {
        "prompt": request.prompt or "",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_output_tokens or info.max_output_tokens,
        "cache_prompt": True,
        # Several continuations of one text have to differ, so it is not the temperature of answers.
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "repeat_penalty": REPEAT_PENALTY,
        "repeat_last_n": 256,
    }
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.logprobs is not None:
        body["logprobs"] = max(request.logprobs, 1)
    return body


def _form(name: str, schema: Json) -> Json:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


@remembered
def _one_of(tools: tuple[ToolSpec, ...]) -> Json:
    """Words, or one call of one tool with that tool's own arguments."""
    say = {
        "type": "object",
        "properties": {"say": {"type": "string"}},
        "required": ["say"],
        "additionalProperties": False,
    }
    # llama.cpp turns the schema into a grammar: the model can write nothing that fits no branch.
    return {"oneOf": [say, *(_branch(tool) for tool in tools)]}


def _branch(tool: ToolSpec) -> Json:
    return {
        "type": "object",
        "properties": {"tool": {"const": wire_name(tool.name)}, "args": closed(tool.schema)},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }


def _messages(request: ModelRequest, info: ModelInfo) -> list[Json]:
    messages: list[Json] = []
    system = [request.system] if request.system.strip() else []
    if request.tools:
        system.append(_explained(request.tools))
        if request.schema is not None:
            system.append(schema_in_words(request.schema))
    if system:
        messages.append({"role": "system", "content": "\n\n".join(system)})
    # Only text goes to a model of this size.
    for turn in turns(request, msgspec.structs.replace(info, reads_pdf=False)):
        if isinstance(turn, UserTurn):
            _add(messages, "user", _words(turn.parts))
            continue
        _add(messages, "assistant", _said(turn, with_form=bool(request.tools)))
        for outcome in turn.outcomes:
            head = "failed" if outcome.is_error else "gave"
            _add(messages, "user", f"{outcome.call.name} {head}:\n{outcome.text}")
    return messages


def _add(messages: list[Json], role: str, text: str) -> None:
    """Templates of small models want user and assistant in turn."""
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += f"\n\n{text}"
    else:
        messages.append({"role": role, "content": text})


def _words(parts: tuple[Text | Image, ...]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text)) or "(an image)"


def _said(turn: ModelTurn, *, with_form: bool) -> str:
    lines = []
    for part in turn.parts:
        if isinstance(part, Text):
            lines.append(_json({"say": part.text}) if with_form else part.text)
        elif isinstance(part, WireCall):
            lines.append(_json({"tool": part.name, "args": part.args}))
    return "\n".join(lines)


@remembered
def _explained(tools: tuple[ToolSpec, ...]) -> str:
    lines = [
        'Answer with one JSON object: {"say": …} to speak, or {"tool": …, "args": {…}} '
        "to use a tool.",
        "The tools:",
    ]
    for tool in tools:
        names = ", ".join(as_object(tool.schema)["properties"])
        about = tool.description.strip().split("\n", 1)[0]
        lines.append(f"- {wire_name(tool.name)}({names}): {about}")
    return "\n".join(lines)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
