"""The Messages API's rules.

From the API reference and the guides on tool use, extended and adaptive thinking, prompt caching
and structured outputs, and from the error messages that the service is known to answer with.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from tests.support.legality.efforts import accepted
from tests.support.legality.rules import (
    PDF,
    PICTURES,
    Report,
    check_plain,
    check_schema,
    is_base64,
    is_blank,
    objects_in,
)

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_TOP = (
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
    "cache_control",
)
_THOUGHTS = ("thinking", "redacted_thinking")
_VERSION = re.compile(r"claude-[a-z]+-(\d+)-(\d{1,2})(?!\d)|claude-[a-z]+-(\d+)$")


def validate_anthropic(body: dict[str, Any], *, signed: Collection[str] | None = None) -> list[str]:
    """Every rule that the body breaks.

    `signed`: the only signatures that this model would know as its own.
    """
    report = Report()
    report.known_keys(body, _TOP, "body")
    report.need(not is_blank(body.get("model")), "model", "missing")
    limit = body.get("max_tokens")
    report.need(isinstance(limit, int) and limit >= 1, "max_tokens", "must be a positive integer")
    _settings(report, body)
    _system(report, body.get("system"))
    _tools(report, body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        report.say("messages", "at least one message is required")
        return report.found
    _order(report, messages)
    for number, message in enumerate(messages):
        _message(report, message, f"messages.{number}", signed)
    _pairs(report, messages)
    _thoughts(report, body, messages)
    _last(report, body, messages)
    _cache(report, body)
    if not body.get("tools") and any(b["type"] == "tool_use" for b in _all_blocks(messages)):
        report.say("tools", "requests with tool_use blocks must define tools")
    return report.found


def _version(model: str) -> tuple[int, int]:
    found = _VERSION.search(model)
    if not found:
        return (0, 0)
    return (int(found[1]), int(found[2])) if found[1] else (int(found[3]), 0)


def _settings(report: Report, body: dict[str, Any]) -> None:
    version = _version(str(body.get("model")))
    warmth = body.get("temperature")
    if warmth is not None:
        report.need(0 <= warmth <= 1, "temperature", "must be between 0 and 1")
        report.need(version < (4, 7), "temperature", "this model takes no sampling parameters")
    for stop in body.get("stop_sequences", []):
        report.need(not is_blank(stop), "stop_sequences", "each must contain non-whitespace")
    thinking = body.get("thinking") or {}
    kind = thinking.get("type")
    if thinking:
        kinds = ("enabled", "adaptive", "disabled", "between_tools")
        report.need(kind in kinds, "thinking.type", "unknown")
        shown = thinking.get("display", "omitted")
        report.need(shown in ("summarized", "omitted"), "thinking.display", "unknown")
    _off(report, str(body.get("model")), version, kind)
    if kind == "enabled":
        budget = thinking.get("budget_tokens", 0)
        report.need(budget >= 1024, "thinking.budget_tokens", "must be at least 1024")
        report.need(
            budget < body.get("max_tokens", 0), "max_tokens", "must be greater than the budget"
        )
        report.need(version < (4, 7), "thinking.type", "this model knows only adaptive thinking")
    if kind == "adaptive":
        report.need("budget_tokens" not in thinking, "thinking.budget_tokens", "extra input")
        report.need(version == (0, 0) or version >= (4, 6), "thinking.type", "not on this model")
    if kind in ("enabled", "adaptive"):
        report.need(warmth in (None, 1), "temperature", "may only be 1 when thinking is enabled")
        choice = (body.get("tool_choice") or {}).get("type")
        report.need(choice in (None, "auto", "none"), "tool_choice", "cannot force while thinking")
    _output(report, body.get("output_config") or {}, accepted("anthropic", str(body.get("model"))))


def _off(report: Report, model: str, version: tuple[int, int], kind: Any) -> None:
    """Which models can turn thinking off, and how."""
    always = "fable" in model or "mythos" in model or ("opus" in model and version >= (5, 5))
    if kind == "disabled":
        report.need(not always, "thinking.type.disabled", "is not supported for this model")
        is_other = "sonnet" in model and version >= (5, 5)
        report.need(not is_other, "thinking.type.disabled", "send between_tools instead")
    if kind == "between_tools":
        is_known = "sonnet" in model and version >= (5, 5)
        report.need(is_known, "thinking.type.between_tools", "is not supported for this model")


def _output(report: Report, config: dict[str, Any], efforts: tuple[str, ...]) -> None:
    report.known_keys(config, ("effort", "format"), "output_config")
    if "effort" in config:
        report.need(config["effort"] in efforts, "output_config.effort", "not on this model")
    if "format" in config:
        form = config["format"]
        report.need(form.get("type") == "json_schema", "output_config.format", "unknown type")
        check_schema(report, form.get("schema"), "output_config.format.schema")
        check_plain(report, form.get("schema"), "output_config.format.schema")
        for found in objects_in(form.get("schema")):
            report.need(
                found.get("additionalProperties") is False,
                "output_config.format.schema",
                "additionalProperties must be false",
            )


def _system(report: Report, system: Any) -> None:
    if system is None or (isinstance(system, str) and system.strip()):
        return
    if not isinstance(system, list):
        report.say("system", "must be text or a list of text blocks")
        return
    for block in system:
        is_text = block.get("type") == "text" and not is_blank(block.get("text"))
        report.need(is_text, "system", "text content blocks must be non-empty")


def _tools(report: Report, body: dict[str, Any]) -> None:
    tools = body.get("tools", [])
    for number, tool in enumerate(tools):
        place = f"tools.{number}"
        name = tool.get("name")
        is_legal = isinstance(name, str) and _NAME.fullmatch(name)
        report.need(is_legal, place, "name must match ^[a-zA-Z0-9_-]{1,128}$")
        schema = tool.get("input_schema")
        check_schema(report, schema, f"{place}.input_schema")
        if isinstance(schema, dict):
            top = {"oneOf", "anyOf", "allOf"} & set(schema)
            report.need(not top, place, "input_schema has oneOf, allOf or anyOf at the top level")
    report.unique([tool.get("name") for tool in tools], "tools", "name")
    choice = body.get("tool_choice")
    if choice is not None:
        report.need(tools, "tool_choice", "may only be specified while providing tools")


def _order(report: Report, messages: list[Any]) -> None:
    report.need(messages[0].get("role") == "user", "messages.0", "first message must be the user's")
    for number, message in enumerate(messages):
        role = message.get("role")
        report.need(role in ("user", "assistant"), f"messages.{number}", f"unknown role {role!r}")
        if number and role == messages[number - 1].get("role"):
            report.say(f"messages.{number}", "roles must alternate")


def _message(
    report: Report, message: dict[str, Any], place: str, signed: Collection[str] | None
) -> None:
    report.known_keys(message, ("role", "content"), place)
    content = message.get("content")
    if isinstance(content, str):
        report.need(not is_blank(content), place, "all messages must have non-empty content")
        return
    if not isinstance(content, list) or not content:
        report.say(place, "all messages must have non-empty content")
        return
    allowed = (
        ("text", "tool_use", *_THOUGHTS)
        if message.get("role") == "assistant"
        else ("text", "image", "document", "tool_result")
    )
    for number, block in enumerate(content):
        where = f"{place}.content.{number}"
        if report.need(block.get("type") in allowed, where, f"no {block.get('type')!r} here"):
            _block(report, block, where, signed)
    kinds = [block.get("type") for block in content]
    report.need(kinds[-1] not in _THOUGHTS, place, "the final block cannot be thinking")
    after = kinds[kinds.index("tool_use") :] if "tool_use" in kinds else []
    # Reasoning may stand between calls, and then the whole message keeps its order.
    if not any(kind in _THOUGHTS for kind in after):
        is_alone = all(kind == "tool_use" for kind in after)
        report.need(is_alone, place, "only tool_use may follow tool_use")
    results = [i for i, kind in enumerate(kinds) if kind == "tool_result"]
    report.need(results == list(range(len(results))), place, "tool_result blocks must come first")


def _block(
    report: Report, block: dict[str, Any], place: str, signed: Collection[str] | None
) -> None:
    match block["type"]:
        case "text":
            report.need(not is_blank(block.get("text")), place, "text must contain non-whitespace")
        case "image":
            source = block.get("source", {})
            report.need(source.get("media_type") in PICTURES, place, "media type not supported")
            report.need(is_base64(source.get("data")), place, "image data is not base64")
        case "document":
            source = block.get("source", {})
            report.need(source.get("media_type") == PDF, place, "media type not supported")
            report.need(is_base64(source.get("data")), place, "document data is not base64")
            title = block.get("title")
            report.need(title is None or 1 <= len(title) <= 500, place, "bad title")
        case "tool_use":
            wire_id = block.get("id")
            is_legal = isinstance(wire_id, str) and _ID.fullmatch(wire_id)
            report.need(is_legal, place, "id must match ^[a-zA-Z0-9_-]+$")
            name = block.get("name")
            report.need(isinstance(name, str) and _NAME.fullmatch(name), place, "bad tool name")
            report.need(isinstance(block.get("input"), dict), place, "input must be an object")
        case "tool_result":
            _result(report, block, place)
        case "thinking":
            signature = block.get("signature")
            report.need(signature, place, "thinking needs its signature")
            report.need(isinstance(block.get("thinking"), str), place, "thinking text is missing")
            if signed is not None:
                report.need(signature in signed, place, "invalid signature in thinking block")
        case "redacted_thinking":
            data = block.get("data")
            report.need(data, place, "redacted thinking needs its data")
            if signed is not None:
                report.need(data in signed, place, "invalid data in redacted_thinking block")


def _result(report: Report, block: dict[str, Any], place: str) -> None:
    report.need(isinstance(block.get("tool_use_id"), str), place, "tool_use_id is missing")
    content = block.get("content", "")
    if isinstance(content, str):
        return
    for inner in content:
        is_text = inner.get("type") == "text"
        report.need(
            is_text or not block.get("is_error"),
            place,
            "all content must be type 'text' if 'is_error' is true",
        )
        is_known = inner.get("type") in ("text", "image", "document")
        if report.need(is_known, place, "no such block in a result"):
            _block(report, inner, place, None)


def _all_blocks(messages: list[Any]) -> list[dict[str, Any]]:
    return [block for message in messages for block in _blocks(message)]


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [block for block in content if isinstance(block, dict) and "type" in block]


def _pairs(report: Report, messages: list[Any]) -> None:
    ids = [block.get("id") for block in _all_blocks(messages) if block["type"] == "tool_use"]
    report.unique(ids, "messages", "tool_use id")
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        before = _blocks(messages[number - 1]) if number else []
        called = [block.get("id") for block in before if block["type"] == "tool_use"]
        given = [b.get("tool_use_id") for b in _blocks(message) if b["type"] == "tool_result"]
        for wire_id in given:
            report.need(wire_id in called, place, f"unexpected tool_use_id {wire_id!r}")
        report.unique(given, place, "tool_result for")
        for wire_id in called:
            report.need(wire_id in given, place, f"tool_use {wire_id!r} has no tool_result")
    if any(block["type"] == "tool_use" for block in _blocks(messages[-1])):
        report.say("messages", "tool_use ids were found without tool_result blocks after them")


def _thoughts(report: Report, body: dict[str, Any], messages: list[Any]) -> None:
    kind = (body.get("thinking") or {}).get("type")
    if kind not in ("enabled", "adaptive", "between_tools"):
        for block in _all_blocks(messages):
            report.need(block["type"] not in _THOUGHTS, "messages", "thinking while it is off")
        return
    if kind != "enabled":
        return
    running: list[dict[str, Any]] = []
    for message in reversed(messages):
        is_result = any(block["type"] == "tool_result" for block in _blocks(message))
        if message.get("role") == "user" and not is_result:
            break
        if message.get("role") == "assistant":
            running.append(message)
    if running:
        first = _blocks(running[-1])
        opens = bool(first) and first[0]["type"] in _THOUGHTS
        report.need(opens, "messages", "expected thinking before the running tool calls")


def _last(report: Report, body: dict[str, Any], messages: list[Any]) -> None:
    last = messages[-1]
    if last.get("role") != "assistant":
        return
    report.need(_version(str(body.get("model"))) < (4, 6), "messages", "prefill is not supported")
    report.need(not body.get("thinking"), "messages", "no prefill while thinking")
    content = last.get("content")
    text = content if isinstance(content, str) else (_blocks(last) or [{}])[-1].get("text", "")
    report.need(text == text.rstrip(), "messages", "final assistant text ends with whitespace")


def _cache(report: Report, body: dict[str, Any]) -> None:
    system = body.get("system") if isinstance(body.get("system"), list) else []
    blocks = [*(system or []), *body.get("tools", []), *_all_blocks(body["messages"])]
    marked = [block for block in blocks if "cache_control" in block]
    report.need(len(marked) <= 4, "cache_control", "a maximum of 4 blocks may carry it")
    for block in marked:
        report.need(block.get("type") not in _THOUGHTS, "cache_control", "not on thinking blocks")
        kind = block["cache_control"].get("type")
        report.need(kind == "ephemeral", "cache_control", "the only type is ephemeral")
