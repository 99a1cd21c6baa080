"""SHA-256 by the interpreter's own implementation, and by OpenSSL's where there is much to hash."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft.sha256
from weft.sha256 import sha256


@given(data=st.binary(max_size=300), more=st.binary(max_size=300))
def test_both_implementations_give_what_hashlib_gives(data: bytes, more: bytes) -> None:
    expected = hashlib.sha256(data + more).hexdigest()
    for left in (1 << 20, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(weft.sha256, "_left", left)
            hashed = sha256(data)
            hashed.update(more)
            assert hashed.hexdigest() == expected
            assert sha256(data + more).digest() == bytes.fromhex(expected)


@pytest.mark.process
def test_openssl_is_loaded_when_a_megabyte_has_been_hashed() -> None:
    program = (
        "import sys; from weft.sha256 import sha256\n"
        "for size in (1000, 600_000, 600_000, 10):\n"
        "    sha256(b'x' * size); print('_hashlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().split() == ["False", "False", "False", "True"]
