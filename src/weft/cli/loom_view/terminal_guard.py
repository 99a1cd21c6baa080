"""A terminal that is given back even when the program is killed.

No program can tidy up after SIGKILL.  So a shell waits at the end of a pipe that only this process
holds: a word in it says that all is well, its end without one that the terminal was left as it is.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from weft.cli.chat.screens.terminal.block_viewer import SHUT
from weft.cli.chat.screens.terminal.terminal_device import OFF

_WAIT: Final = 'read -r word || { stty sane <&1; printf %s "$1"; }'
_SECONDS: Final = 2.0


@contextmanager
def guarded_terminal() -> Iterator[None]:
    """While the terminal on standard output is drawn on."""
    try:
        # A session of its own: what ends the programs of this terminal must not end it first.
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT, "sh", SHUT + OFF],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # no shell: then without
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            guard.communicate(b"well\n", timeout=_SECONDS)
