"""Programs that do not outlive this one, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from typing import IO, Final

_PR_SET_PDEATHSIG: Final = 1


def start_program(
    words: Sequence[str],
    *,
    at_our_end: signal.Signals,
    stdout: IO[bytes] | int,
    environ: Mapping[str, str] | None = None,
    account: pwd.struct_passwd | None = None,
    cwd: str = "/",
) -> subprocess.Popen[bytes]:
    """Start a program that gets a signal when this one dies; errors go where its output goes.

    In a session of its own, so that a Ctrl-C in the terminal reaches this program alone.  Only the
    main thread may call it: the signal comes when the thread ends that made the process.
    """
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        env=None if environ is None else dict(environ),
        cwd=cwd,
        start_new_session=True,
        user=None if account is None else account.pw_uid,
        group=None if account is None else account.pw_gid,
        extra_groups=None if account is None else [],
        preexec_fn=partial(_end_with_us, at_our_end),
    )


def end_program(process: subprocess.Popen[bytes], number: signal.Signals, seconds: float) -> None:
    """End a program by a signal, and by force when that takes too long."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_with_us(number: signal.Signals) -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
