"""A neutral request in the words of Bedrock's Converse, which all models there understand.

Rules that shape this file: messages alternate and begin with the user; results open the user
message right after the calls; no text is blank; a document stands beside a text, and its name holds
only letters, digits, single spaces, hyphens and brackets.  Each vendor's own settings (thinking
among them) have no common field, so models think as they do by default.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from weft.messages import Image, Text, Thinking
from weft.providers.base import ModelInfo, ModelRequest, ToolSpec
from weft.providers.documents import document_name
from weft.providers.normalize import (
    CONTINUE_PROMPT,
    ModelTurn,
    Turn,
    UserTurn,
    WireCall,
    WireResult,
    schema_in_words,
    turns,
    wire_name,
)
from weft.providers.schema import as_object, remembered

Json: TypeAlias = dict[str, Any]
_ODD: Final = re.compile(r"[^a-zA-Z0-9()\[\]-]+")
_MOST_STOPS: Final = 4


def encode(request: ModelRequest, info: ModelInfo) -> Json:
    """The body of `POST /model/…/converse-stream`."""
    said = turns(request, info)
    body: Json = {"messages": _messages(said)}
    system = [request.system] if request.system.strip() else []
    if request.schema is not None:
        system.append(schema_in_words(request.schema))
    if system:
        body["system"] = [{"text": text} for text in system]
    if config := _config(request):
        body["inferenceConfig"] = config
    if tools := _tools(request.tools) or _called(said):
        body["toolConfig"] = {"tools": tools}
    return body


def _config(request: ModelRequest) -> Json:
    config: Json = {}
    if request.max_output_tokens:
        config["maxTokens"] = request.max_output_tokens
    if request.temperature is not None:
        config["temperature"] = min(request.temperature, 1.0)
    if stops := [stop for stop in request.stop if stop][:_MOST_STOPS]:
        config["stopSequences"] = stops
    return config


@remembered
def _tools(tools: tuple[ToolSpec, ...]) -> list[Json]:
    return [_tool(wire_name(tool.name), tool.description, tool.schema) for tool in tools]


def _tool(name: str, description: str, schema: Json) -> Json:
    words = {"description": description} if description.strip() else {}
    return {"toolSpec": {"name": name, **words, "inputSchema": {"json": as_object(schema)}}}


def _called(said: list[Turn]) -> list[Json]:
    """The tools that a conversation has called: it is refused where none is declared."""
    names = {
        part.name: None
        for turn in said
        if isinstance(turn, ModelTurn)
        for part in turn.parts
        if isinstance(part, WireCall)
    }
    return [_tool(name, "Not available any more.", {"type": "object"}) for name in names]


def _messages(said: list[Turn]) -> list[Json]:
    messages: list[Json] = []
    for turn in said:
        if isinstance(turn, UserTurn):
            _add_user(messages, [_block(part) for part in turn.parts])
            continue
        messages.append({"role": "assistant", "content": _model_blocks(turn)})
        if turn.outcomes:
            _add_user(messages, [_result(outcome) for outcome in turn.outcomes])
    if messages[-1]["role"] == "assistant":
        _add_user(messages, [{"text": CONTINUE_PROMPT}])
    for message in messages:
        _name_documents(message["content"])
    return messages


def _add_user(messages: list[Json], blocks: list[Json]) -> None:
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": "user", "content": blocks})


def _block(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return {"text": part.text}
    source = {"source": {"bytes": part.data}}
    if part.is_pdf:
        name = _ODD.sub(" ", document_name(part)).strip() or "document"
        return {"document": {"format": "pdf", "name": name, **source}}
    return {"image": {"format": part.media_type.partition("/")[2], **source}}


def _name_documents(content: list[Json]) -> None:
    """Give each document of a message a name of its own, and text beside them where there is
    none.
    """
    seen: set[str] = set()
    for block in [*content, *_inside_results(content)]:
        if (document := block.get("document")) is None:
            continue
        name, number = document["name"], 1
        while document["name"] in seen:
            number += 1
            document["name"] = f"{name} ({number})"
        seen.add(document["name"])
    if seen and not any("text" in block for block in content):
        content.append({"text": "(documents)"})


def _inside_results(content: list[Json]) -> list[Json]:
    return [inner for block in content for inner in block.get("toolResult", {}).get("content", ())]


def _model_blocks(turn: ModelTurn) -> list[Json]:
    blocks: list[Json] = []
    for part in turn.parts:
        if isinstance(part, WireCall):
            called = {"toolUseId": part.id, "name": part.name, "input": part.args}
            blocks.append({"toolUse": called})
        elif isinstance(part, Text):
            blocks.append({"text": part.text})
        else:
            blocks.append({"reasoningContent": _thought(part)})
    # Reasoning must not end a message. `turns` gives none that consists of it, so this ends.
    while "reasoningContent" in blocks[-1]:
        blocks.pop()
    return blocks


def _thought(part: Thinking) -> Json:
    if part.redacted:
        return {"redactedContent": part.redacted}
    return {"reasoningText": {"text": part.text, "signature": part.signature}}


def _result(outcome: WireResult) -> Json:
    content = [{"text": outcome.text}, *map(_block, outcome.images)]
    status = "error" if outcome.is_error else "success"
    return {"toolResult": {"toolUseId": outcome.call.id, "content": content, "status": status}}
