"""A file with trees of text, whatever program wrote it."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from weft.errors import UsageError
from weft.loom.formats.basemode import is_basemode, parse_basemode
from weft.loom.formats.bonsai import is_bonsai, parse_bonsai
from weft.loom.formats.chatgpt import is_chatgpt, parse_chatgpt
from weft.loom.formats.claude import is_claude, parse_claude
from weft.loom.formats.own_json import is_own, parse_own
from weft.loom.formats.patched_trees import is_minihf, is_tinyloom, parse_minihf, parse_tinyloom
from weft.loom.formats.plain_json import MOST_BYTES, decode_json
from weft.loom.node_record import TreeRecord

TreeParser: TypeAlias = Callable[[Any], tuple[TreeRecord, ...]]

_FORMATS: Final[tuple[tuple[str, Callable[[Any], bool], TreeParser], ...]] = (
    ("weft-loom", is_own, parse_own),
    ("minihf", is_minihf, parse_minihf),
    ("chatgpt", is_chatgpt, parse_chatgpt),
    ("claude", is_claude, parse_claude),
    ("basemode", is_basemode, parse_basemode),
    ("bonsai", is_bonsai, parse_bonsai),
    ("tinyloom", is_tinyloom, parse_tinyloom),
)
"""In the order in which they are asked: the looser a test, the later."""
FORMAT_NAMES: Final = tuple(name for name, _, _ in _FORMATS)
_ARCHIVE: Final = b"PK\x03\x04"
_MEMBER: Final = "conversations.json"


def parse_trees(data: bytes) -> tuple[TreeRecord, ...]:
    """The trees of a file: any of `FORMAT_NAMES`, or the archive that a chat's export comes as.

    Raises:
        UsageError: it is none, too large, or its nodes make no tree; one sentence says why.
    """
    if len(data) > MOST_BYTES:
        raise UsageError(f"the file has {len(data)} bytes; {MOST_BYTES} are allowed")
    value = decode_json(_unpacked(data) if data.startswith(_ARCHIVE) else data)
    try:
        for _, fits, parse in _FORMATS:
            if fits(value):
                return parse(value)
    except RecursionError:
        raise UsageError("the file is nested too deep for a tree of text") from None
    raise UsageError(
        "the file is JSON, and not a tree that is known; there are " + ", ".join(FORMAT_NAMES)
    )


def format_of(value: Any) -> str:
    """The name of the format that a decoded file looks like; empty for none."""
    return next((name for name, fits, _ in _FORMATS if fits(value)), "")


def _unpacked(data: bytes) -> bytes:
    """The conversations of an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [each for each in archive.namelist() if each.rpartition("/")[2] == _MEMBER]
            if not names:
                raise UsageError(f"the archive has no {_MEMBER}")
            with archive.open(min(names, key=len)) as member:
                # Not by the size that the archive claims: what it unpacks to is what takes room.
                found = member.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise UsageError(f"the archive cannot be read: {error}") from None
    if len(found) > MOST_BYTES:
        raise UsageError(f"{_MEMBER} in the archive is larger than {MOST_BYTES} bytes")
    return found
