"""Session options: what a program or a command line asks of a session, and how it is applied.

Every edge that starts or resumes sessions reads its own input (flags, JSON) into `SessionOptions`;
what the options mean for a new, a stored or a forked session is decided here, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from weft.errors import UsageError
from weft.ids import SessionId
from weft.messages import parse_model_name
from weft.version import __version__

if TYPE_CHECKING:  # a caller has them loaded; here they would cost start-up time
    from weft.api import Session, SessionManager

SPOKEN_VERSION: Final = f"2.1.326 (Weft {__version__})"
"""The version of Claude Code whose lines are spoken: readers refuse or warn of older ones."""

PERMISSION_MODES: Final = {
    "acceptEdits": "accept_edits",
    "bypassPermissions": "bypass",
    "dontAsk": "default",
}
"""The Agent SDK's names of modes, and ours.  `dontAsk` also denies what would have to be asked."""


class SessionOptions(msgspec.Struct, frozen=True):
    """The options of a session; None where the caller gave none."""

    model: str | None
    effort: str | None
    permission_mode: str | None
    asking: Literal["wait", "no"]
    tools: list[str] | None
    system_prompt: str | None
    append_system_prompt: str | None
    title: str | None
    architect: bool
    """One model plans, another carries out."""
    limits: dict[str, Any]
    """Options that go with each message."""


def split_rules(text: str) -> list[str]:
    """Cut at commas and spaces outside of brackets."""
    rules, rule, depth = [], "", 0
    for letter in text:
        # A pattern may hold spaces and commas itself, as in `shell(git log)`.
        depth += (letter == "(") - (letter == ")")
        if depth <= 0 and (letter == "," or letter.isspace()):
            rules.append(rule)
            rule = ""
        else:
            rule += letter
    return [each for each in [*rules, rule] if each]


def model_and_effort(given: str | None) -> tuple[str | None, str | None]:
    """`provider:model:high` is a model and an effort."""
    if given is None:
        return None, None
    named = parse_model_name(given)
    # An unknown model is left as it is written, for the sentence that refuses it.
    return (named.name, named.effort) if named.effort is not None else (given, None)


async def open_session(
    manager: SessionManager,
    options: SessionOptions,
    *,
    existing: SessionId | None,
    fork: bool = False,
    new_id: str | None = None,
) -> Session:
    """A new session, a stored one, or a fork of a stored one.

    Raises:
        UsageError: the model, a tool or a mode is wrong.
    """
    if existing is not None and fork:
        session = await manager.fork_session(existing, title=options.title)
        await apply_settings(session, options)
        return session
    # The system prompt is part of the prefix that a session has frozen: another one would make the
    # cached conversation void.
    if existing is not None and (options.system_prompt or options.append_system_prompt):
        raise UsageError("a system prompt can be given to a new session only")
    session = await manager.start_session(
        session_id=existing or new_id,
        model=options.model,
        permission_mode=options.permission_mode,
        title=options.title,
        tools=options.tools if options.tools is not None else "all",
        system_prompt=options.system_prompt,
        asking=options.asking,
        **_settings(options),
    )
    if existing is not None:
        if options.effort:
            await session.set_thinking_level(options.effort)
        if options.architect:
            await session.set_mode("architect")
        if options.title:
            await manager.rename_session(existing, options.title)
    return session


def _settings(options: SessionOptions) -> dict[str, Any]:
    given = {
        "thinking": options.effort,
        "append_system_prompt": options.append_system_prompt,
        "mode": "architect" if options.architect else None,
    }
    return {name: value for name, value in given.items() if value is not None}


async def apply_settings(session: Session, options: SessionOptions) -> None:
    """Change an existing session to the options that were given."""
    if options.model:
        await session.update_model(options.model)
    if options.effort:
        await session.set_thinking_level(options.effort)
    if options.permission_mode:
        await session.set_permission_mode(options.permission_mode)
    if options.architect:
        await session.set_mode("architect")


def message_options(options: SessionOptions, *, existing: bool) -> dict[str, Any]:
    """The options of each message: the limits, and for a stored session the tools."""
    given = dict(options.limits)
    if existing and options.tools is not None:
        given["tools"] = options.tools
    return given
