"""A neutral request in the words of Gemini's `generateContent`.

Function responses open the content after the calls, as many as there were calls.  Gemini 3 wants
the first call of each step of the running turn to carry the thought signature it came with, and a
text that came with one to keep it; a call that another model made carries the mark that Google
documents for this case.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from weft.messages import Image, Text, Thinking
from weft.providers.base import ModelInfo, ModelRequest, ThinkingLevel, ToolSpec
from weft.providers.normalize import (
    CONTINUE_PROMPT,
    FOREIGN_SIGNATURE,
    ModelTurn,
    UserTurn,
    WireCall,
    WireResult,
    schema_in_words,
    turns,
    wire_name,
)
from weft.providers.schema import for_gemini, remembered

Json: TypeAlias = dict[str, Any]

# More are refused.
_MOST_STOPS = 5
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_BUDGETS: dict[ThinkingLevel, int] = {
    "off": 0,
    "minimal": 512,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 20_480,
    "max": 24_576,
}
"""What a level is before Gemini 3; each within the range of every model that has it."""


def encode(request: ModelRequest, info: ModelInfo) -> Json:
    """The body of `POST …:streamGenerateContent`."""
    version = model_version(request.model)
    body: Json = {"contents": _contents(request, info, version)}
    system = [request.system] if request.system.strip() else []
    if request.schema is not None and not _takes_schema(request, version):
        system.append(schema_in_words(request.schema))
    if system:
        body["systemInstruction"] = {"parts": [{"text": "\n\n".join(system)}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": _declarations(request.tools)}]
    if config := _config(request, info, version):
        body["generationConfig"] = config
    return body


def model_version(name: str) -> tuple[int, int]:
    """Major and minor version in a model's name; a name without one is taken for a new model."""
    found = _VERSION.search(name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


# --- settings --------------------------------------------------------------------------


def _takes_schema(request: ModelRequest, version: tuple[int, int]) -> bool:
    """Before Gemini 3 structured output and functions exclude each other."""
    return not request.tools or version >= (3, 0)


def _config(request: ModelRequest, info: ModelInfo, version: tuple[int, int]) -> Json:
    config: Json = {}
    if request.max_output_tokens:
        config["maxOutputTokens"] = request.max_output_tokens
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if request.stop:
        config["stopSequences"] = list(request.stop[:_MOST_STOPS])
    if request.schema is not None and _takes_schema(request, version):
        config["responseMimeType"] = "application/json"
        # Not `responseSchema`, which takes only the older dialect of OpenAPI.
        config["responseJsonSchema"] = for_gemini(request.schema)
    if thinking := _thinking(request, info, version):
        config["thinkingConfig"] = thinking
    return config


def _thinking(request: ModelRequest, info: ModelInfo, version: tuple[int, int]) -> Json:
    level = info.level(request.thinking)
    shown = {"includeThoughts": True} if request.thinking != "off" else {}
    if level == "default":
        # Thoughts can be asked for only where there are some.
        thinks = info.thinks and version >= (2, 5) and info.default_level != "off"
        return shown if thinks else {}
    # A level and a budget in one request are refused, and so is either for the other generation.
    if version >= (3, 0):
        return {"thinkingLevel": level, **shown}
    return {"thinkingBudget": _BUDGETS[level], **shown}


@remembered
def _declarations(tools: tuple[ToolSpec, ...]) -> list[Json]:
    declared = []
    for tool in tools:
        schema = for_gemini(tool.schema)
        words = {"name": wire_name(tool.name), "description": tool.description}
        # An object without properties is refused: a tool without arguments declares none.
        takes = {"parametersJsonSchema": schema} if schema.get("properties") else {}
        declared.append({**words, **takes})
    return declared


# --- contents --------------------------------------------------------------------------


def _contents(request: ModelRequest, info: ModelInfo, version: tuple[int, int]) -> list[Json]:
    contents: list[Json] = []
    for turn in turns(request, info):
        if isinstance(turn, UserTurn):
            contents.append(_user([_part(part) for part in turn.parts]))
            continue
        contents.append({"role": "model", "parts": _model_parts(turn, version)})
        if turn.outcomes:
            # As many responses as calls, and before anything else: the service counts them.
            contents.append(_user([_response(outcome) for outcome in turn.outcomes]))
            contents += _pictures(turn)
    if contents[-1]["role"] == "model":
        contents.append(_user([{"text": CONTINUE_PROMPT}]))
    return _merged(contents)


def _merged(contents: list[Json]) -> list[Json]:
    """The contents with neighbours of one role in one: roles are to alternate."""
    merged: list[Json] = []
    for content in contents:
        if merged and merged[-1]["role"] == content["role"]:
            merged[-1] = {**content, "parts": [*merged[-1]["parts"], *content["parts"]]}
        else:
            merged.append(content)
    return merged


def _user(parts: list[Json]) -> Json:
    return {"role": "user", "parts": parts}


def _part(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return {"text": part.text}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _model_parts(turn: ModelTurn, version: tuple[int, int]) -> list[Json]:
    parts: list[Json] = []
    first_call = True
    for part in turn.parts:
        match part:
            case Text():
                proof = {"thoughtSignature": part.signature} if part.signature else {}
                parts.append({"text": part.text, **proof})
            case WireCall():
                signature = part.signature
                # Parallel calls carry one signature, on the first of them.
                if not signature and first_call and version >= (3, 0):
                    signature = FOREIGN_SIGNATURE
                first_call = False
                parts.append(_call(part, signature))
            case Thinking():
                pass  # not sent back; what must return is the call's signature
    return parts


def _call(call: WireCall, signature: str) -> Json:
    words: Json = {"name": call.name, "args": call.args}
    # Ids are optional here: without them responses are matched by name and order.
    if call.is_own:
        words["id"] = call.id
    return {"functionCall": words, **({"thoughtSignature": signature} if signature else {})}


def _response(outcome: WireResult) -> Json:
    words: Json = {
        "name": outcome.call.name,
        # The two keys that the API documents; any other object would count as output.
        "response": {"error" if outcome.is_error else "output": outcome.text},
    }
    if outcome.call.is_own:
        words["id"] = outcome.call.id
    return {"functionResponse": words}


def _pictures(turn: ModelTurn) -> list[Json]:
    """Pictures that tools gave, with the name of the tool: a response holds only text."""
    parts: list[Json] = []
    for outcome in turn.outcomes:
        if outcome.images:
            parts.append({"text": f"Images from {outcome.call.name}:"})
            parts += [_part(image) for image in outcome.images]
    return [_user(parts)] if parts else []
