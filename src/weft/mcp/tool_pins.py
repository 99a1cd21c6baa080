"""What a server offers, and what of it the user knows: lists that are cached and pinned.

The list of a server that was spoken to before is known without starting it.  What stood in its
first list is pinned: a tool that says something else later is not called before the user has seen
the difference, and one that is new is asked about once.  A model is only ever told what was pinned.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.mcp.private_file import read_private, replace_private
from weft.mcp.server_config import canonical
from weft.mcp.tool_schema import plain_schema
from weft.sha256 import sha256

logger = logging.getLogger(__name__)

PinState: TypeAlias = Literal["pinned", "changed", "new"]
MOST_TOOLS: Final = 1_000
"""Tools of one server."""
MOST_NAME: Final = 200
MOST_DESCRIPTION: Final = 4_000
"""Characters of a description that a model is shown."""
MOST_SCHEMA: Final = 64 * 1024
"""Bytes of a schema; a larger one is left out."""
MOST_RAW: Final = 256 * 1024
"""Bytes of all that a tool says of itself."""
MOST_LIST: Final = 2 * 1024 * 1024
"""Bytes of a list.  A record has two of them, and one that is too large to be read again would be
no record: what it pins would be forgotten."""


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a server describes it."""

    name: str
    description: str
    """Without characters that cannot be seen."""
    schema: dict[str, Any]
    """The same of its arguments."""
    only_reads: bool
    """What it says of itself."""
    digest: str
    """Of all that it says."""
    raw: dict[str, Any]


class _WrittenTool(msgspec.Struct):
    name: str
    description: str | None = None
    schema: dict[str, Any] | None = msgspec.field(default=None, name="inputSchema")
    annotations: dict[str, Any] | None = None


def read_tool(raw: Any) -> ListedTool:
    """One tool of a list.

    Raises:
        ValueError: it cannot be offered, and why.
    """
    try:
        written = msgspec.convert(raw, _WrittenTool)
        said = _said(raw)
        whole = canonical(said)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from error
    if not written.name or len(written.name) > MOST_NAME:
        raise ValueError("its name is empty or too long")
    if len(whole) > MOST_RAW:
        raise ValueError(f"it says more than {MOST_RAW // 1024} kB of itself")
    schema = written.schema or {}
    if len(canonical(schema)) > MOST_SCHEMA:
        raise ValueError(f"its schema has more than {MOST_SCHEMA // 1024} kB")
    if schema.get("type", "object") != "object":
        raise ValueError("its arguments are no object")
    hints = written.annotations or {}
    return ListedTool(
        name=written.name,
        description=without_hidden(written.description or "")[:MOST_DESCRIPTION],
        schema=_object_schema(schema),
        only_reads=hints.get("readOnlyHint") is True,
        digest=_digest(said),
        raw=said,
    )


def _said(raw: dict[str, Any]) -> dict[str, Any]:
    """What a tool says of itself; what it says to programs alone may change at any time."""
    return {key: value for key, value in raw.items() if key != "_meta"}


def _digest(said: dict[str, Any]) -> str:
    return sha256(canonical(said)).hexdigest()


def _object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return plain_schema(_without_hidden_in(schema) if _may_hide(schema) else schema)


_CONTROLS: Final = (b"\\u00", b"\\b", b"\\f", b"\\r", b"\x7f")


def _may_hide(schema: dict[str, Any]) -> bool:
    written = canonical(schema)
    # Control characters are escaped in JSON, all but one; all else that is hidden is not ASCII.
    return not written.isascii() or any(sign in written for sign in _CONTROLS)


def _without_hidden_in(value: Any) -> Any:
    if isinstance(value, str):
        return without_hidden(value)
    if isinstance(value, list):
        return [_without_hidden_in(each) for each in value]
    if isinstance(value, dict):
        return {without_hidden(key): _without_hidden_in(each) for key, each in value.items()}
    return value


@cache
def _hidden() -> re.Pattern[str]:
    """Tags, joiners, marks of direction, fillers: what a person does not see and a model reads."""
    # Compiled late: it takes milliseconds, and most texts need not be looked at by it.
    return re.compile(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
        "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
        "\u070f\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\ud800-\udfff]"
    )


def without_hidden(text: str) -> str:
    """Text without characters that cannot be seen."""
    return text if text.isascii() and text.isprintable() else _hidden().sub("", text)


