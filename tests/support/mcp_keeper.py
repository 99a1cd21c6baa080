"""Starts a server as sessions do, has it leave a process behind, and waits to be killed; a program
for tests.

    python -m tests.support.mcp_keeper PROJECT MODE ENTRY [REQUEST]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
import msgspec

from weft.mcp import ServerEntry
from weft.runtime.mcp.server_launcher import ServerLauncher
from weft.workspace.sandbox.machine import SandboxOptions

SPAWN = {"method": "tools/call", "params": {"name": "spawn"}}


async def main(project: str, mode: str, written: str, request: str = "") -> None:
    launcher = ServerLauncher(
        project,
        environ=os.environ,
        hidden=[],
        options=SandboxOptions(),
        mode=mode,
        downloads=Path(project).parent / "downloads",
    )
    program = await launcher.start(msgspec.json.decode(written, type=ServerEntry), "x", ())
    asked = {"jsonrpc": "2.0", "id": 1, **(json.loads(request) if request else SPAWN)}
    await program.send(json.dumps(asked).encode() + b"\n")
    print((await program.receive()).decode(), flush=True)
    await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], "".join(sys.argv[4:]))
