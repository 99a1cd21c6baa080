"""Botocore's own model of Bedrock's Converse as a judge, and the documented rules besides."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib import import_module
from typing import Any

Json = dict[str, Any]
_DOCUMENT_NAME = re.compile(r"[a-zA-Z0-9()\[\]-]+(?: [a-zA-Z0-9()\[\]-]+)*")


@cache
def converse_operation() -> Any:
    """`ConverseStream`, as botocore describes it."""
    loader = import_module("botocore.loaders").create_loader()
    described = loader.load_service_model("bedrock-runtime", "service-2")
    return import_module("botocore.model").ServiceModel(described).operation_model("ConverseStream")


def as_botocore_has_it(value: Any) -> Any:
    """The body as a caller of botocore writes it: content as bytes, not base64."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(inner, validate=True)
            if name in ("bytes", "redactedContent")
            else as_botocore_has_it(inner)
            for name, inner in value.items()
        }
    return [as_botocore_has_it(each) for each in value] if isinstance(value, list) else value


def converse_misfits(body: Json) -> str:
    """What botocore has against a request; empty for nothing."""
    given = {"modelId": "m", **as_botocore_has_it(body)}
    validator = import_module("botocore.validate").ParamValidator()
    return str(validator.validate(given, converse_operation().input_shape).generate_report())


def converse_rules(body: Json, signed: Collection[str] | None = None) -> list[str]:
    """Which documented rules a request breaks that no shape can say."""
    messages = body["messages"]
    found = [*_order(messages), *_calls(messages)]
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        found += [f"{where}: {wrong}" for wrong in _content(message, signed)]
    declared = {each["toolSpec"]["name"] for each in body.get("toolConfig", {}).get("tools", ())}
    called = {block["toolUse"]["name"] for block in _blocks(messages) if "toolUse" in block}
    if called and not declared:
        found.append("toolConfig: calls without declared tools")
    return found


def _blocks(messages: list[Json]) -> Iterator[Json]:
    for message in messages:
        for block in message["content"]:
            yield block
            yield from block.get("toolResult", {}).get("content", ())


def _order(messages: list[Json]) -> list[str]:
    roles = [message["role"] for message in messages]
    expected = ["user", "assistant"] * len(roles)
    found = [] if roles == expected[: len(roles)] else ["messages: the roles do not alternate"]
    return found + (["messages: the last one is not the user's"] if roles[-1:] != ["user"] else [])


def _calls(messages: list[Json]) -> list[str]:
    """Each call is answered once, in the message behind it."""
    found: list[str] = []
    waiting: list[str] = []
    for place, message in enumerate(messages):
        results = [
            block["toolResult"]["toolUseId"]
            for block in message["content"]
            if "toolResult" in block
        ]
        if sorted(results) != sorted(waiting):
            found.append(f"messages[{place}]: results {results} for the calls {waiting}")
        called = [
            block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block
        ]
        if called and message["role"] == "user":
            found.append(f"messages[{place}]: a call of the user")
        if len(set(called)) != len(called):
            found.append(f"messages[{place}]: two calls with one id")
        waiting = called
    return found


def _content(message: Json, signed: Collection[str] | None) -> Iterator[str]:
    blocks = list(_blocks([message]))
    if not message["content"]:
        yield "nothing in it"
    if any("text" in block and not block["text"].strip() for block in message["content"]):
        yield "blank text"
    if "reasoningContent" in (message["content"] or [{}])[-1]:
        yield "reasoning at its end"
    if message["role"] == "user" and any("reasoningContent" in block for block in blocks):
        yield "reasoning of the user"
    names = [block["document"]["name"] for block in blocks if "document" in block]
    if len(set(names)) != len(names):
        yield "two documents of one name"
    if any(not _DOCUMENT_NAME.fullmatch(name) for name in names):
        yield f"a document's name with signs that are not allowed: {names}"
    if names and not any("text" in block for block in message["content"]):
        yield "documents without a text"
    for block in blocks:
        proof = block.get("reasoningContent", {}).get("reasoningText", {}).get("signature", "")
        if signed is not None and proof not in signed:
            yield f"reasoning that this model did not sign: {proof!r}"
