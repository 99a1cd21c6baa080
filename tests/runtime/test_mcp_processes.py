"""Nothing that a server has started outlives Weft, however it goes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.mcp_processes import are_gone, bearing, has_ended, keeper
from tests.support.mcp_servers import entry

pytestmark = pytest.mark.process


@pytest.mark.parametrize("trap", ["", "adopts", "hops"])
@pytest.mark.parametrize("way", ["sandbox", "namespace", "keeper"])
def test_no_process_of_a_server_survives_a_kill_of_weft(
    way: str, trap: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    word = f"mark-{way}-{trap}-{os.getpid()}"
    mode = {"sandbox": "on"}.get(way, "auto")
    written = entry(word, trap, sandbox="on" if way == "sandbox" else "off")
    path = os.environ["PATH"] if way != "keeper" else str(tmp_path)
    with keeper(project, mode, written, path) as pid:
        handles = bearing(word)
        # The server, and what it started in a session of its own without an environment.
        assert len(handles) >= (1 if trap == "hops" else 2)
        os.kill(pid, signal.SIGKILL)
        assert all(map(has_ended, handles))
        assert are_gone(word)
    for handle in handles:
        os.close(handle)
