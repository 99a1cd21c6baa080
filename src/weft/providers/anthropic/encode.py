"""A neutral request in the words of the Messages API.

Rules that shape this file: messages alternate and begin with the user; results open the user
message right after the calls; calls end the assistant's message, unless reasoning came between
them; no text is blank; reasoning goes back only while thinking is on, in the order in which it
came, and never ends a message; a failed result holds only text; at most four cache marks.

Models differ in thinking; the catalogue says which levels each has.  Before 4.6 a level is a budget
of tokens; from 4.6 on it is the effort of adaptive thinking.  Before 5 a model that is asked
nothing does not think; from 5 on it does, and leaving `thinking` out is the same as asking for
`adaptive`. From 4.7 on its text is left out unless it is asked for.  From 5.1 on reasoning is bound
to all that stood before it, and compaction or another system prompt would have the request refused,
were the service not told to drop what no longer fits.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from weft.messages import Image, Text, Thinking
from weft.providers.base import ModelInfo, ModelRequest, ThinkingLevel, ToolSpec
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
from weft.providers.schema import as_object, closed, is_plain, remembered

Json: TypeAlias = dict[str, Any]
Thoughts: TypeAlias = Literal["none", "first", "as they came"]
"""Which place a model's earlier reasoning has in its messages."""

# Both `claude-3-5-sonnet-20241022` and `claude-sonnet-4-5-20250929`. A minor has at most two
# digits; anything longer is a date.
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_UNKNOWN = (99, 0)
BINDING_BETA = "thinking-binding-controls-2026-08-01"
"""Must stand in the `anthropic-beta` header when a body has `thinking.block_binding`."""
_BINDING: Json = {"prefix_mismatch_behavior": "drop_block"}
_CACHED: Json = {"type": "ephemeral"}
_CACHED_FOR_LONG: Json = {"type": "ephemeral", "ttl": "1h"}
# The API refuses a smaller budget.
_LEAST_BUDGET = 1_024
_BUDGETS: dict[ThinkingLevel, int] = {
    "minimal": _LEAST_BUDGET,
    "low": 4_096,
    "medium": 10_000,
    "high": 24_000,
    "xhigh": 36_000,
    "max": 48_000,
}
_ANSWER_ROOM = 4_096
"""Output tokens that a thinking budget leaves for the answer, where the model has them."""


def encode(
    request: ModelRequest, info: ModelInfo, *, is_vendor: bool = False, long_cache: bool = False
) -> Json:
    """The body of `POST /v1/messages`.

    `is_vendor`: it goes to Anthropic itself, which knows its newest fields.  `long_cache`: what is
    cached is kept for an hour.
    """
    cached = _CACHED_FOR_LONG if long_cache else _CACHED
    said = turns(request, info)
    version = model_version(request.model)
    # `max_tokens` is required here, unlike with the other vendors.
    limit = request.max_output_tokens or info.max_output_tokens
    thinking = _thinking(request, info, said, version, limit)
    kind = thinking.get("thinking", {}).get("type")
    # Unknown fields are refused, so only Anthropic itself and only a known version gets it.
    if is_vendor and kind == "adaptive" and (5, 1) <= version < _UNKNOWN:
        thinking["thinking"]["block_binding"] = _BINDING
    thoughts: Thoughts = "none"
    if kind in ("adaptive", "enabled", "between_tools"):
        # With a budget the reasoning must open the message; adaptive thinking, and the notes that
        # `between_tools` gives, come between texts and calls and have to go back in the order in
        # which they came.
        thoughts = "first" if kind == "enabled" else "as they came"
    messages = _messages(said, thoughts, may_prefill=version < (4, 6))
    body: Json = {
        "model": request.model,
        "max_tokens": limit,
        "messages": messages,
        "stream": True,
        **thinking,
    }
    _add_system(body, request, version, cached)
    _add_tools(body, request, said, cached)
    # Sampling cannot be set beside reasoning, nor at all on the newest models.
    if request.temperature is not None and thoughts == "none" and version < (4, 7):
        body["temperature"] = min(request.temperature, 1.0)
    # A stop sequence of white space alone is refused.
    if stops := [stop for stop in request.stop if stop.strip()]:
        body["stop_sequences"] = stops
    _mark_for_cache(messages, cached)
    return body


