"""Elicitation: what a server asks the user in the middle of a call, as questions.

A form is asked field by field, each with the server's name in front.  Nothing is asked that looks
like a secret, and where there is nobody to ask the answer is no.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.mcp.tool_pins import without_hidden
from weft.tools import UserQuestion

AskUser: TypeAlias = Callable[[UserQuestion], Awaitable[str | None]]
"""Puts a question to the user; None when there is no answer."""
DECLINE: Final = "Decline"
ACCEPT: Final = "Go on"
MOST_FIELDS: Final = 12
MOST_TRIES: Final = 3
MOST_TEXT: Final = 2_000
MOST_CHOICES: Final = 50
MOST_CHOICE: Final = 200
"""Characters of what stands in one line: a choice, or what is taken where nothing is typed."""
_SECRET: Final = re.compile(
    r"pass(word|wd|phrase|code)|secret|token|api.?key|private.?key|credential|\bpin\b|\bcvv?\b|"
    r"seed.?phrase|\botp\b|\b2fa\b",
    re.IGNORECASE,
)


class ElicitationAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the server is told."""

    action: Literal["accept", "decline", "cancel"] = msgspec.field()
    content: dict[str, Any] | None = None


DECLINED: Final = ElicitationAnswer(action="decline")


class _Request(msgspec.Struct):
    message: str = ""
    mode: str = "form"
    schema: dict[str, Any] | None = msgspec.field(default=None, name="requestedSchema")
    url: str = ""


async def answer_elicitation(params: Any, server: str, ask: AskUser | None) -> ElicitationAnswer:
    """The user's answer to what a server asks; a no where it cannot be asked."""
    try:
        request = msgspec.convert(params, _Request)
    except msgspec.ValidationError:
        return DECLINED
    if ask is None:
        return DECLINED
    said = without_hidden(request.message)[:MOST_TEXT].strip()
    head = f"The MCP server {server} asks: {said}"
    if request.mode == "url":
        return await _at_address(head, request.url, ask)
    return await _by_form(head, request.schema or {}, ask)


async def _at_address(head: str, url: str, ask: AskUser) -> ElicitationAnswer:
    plain = without_hidden(url)
    if re.fullmatch(r"https?://[^\s/]\S*", url) is None or plain != url or len(url) > MOST_TEXT:
        return DECLINED
    text = f"{head}\nIt wants you to open this address in a browser:\n{url}"
    answer = await ask(UserQuestion(text=text, options=(ACCEPT, DECLINE)))
    return ElicitationAnswer(action="accept") if answer == ACCEPT else DECLINED


async def _by_form(head: str, schema: dict[str, Any], ask: AskUser) -> ElicitationAnswer:
    fields = schema.get("properties", {})
    if not isinstance(fields, dict) or len(fields) > MOST_FIELDS:
        return DECLINED
    known = {name: field if isinstance(field, dict) else {} for name, field in fields.items()}
    if any(_is_secret(name, field) for name, field in known.items()) or _SECRET.search(head):
        return DECLINED
    if any(_choices(field) is None for field in known.values()):
        return DECLINED
    if not known:
        answer = await ask(UserQuestion(text=head, options=(ACCEPT, DECLINE)))
        return ElicitationAnswer(action="accept", content={}) if answer == ACCEPT else DECLINED
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    content: dict[str, Any] = {}
    for name, field in known.items():
        value = await _asked(head, name, field, ask, is_needed=name in required)
        if value is _NO:
            return DECLINED
        if value is not None:
            content[name] = value
    return ElicitationAnswer(action="accept", content=content)


class _NoAnswer:
    """The user wants to end the form."""


_NO: Final = _NoAnswer()


async def _asked(
    head: str, name: str, field: dict[str, Any], ask: AskUser, *, is_needed: bool
) -> Any:
    """The value of one field; None where it is left out."""
    choices = _choices(field) or {}
    default = field.get("default")
    note = "" if default is None else f" (empty: {_line(default)})"
    for _ in range(MOST_TRIES):
        text = f"{head}\n{_label(name, field)}{note}"
        answer = await ask(UserQuestion(text=text, options=(*choices, DECLINE) if choices else ()))
        if answer is None or answer == DECLINE:
            return _NO
        if not answer.strip():
            if default is not None or not is_needed:
                return default
            continue
        value = _value(answer.strip(), field, choices)
        if value is not None:
            return value
        note = f" (a {_line(field.get('type'))} is needed)"
    return _NO


def _line(value: Any) -> str:
    """A value as it is shown in a line."""
    return " ".join(without_hidden(str(value)[:MOST_TEXT]).split())[:MOST_CHOICE]


def _label(name: str, field: dict[str, Any]) -> str:
    title, about = field.get("title"), field.get("description")
    words = [title if isinstance(title, str) else name, about if isinstance(about, str) else ""]
    return without_hidden(": ".join(word for word in words if word))[:MOST_TEXT]


def _choices(field: dict[str, Any]) -> dict[str, str] | None:
    """The choices of a field, as they are shown and as the server has them; None where the user
    could not tell one from another."""
    found: list[str] = []
    listed, titled = field.get("enum"), field.get("oneOf")
    if field.get("type") == "boolean":
        found = ["yes", "no"]
    elif isinstance(listed, list):
        found = [str(each) for each in listed[:MOST_CHOICES]]
    elif isinstance(titled, list):
        found = [str(each.get("const")) for each in titled[:MOST_CHOICES] if isinstance(each, dict)]
    shown = {_line(each): each for each in found}
    is_plain = len(shown) == len(found) and not {"", DECLINE} & set(shown)
    return shown if is_plain else None


def _value(answer: str, field: dict[str, Any], choices: dict[str, str]) -> Any:
    """What was typed, as the field has it; None when it is none."""
    match field.get("type"):
        case "boolean":
            return {"yes": True, "true": True, "no": False, "false": False}.get(answer.lower())
        case "integer" | "number" as kind:
            try:
                return int(answer) if kind == "integer" else float(answer)
            except ValueError:
                return None
        case "array":
            return [part.strip() for part in answer.split(",")]
    return choices.get(answer) if choices else answer


def _is_secret(name: str, field: dict[str, Any]) -> bool:
    words = (name, field.get("title"), field.get("description"), field.get("format"))
    return any(isinstance(word, str) and _SECRET.search(word) for word in words)
