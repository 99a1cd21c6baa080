"""Hooks as they are written down: which programs, at which moments, for which tools.

In TOML `[[hooks.PreToolUse]]` with `matcher`, `command`, `timeout`; or in the shape other agents use, `{matcher, hooks: [{type, command,
timeout}]}`, there or in a `hooks.json`.  What cannot be read is refused with a sentence: a hook that is passed over in silence is a
veto that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from weft.errors import UsageError, did_you_mean
from weft.permissions import spellings_of

EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)
VETO: Final = frozenset({"PreToolUse", "UserPromptSubmit"})
"""Moments at which a hook that breaks blocks: it may be there to keep something from happening."""
DEFAULT_SECONDS: Final = 60.0
LONGEST_SECONDS: Final = 600.0

_Seconds = Annotated[float, Meta(gt=0, le=LONGEST_SECONDS)]


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One program for one moment."""

    event: str
    command: str
    """A line for the shell."""
    matcher: str = ""
    """A regular expression for the tool's whole name (or what else the moment is about); empty or `*`: always."""
    timeout_seconds: float = DEFAULT_SECONDS
    must_succeed: bool = False
    """Any exit code but 0 blocks, where the moment can be blocked."""
    source: str = ""
    """The file that names it."""
    scripts: Mapping[str, str] = {}
    """Of a project's hook: each file of the project that its command names, and the SHA-256 it was trusted with."""

    @property
    def can_veto(self) -> bool:
        return self.event in VETO

    def matches(self, subject: str) -> bool:
        """True when the hook wants to hear of this tool (or trigger, source, agent)."""
        if self.matcher in ("", "*"):
            return True
        return any(re.fullmatch(self.matcher, name) for name in spellings_of(subject))


class _Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: str
    type: Literal["command"] = "command"
    timeout: _Seconds = DEFAULT_SECONDS
    must_succeed: bool = False


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    matcher: str = ""
    command: str = ""
    type: Literal["command"] = "command"
    timeout: _Seconds = DEFAULT_SECONDS
    must_succeed: bool = False
    hooks: tuple[_Program, ...] = ()


def read_hooks(table: Mapping[str, Any], source: str) -> list[Hook]:
    """The hooks that a settings file names, in its order.

    Raises:
        UsageError: an event is unknown, an entry is not right, or a matcher is no regular expression.
    """
    found: list[Hook] = []
    for event, entries in table.items():
        if event not in EVENTS:
            hint = did_you_mean(event, EVENTS)
            raise UsageError(
                f"{source}: there is no hook event {event!r}{hint} (there are: {', '.join(EVENTS)})"
            )
        found += _of_event(event, entries, source)
    return found


def _of_event(event: str, entries: Any, source: str) -> Iterator[Hook]:
    try:
        read = msgspec.convert(entries, tuple[_Entry, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"{source}: hooks.{event} is not right: {error}") from error
    for entry in read:
        _check_matcher(entry.matcher, event, source)
        programs: Iterable[_Entry | _Program] = entry.hooks or (entry,)
        for program in programs:
            if not program.command.strip():
                raise UsageError(f"{source}: a hook of hooks.{event} has no command")
            yield Hook(
                event=event,
                command=program.command,
                matcher=entry.matcher,
                timeout_seconds=program.timeout,
                must_succeed=program.must_succeed,
                source=source,
            )


def _check_matcher(matcher: str, event: str, source: str) -> None:
    if matcher == "*":
        return
    try:
        re.compile(matcher)
    except re.error as error:
        raise UsageError(
            f"{source}: the matcher {matcher!r} of hooks.{event} is no regular expression: {error}"
        ) from error


class HookBook:
    """All hooks that are in force, by their moments."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self._by_event: dict[str, list[Hook]] = {}
        for hook in hooks:
            self._by_event.setdefault(hook.event, []).append(hook)

    def __bool__(self) -> bool:
        return bool(self._by_event)

    def all(self) -> list[Hook]:
        """Every hook, in the order of the moments."""
        return [hook for event in EVENTS for hook in self._by_event.get(event, ())]

    def of(self, event: str, subject: str = "") -> list[Hook]:
        """The hooks to run, in the order in which they are written down."""
        return [hook for hook in self._by_event.get(event, ()) if hook.matches(subject)]