def model_version(name: str) -> tuple[int, int]:
    """Major and minor version in a model's name; a name without one is taken for a new model."""
    found = _VERSION.search(name)
    if not found:
        return _UNKNOWN
    return (int(found[1]), int(found[2] or 0))


# --- thinking --------------------------------------------------------------------------


def _thinking(
    request: ModelRequest, info: ModelInfo, said: list[Turn], version: tuple[int, int], limit: int
) -> Json:
    level = info.level(request.thinking)
    if version == _UNKNOWN and request.thinking in ("default", "off"):
        return {}  # which model is behind the name, only its owner knows
    match level:
        case "default":
            return _adaptive(version) if info.thinks and version >= (5, 0) else {}
        case "off":
            return _thinking_off(request.model, version)
        case _ if version >= (4, 6):
            return {**_adaptive(version), "output_config": {"effort": level}}
        case _:
            # The budget counts against `max_tokens` and must stay below it.
            budget = min(_BUDGETS[level], max(limit - _ANSWER_ROOM, limit // 2))
            if budget < _LEAST_BUDGET or not _opens_with_thought(said):
                return {}
            return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive(version: tuple[int, int]) -> Json:
    shown = {"display": "summarized"} if version >= (4, 7) else {}
    return {"thinking": {"type": "adaptive", **shown}}


def _thinking_off(model: str, version: tuple[int, int]) -> Json:
    """How a model is told not to think; those before 5 think only when they are told to."""
    if version < (5, 0):
        return {}
    is_between = "sonnet" in model and version >= (5, 5)
    return {"thinking": {"type": "between_tools" if is_between else "disabled"}}


def _opens_with_thought(said: list[Turn]) -> bool:
    """Whether the tool rounds that still run began with reasoning.

    Else thinking cannot be on for this request.
    """
    first: ModelTurn | None = None
    for before, turn in zip(reversed([None, *said[:-1]]), reversed(said), strict=True):
        if isinstance(turn, ModelTurn):
            first = turn
        elif not (isinstance(before, ModelTurn) and before.outcomes):
            break  # the user's own message; words beside results do not end the rounds
    return first is None or any(isinstance(part, Thinking) for part in first.parts)


# --- messages --------------------------------------------------------------------------


def _messages(said: list[Turn], thoughts: Thoughts, *, may_prefill: bool) -> list[Json]:
    messages: list[Json] = []
    for turn in said:
        if isinstance(turn, UserTurn):
            _add_user(messages, [_user_block(part) for part in turn.parts])
            continue
        messages.append({"role": "assistant", "content": _model_blocks(turn, thoughts)})
        if turn.outcomes:
            results = [_result_block(outcome) for outcome in turn.outcomes]
            _add_user(messages, [*results, *_pictures_of_failures(turn)])
    if messages[-1]["role"] == "assistant":
        _end_with_user(messages, may_prefill and thoughts == "none")
    return messages


def _add_user(messages: list[Json], blocks: list[Json]) -> None:
    """Add blocks of the user; what follows results joins their message."""
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": "user", "content": blocks})


def _end_with_user(messages: list[Json], may_prefill: bool) -> None:
    last = messages[-1]["content"][-1]
    if may_prefill and last["type"] == "text":
        # Prefill: the model goes on in the middle of its own text, which must not end in white
        # space. From 4.6 on it is refused.
        last["text"] = last["text"].rstrip()
    else:
        _add_user(messages, [{"type": "text", "text": CONTINUE_PROMPT}])


def _user_block(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.is_pdf:
        return {"type": "document", "source": source, "title": document_name(part)}
    return {"type": "image", "source": source}


def _model_blocks(turn: ModelTurn, thoughts: Thoughts) -> list[Json]:
    blocks: list[Json] = []
    for part in turn.parts:
        if isinstance(part, WireCall):
            called = {"type": "tool_use", "id": part.id, "name": part.name, "input": part.args}
            blocks.append(called)
        elif isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text})
        elif thoughts != "none":
            blocks.append(_thought_block(part))
    # Before any reasoning is dropped: a round is asked to think because it has some, wherever that
    # stands, and then has to open with it.
    if thoughts == "first":
        blocks.sort(key=lambda block: block["type"] in ("text", "tool_use"))
    # Reasoning must not end a message. `turns` gives none that consists of it, so this ends.
    while blocks[-1]["type"] not in ("text", "tool_use"):
        blocks.pop()
    # Reasoning is bound to what stood before it, so the order of a message that has some between
    # its calls is the one in which it came. In all others calls end the message.
    first_call = next((i for i, b in enumerate(blocks) if b["type"] == "tool_use"), len(blocks))
    if not any("thinking" in block["type"] for block in blocks[first_call:]):
        blocks.sort(key=lambda block: block["type"] == "tool_use")
    return blocks


def _thought_block(part: Thinking) -> Json:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.redacted}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _result_block(outcome: WireResult) -> Json:
    content: str | list[Json] = outcome.text
    # A result with `is_error` may hold only text.
    if outcome.images and not outcome.is_error:
        pictures = [_user_block(image) for image in outcome.images]
        content = [{"type": "text", "text": outcome.text}, *pictures]
    block: Json = {"type": "tool_result", "tool_use_id": outcome.call.id, "content": content}
    if outcome.is_error:
        block["is_error"] = True
    return block


