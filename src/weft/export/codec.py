"""Export codec, JSON and JSONL: the document as bytes and back, one JSON value, or a header and a
line for each item.

What is read is untrusted.  Anything that is not whole and sound is refused with one sentence, and
nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from weft.errors import Corrupt, TooNew, UsageError
from weft.events import Todo
from weft.export.document import (
    FORMAT,
    TRANSCRIPT,
    VERSION,
    ExportDocument,
    ExportedBlob,
    ExportedClearing,
    ExportedCompaction,
    ExportedFiles,
    ExportedNode,
    ExportedNote,
    ExportedRef,
    ExportedTurn,
)

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of an export that may be imported; it is held in memory whole."""

_ITEMS: dict[str, tuple[str, Any]] = {
    "node": ("nodes", ExportedNode),
    "ref": ("refs", ExportedRef),
    "note": ("notes", ExportedNote),
    "compaction": ("compactions", ExportedCompaction),
    "clearing": ("clearings", ExportedClearing),
    "turn": ("turns", ExportedTurn),
    "todo": ("todos", Todo),
    "files": ("files", ExportedFiles),
    "blob": ("blobs", ExportedBlob),
}
"""Type of a line → the field of the document it belongs to, and its class."""

_UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Old version → the step to the next one, on the decoded document.

Empty: there has been one version only.
"""

_DAMAGE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class ParsedDocument(msgspec.Struct, frozen=True):
    """A document that was read, and what the file held besides."""

    document: ExportDocument
    others: tuple[str, ...]
    """Names of sections that are no conversation; they are not read."""


# --- writing -----------------------------------------------------------------------------


def to_json(document: ExportDocument) -> str:
    """One readable JSON value."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def to_jsonl(document: ExportDocument) -> str:
    """A header, one line for each node, ref, note, compaction, clearing, turn and task, and an end
    that tells whether all are there.
    """
    header = msgspec.to_builtins(document)
    lines = [
        {"type": kind, **item}
        for kind, (field, _) in _ITEMS.items()
        for item in header.pop(field, ())
    ]
    lines = [{"type": "header", **header}, *lines, {"type": "end", "lines": len(lines)}]
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


# --- reading -----------------------------------------------------------------------------


def parse(data: bytes, name: str) -> ParsedDocument:
    """The document in a file called `name`.

    Raises:
        UsageError: it is no export.
        TooNew: a newer program wrote it.
        Corrupt: it is an export, and damaged.
    """
    if len(data) > LARGEST:
        raise UsageError(too_large(name))
    # Editors on Windows put a byte-order mark in front, which JSON does not allow.
    data = data.removeprefix(b"\xef\xbb\xbf")
    raw = _joined(data, name) if _has_lines(data) else _value(data, name)
    _check_head(raw, name)
    for version in range(raw["version"], VERSION):
        raw = _UPGRADES[version](raw)
    # Named before the conversion, which passes unknown fields over in silence.
    others = tuple(sorted(set(raw) - set(ExportDocument.__struct_fields__)))
    try:
        return ParsedDocument(msgspec.convert(raw, ExportDocument), others)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Corrupt(name, str(error)) from error


def too_large(name: str) -> str:
    """The sentence for a file that is not even read."""
    return f"{name!r} is too large to import: more than {LARGEST // 1024 // 1024} MiB"


def _has_lines(data: bytes) -> bool:
    """True for the form with lines: its first line is a JSON value of its own, and says that it is
    the header.
    """
    try:
        first = msgspec.json.decode(data.split(b"\n", 1)[0])
    except _DAMAGE:
        return False
    return isinstance(first, dict) and first.get("type") == "header"


def _value(data: bytes, name: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except _DAMAGE as error:
        raise _no_json(data, name, error) from error
    if not isinstance(value, dict):
        raise UsageError(f"{name!r} is not a Weft export: it holds JSON of another kind")
    return value


def _no_json(data: bytes, name: str, error: Exception) -> Exception:
    """What to say of bytes that are no JSON: an export that was cut, a transcript, or something
    else.
    """
    start = data[:2_000].lstrip()
    if not start:
        return UsageError(f"{name!r} is empty")
    if f'"format": "{FORMAT}"'.encode() in start or f'"format":"{FORMAT}"'.encode() in start:
        return Corrupt(name, f"it is not whole ({error})")
    if TRANSCRIPT.encode() in start:
        return UsageError(
            f"{name!r} is a transcript for reading; only json and jsonl exports can be imported"
        )
    return UsageError(f"{name!r} is not a Weft export: it is not JSON")


def _check_head(raw: dict[str, Any], name: str) -> None:
    if raw.get("format") != FORMAT:
        raise UsageError(f'{name!r} is not a Weft export: it does not say "format": "{FORMAT}"')
    version = raw.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise Corrupt(name, "it has no version")
    if version > VERSION:
        raise TooNew(
            f"{name!r} was written by a newer Weft (export version {version}, this one "
            f"reads up to {VERSION}); "
            "update this one to import it"
        )


def _joined(data: bytes, name: str) -> dict[str, Any]:
    """The lines put together to one document.  A line ends with LF and nothing else."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    raw = _line(lines[0], 1, name)
    del raw["type"]
    _check_head(raw, name)
    found: dict[str, list[Any]] = {}
    items = [_line(line, number, name) for number, line in enumerate(lines[1:], 2)]
    end = items.pop() if items else {}
    # Each line by itself is whole JSON, so only the count shows that a download was cut.
    if end.get("type") != "end" or end.get("lines") != len(items):
        raise Corrupt(name, "it is not whole: lines are missing")
    for item in items:
        kind = item.pop("type", None)
        field = _ITEMS[kind][0] if kind in _ITEMS else f"{kind} lines"
        found.setdefault(field, []).append(item)
    return {**raw, **found}


def _line(line: bytes, number: int, name: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except _DAMAGE as error:
        raise Corrupt(name, f"line {number} is not a JSON object ({error})") from error
