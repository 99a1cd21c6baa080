"""Writes `agent.json` from the code of the tool: `python -m weft.agents.describe`, after a change
to it.
"""

from __future__ import annotations

import sys

import msgspec

from weft.agents.lazy_tool import DESCRIBED
from weft.agents.tool import AgentTool


def describe() -> bytes:
    """What the file must hold."""
    described = {"description": AgentTool.description, "schema": AgentTool.schema}
    return msgspec.json.format(msgspec.json.encode(described), indent=1) + b"\n"


if __name__ == "__main__":
    with open(DESCRIBED, "wb") as target:
        target.write(describe())
    sys.stdout.write(f"wrote {DESCRIBED}\n")