def with_hidden_shown(text: str) -> str:
    """Text in which every character that cannot be seen is named."""
    return _hidden().sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: as the user knows it, and as the server describes it now."""

    known: ListedTool | None
    now: ListedTool

    @property
    def state(self) -> PinState:
        if self.known is None:
            return "new"
        return "pinned" if self.known.digest == self.now.digest else "changed"

    @property
    def shown(self) -> ListedTool:
        """What a model is told."""
        return self.known or self.now


class ServerRecord(msgspec.Struct, kw_only=True, dict=True):
    """What is known of a server; one file for each configuration."""

    era: str = ""
    """The version of the protocol that it speaks."""
    title: str = ""
    """What it calls itself."""
    instructions: str = ""
    pinned_instructions: str = ""
    listed: list[dict[str, Any]] = []
    """Its tools, as it listed them last."""
    pinned: dict[str, dict[str, Any]] = {}
    """By name, the tools as the user knows them."""
    is_listed: bool = False
    """It has answered for its tools at least once."""
    is_lost: bool = False
    """There was a record that cannot be read: what was pinned is not known, so nothing is."""

    def take(self, found: ReadList, instructions: str) -> None:
        """Take in a list; the first one is pinned as it is."""
        is_first = not self.is_listed and not self.is_lost
        self.listed = found.raws
        self.instructions = instructions[:MOST_RAW]
        self.is_listed = True
        self._keep_read(found.tools)
        if is_first:
            self.agree_to_all()

    def agree(self, tool: ListedTool) -> None:
        """The user knows a tool as it was shown; the server may say something else by now."""
        self.pinned[tool.name] = tool.raw
        self._keep_read(self._now)

    def agree_to_all(self) -> None:
        """The user knows the whole list as it is now."""
        # From the end: of two with one name the first counts.
        self.pinned = {str(raw["name"]): raw for raw in reversed(self.listed)}
        self.pinned_instructions = self.instructions
        self._keep_read(self._now)

    def tools(self) -> dict[str, KnownTool]:
        """Its tools by name, sorted; of two with one name the first."""
        return dict(self._read)

    def _keep_read(self, now: list[ListedTool]) -> None:
        self.__dict__.pop("_read", None)
        self.__dict__["_now"] = now

    @cached_property
    def _now(self) -> list[ListedTool]:
        return list(_read_all(self.listed))

    @cached_property
    def _read(self) -> dict[str, KnownTool]:
        # Kept: it takes milliseconds, and every request and every call asks for it.
        found: dict[str, KnownTool] = {}
        for now in self._now:
            if now.name not in found:
                found[now.name] = KnownTool(known=self._pinned_as(now), now=now)
        return dict(sorted(found.items()))

    def _pinned_as(self, now: ListedTool) -> ListedTool | None:
        """A tool as the user knows it."""
        before = self.pinned.get(now.name)
        if before is None:
            return None
        try:
            digest = _digest(_said(before))
        except (TypeError, UnicodeEncodeError, RecursionError):
            return None  # the file was changed by hand
        if digest == now.digest:
            return now
        kept = self._known.get(now.name)
        if kept is None or kept.digest != digest:
            kept = next(iter(_read_all([before])), None)
            if kept is not None:
                self._known[now.name] = kept
        return kept

    @cached_property
    def _known(self) -> dict[str, ListedTool]:
        return {}


def _read_all(tools: Iterable[dict[str, Any]]) -> Iterable[ListedTool]:
    for raw in tools:
        try:
            yield read_tool(raw)
        except ValueError:
            continue  # the file was changed by hand


class ReadList(msgspec.Struct, frozen=True):
    """A list of tools that was read."""

    raws: list[dict[str, Any]]
    """Those that can be offered, as they came."""
    tools: list[ListedTool]
    """The same."""
    problems: list[str]
    """What is wrong with the others."""


def read_list(listed: Sequence[Any]) -> ReadList:
    """Read a list; a long one of a stranger takes a second, which no other server has to wait."""
    found = ReadList([], [], [])
    left, beyond = MOST_LIST, 0
    for raw in listed:
        if left <= 0 or len(found.tools) == MOST_TOOLS:
            beyond += 1
            continue
        try:
            tool = read_tool(raw)
        except ValueError as error:
            found.problems.append(f"{_name_of(raw)}: {str(error) or 'it is not right'}")
            continue
        left -= len(msgspec.json.encode(raw))
        if left >= 0:
            found.raws.append(raw)
            found.tools.append(tool)
        else:
            beyond += 1
    if beyond:
        found.problems.append(f"{beyond} more tools: the list is too long")
    return found


def _name_of(raw: Any) -> str:
    name = raw.get("name") if isinstance(raw, dict) else None
    return without_hidden(name)[:MOST_NAME] if isinstance(name, str) else "a tool without a name"


class RecordFolder:
    """Where the records of servers are kept, `$WEFT_HOME/mcp`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, digest: str) -> ServerRecord:
        """What is known of a server, by its configuration; an empty record when nothing is."""
        try:
            data = read_private(self._folder / f"{digest}.json")
            return ServerRecord() if data is None else msgspec.json.decode(data, type=ServerRecord)
        except (OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            logger.warning("what is known of an MCP server is not read: %s", type(error).__name__)
            return ServerRecord(is_lost=True)

    def save(self, digest: str, record: ServerRecord) -> None:
        """Keep what is known of a server; where that fails it is found out anew."""
        try:
            replace_private(self._folder / f"{digest}.json", msgspec.json.encode(record))
        except OSError:
            logger.warning("what is known of an MCP server is not kept", exc_info=True)

    def forget(self, digest: str) -> None:
        """Know nothing of a server any more."""
        (self._folder / f"{digest}.json").unlink(missing_ok=True)


def pin_diff(tool: KnownTool) -> str:
    """How a tool differs from what the user knows, line by line, with nothing hidden."""
    import difflib  # only where one has changed

    before = "" if tool.known is None else _written(tool.known.raw)
    lines = difflib.unified_diff(
        before.splitlines(), _written(tool.now.raw).splitlines(), "known", "now", lineterm="", n=1
    )
    return "\n".join(lines)


def _written(raw: dict[str, Any]) -> str:
    text = msgspec.json.format(canonical(raw)).decode()
    # A description of one long line would be one changed line: its lines are shown apart.
    return with_hidden_shown(text.replace("\\n", "\n"))