def _pictures_of_failures(turn: ModelTurn) -> list[Json]:
    """What failed calls showed, after the results."""
    blocks: list[Json] = []
    for outcome in turn.outcomes:
        if outcome.is_error and outcome.images:
            blocks.append({"type": "text", "text": f"Images from {outcome.call.name}:"})
            blocks += [_user_block(image) for image in outcome.images]
    return blocks


# --- system, tools, cache --------------------------------------------------------------


def _add_system(body: Json, request: ModelRequest, version: tuple[int, int], cached: Json) -> None:
    words = [request.system] if request.system.strip() else []
    if request.schema is not None:
        tidied = closed(request.schema)
        # Structured output came with 4.5; before, and for keywords it refuses, words have to do.
        if version >= (4, 5) and is_plain(tidied):
            form = {"type": "json_schema", "schema": tidied}
            body["output_config"] = {**body.get("output_config", {}), "format": form}
        else:
            words.append(schema_in_words(request.schema))
    if words:
        # A mark caches everything before it, and the service orders a request as tools, system,
        # messages.
        block = {"type": "text", "text": "\n\n".join(words), "cache_control": cached}
        body["system"] = [block]


def _add_tools(body: Json, request: ModelRequest, said: list[Turn], cached: Json) -> None:
    if request.tools:
        *others, last = _tools(request.tools)
        body["tools"] = [*others, {**last, "cache_control": cached}]
        return
    # Calls in the history want their tools declared, even when none may be called now (a summary, a
    # title). A dict, for the order: what is sent must not differ from request to request, or the
    # cache misses.
    used = {
        part.name: None
        for turn in said
        if isinstance(turn, ModelTurn)
        for part in turn.parts
        if isinstance(part, WireCall)
    }
    if used:
        body["tools"] = [
            {"name": name, "description": "Not available now.", "input_schema": {"type": "object"}}
            for name in used
        ]
        body["tool_choice"] = {"type": "none"}


@remembered
def _tools(tools: tuple[ToolSpec, ...]) -> list[Json]:
    return [
        {
            "name": wire_name(tool.name),
            "description": tool.description,
            "input_schema": as_object(tool.schema),
        }
        for tool in tools
    ]


def _mark_for_cache(messages: list[Json], cached: Json) -> None:
    """Mark the last two user messages: the newest is written, the one before is found again next
    time.

    With the marks on system and tools these are the four that are allowed.
    """
    marked = 0
    for message in reversed(messages):
        if message["role"] == "user":
            message["content"][-1]["cache_control"] = cached
            marked += 1
            if marked == 2:
                return
