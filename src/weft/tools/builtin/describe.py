"""Generator of `manifest.json` from the code of the built-in tools: `python -m
weft.tools.builtin.describe`, after a change to one.
"""

from __future__ import annotations

import sys

import msgspec

from weft.tools.builtin.registry import HOMES, MANIFEST, BuiltinEntry, load


def describe() -> bytes:
    """What the manifest must hold."""
    entries = [
        BuiltinEntry(
            name=tool.name,
            description=tool.description,
            schema=tool.schema,
            effect=tool.effect,
            timeout_seconds=tool.timeout_seconds,
        )
        for tool in map(load, HOMES)
    ]
    return msgspec.json.format(msgspec.json.encode(entries), indent=1) + b"\n"


if __name__ == "__main__":
    with open(MANIFEST, "wb") as target:
        target.write(describe())
    sys.stdout.write(f"wrote {MANIFEST}\n")
