"""A sandbox cell to attack, as root and as `nobody`, with all its walls or with one taken down."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from weft.workspace.egress.egress_proxy import EgressProxy
from weft.workspace.egress.proxy_variables import proxy_variables
from weft.workspace.sandbox import keeper as sandbox_keeper
from weft.workspace.sandbox.client import (
    KEEPER,
    CellConfig,
    ExecRequest,
    Keeper,
    MountPlan,
    SandboxUnavailable,
    keeper_command,
)
from weft.workspace.sandbox.machine import PROXY_PORT
from weft.workspace.sandbox.seccomp import program

PATIENCE = 20
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
NOBODY = 65534
PASSWORD = 0x1234_5678_9ABC_DEF0
SYSTEM_PYTHON = "/usr/bin/python3"
"""Every user can run it; the interpreter of the tests may lie in a home folder."""
AS_NOBODY = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--no-new-privs",
    "--bounding-set=-all",
    "--inh-caps=-all",
)


class SandboxCell:
    """A running keeper, and a project that its commands work in."""

    def __init__(self, base: Path, keeper: Keeper, filter_code: bytes) -> None:
        self.project = base / "project"
        self.outside = base / "outside"
        self.scratch = base / "scratch"
        self.keeper = keeper
        self.filter = filter_code
        self.output = ""
        self._count = 0

    @property
    def upper(self) -> Path:
        """The upper layer of the last command."""
        return self.scratch / str(self._count) / "upper"

    async def run(
        self,
        *argv: str,
        stdin: int | None = None,
        hidden: tuple[str, ...] = (),
        hidden_late: tuple[str, ...] = (),
        temporary: tuple[tuple[str, str], ...] = (),
        reaching: EgressProxy | None = None,
    ) -> int | None:
        """Run a program to its end; returns its status, and leaves what it printed in `output`.

        `reaching` is the proxy that serves it, in a network of its own.
        """
        self._count += 1
        work = self.scratch / str(self._count) / "work"
        for folder in (self.upper, work):
            folder.mkdir(parents=True)
        _chown(self.scratch, os.stat(self.scratch).st_uid)
        captured = os.memfd_create("output", 0)
        nothing = os.open("/dev/null", os.O_RDONLY)
        try:
            descriptors = (nothing if stdin is None else stdin, captured, captured)
            cell = self.keeper.cell(
                CellConfig(
                    environ={"PATH": PATH, "HOME": "/nowhere"},
                    filter=self.filter,
                    password=PASSWORD,
                )
            )
            cell.prepare(
                MountPlan(
                    layers=((str(self.project), str(self.upper), str(work)),),
                    temporary=temporary,
                    empty_file=str(self.scratch / "unreadable"),
                    hidden=hidden,
                    has_own_network=reaching is not None,
                    port=PROXY_PORT if reaching is not None else 0,
                )
            )
            variables = {} if reaching is None else proxy_variables({})
            async with AsyncExitStack() as stack:
                group = await stack.enter_async_context(anyio.create_task_group())
                if reaching is not None:
                    listener = stack.enter_context(closing(await cell.listener()))
                    group.start_soon(reaching.serve, listener)
                stack.callback(group.cancel_scope.cancel)
                run = cell.run(
                    ExecRequest(
                        argv=argv, cwd=str(self.project), environ=variables, hidden=hidden_late
                    ),
                    descriptors,
                )
                with anyio.fail_after(PATIENCE):
                    await run.ended.wait()
            cell.close()
            self.output = os.pread(captured, 100_000, 0).decode(errors="replace")
            if run.stage:
                self.output += f"[{run.stage}: {os.strerror(run.errno)}]"
            return run.status
        finally:
            os.close(nothing)
            os.close(captured)

    async def shell(self, script: str, **changes: Any) -> int | None:
        """Run a line of shell."""
        return await self.run("/bin/sh", "-c", script, **changes)

    async def python(self, script: str, *arguments: str, **changes: Any) -> int | None:
        """Run a line of Python."""
        return await self.run(SYSTEM_PYTHON, "-I", "-S", "-c", script, *arguments, **changes)


@contextmanager
def cell_folders(who: str) -> Iterator[Path]:
    """The folders of a cell, owned by `who` (root, nobody or me), where every user can
    reach them.
    """
    base = Path(tempfile.mkdtemp(prefix="weft-cell-", dir="/var/tmp"))
    try:
        base.chmod(0o755)
        for name in ("project", "outside", "scratch"):
            (base / name).mkdir()
        (base / "outside" / "canary").write_text("unharmed")
        (base / "scratch" / "unreadable").touch(0o000)
        (base / "project" / "file").write_text("old\n")
        if who == "nobody":
            _chown(base, NOBODY)
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _chown(folder: Path, uid: int) -> None:
    if os.geteuid() == 0 and uid:
        for root, _, files in os.walk(folder):
            for name in (root, *(f"{root}/{file}" for file in files)):
                os.chown(name, uid, uid, follow_symlinks=False)


@asynccontextmanager
async def sandbox_cell(
    who: str = "me",
    *,
    without: Callable[[str], str] = str,
    argv: Callable[[list[str]], list[str]] = list,
    network: bool = False,
    unix_sockets: bool = False,
    filtered: bool = True,
    weakened: Callable[[bytes], bytes] = bytes,
) -> AsyncGenerator[SandboxCell]:
    """A cell to attack.

    `without` takes something out of the keeper's program, `argv` out of how bubblewrap starts it,
    and `weakened` out of the filter.
    """
    skip_unless_possible(who)
    with cell_folders(who) as base:
        keeper = base / "keeper.py"
        source = Path(KEEPER).read_text()
        keeper.write_text(without(source))
        keeper.chmod(0o644)
        found = shutil.which("bwrap")
        assert found is not None
        command = keeper_command(
            bubblewrap=found,
            python=SYSTEM_PYTHON,
            scratch=str(base / "scratch"),
            network=network,
            keeper=str(keeper),
        )
        command = [*(AS_NOBODY if who == "nobody" else ()), *argv(command)]
        code = program(os.uname().machine, PASSWORD, unix_sockets=unix_sockets) or b""
        running = Keeper(command)
        try:
            await running.open()
        except SandboxUnavailable as error:
            if without is not str or argv is not list:
                raise  # what was taken out broke it, which is no proof of anything
            pytest.skip(f"this machine has no sandbox: {error}")
        try:
            yield SandboxCell(base, running, weakened(code) if filtered else b"")
        finally:
            await running.aclose()


def skip_unless_possible(who: str) -> None:
    """Without bubblewrap there is no cell, and only root can become another user."""
    if not sys.platform.startswith("linux") or shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if not os.access(SYSTEM_PYTHON, os.X_OK):
        pytest.skip("there is no Python of the system's own")
    if who == "nobody" and (os.geteuid() != 0 or shutil.which("setpriv") is None):
        pytest.skip("only root can become nobody")
    if who == "root" and os.geteuid() != 0:
        pytest.skip("only root is root")


def keeper_without(*pieces: str) -> Callable[[str], str]:
    """The keeper's program without these statements.

    Each must be there: a test that takes nothing out proves nothing.
    """

    def without(source: str) -> str:
        for piece in pieces:
            assert f"    {piece}\n" in source, f"the keeper has no {piece!r} any more"
            source = source.replace(f"    {piece}\n", "    pass\n", 1)
        return source

    return without


WITHOUT_LANDLOCK = keeper_without("restrict_writing(writable)")
"""A keeper whose commands are not under Landlock."""
NEEDS_LANDLOCK = pytest.mark.skipif(
    not sandbox_keeper.has_landlock(), reason="this kernel has no Landlock, or too old a one"
)
