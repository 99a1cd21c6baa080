"""Gemini's rules for `generateContent`.

From the API reference and the guides on function calling, thinking, thought signatures and
structured output, and from the error messages that the service is known to answer with ("Please
ensure that the number of function response parts is equal to the number of function call parts of
the function call turn").
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from tests.support.legality.efforts import accepted
from tests.support.legality.rules import PDF, PICTURES, Report, check_schema, is_base64, is_blank

_TOP = (
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
)
_TOP_LATER = ("cachedContent",)
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_DATA = ("text", "inlineData", "functionCall", "functionResponse", "fileData")
_BESIDE = ("thought", "thoughtSignature")
_KEYWORDS = {
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "allOf",
    "properties",
    "required",
    "propertyOrdering",
    "nullable",
}
_SKIP = "skip_thought_signature_validator"


def validate_gemini(
    body: dict[str, Any], *, model: str = "gemini-2.5-flash", signed: Collection[str] | None = None
) -> list[str]:
    """Every rule that the body breaks; the model stands in the address, so it is handed in."""
    report = Report()
    report.known_keys(body, (*_TOP, *_TOP_LATER), "body")
    found = re.search(r"gemini-(\d+)", model)
    is_three = found is not None and int(found[1]) >= 3
    _settings(report, body, model, is_three)
    _tools(report, body)
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        report.say("contents", "contents is not specified")
        return report.found
    for number, content in enumerate(contents):
        _content(report, content, f"contents[{number}]", signed)
    _order(report, contents)
    if is_three:
        _signatures(report, contents)
    return report.found


def _settings(report: Report, body: dict[str, Any], model: str, is_three: bool) -> None:
    instruction = body.get("systemInstruction")
    if instruction is not None:
        parts = instruction.get("parts") or [{}]
        is_text = all(not is_blank(part.get("text")) for part in parts)
        report.need(is_text, "systemInstruction", "must hold text")
    config = body.get("generationConfig", {})
    report.need(0 <= config.get("temperature", 0) <= 2, "temperature", "must be between 0 and 2")
    report.need(len(config.get("stopSequences", [])) <= 5, "stopSequences", "at most 5")
    report.need(config.get("maxOutputTokens", 1) >= 1, "maxOutputTokens", "must be positive")
    if "responseJsonSchema" in config or "responseSchema" in config:
        is_json = config.get("responseMimeType") == "application/json"
        report.need(is_json, "generationConfig", "a schema needs the JSON mime type")
        _schema(report, config.get("responseJsonSchema"), "responseJsonSchema")
    if config.get("responseMimeType") == "application/json" and body.get("tools"):
        report.need(is_three, "generationConfig", "function calling with JSON is unsupported")
    _thinking(report, config.get("thinkingConfig") or {}, model, is_three)


def _thinking(report: Report, thinking: dict[str, Any], model: str, is_three: bool) -> None:
    both = "thinkingLevel" in thinking and "thinkingBudget" in thinking
    report.need(not both, "thinkingConfig", "either a level or a budget")
    if "thinkingLevel" in thinking:
        report.need(is_three, "thinkingConfig", "thinking level is not supported for this model")
        levels = accepted("google", model)
        report.need(thinking["thinkingLevel"] in levels, "thinkingConfig", "unknown level")
    if "thinkingBudget" in thinking:
        budget = thinking["thinkingBudget"]
        least, most = (128, 32_768) if "pro" in model else (0, 24_576)
        is_legal = budget == -1 or least <= budget <= most
        report.need(is_legal, "thinkingConfig", "budget out of range for this model")


def _tools(report: Report, body: dict[str, Any]) -> None:
    names = []
    for tool in body.get("tools", []):
        declared = tool.get("functionDeclarations")
        report.need(declared, "tools", "no function declarations")
        for function in declared or []:
            name = function.get("name")
            names.append(name)
            report.need(isinstance(name, str) and _NAME.fullmatch(name), "tools", "bad name")
            report.need(isinstance(function.get("description"), str), "tools", "no description")
            both = "parameters" in function and "parametersJsonSchema" in function
            report.need(not both, "tools", "parameters and parametersJsonSchema exclude each other")
            schema = function.get("parametersJsonSchema", function.get("parameters"))
            if schema is not None:
                _schema(report, schema, f"tools.{name}")
                report.need(schema.get("properties"), f"tools.{name}", "object without properties")
    report.unique(names, "tools", "name")


def _schema(report: Report, schema: Any, place: str) -> None:
    check_schema(report, schema, place)
    _keywords(report, schema, place)


def _keywords(report: Report, schema: Any, place: str) -> None:
    if not isinstance(schema, dict):
        return
    for key in sorted(set(schema) - _KEYWORDS):
        report.say(place, f"unknown schema keyword {key!r}")
    report.need(not isinstance(schema.get("type"), list), place, "type may not be a list")
    for value in schema.get("properties", {}).values():
        _keywords(report, value, place)
    _keywords(report, schema.get("items"), place)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for branch in schema.get(key, []):
            _keywords(report, branch, place)


def _content(
    report: Report, content: dict[str, Any], place: str, signed: Collection[str] | None
) -> None:
    role = content.get("role")
    report.need(role in ("user", "model"), place, f"role must be user or model, not {role!r}")
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        report.say(place, "parts must not be empty")
        return
    for number, part in enumerate(parts):
        where = f"{place}.parts[{number}]"
        report.known_keys(part, (*_DATA, *_BESIDE), where)
        kinds = [key for key in _DATA if key in part]
        if not report.need(len(kinds) == 1, where, "exactly one kind of data"):
            continue
        _part(report, part, kinds[0], role, where)
        signature = part.get("thoughtSignature")
        if signature is not None:
            report.need(role == "model", where, "a signature stands on the model's parts")
            if signed is not None:
                is_known = signature in signed or signature == _SKIP
                report.need(is_known, where, "thought signature is not valid")


def _part(report: Report, part: dict[str, Any], kind: str, role: Any, place: str) -> None:
    value = part[kind]
    match kind:
        case "text":
            report.need(not is_blank(value), place, "empty text parameter")
        case "inlineData":
            report.need(value.get("mimeType") in (*PICTURES, PDF), place, "unsupported MIME type")
            report.need(is_base64(value.get("data")), place, "data is not base64")
        case "functionCall":
            report.need(role == "model", place, "only the model calls functions")
            name = value.get("name")
            report.need(isinstance(name, str) and _NAME.fullmatch(name), place, "bad name")
            report.need(isinstance(value.get("args"), dict), place, "args must be an object")
        case "functionResponse":
            report.need(role == "user", place, "function responses are the user's")
            is_object = isinstance(value.get("response"), dict)
            report.need(is_object, place, "response must be an object")


def _order(report: Report, contents: list[Any]) -> None:
    report.need(contents[0].get("role") == "user", "contents[0]", "must be the user's")
    report.need(contents[-1].get("role") == "user", "contents", "must end with the user")
    ids = [
        call["id"] for content in contents for call in _of(content, "functionCall") if "id" in call
    ]
    report.unique(ids, "contents", "call id")
    for number, content in enumerate(contents):
        place = f"contents[{number}]"
        calls = _of(content, "functionCall")
        before = contents[number - 1] if number else {}
        if number and content.get("role") == before.get("role"):
            report.say(place, "two contents of one role in a row")
        given = _of(content, "functionResponse")
        called = _of(before, "functionCall")
        if given or called:
            same = [(c.get("name"), c.get("id")) for c in called]
            answered = [(r.get("name"), r.get("id")) for r in given]
            report.need(
                same == answered, place, "function responses must equal the calls right before"
            )
        opening = content.get("parts", [])[: len(given)]
        if given and not all("functionResponse" in part for part in opening):
            report.say(place, "function responses come first")
        if calls and number + 1 == len(contents):
            report.say(place, "calls without responses")


def _of(content: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    parts = content.get("parts") or []
    return [part[kind] for part in parts if isinstance(part, dict) and kind in part]


def _signatures(report: Report, contents: list[Any]) -> None:
    """In the running turn the first call of each step carries its signature."""
    starts = [
        number
        for number, content in enumerate(contents)
        if content.get("role") == "user" and not _of(content, "functionResponse")
    ]
    for number in range(starts[-1] if starts else 0, len(contents)):
        calls = [part for part in contents[number].get("parts") or [] if "functionCall" in part]
        if calls:
            report.need(
                calls[0].get("thoughtSignature"),
                f"contents[{number}]",
                "function call is missing a thought_signature",
            )
