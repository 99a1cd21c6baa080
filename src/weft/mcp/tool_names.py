"""The names under which models know the tools of MCP servers: `mcp__server__tool`.

Vendors take letters, digits, `_` and `-`, and at most 64 of them.  A name that had to be changed
bears a hash of the true one, and so do two that would be the same: which tool is meant must never
depend on the order in which servers answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from weft.sha256 import sha256

PREFIX: Final = "mcp__"
MOST: Final = 64
_HASH: Final = 6
_MOST_HASH: Final = 54
_FORBIDDEN: Final = r"[^A-Za-z0-9_-]"


def offered_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The name of each tool, which is given as server and tool."""
    found = {each: _plain_name(*each) for each in tools}
    marks = {each: 0 if len(name) <= MOST else 1 for each, name in found.items()}
    while True:
        named = {each: _marked(found[each], each, count) for each, count in marks.items()}
        taken = Counter(named.values())
        same = [each for each, name in named.items() if taken[name] > 1]
        if not same:
            return named
        # Also the one that has a name by itself: else a server could choose who is renamed.
        for each in same:
            marks[each] += 1


def other_names(server: str, tool: str) -> tuple[str, ...]:
    """What a user may call a tool that models know by another name: rules that restrict hold for
    it, whatever a list of the server has made of its name."""
    return _plain_name(server, tool), f"{PREFIX}{server}__{tool}"


def _plain_name(server: str, tool: str) -> str:
    return f"{PREFIX}{server}__{re.sub(_FORBIDDEN, '_', tool)}"


def _marked(name: str, tool: tuple[str, str], count: int) -> str:
    """A name with as much of the hash as it takes to tell it from others."""
    if not count:
        return name
    size = min(_HASH * count, _MOST_HASH)
    mark = sha256("\0".join(tool).encode("utf-8", "replace")).hexdigest()[:size]
    return f"{name[: MOST - size - 1]}_{mark}"


def server_of(name: str) -> str:
    """The server that a name of a tool, or a rule, means; empty when it means none."""
    if not name.startswith(PREFIX):
        return ""
    return name.removeprefix(PREFIX).partition("__")[0]
