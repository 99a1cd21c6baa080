"""Generator of `manifest.json` from the code of the built-in tools: `python -m
weft.tools.builtin.describe`, after a change to one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec

from weft.tools.builtin.registry import (
    HOMES,
    MANIFEST,
    NAVIGATION_HOMES,
    NAVIGATION_MANIFEST,
    WEB_HOMES,
    WEB_MANIFEST,
    BuiltinEntry,
    load,
)


def describe(names: Iterable[str] = HOMES) -> bytes:
    """What the manifest of these tools must hold."""
    entries = [
        BuiltinEntry(
            name=tool.name,
            description=tool.description,
            schema=tool.schema,
            effect=tool.effect,
            timeout_seconds=tool.timeout_seconds,
        )
        for tool in map(load, names)
    ]
    return msgspec.json.format(msgspec.json.encode(entries), indent=1) + b"\n"


if __name__ == "__main__":
    for path, names in (
        (MANIFEST, HOMES),
        (NAVIGATION_MANIFEST, NAVIGATION_HOMES),
        (WEB_MANIFEST, WEB_HOMES),
    ):
        with open(path, "wb") as target:
            target.write(describe(names))
        sys.stdout.write(f"wrote {path}\n")
