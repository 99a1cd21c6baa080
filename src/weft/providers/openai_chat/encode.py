"""A neutral request in the words of Chat Completions.

Many servers speak this with small differences; a `ChatDialect` names those that matter.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import msgspec

from weft.messages import Image, Text, Thinking
from weft.providers.base import ModelInfo, ModelRequest, ToolSpec
from weft.providers.normalize import (
    CONTINUE_PROMPT,
    FOREIGN_SIGNATURE,
    ModelTurn,
    UserTurn,
    WireCall,
    schema_in_words,
    turns,
    wire_name,
)
from weft.providers.openai.vocabulary import effort_word, model_version
from weft.providers.schema import as_object, closed, remembered, strict
from weft.sha256 import sha256

Json: TypeAlias = dict[str, Any]

# OpenAI refuses longer ids and more stops than these.
MAX_ID = 40
_MOST_STOPS = 4


class ChatDialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a server differs from the others."""

    max_tokens: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    usage_in_stream: bool = True
    """It knows `stream_options.include_usage`."""
    effort: bool = False
    """It knows `reasoning_effort`."""
    strict_sampling: bool = False
    """Its models that think take neither a temperature nor words to stop at."""
    schemas: bool = True
    """It knows `response_format` with a JSON Schema; else the request is put in words."""
    cache_key: bool = False
    """It knows `prompt_cache_key`."""
    reasoning_back: bool = False
    """It wants a model's own reasoning back beside its calls, as `reasoning_content`.

    An empty one where there was none.
    """
    thinking_switch: bool = False
    """It turns reasoning on and off by a field `thinking`."""
    short_ids: bool = False
    """Ids of calls are nine letters or digits."""
    user_may_follow_results: bool = True
    """The user may speak right after results of tools.

    Else the model has to say something in between.
    """
    conversation_header: str = ""
    """The header by which it finds its cache of a conversation."""
    effort_beside_tools: bool = True
    """Newer models of it reason beside tools; else they can do only one of the two here."""
    must_end_with_user: bool = True
    """It refuses a conversation that ends with the model's words."""
    signs_calls: bool = False
    """Gemini behind Chat Completions: calls carry thought signatures, foreign ones a mark."""
    effort_object: bool = False
    """It takes the effort as `reasoning: {"effort": …}`, for the models of every vendor."""
    cache_marks: bool = False
    """It passes `cache_control` on to Claude, which caches nothing without it."""
    fills_gaps: bool = False
    """Raw text goes to an address of its own that fills gaps, and an answer that was begun is
    marked as such.
    """


OPENAI = ChatDialect(
    max_tokens="max_completion_tokens",
    effort=True,
    strict_sampling=True,
    cache_key=True,
    effort_beside_tools=False,
)
DEEPSEEK = ChatDialect(reasoning_back=True, thinking_switch=True, schemas=False)
MISTRAL = ChatDialect(effort=True, short_ids=True, user_may_follow_results=False, fills_gaps=True)
XAI = ChatDialect(effort=True, strict_sampling=True, conversation_header="x-grok-conv-id")
WITH_EFFORT = ChatDialect(effort=True)
# Kimi refuses a call of a tool whose reasoning is missing; GLM thinks on where it finds it.
WITH_REASONING = ChatDialect(reasoning_back=True)
OPENROUTER = ChatDialect(effort_object=True, cache_marks=True)
GEMINI = ChatDialect(effort=True, signs_calls=True)
# The least that every server takes: strict ones refuse a field that they do not know.
COMPATIBLE = ChatDialect()

DETAILS_MARK = "reasoning_details "
"""Begins the signature of reasoning that a gateway gave as a list of its own, in JSON."""
_TOOLS_OR_THOUGHT = (5, 4)
"""From this version on OpenAI's models call functions here only without reasoning."""
_SHORT_ID = r"[a-zA-Z0-9]{9}"
_NOTED = "(noted)"


