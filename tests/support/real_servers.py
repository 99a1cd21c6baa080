"""Real language servers, where `make oracles` has put them."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.language_project import supervised
from tests.support.source_code import ROOT
from weft.clock import SystemClock
from weft.lsp import KNOWN, ServerLimits, ServerPool
from weft.runtime.workspaces.language_servers import ServerLauncher
from weft.workspace import LocalWorkspace
from weft.workspace.sandbox.read_only import ReadOnlySandbox

SERVERS = ROOT / ".venv" / "servers"
FOLDERS = (SERVERS / "bin", SERVERS / "node_modules" / ".bin")
PATIENCE = 120.0
"""A cold server on a busy machine."""


class SampleLanguage(NamedTuple):
    """What a project of a language looks like."""

    suffix: str
    library: str
    """Defines `area`, which takes a number."""
    user: str
    """Imports the library, and calls `area` with a number."""
    broken: str
    """The library, but `area` takes a text."""
    unknown: str
    """A file that uses the name `missing_{}`, which is defined nowhere."""
    clean: str


PYTHON = SampleLanguage(
    ".py",
    "def area(side: int) -> int:\n    return side\n",
    "from library import area\n\nprint(area(2))\n",
    "def area(side: str) -> str:\n    return side\n",
    "print(missing_{})\n",
    "print({})\n",
)
TYPESCRIPT = SampleLanguage(
    ".ts",
    "export function area(side: number): number {\n  return side;\n}\n",
    'import { area } from "./library";\n\nexport const two = area(2);\n',
    "export function area(side: string): string {\n  return side;\n}\n",
    "export const x = missing_{};\n",
    "export const x = {};\n",
)
# Without a list of compile commands clangd takes a header for one of C++.
CPP = SampleLanguage(
    ".cpp",
    "int area(int side);\n",
    '#include "library.h"\n\nint two(void) { return area(2); }\n',
    "struct text { int x; };\nint area(struct text side);\n",
    "int x(void) {{ return missing_{}; }}\n",
    "int x(void) {{ return {}; }}\n",
)
LANGUAGES = {
    "ty": PYTHON,
    "pyright": PYTHON,
    "basedpyright": PYTHON,
    "typescript-language-server": TYPESCRIPT,
    "clangd": CPP,
}


def program_of(server: str) -> str:
    """The program of a server; the test is skipped where it is not installed."""
    spec = next(each for each in KNOWN if each.name == server)
    path = ":".join([*map(str, FOLDERS), os.environ["PATH"]])
    if (found := shutil.which(spec.program, path=path)) is not None:
        return found
    pytest.skip(f"{server} is not installed: `make oracles`")


def only(server: str) -> dict[str, dict[str, object]]:
    """Settings by which this server is used and no other."""
    settings: dict[str, dict[str, object]] = {
        each.name: {"enabled": False} for each in KNOWN if each.name != server
    }
    spec = next(each for each in KNOWN if each.name == server)
    settings[server] = {"command": [program_of(server), *spec.command[1:]]}
    return settings


@asynccontextmanager
async def real_pool(root: Path, server: str) -> AsyncIterator[ServerPool]:
    """A project that this server serves, started as a session would start it."""
    program_of(server)
    # `env node` has to be found, too.
    path = ":".join([*map(str, FOLDERS), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path}
    box = ReadOnlySandbox(environ=environ)
    launcher = ServerLauncher(str(root), box, mode="auto", is_trusted=False)
    specs = [each for each in KNOWN if each.name == server]
    async with supervised() as supervisor:
        yield ServerPool(
            LocalWorkspace(str(root)),
            specs,
            launcher.find,
            launcher.launch,
            supervisor.start,
            limits=ServerLimits(),
            clock=SystemClock(),
        )
