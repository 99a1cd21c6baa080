"""The indexer's process, from the side of the session: started, waited for, let go."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from weft.repo.indexer_order import FINISH, IndexOrder

# Isolated, and with no folder of the user's on the path but that of this package: a project could
# otherwise bring a module by the name of one that the indexer loads.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from weft.repo.indexer import main;"
    " sys.exit(main(sys.argv[2:]))"
)
_ROOT: Final = str(Path(__file__).parents[2])


class IndexerProcess:
    """An indexer that runs."""

    def __init__(self, order: IndexOrder) -> None:
        reader, self._pipe = os.pipe()
        try:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            self._pid: int | None = _spawn(order, reader, null)
            os.close(null)
        finally:
            os.close(reader)

    def is_running(self) -> bool:
        """False once it has ended."""
        if self._pid is None:
            return False
        pid, _ = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._ended()
        return not pid

    def wait(self) -> bool:
        """Wait until it has ended; False when it could not do its work.  Blocks."""
        status = 0
        if self._pid is not None:
            with suppress(ChildProcessError):
                _, status = os.waitpid(self._pid, 0)
            self._ended()
        return status == 0

    def release(self) -> None:
        """Let it finish what it has begun, without us."""
        if self._pid is not None and self.is_running():
            with suppress(OSError):
                os.write(self._pipe, FINISH)
            self._ended()

    def stop(self) -> None:
        """Have it end before its next batch, and wait for that.  Blocks."""
        if self._pid is not None:
            os.close(self._pipe)
            self._pipe = -1
            self.wait()

    def _ended(self) -> None:
        self._pid = None
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


def _spawn(order: IndexOrder, stdin: int, null: int) -> int:
    argv = [sys.executable, "-I", "-c", _PROGRAM, _ROOT, msgspec.json.encode(order).decode()]
    return os.posix_spawn(
        sys.executable,
        argv,
        # Not our environment: it holds the user's API keys.
        order.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, null, 1),
            (os.POSIX_SPAWN_DUP2, null, 2),
        ],
        # A Ctrl-C in the terminal is for the session: it decides when the indexer ends.
        setsid=True,
    )
