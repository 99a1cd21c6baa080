"""A neutral request in the words of the Responses API.

The conversation is always sent whole and never stored there (`store: false`), so reasoning goes
back as encrypted content, with the id it came under, right before the item that it led to; our
signature of it is `id content`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from weft.messages import Image, Text, Thinking
from weft.providers.base import ModelInfo, ModelRequest, ThinkingLevel, ToolSpec
from weft.providers.documents import data_url, document_name
from weft.providers.normalize import ModelTurn, UserTurn, WireCall, WireResult, turns, wire_name
from weft.providers.openai.vocabulary import effort_word, model_version
from weft.providers.schema import as_object, closed, remembered, strict

Json: TypeAlias = dict[str, Any]

# The API refuses less.
_LEAST_OUTPUT = 16


def encode(request: ModelRequest, info: ModelInfo, *, with_summaries: bool = True) -> Json:
    """The body of `POST /v1/responses`.

    Summaries of reasoning are only for organizations that the vendor has verified.
    """
    body: Json = {
        "model": request.model,
        "input": _input(request, info),
        "store": False,
        "stream": True,
    }
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = _tools(request.tools)
        body["parallel_tool_calls"] = True
    if request.max_output_tokens:
        body["max_output_tokens"] = max(request.max_output_tokens, _LEAST_OUTPUT)
    if request.schema is not None:
        body["text"] = {
            "format": {"type": "json_schema", "name": "answer", **_form(request.schema)}
        }
    if request.session_id:
        # Requests with the same key are routed to the same machine, which has the prefix in its
        # cache; longer keys are refused.
        body["prompt_cache_key"] = request.session_id[:64]
    if info.thinks:
        # Nothing is stored there, so the reasoning itself has to come back to us to be sent again.
        body["include"] = ["reasoning.encrypted_content"]
        shown = {"summary": "auto"} if with_summaries else {}
        if reasoning := {**_effort(info.level(request.thinking)), **shown}:
            body["reasoning"] = reasoning
    # Models that reason refuse a temperature.
    elif request.temperature is not None:
        body["temperature"] = request.temperature
    if request.logprobs is not None:
        body["include"] = [*body.get("include", ()), "message.output_text.logprobs"]
        body["top_logprobs"] = request.logprobs
    return body


def _effort(level: ThinkingLevel) -> Json:
    return {} if level == "default" else {"effort": effort_word(level)}


def _form(schema: Json) -> Json:
    tight = strict(schema)
    return {"schema": closed(schema) if tight is None else tight, "strict": tight is not None}


@remembered
def _tools(tools: tuple[ToolSpec, ...]) -> list[Json]:
    # Strict mode would fill left-out arguments with null; the tools' own checks want them left out.
    return [
        {
            "type": "function",
            "name": wire_name(tool.name),
            "description": tool.description,
            "parameters": as_object(tool.schema),
            "strict": False,
        }
        for tool in tools
    ]


def _input(request: ModelRequest, info: ModelInfo) -> list[Json]:
    items: list[Json] = []
    has_phases = model_version(request.model) >= (5, 4)
    for turn in turns(request, info):
        if isinstance(turn, UserTurn):
            items.append(_user([_shown(part) for part in turn.parts]))
        else:
            items += _model_items(turn, has_phases)
            items += [_output(outcome) for outcome in turn.outcomes]
    return items


def _user(content: list[Json]) -> Json:
    return {"type": "message", "role": "user", "content": content}


def _shown(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if part.is_pdf:
        named = {"filename": document_name(part), "file_data": data_url(part)}
        return {"type": "input_file", **named}
    return {"type": "input_image", "image_url": data_url(part), "detail": "auto"}


def _model_items(turn: ModelTurn, has_phases: bool) -> list[Json]:
    items: list[Json] = []
    texts = [part for part in turn.parts if isinstance(part, Text)]
    for part in turn.parts:
        match part:
            case Thinking():
                items.append(_reasoning(part))
            case Text():
                # As plain text: the richer form wants the id of a message that they store. Its
                # first line ends are ours (`decode.PARAGRAPH`).
                said = part.text if part is texts[0] else part.text.lstrip("\n")
                words: Json = {"type": "message", "role": "assistant", "content": said}
                # Newer models take what they said on the way for an answer, unless they are told
                # which it was.
                if has_phases:
                    is_final = part is texts[-1] and not turn.outcomes
                    words["phase"] = "final_answer" if is_final else "commentary"
                items.append(words)
            case WireCall():
                items.append(
                    {
                        "type": "function_call",
                        "call_id": part.id,
                        "name": part.name,
                        "arguments": msgspec.json.encode(part.args).decode(),
                    }
                )
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # reasoning without what it led to is refused
    return items


def _reasoning(part: Thinking) -> Json:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    # Neither an id nor Base64 holds a space; a signature without one has no id.
    item_id, _, proof = (part.signature or part.redacted).rpartition(" ")
    item: Json = {"type": "reasoning", "summary": summary, "encrypted_content": proof}
    if item_id:
        item["id"] = item_id
    return item


def _output(outcome: WireResult) -> Json:
    # The API has no field for a call that failed.
    text = f"Error: {outcome.text}" if outcome.is_error else outcome.text
    output: str | list[Json] = text
    if outcome.images:
        output = [{"type": "input_text", "text": text}, *map(_shown, outcome.images)]
    return {"type": "function_call_output", "call_id": outcome.call.id, "output": output}
