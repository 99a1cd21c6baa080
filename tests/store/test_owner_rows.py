"""Rows of processes: those of older programs are read, and ours are read by older programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.store_connection import open_connection
from weft.store.jsonl import open_jsonl
from weft.store.sqlite import open_sqlite

pytestmark = pytest.mark.anyio

PATH = "/run/one.sock"


async def test_a_row_of_an_older_program_in_sqlite_has_an_address(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await open_sqlite(path) as one, await open_sqlite(path) as two:
        await one.take_lease("s")
        with open_connection(path) as db:
            db.execute("update processes set socket = ?", (PATH,))
        lease = await two.lease_of("s")
        assert lease is not None
        assert (lease.owner.address, lease.owner.accepting) == (f"unix:{PATH}", True)


async def test_a_row_of_an_older_program_in_jsonl_has_an_address(tmp_path: Path) -> None:
    async with await open_jsonl(tmp_path) as one, await open_jsonl(tmp_path) as two:
        await one.take_lease("s")
        [file] = (tmp_path / "processes").glob("*.json")
        row = json.loads(file.read_text())
        assert set(row) <= {"process_id", "pid", "started", "host", "boot_id", "socket"}
        file.write_text(json.dumps({**row, "socket": PATH}))
        lease = await two.lease_of("s")
        assert lease is not None
        assert (lease.owner.address, lease.owner.accepting) == (f"unix:{PATH}", True)


async def test_a_socket_of_ours_is_stored_as_older_programs_look_for_it(tmp_path: Path) -> None:
    async with await open_sqlite(tmp_path / "weft.db") as one, await open_jsonl(tmp_path) as two:
        await one.register_address(f"unix:{PATH}")
        await two.register_address(f"unix:{PATH}")
        with open_connection(tmp_path / "weft.db") as db:
            assert [tuple(row) for row in db.execute("select socket from processes")] == [(PATH,)]
        [file] = (tmp_path / "processes").glob("*.json")
        assert json.loads(file.read_text())["socket"] == PATH