def encode(request: ModelRequest, info: ModelInfo, dialect: ChatDialect = COMPATIBLE) -> Json:
    """The body of `POST /chat/completions`."""
    body: Json = {"model": request.model, "messages": _messages(request, info, dialect)}
    body["stream"] = True
    if dialect.usage_in_stream:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = _tools(request.tools)
    if request.max_output_tokens:
        body[dialect.max_tokens] = request.max_output_tokens
    body.update(_thinking(request, info, dialect))
    is_strict = dialect.strict_sampling and info.thinks
    if request.temperature is not None and not is_strict:
        body["temperature"] = request.temperature
    if request.stop and not is_strict:
        body["stop"] = list(request.stop[:_MOST_STOPS])
    if request.schema is not None and dialect.schemas:
        body["response_format"] = {"type": "json_schema", "json_schema": _form(request.schema)}
    if request.session_id and dialect.cache_key:
        body["prompt_cache_key"] = request.session_id[:64]
    if request.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    if request.seed is not None:
        body["random_seed" if dialect.fills_gaps else "seed"] = request.seed
    return body


def _thinking(request: ModelRequest, info: ModelInfo, dialect: ChatDialect) -> Json:
    level = info.level(request.thinking)
    if request.tools and not dialect.effort_beside_tools:
        is_new = model_version(request.model) >= _TOOLS_OR_THOUGHT
        # Said even at the default, for by default they think.  A model without `off` has no tools
        # here, whatever is requested.
        level = info.level("off") if is_new and "off" in info.levels else level
    if level == "default":
        return {}
    if dialect.thinking_switch:
        is_off = level == "off"
        switch = {"thinking": {"type": "disabled" if is_off else "enabled"}}
        return switch if is_off else {**switch, "reasoning_effort": level}
    if dialect.effort_object:
        return {"reasoning": {"effort": effort_word(level)}}
    return {"reasoning_effort": effort_word(level)} if dialect.effort else {}


def _form(schema: Json) -> Json:
    tight = strict(schema)
    shape = closed(schema) if tight is None else tight
    return {"name": "answer", "schema": shape, "strict": tight is not None}


@remembered
def _tools(tools: tuple[ToolSpec, ...]) -> list[Json]:
    return [
        {
            "type": "function",
            "function": {
                "name": wire_name(tool.name),
                "description": tool.description,
                "parameters": as_object(tool.schema),
            },
        }
        for tool in tools
    ]


def _messages(request: ModelRequest, info: ModelInfo, dialect: ChatDialect) -> list[Json]:
    messages: list[Json] = []
    system = [request.system] if request.system.strip() else []
    if request.schema is not None and not dialect.schemas:
        system.append(schema_in_words(request.schema))
    if system:
        messages.append({"role": "system", "content": "\n\n".join(system)})
    for turn in turns(request, info, max_id=MAX_ID):
        if isinstance(turn, UserTurn):
            _add_user(messages, list(turn.parts), dialect)
        else:
            messages += _known(turn, dialect)
            if turn.shows_something:
                _add_user(messages, _pictures(turn), dialect)
    if messages[-1]["role"] == "assistant" and request.prefill:
        if dialect.fills_gaps:
            messages[-1] = {**messages[-1], "prefix": True}
    elif messages[-1]["role"] == "assistant" and dialect.must_end_with_user:
        _add_user(messages, [Text(text=CONTINUE_PROMPT)], dialect)
    if dialect.cache_marks and "claude" in request.model:
        _mark_for_cache(messages)
    return messages


def _mark_for_cache(messages: list[Json]) -> None:
    """Mark the system prompt and the last two messages of the user, as for Claude itself.

    Results of tools are the user's there, and all in a row are one message.
    """
    roles = [message["role"] for message in messages]
    theirs = ("user", "tool")
    ends = [
        place
        for place, (role, following) in enumerate(zip(roles, [*roles[1:], ""], strict=True))
        if role in theirs and following not in theirs
    ]
    for place in {*ends[-2:], *([0] if roles[0] == "system" else [])}:
        content = messages[place]["content"]
        blocks = [_words(content)] if isinstance(content, str) else list(content)
        blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
        messages[place] = {**messages[place], "content": blocks}


