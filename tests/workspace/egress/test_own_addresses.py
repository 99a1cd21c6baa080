"""Which addresses are this machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.workspace.egress.own_addresses import is_own_address


def test_the_loopback_is_our_own_and_what_nobody_has_is_not() -> None:
    assert is_own_address("127.0.0.1")
    assert not is_own_address("203.0.113.1")
    assert not is_own_address("2001:db8::2")
    assert not is_own_address("no address")


PROGRAM = """
import subprocess
from weft.workspace.egress.own_addresses import is_own_address

before = is_own_address("8.8.8.8")
subprocess.run(["ip", "address", "add", "8.8.8.8/32", "dev", "lo"], check=True)
print(before, is_own_address("8.8.8.8"), is_own_address("8.8.4.4"))
"""


@pytest.mark.process
def test_a_public_address_is_our_own_where_we_have_it() -> None:
    """In a network of its own, which has one."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a network")
    asked = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    if asked.returncode:
        pytest.skip(f"no network could be made: {asked.stderr[-200:]}")
    assert asked.stdout.split() == ["False", "True", "False"]
