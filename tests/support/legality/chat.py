"""The Chat Completions rules.

From the API reference and the guide on function calling, and from the error messages that OpenAI
and the stricter of the compatible servers are known to answer with ("messages with role 'tool' must
be a response to …").
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from tests.support.legality.efforts import accepted
from tests.support.legality.rules import (
    NAME,
    Report,
    check_file,
    check_schema,
    check_strict,
    is_blank,
    is_data_url,
    is_object_text,
)

_TOP = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "n",
    "response_format",
    "reasoning_effort",
    "prompt_cache_key",
    "user",
    "store",
    "metadata",
)
_MAX_ID = 40
_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_TOOLS_ONLY = re.compile(r"gpt-(5\.[4-6]|6)(?!\.1-sol|-astra)")


def validate_openai_chat(body: dict[str, Any], *, server: str = "") -> list[str]:
    """Every rule that the body breaks.

    `server` names one with rules of its own (openai, mistral, deepseek).
    """
    report = Report()
    report.known_keys(body, (*_TOP, "thinking") if server == "deepseek" else _TOP, "body")
    _of_server(report, body, server)
    report.need(not is_blank(body.get("model")), "model", "missing")
    _settings(report, body)
    _tools(report, body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        report.say("messages", "empty")
        return report.found
    for number, message in enumerate(messages):
        _message(report, message, f"messages[{number}]")
    _order(report, messages)
    _pairs(report, messages)
    return report.found


def _of_server(report: Report, body: dict[str, Any], server: str) -> None:
    messages = body.get("messages") or []
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    match server:
        case "openai":
            effort = body.get("reasoning_effort")
            if body.get("tools") and _TOOLS_ONLY.match(str(body.get("model"))):
                report.need(effort == "none", "tools", "function calling only without reasoning")
            words = (None, *accepted("openai-chat", str(body.get("model"))))
            report.need(effort in words, "reasoning_effort", "unsupported value")
        case "mistral":
            for call in calls:
                is_legal = _NINE.fullmatch(str(call.get("id")))
                report.need(is_legal, "messages", "must be a-z, A-Z, 0-9, with a length of 9")
            roles = [message.get("role") for message in messages]
            for before, role in pairwise(roles):
                is_fine = (before, role) != ("tool", "user")
                report.need(is_fine, "messages", "unexpected role 'user' after role 'tool'")
        case "deepseek":
            is_on = (body.get("thinking") or {}).get("type") != "disabled"
            for message in messages if is_on else ():
                if message.get("tool_calls"):
                    given = isinstance(message.get("reasoning_content"), str)
                    report.need(given, "messages", "reasoning_content must be passed back")
            form = (body.get("response_format") or {}).get("type")
            report.need(form != "json_schema", "response_format", "this type is unavailable")


def _settings(report: Report, body: dict[str, Any]) -> None:
    both = "max_tokens" in body and "max_completion_tokens" in body
    report.need(not both, "max_tokens", "cannot be set beside max_completion_tokens")
    for key in ("max_tokens", "max_completion_tokens"):
        report.need(body.get(key, 1) >= 1, key, "must be positive")
    report.need(0 <= (body.get("temperature") or 0) <= 2, "temperature", "must be between 0 and 2")
    stop = body.get("stop")
    report.need(not isinstance(stop, list) or 1 <= len(stop) <= 4, "stop", "1 to 4 sequences")
    if "stream_options" in body:
        report.need(body.get("stream"), "stream_options", "only when stream is set")
    efforts = (None, "none", "minimal", "low", "medium", "high", "xhigh", "max")
    report.need(body.get("reasoning_effort") in efforts, "reasoning_effort", "unknown")
    form = body.get("response_format")
    if form and form.get("type") == "json_schema":
        inner = form.get("json_schema", {})
        name = inner.get("name")
        report.need(isinstance(name, str) and NAME.fullmatch(name), "response_format", "bad name")
        check_schema(report, inner.get("schema"), "response_format")
        if inner.get("strict"):
            check_strict(report, inner.get("schema"), "response_format")


def _tools(report: Report, body: dict[str, Any]) -> None:
    if "tools" in body:
        report.need(body["tools"], "tools", "empty array")
    names = []
    for number, tool in enumerate(body.get("tools", [])):
        place = f"tools[{number}]"
        report.need(tool.get("type") == "function", place, "unknown type")
        function = tool.get("function", {})
        name = function.get("name")
        names.append(name)
        report.need(isinstance(name, str) and NAME.fullmatch(name), place, "bad name")
        if "parameters" in function:
            check_schema(report, function["parameters"], f"{place}.parameters")
        if function.get("strict"):
            check_strict(report, function.get("parameters"), f"{place}.parameters")
    report.unique(names, "tools", "name")


def _message(report: Report, message: dict[str, Any], place: str) -> None:
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            report.need(not is_blank(content), place, "empty system message")
        case "user":
            _user(report, content, place)
        case "assistant":
            _assistant(report, message, place)
        case "tool":
            report.need(isinstance(message.get("tool_call_id"), str), place, "no tool_call_id")
            is_text = isinstance(content, str) or (
                isinstance(content, list) and all(part.get("type") == "text" for part in content)
            )
            report.need(is_text, place, "a tool message holds only text")
        case other:
            report.say(place, f"unknown role {other!r}")


def _user(report: Report, content: Any, place: str) -> None:
    if isinstance(content, str):
        report.need(not is_blank(content), place, "empty user message")
        return
    if not isinstance(content, list) or not content:
        report.say(place, "empty user message")
        return
    for part in content:
        match part.get("type"):
            case "text":
                report.need(not is_blank(part.get("text")), place, "empty text part")
            case "image_url":
                address = part.get("image_url", {}).get("url")
                report.need(is_data_url(address), place, "bad image_url")
            case "file":
                check_file(report, part.get("file", {}), place)
            case other:
                report.say(place, f"unknown part {other!r}")


def _assistant(report: Report, message: dict[str, Any], place: str) -> None:
    known = ("role", "content", "tool_calls", "name", "refusal", "reasoning_content")
    report.known_keys(message, known, place)
    calls = message.get("tool_calls")
    content = message.get("content")
    if calls is None:
        report.need(not is_blank(content), place, "content or tool_calls must be set")
        return
    report.need(content is None or not is_blank(content), place, "empty content beside calls")
    report.need(calls, place, "empty array tool_calls")
    for call in calls:
        wire_id = call.get("id")
        is_legal = isinstance(wire_id, str) and 1 <= len(wire_id) <= _MAX_ID
        report.need(is_legal, place, f"a call's id has 1 to {_MAX_ID} characters")
        report.need(call.get("type") == "function", place, "unknown type of call")
        function = call.get("function", {})
        name = function.get("name")
        report.need(isinstance(name, str) and NAME.fullmatch(name), place, "bad function name")
        arguments = function.get("arguments")
        report.need(is_object_text(arguments), place, "arguments are no JSON object")


def _order(report: Report, messages: list[Any]) -> None:
    roles = [message.get("role") for message in messages]
    for number, role in enumerate(roles):
        place = f"messages[{number}]"
        if role in ("system", "developer"):
            report.need(number == 0, place, "the system message comes first")
        elif number and role == roles[number - 1] and role != "tool":
            report.say(place, f"two {role} messages in a row")
        elif role == "tool":
            after = roles[number - 1] if number else None
            report.need(
                after in ("assistant", "tool"), place, f"unexpected role tool after {after}"
            )
    spoken = [role for role in roles if role not in ("system", "developer")]
    report.need(spoken, "messages", "nothing but a system message")
    report.need(spoken[:1] in ([], ["user"]), "messages", "the first word is the user's")
    report.need(
        roles[-1] in ("user", "tool"), "messages", "the last word is the user's or a tool's"
    )


def _pairs(report: Report, messages: list[Any]) -> None:
    ids = [call.get("id") for m in messages for call in m.get("tool_calls") or []]
    report.unique(ids, "messages", "call id")
    open_calls: list[Any] = []
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        if message.get("role") == "tool":
            wire_id = message.get("tool_call_id")
            if wire_id in open_calls:
                open_calls.remove(wire_id)
            else:
                report.say(place, f"no preceding tool call {wire_id!r}")
            continue
        for wire_id in open_calls:
            report.say(place, f"call {wire_id!r} must be followed by its tool message")
        open_calls = [call.get("id") for call in message.get("tool_calls") or []]
    for wire_id in open_calls:
        report.say("messages", f"call {wire_id!r} must be followed by its tool message")
