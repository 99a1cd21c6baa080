"""Hook configuration: which programs, at which events, for which tools.

In TOML `[[hooks.PreToolUse]]` with `matcher`, `command`, `timeout`; or in the shape other agents
use, `{matcher, hooks: [{type, command, timeout}]}`, there or in a `hooks.json`.  A program that
drives us hands its own over, `{matcher, hookCallbackIds, timeout, onFailure}`: those are not
started but called.  What cannot be read is refused with a sentence: a hook that is passed over in
silence is a veto that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

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
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)
VETO: Final = frozenset({"PreToolUse", "UserPromptSubmit"})
"""Events at which a hook that breaks blocks: it may be there to keep something from happening."""
_NEVER_BLOCKED: Final = frozenset({"Stop", "SubagentStop"})
"""Events at which a callback that breaks holds nothing up, whatever it was handed over with: a
turn must be able to end."""
DEFAULT_SECONDS: Final = 60.0
LONGEST_SECONDS: Final = 600.0

Callback: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Tells a program what is about to happen, and returns its answer: a JSON object, as a hook would
print it."""

_PLAIN_NAMES: Final = re.compile(r"[\w|]*")
_Seconds = Annotated[float, Meta(gt=0, le=LONGEST_SECONDS)]


class HookCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One program for one event."""

    event: str
    command: str
    """A line for the shell; of a callback its id."""
    matcher: str = ""
    """A regular expression for the tool's whole name (or what else the event is about).

    Empty or `*`: always.
    """
    timeout_seconds: float = DEFAULT_SECONDS
    must_succeed: bool = False
    """Any exit code but 0 blocks, where the event can be blocked."""
    source: str = ""
    """The file that names it."""
    scripts: Mapping[str, str] = {}
    """Of a project's hook: each file of the project that its command names, and the SHA-256 it was
    trusted with.
    """
    callback: Callback | None = None
    """What is called in the place of a command."""
    on_failure: Literal["", "block", "continue"] = ""
    """What a callback that breaks comes to, where its program said so."""

    @property
    def can_veto(self) -> bool:
        """True when a hook that breaks blocks."""
        if self.on_failure:
            return self.on_failure == "block" and self.event not in _NEVER_BLOCKED
        return self.event in VETO

    def matches(self, subject: str) -> bool:
        """True when the hook wants to hear of this tool (or trigger, source, agent)."""
        if self.matcher in ("", "*"):
            return True
        if self.callback is not None and not subject:
            # Where it comes from, events that are about nothing by name pay no heed to matchers.
            return True
        names = spellings_of(subject)
        if subject in ("apply_patch", "rename"):
            # They edit and write, whatever they are called: who watches those is told of them.
            names = (*names, *spellings_of("edit"), *spellings_of("write"))
        if self.callback is None:
            return any(re.fullmatch(self.matcher, name) for name in names)
        # Where a callback comes from, a matcher that is more than names may match anywhere in the
        # name, and there is only one tool that edits.  Called once too often it says nothing;
        # called too seldom it is a veto that is missing.
        if subject == "multi_edit":
            names = (*names, *spellings_of("edit"))
        if _PLAIN_NAMES.fullmatch(self.matcher):
            return not set(names).isdisjoint(self.matcher.split("|"))
        return any(re.search(self.matcher, name) for name in names)


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


def read_hooks(table: Mapping[str, Any], source: str) -> list[HookCommand]:
    """The hooks that a settings file names, in its order.

    Raises:
        UsageError: an event is unknown, an entry is not right, or a matcher is not a regular
            expression.
    """
    found: list[HookCommand] = []
    for event, entries in table.items():
        _check_event(event, source)
        found += _of_event(event, entries, source)
    return found


class _Callbacks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ids: tuple[str, ...] = msgspec.field(name="hookCallbackIds")
    matcher: str | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    on_failure: Literal["block", "continue"] | None = msgspec.field(name="onFailure", default=None)


def read_callbacks(
    table: Mapping[str, Any], source: str, call: Callable[[str, Mapping[str, Any]], Awaitable[Any]]
) -> list[HookCommand]:
    """The hooks that a program hands over; `call` is given the id of one and its input.

    Raises:
        UsageError: an event is not supported, an entry is not right, or a matcher is no regular
            expression.
    """
    found: list[HookCommand] = []
    for event, entries in table.items():
        _check_event(event, source)
        try:
            read = msgspec.convert(entries, tuple[_Callbacks, ...])
        except msgspec.ValidationError as error:
            raise UsageError(f"{source}: hooks.{event} is not right: {error}") from error
        for entry in read:
            _check_matcher(entry.matcher or "", event, source)
            found += [_callback_hook(event, entry, each, source, call) for each in entry.ids]
    return found


def _callback_hook(
    event: str,
    entry: _Callbacks,
    callback_id: str,
    source: str,
    call: Callable[[str, Mapping[str, Any]], Awaitable[Any]],
) -> HookCommand:
    return HookCommand(
        event=event,
        command=callback_id,
        matcher=entry.matcher or "",
        timeout_seconds=entry.timeout or DEFAULT_SECONDS,
        source=source,
        callback=lambda given: call(callback_id, given),
        on_failure=entry.on_failure or "",
    )


def _check_event(event: str, source: str) -> None:
    if event not in EVENTS:
        hint = did_you_mean(event, EVENTS)
        raise UsageError(
            f"{source}: there is no hook event {event!r}{hint} (there are: {', '.join(EVENTS)})"
        )


def _of_event(event: str, entries: Any, source: str) -> Iterator[HookCommand]:
    try:
        read = msgspec.convert(entries, tuple[_Entry, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"{source}: hooks.{event} is not right: {error}") from error
    for entry in read:
        _check_matcher(entry.matcher, event, source)
        # Both spellings of an entry: other agents nest a list of programs, ours is one program.
        programs: Iterable[_Entry | _Program] = entry.hooks or (entry,)
        for program in programs:
            if not program.command.strip():
                raise UsageError(f"{source}: a hook of hooks.{event} has no command")
            yield HookCommand(
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
            f"{source}: the matcher {matcher!r} of hooks.{event} is not a regular "
            f"expression: {error}"
        ) from error


class HookTable:
    """All hooks that are in force, by their events."""

    def __init__(self, hooks: Iterable[HookCommand] = (), *, more: HookTable | None = None) -> None:
        """`more` are those of another book, which come after these; it may still grow."""
        self._by_event: dict[str, list[HookCommand]] = {}
        self._more = more
        self.add(hooks)

    def add(self, hooks: Iterable[HookCommand]) -> None:
        """From now on, have these run too."""
        for hook in hooks:
            self._by_event.setdefault(hook.event, []).append(hook)

    def replace(self, hooks: Iterable[HookCommand]) -> None:
        """From now on, have these run in the place of its own; every holder of the book heeds
        them.
        """
        self._by_event = {}
        self.add(hooks)

    def __bool__(self) -> bool:
        return bool(self._by_event) or bool(self._more)

    def all(self) -> list[HookCommand]:
        """Every hook, in the order of the events."""
        return [hook for event in EVENTS for hook in self._at(event)]

    def of(self, event: str, subject: str = "") -> list[HookCommand]:
        """The hooks to run, in the order in which they are written down."""
        return [hook for hook in self._at(event) if hook.matches(subject)]

    def _at(self, event: str) -> list[HookCommand]:
        # Read anew each time: the other book may still grow while a session runs.
        own = self._by_event.get(event, [])
        return own if self._more is None else [*own, *self._more._at(event)]
