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
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The name of each tool, which is given as server and tool."""
    wanted = {each: _plain_name(*each) for each in tools}
    taken = Counter(wanted.values())
    return {
        each: name if taken[name] == 1 and len(name) <= MOST else _hashed(name, *each)
        for each, name in wanted.items()
    }


def _plain_name(server: str, tool: str) -> str:
    return f"{PREFIX}{server}__{_FORBIDDEN.sub('_', tool)}"


def _hashed(name: str, server: str, tool: str) -> str:
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:_HASH]
    return f"{name[: MOST - _HASH - 1]}_{mark}"


def server_of(name: str) -> str:
    """The server that a name of a tool, or a rule, means; empty when it means none."""
    if not name.startswith(PREFIX):
        return ""
    return name.removeprefix(PREFIX).partition("__")[0]
