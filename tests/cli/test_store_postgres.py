"""`weft` on a Postgres store: sessions there, and stores copied there and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.process


def weft(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "WEFT_HOME": str(home / "weft")}
    return subprocess.run(
        [sys.executable, "-m", "weft", *words],
        env=environ, cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_session_of_the_command_line_moves_to_postgres_and_goes_on_there(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": ["One.", "Two."]}))
    address = f"{postgres_server.dsn()}&tenant={tmp_path}"
    first = weft(tmp_path, "-m", f"scripted:{script}", "-p", "hello")
    assert first.stdout.strip() == "One."
    copied = weft(tmp_path, "store", "copy", str(tmp_path / "weft/weft.db"), address)
    assert copied.returncode == 0, copied.stderr
    assert "both are alike" in copied.stderr + copied.stdout
    there = ("--set", f"store.address={address}")
    again = weft(tmp_path, *there, "-m", f"scripted:{script}", "-c", "-p", "and now?")
    assert again.returncode == 0, again.stderr
    listed = json.loads(weft(tmp_path, *there, "session", "list", "--json").stdout)
    assert len(listed) == 1
    back = weft(tmp_path, "store", "copy", address, str(tmp_path / "back.db"))
    assert back.returncode == 0, back.stderr
    assert weft(tmp_path, "store", "verify", str(tmp_path / "back.db")).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("store", "copy", "a.db"), "FROM TO"),
        (("store", "copy", "a.db", "b.db"), "one of both is a SQLite file"),
        (("store", "migrate"), "takes an address"),
        (("store", "migrate", "postgres:nowhere"), "named by its address"),
        (("--set", "store.address=postgres://h/d", "store", "backup"), "pg_dump"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = weft(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_database_that_is_not_there_is_said_without_its_password(tmp_path: Path) -> None:
    address = "postgres://weft:hunter2secret@127.0.0.1:1/weft"
    done = weft(tmp_path, "--set", f"store.address={address}", "session", "list")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "hunter2" not in done.stderr
