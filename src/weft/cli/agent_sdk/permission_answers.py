"""The program's answer to a request for permission: read whole, or refused whole.

What is not a clear yes is a no.  What an answer says besides (another input, updated permissions,
an interrupt) is carried out, or the answer is refused with a sentence and the call denied: a field
that is passed over in silence would let through what its sender meant to change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from weft.errors import UsageError
from weft.events import PermissionAction, PermissionRequest
from weft.permissions import (
    MODES,
    PermissionRule,
    Verdict,
    our_tool_name,
    read_rule,
    rule_problem,
)
from weft.protocol.agent_sdk_dialect import OF_CHILD, ToolDialect
from weft.protocol.session_options import PERMISSION_MODES

_ACTIONS: Final[dict[str, PermissionAction]] = {
    "allow": "allow_once",
    "allow_turn": "allow_turn",
    "allow_always": "allow_always",
}
SESSION: Final = "session"
"""The only destination of updated permissions that there is here."""


class PendingRequest(NamedTuple):
    """A request that the other side was sent."""

    request: PermissionRequest
    args: Mapping[str, Any]
    """The input that it is about, in our names."""


class ProgramAnswer(NamedTuple):
    """What an answer comes to."""

    action: PermissionAction
    meta: dict[str, Any]
    """As `respond_to_permission` takes it."""
    mode: str = ""
    """The SDK's or our name of a permission mode that is to be set first."""


# A field that is misspelled or new would be passed over: `updated_input` is not `updatedInput`.
class _RuleValue(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    tool_name: str
    rule_content: str | None = None


class _Update(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    destination: str | None = None
    behavior: Literal["allow", "deny", "ask"] = "allow"
    rules: tuple[_RuleValue, ...] = ()
    mode: str = ""
    directories: tuple[str, ...] = ()


class _Response(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    behavior: str = ""
    message: str | None = None
    updated_input: dict[str, Any] | None = None
    interrupt: bool | None = None
    updated_permissions: tuple[_Update, ...] | None = None
    tool_use_id: str | None = msgspec.field(default=None, name="toolUseID")


def read_answer(
    response: Mapping[str, Any], asked: PendingRequest, dialect: ToolDialect
) -> ProgramAnswer:
    """What the other side says.

    Raises:
        UsageError: it cannot be understood, or asks for what there is not; the call is to be denied
            with this sentence.
    """
    try:
        given = msgspec.convert(response, _Response)
    except msgspec.ValidationError as error:
        raise UsageError(f"the answer to the permission request is not right: {error}") from error
    # What is missing, misspelled or new is a no.
    action = _ACTIONS.get(given.behavior, "deny")
    if given.interrupt and action != "deny":
        raise UsageError("the answer allows the call and interrupts the turn; say one of them")
    rules, mode = _updates(given.updated_permissions or (), asked)
    meta: dict[str, Any] = {
        **({"reason": given.message} if given.message else {}),
        **({"interrupt": True} if given.interrupt else {}),
        **({"rules": rules} if rules else {}),
    }
    if action != "deny" and given.updated_input is not None:
        args = dialect.args(asked.request.tool_name, asked.args, given.updated_input)
        # SDKs send the input back unchanged with every yes; only a changed one has to be judged
        # again.
        if args != asked.args:
            meta["input"] = args
    # A grant for the turn or session is bound to what was shown; another input was shown to no one.
    if "input" in meta and action != "allow_once":
        raise UsageError(
            f"{given.behavior!r} covers only what was asked about; a changed input is allowed once"
        )
    return ProgramAnswer(action, meta, mode)


def suggestions(asked: PendingRequest, dialect: ToolDialect) -> list[dict[str, Any]]:
    """What the other side may send back to be asked less: exactly this, for the session."""
    request = asked.request
    # A rule is for the session that asks: an agent's grant belongs to the agent's own session.
    if not request.always_pattern or request.child is not None:
        return []
    rule = {"toolName": dialect.tool(request.tool_name), "ruleContent": request.tool_path}
    return [{"type": "addRules", "rules": [rule], "behavior": "allow", "destination": SESSION}]


def _updates(
    updates: Sequence[_Update], asked: PendingRequest
) -> tuple[tuple[PermissionRule, ...], str]:
    """The rules that updated permissions add, and the mode that they set."""
    rules: list[PermissionRule] = []
    mode = ""
    for update in updates:
        destination = update.destination or SESSION
        if destination != SESSION or update.type not in ("addRules", "setMode"):
            raise UsageError(
                f"updatedPermissions: {update.type!r} for {destination!r} is not supported here; "
                f"there are 'addRules' and 'setMode' for {SESSION!r}"
            )
        if update.type == "setMode":
            mode = _mode(update.mode)
            continue
        for value in update.rules:
            rules += _rules(update.behavior, value, asked)
    return tuple(rules), mode


def _rules(verdict: Verdict, value: _RuleValue, asked: PendingRequest) -> Sequence[PermissionRule]:
    content = value.rule_content or ""
    tool = asked.request.tool_name.rpartition(OF_CHILD)[2]
    if verdict == "allow" and (our_tool_name(value.tool_name), content) == (
        tool,
        asked.request.tool_path,
    ):
        # Our own suggestion: this very target, whatever letters it is made of.
        exact = PermissionRule(
            verdict=verdict, tool=tool, pattern=content, source=SESSION, is_exact=True
        )
        return (exact,)
    text = f"{value.tool_name}({content})" if content else value.tool_name
    # A rule that would match less than its author means is refused, never narrowed in silence.
    if why := rule_problem(text, tools=[tool]):
        raise UsageError(f"updatedPermissions: {why}")
    # As in the settings: the names are those of Claude Code, and `Edit(x)` means every way to
    # change x.
    return read_rule(verdict, text, source=SESSION, home=os.path.expanduser("~"))


def _mode(name: str) -> str:
    """The name of a mode that there is; it is set only when the whole answer is fine."""
    if mode_of(name) not in MODES:
        raise UsageError(f"updatedPermissions: there is no permission mode {name!r}")
    return name


def mode_of(name: str) -> str:
    """Our name of a permission mode."""
    return PERMISSION_MODES.get(name, name)
