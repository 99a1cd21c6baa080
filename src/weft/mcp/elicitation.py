"""Elicitation: what a server asks the user in the middle of a call, as questions.

A form is asked field by field, each with the server's name in front; a program that drives us gets
it whole.  Nothing is asked that looks like a secret, and where there is nobody to ask the answer is
no.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.mcp.tool_pins import without_hidden
from weft.tools import UserQuestion

AskUser: TypeAlias = Callable[[UserQuestion], Awaitable[str | None]]
"""Puts a question to the user; None when there is no answer."""
AskProgram: TypeAlias = Callable[[str, "ElicitationRequest"], Awaitable[Any]]
"""Puts what a server, by its name, asks to the program that drives us; what comes back is not
looked at yet."""
DECLINE: Final = "Decline"
ACCEPT: Final = "Go on"
MOST_FIELDS: Final = 12
MOST_TRIES: Final = 3
MOST_TEXT: Final = 2_000
MOST_CHOICES: Final = 50
MOST_CHOICE: Final = 200
"""Characters of what stands in one line: a choice, or what is taken where nothing is typed."""
_SECRET: Final = re.compile(
    r"pass(word|wd|phrase|code)|passwort|kennwort|contrasena|motdepasse|secret|token|"
    r"(api|private|access|security)key|credential|(seed|recovery)(phrase|code|word)|mnemonic|"
    r"(verification|onetime|security|auth)code|(credit)?card(number|no)"
)
"""In a text without what parts its words."""
_SHORT_SECRET: Final = re.compile(r"\b(pin|cvv?2?|cvc|otp|2fa|iban|ssn)\b")
"""In its words: these stand inside of others as well."""
_PARTING: Final = re.compile(r"[\W_]+")
_ALIKE: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u03bf\u03b1", "aeopcyxisoa"
)
"""Letters of other alphabets that look like ours."""


def _names_secret(text: str) -> bool:
    """Whether a text asks for a secret, however that is spelled."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", without_hidden(text)[:MOST_TEXT])
    # Without accents, and what has several widths as the one that is ours.
    plain = unicodedata.normalize("NFKD", apart).lower().translate(_ALIKE)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    words = _PARTING.sub(" ", plain)
    return bool(_SECRET.search(words.replace(" ", "")) or _SHORT_SECRET.search(words))


class ElicitationAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the server is told."""

    action: Literal["accept", "decline", "cancel"] = msgspec.field()
    content: dict[str, Any] | None = None


DECLINED: Final = ElicitationAnswer(action="decline")


class ElicitationRequest(msgspec.Struct, frozen=True):
    """What a server asks."""

    message: str = ""
    mode: str = "form"
    schema: dict[str, Any] | None = msgspec.field(default=None, name="requestedSchema")
    url: str = ""
    identifier: str = msgspec.field(default="", name="elicitationId")

    @property
    def may_be_asked(self) -> bool:
        """Nothing of it is a secret, or looks like what it is not."""
        return _is_plain_address(self.url) if self.mode == "url" else self.fields is not None

    @property
    def fields(self) -> dict[str, dict[str, Any]] | None:
        """The fields of its form, by name; None where the user is not to be asked for them."""
        fields = (self.schema or {}).get("properties", {})
        if not isinstance(fields, dict) or len(fields) > MOST_FIELDS:
            return None
        known = {name: field if isinstance(field, dict) else {} for name, field in fields.items()}
        is_secret = any(_is_secret(name, field) for name, field in known.items())
        if is_secret or _names_secret(self.message):
            return None
        return None if any(_choices(field) is None for field in known.values()) else known


async def answer_elicitation(
    params: Any, server: str, ask: AskUser | None, program: AskProgram | None = None
) -> ElicitationAnswer:
    """The user's answer to what a server asks; a no where it cannot be asked."""
    try:
        read = msgspec.convert(params, ElicitationRequest)
    except msgspec.ValidationError:
        return DECLINED
    said = without_hidden(read.message)[:MOST_TEXT].strip()
    request = msgspec.structs.replace(read, message=said)
    if not request.may_be_asked:
        return DECLINED
    if program is not None:
        return _read_answer(await program(server, request), request)
    if ask is None:
        return DECLINED
    head = f"The MCP server {server} asks: {said}"
    if request.mode == "url":
        return await _at_address(head, request.url, ask)
    return await _by_form(head, request, ask)


_Plain: TypeAlias = str | bool | int | float | list[str] | None


class _ProgramAnswer(msgspec.Struct, forbid_unknown_fields=True):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, _Plain] | None = None


def _read_answer(said: Any, request: ElicitationRequest) -> ElicitationAnswer:
    """A program's answer; what is not wholly an answer to what was asked is a no."""
    try:
        found = msgspec.convert(said, _ProgramAnswer)
    except (msgspec.ValidationError, RecursionError):
        return DECLINED
    if found.action != "accept" or request.mode == "url":
        return ElicitationAnswer(action=found.action)
    content = found.content or {}
    if set(content) - set(request.fields or {}):
        return DECLINED
    return ElicitationAnswer(action="accept", content=content)


def _is_plain_address(url: str) -> bool:
    """Whether an address is one of the web, and shows where it leads: nothing hidden, no letters
    of other alphabets that look like ours, no other name in front of the host's."""
    if re.fullmatch(r"https?://[^\s/\\@?#]+([/?#]\S*)?", url) is None:
        return False
    return url.isascii() and url.isprintable() and len(url) <= MOST_TEXT


async def _at_address(head: str, url: str, ask: AskUser) -> ElicitationAnswer:
    host = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    text = f"{head}\nIt wants you to open this address of {host} in a browser:\n{url}"
    answer = await ask(UserQuestion(text=text, options=(ACCEPT, DECLINE)))
    return ElicitationAnswer(action="accept") if answer == ACCEPT else DECLINED


async def _by_form(head: str, request: ElicitationRequest, ask: AskUser) -> ElicitationAnswer:
    known = request.fields or {}
    if not known:
        answer = await ask(UserQuestion(text=head, options=(ACCEPT, DECLINE)))
        return ElicitationAnswer(action="accept", content={}) if answer == ACCEPT else DECLINED
    listed = (request.schema or {}).get("required")
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
    return any(isinstance(word, str) and _names_secret(word) for word in words)