def _add_user(messages: list[Json], parts: list[Text | Image], dialect: ChatDialect) -> None:
    """Add what the user says; it joins a user message right before it."""
    if not parts:
        return
    # Mistral refuses a user message right after results, so the model says something in between.
    if messages and messages[-1]["role"] == "tool" and not dialect.user_may_follow_results:
        messages.append({"role": "assistant", "content": _NOTED})
    blocks = [_block(part) for part in parts]
    if messages and messages[-1]["role"] == "user":
        before = messages.pop()["content"]
        blocks = ([_words(before)] if isinstance(before, str) else before) + blocks
    # A lone text goes as a string: some servers know no other form.
    only = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else None
    messages.append({"role": "user", "content": blocks if only is None else only})


def _block(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return _words(part.text)
    from weft.providers.documents import data_url, document_name  # with the first: start-up time

    if part.is_pdf:
        named = {"filename": document_name(part), "file_data": data_url(part)}
        return {"type": "file", "file": named}
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def _words(text: str) -> Json:
    return {"type": "text", "text": text}


def _known(turn: ModelTurn, dialect: ChatDialect) -> list[Json]:
    """The messages of a turn, which every later request of a session repeats as they are.

    They are shared: what has to change one of them changes a copy.
    """
    known = turn.encoded.get("chat")
    if known is None or known[0] is not dialect:
        known = turn.encoded["chat"] = (dialect, _model(turn, dialect))
    messages: list[Json] = known[1]
    return messages


def _model(turn: ModelTurn, dialect: ChatDialect) -> list[Json]:
    calls = [_call(part, dialect) for part in turn.parts if isinstance(part, WireCall)]
    # Null, not an empty string: several servers refuse blank content, even beside calls.
    message: Json = {"role": "assistant", "content": turn.text or None}
    if calls:
        message["tool_calls"] = calls
        if dialect.signs_calls:
            calls[0].setdefault("extra_content", _google(FOREIGN_SIGNATURE))
    if details := [item for part in turn.parts for item in _details(part)]:
        message["reasoning_details"] = details
    thoughts = [part.text for part in turn.parts if isinstance(part, Thinking) and part.text]
    # DeepSeek refuses a call that comes back without this field; it may be empty.
    if (thoughts or calls) and dialect.reasoning_back:
        message["reasoning_content"] = "\n".join(thoughts)
    results = [
        {
            "role": "tool",
            "tool_call_id": _id(outcome.call, dialect),
            "content": f"Error: {outcome.text}" if outcome.is_error else outcome.text,
        }
        for outcome in turn.outcomes
    ]
    return [message, *results]


def _id(call: WireCall, dialect: ChatDialect) -> str:
    if not dialect.short_ids or re.fullmatch(_SHORT_ID, call.id):
        return call.id
    # A hash, so that call and result agree and every request gives the same id.
    return sha256(call.id.encode()).hexdigest()[:9]


def _call(call: WireCall, dialect: ChatDialect) -> Json:
    arguments = msgspec.json.encode(call.args).decode()
    called: Json = {
        "id": _id(call, dialect),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    # Only a server that gave one gets it back: a signature is its model's own.
    return {**called, "extra_content": _google(call.signature)} if call.signature else called


def _google(signature: str) -> Json:
    return {"google": {"thought_signature": signature}}


def _details(part: Text | Thinking | WireCall) -> list[Any]:
    """The reasoning of an answer in the form in which a gateway gave it; it wants it back so."""
    proof = part.signature if isinstance(part, Thinking) else ""
    if not proof.startswith(DETAILS_MARK):
        return []
    items: list[Any] = msgspec.json.decode(proof.removeprefix(DETAILS_MARK))
    return items


def _pictures(turn: ModelTurn) -> list[Text | Image]:
    """Pictures and documents that tools gave: a tool message holds only text, so the user shows
    them after the results.
    """
    shown: list[Text | Image] = []
    for outcome in turn.outcomes:
        if outcome.images:
            shown += [Text(text=f"Images from {outcome.call.name}:"), *outcome.images]
    return shown
