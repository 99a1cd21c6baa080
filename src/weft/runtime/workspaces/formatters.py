"""Formatters by suffix: filters that a new content goes through before it is shown, approved and
written.

Since the preview already shows what the formatter made of it, its work needs no permission of its
own, is on record with the edit, and goes away with a rewind.  A formatter reads the content from
its input and writes the result to its output; it can change nothing itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.clock import Clock
from weft.errors import ToolError, UsageError
from weft.runtime.workspaces.language_servers import ServerLauncher
from weft.tools import FormattedContent
from weft.workspace.process.piped import FilterResult

MOST_BYTES: Final = 1024 * 1024
"""Larger contents are written as they are."""
SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 300.0
_PATH: Final = "{path}"
_MOST_CHARACTERS: Final = 300


class FormatterSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[formatters.NAME]`."""

    command: list[str]
    """`{path}` in it is the path of the file, which need not be there yet."""
    suffixes: list[str]
    enabled: bool = True


def formatters_of(given: Mapping[str, Mapping[str, Any]]) -> dict[str, FormatterSetting]:
    """The formatters that are switched on, by name.

    Raises:
        UsageError: a table is not right.
    """
    found: dict[str, FormatterSetting] = {}
    for name, table in given.items():
        try:
            setting = msgspec.convert(table, FormatterSetting)
        except msgspec.ValidationError as error:
            raise UsageError(f"formatters.{name}: {error}") from error
        if not setting.command:
            raise UsageError(f"formatters.{name} needs a command")
        if setting.enabled:
            found[name] = setting
    return found


class SlowFormatters:
    """The formatters of a project that took too long, which are left out for a while: each edit
    would wait for them in vain."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def note(self, name: str) -> None:
        """It took too long."""
        self._until[name] = self._clock.monotonic() + PAUSE_SECONDS

    def is_left_out(self, name: str) -> bool:
        """Whether it is not to be tried now."""
        return self._clock.monotonic() < self._until.get(name, 0.0)


class ProjectFormatters:
    """The formatters of one project."""

    def __init__(
        self,
        settings: Mapping[str, FormatterSetting],
        launcher: ServerLauncher,
        slow: SlowFormatters,
        *,
        seconds: float = SECONDS,
    ) -> None:
        self._settings = settings
        self._launcher = launcher
        self._slow = slow
        self._seconds = seconds

    async def format(self, path: str, data: bytes) -> FormattedContent:
        """A content as the formatters of its suffix make it, one after the other; as it is where
        one fails, with a note."""
        suffix = os.path.splitext(path)[1].lower()
        notes: list[str] = []
        for name, setting in self._settings.items():
            if suffix not in {f".{each.lstrip('.').lower()}" for each in setting.suffixes}:
                continue
            try:
                made = await self._made(name, setting, path, data)
            except ToolError as error:
                notes.append(f"not formatted by {name}: {error}")
                continue
            if made != data:
                notes.append(f"formatted by {name}")
                data = made
        return FormattedContent(data=data, note="\n".join(notes))

    async def _made(self, name: str, setting: FormatterSetting, path: str, data: bytes) -> bytes:
        if len(data) > MOST_BYTES:
            raise ToolError("the file is too large")
        too_long = f"it took longer than {self._seconds:g} s"
        if self._slow.is_left_out(name):
            minutes = PAUSE_SECONDS / 60
            raise ToolError(f"{too_long} the last time, and is left out for {minutes:g} min")
        place = path if path.startswith("/") else f"{self._launcher.root}/{path}"
        command = [word.replace(_PATH, place) for word in setting.command]
        result = await self._launcher.filtered(
            command, data, seconds=self._seconds, most=4 * MOST_BYTES
        )
        if result.exit_code is None and not result.is_too_long:
            self._slow.note(name)
            raise ToolError(too_long)
        made = _output_of(result)
        # A program that ignores its input, or formats files in place, prints nothing.
        if not made.strip() and data.strip():
            raise ToolError("it printed nothing; it must write the result to its output")
        return made


def _output_of(result: FilterResult) -> bytes:
    if result.is_too_long:
        raise ToolError("it printed too much")
    if result.exit_code:
        said = (result.errors or result.output.decode(errors="replace")).strip().splitlines()
        last = said[-1][:_MOST_CHARACTERS] if said else "it says nothing"
        raise ToolError(f"exit code {result.exit_code}: {last}")
    try:
        result.output.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError("what it printed is not UTF-8") from error
    return result.output
