"""SHA-256 without OpenSSL, until there is much to hash.

`hashlib` loads OpenSSL's library: three and a half megabytes of every start, to hash a few short
texts.  The interpreter has an implementation of its own, five times slower on long data, with the
same results.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import _Hash

_FEW_BYTES = 1 << 20
"""Some three milliseconds of work: as long as OpenSSL takes to load."""


def sha256(data: bytes = b"") -> _Hash:
    """What `hashlib.sha256` makes."""
    global _left
    # No lock: a count that two threads changed at once moves the switch by one text.
    if _left > 0:
        _left -= len(data) + 64  # SHA-256 works in blocks of 64 bytes, and fills up the last one
        return _own(data)
    from hashlib import sha256 as fast

    return fast(data)


def _builtin() -> Callable[[bytes], _Hash]:
    name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
    try:
        return __import__(name).sha256  # type: ignore[no-any-return]
    except ImportError:  # an interpreter that was built with OpenSSL's alone
        from hashlib import sha256 as fast

        return fast


_own = _builtin()
_left = _FEW_BYTES
