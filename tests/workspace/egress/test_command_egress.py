"""A command beside its proxy: how it ends, and how it fails."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import pytest

from tests.support.allowed_hosts import judge
from weft.workspace import RunResult
from weft.workspace.egress.command_egress import run_with_egress

pytestmark = pytest.mark.anyio


async def test_an_error_of_a_command_is_the_same_one_beside_its_proxy() -> None:
    async def work(variables: Mapping[str, str]) -> RunResult:
        raise OSError(24, "Too many open files")

    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    with pytest.raises(OSError, match="Too many open files"):
        await run_with_egress(listener, judge("allow localhost"), {}, work)
    assert listener.fileno() < 0
