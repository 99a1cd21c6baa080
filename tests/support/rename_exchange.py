"""Exchanging two names in one step, as an attacker does between a check and the open."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path


def exchange(one: Path, other: Path) -> None:
    """Let two names change places in one step."""
    here, flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    if rename(here, os.fsencode(one), here, os.fsencode(other), flag) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
