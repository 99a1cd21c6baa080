"""The Responses API's rules.

From the API reference and the guides on function calling, reasoning and structured outputs, and
from the error messages that the service is known to answer with ("No tool output found for function
call …").
"""

from __future__ import annotations

from collections.abc import Collection
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
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "store",
    "stream",
    "include",
    "reasoning",
    "text",
    "temperature",
    "top_p",
    "max_output_tokens",
    "prompt_cache_key",
    "metadata",
    "truncation",
    "service_tier",
    "user",
    "safety_identifier",
)
_MAX_ID = 64


def validate_openai_responses(
    body: dict[str, Any], *, signed: Collection[str] | None = None
) -> list[str]:
    """Every rule that the body breaks.

    `signed`: the only encrypted reasoning that this model would know.
    """
    report = Report()
    report.known_keys(body, _TOP, "body")
    report.need(not is_blank(body.get("model")), "model", "missing")
    _settings(report, body)
    _tools(report, body)
    items = body.get("input")
    if isinstance(items, str):
        report.need(items, "input", "empty")
        return report.found
    if not isinstance(items, list) or not items:
        report.say("input", "missing")
        return report.found
    for number, item in enumerate(items):
        _item(report, item, f"input[{number}]", body, signed)
    _pairs(report, items)
    _reasoning_order(report, items)
    return report.found


def _reasons(model: str) -> bool:
    return model.startswith(("o1", "o3", "o4", "gpt-5", "gpt-6"))


def _settings(report: Report, body: dict[str, Any]) -> None:
    model = str(body.get("model"))
    if body.get("temperature") is not None:
        report.need(not _reasons(model), "temperature", "unsupported with this model")
        report.need(0 <= body["temperature"] <= 2, "temperature", "must be between 0 and 2")
    if body.get("max_output_tokens") is not None:
        report.need(body["max_output_tokens"] >= 16, "max_output_tokens", "must be at least 16")
    if (reasoning := body.get("reasoning")) is not None:
        report.need(_reasons(model), "reasoning", "unsupported with this model")
        efforts = (None, *accepted("openai", model))
        report.need(reasoning.get("effort") in efforts, "reasoning.effort", "unsupported value")
    if "reasoning.encrypted_content" in body.get("include", []):
        report.need(_reasons(model), "include", "encrypted content is not supported here")
    if len(str(body.get("prompt_cache_key", ""))) > 64:
        report.say("prompt_cache_key", "too long")
    form = (body.get("text") or {}).get("format")
    if form and form.get("type") == "json_schema":
        name = form.get("name")
        report.need(isinstance(name, str) and NAME.fullmatch(name), "text.format", "bad name")
        check_schema(report, form.get("schema"), "text.format.schema")
        if form.get("strict"):
            check_strict(report, form.get("schema"), "text.format.schema")


def _tools(report: Report, body: dict[str, Any]) -> None:
    tools = body.get("tools", [])
    for number, tool in enumerate(tools):
        place = f"tools[{number}]"
        report.need(tool.get("type") == "function", place, "unknown type")
        name = tool.get("name")
        report.need(isinstance(name, str) and NAME.fullmatch(name), place, "bad name")
        check_schema(report, tool.get("parameters"), f"{place}.parameters")
        if tool.get("strict", True):  # strict is what an absent field means
            check_strict(report, tool.get("parameters"), f"{place}.parameters")
    report.unique([tool.get("name") for tool in tools], "tools", "name")


def _item(
    report: Report,
    item: dict[str, Any],
    place: str,
    body: dict[str, Any],
    signed: Collection[str] | None,
) -> None:
    match item.get("type", "message"):
        case "message":
            _message(report, item, place)
        case "function_call":
            _id(report, item, place)
            name = item.get("name")
            report.need(isinstance(name, str) and NAME.fullmatch(name), place, "bad name")
            report.need(
                is_object_text(item.get("arguments")), place, "arguments are no JSON object"
            )
        case "function_call_output":
            _id(report, item, place)
            _output(report, item.get("output"), place)
        case "reasoning":
            proof = item.get("encrypted_content")
            if body.get("store") is False:
                report.need(proof, place, "items are not persisted, encrypted_content is needed")
            report.need(isinstance(item.get("summary"), list), place, "summary is required")
            if signed is not None and proof:
                report.need(proof in signed, place, "the encrypted content could not be verified")
        case other:
            report.say(place, f"unknown type {other!r}")


def _message(report: Report, item: dict[str, Any], place: str) -> None:
    role = item.get("role")
    report.need(role in ("user", "assistant", "system", "developer"), place, f"bad role {role!r}")
    content = item.get("content")
    if isinstance(content, str):
        report.need(not is_blank(content), place, "empty message")
        return
    if not isinstance(content, list) or not content:
        report.say(place, "empty message")
        return
    allowed = (
        ("output_text", "refusal")
        if role == "assistant"
        else ("input_text", "input_image", "input_file")
    )
    for part in content:
        if not report.need(part.get("type") in allowed, place, f"no {part.get('type')!r} here"):
            continue
        if part["type"] == "input_image":
            report.need(is_data_url(part.get("image_url")), place, "bad image_url")
        elif part["type"] == "input_file":
            check_file(report, part, place)
        else:
            report.need(not is_blank(part.get("text", part.get("refusal"))), place, "empty text")


def _id(report: Report, item: dict[str, Any], place: str) -> None:
    wire_id = item.get("call_id")
    is_legal = isinstance(wire_id, str) and 1 <= len(wire_id) <= _MAX_ID
    report.need(is_legal, place, f"call_id must be a string of at most {_MAX_ID} characters")


def _output(report: Report, output: Any, place: str) -> None:
    if isinstance(output, str):
        return
    if not isinstance(output, list) or not output:
        report.say(place, "output is missing")
        return
    for part in output:
        kind = part.get("type")
        if kind == "input_image":
            report.need(is_data_url(part.get("image_url")), place, "bad image_url")
        elif kind == "input_file":
            check_file(report, part, place)
        else:
            report.need(kind == "input_text", place, f"no {kind!r} in an output")


def _pairs(report: Report, items: list[Any]) -> None:
    calls = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    report.unique(calls, "input", "call_id")
    open_calls: list[Any] = []
    answered: list[Any] = []
    for number, item in enumerate(items):
        place = f"input[{number}]"
        kind = item.get("type", "message")
        if kind == "function_call":
            open_calls.append(item.get("call_id"))
        elif kind == "function_call_output":
            wire_id = item.get("call_id")
            if wire_id in open_calls:
                open_calls.remove(wire_id)
            elif wire_id in answered:
                report.say(place, f"a second output for call {wire_id!r}")
            else:
                report.say(place, f"no tool call found for function call output {wire_id!r}")
            answered.append(wire_id)
        elif kind == "message" and item.get("role") != "assistant":
            for wire_id in open_calls:
                report.say(place, f"no tool output found for function call {wire_id!r}")
            open_calls = []
    for wire_id in open_calls:
        report.say("input", f"no tool output found for function call {wire_id!r}")


def _reasoning_order(report: Report, items: list[Any]) -> None:
    for number, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        following = items[number + 1] if number + 1 < len(items) else {}
        kind = following.get("type", "message" if "role" in following else None)
        is_own = kind in ("function_call", "reasoning") or following.get("role") == "assistant"
        report.need(is_own, f"input[{number}]", "reasoning without its required following item")
