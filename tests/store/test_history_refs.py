"""Files of the first schema get the table for file history, and lose nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.store_connection import open_connection
from weft.ids import SessionId
from weft.store import Append, Blob, Record, SessionRow
from weft.store.sqlite import open_sqlite
from weft.testing.store_contract import blob_id

pytestmark = pytest.mark.anyio


async def test_a_file_of_the_first_schema_is_brought_up_and_goes_on(tmp_path: Path) -> None:
    path, session = tmp_path / "weft.db", SessionId("ses_a")
    data = b"what it was"
    blob = Blob(blob_id(data), data)
    row = SessionRow(id=session, project_path="/p")
    async with await open_sqlite(path) as store:
        lease = await store.take_lease(session)
        add = Append(
            stream=session,
            expected_seq=0,
            records=(Record(1, 1.0, "k", b"{}"),),
            fence=lease.fence,
            row=row,
            blobs=(blob,),
        )
        await store.append(add)
    db = open_connection(path)
    for statement in ("drop table history_refs", "pragma user_version = 1"):
        db.execute(statement)
    db.close()
    async with await open_sqlite(path) as store:
        lease = await store.take_lease(session)
        assert await store.trim_history("/p", 0) == 0
        assert await store.blob(blob.id) == data
        other = Blob(blob_id(b"other"), b"other")
        again = msgspec.structs.replace(
            add,
            expected_seq=1,
            records=(Record(2, 2.0, "k", b"{}"),),
            fence=lease.fence,
            blobs=(other,),
            history=(other.id,),
        )
        await store.append(again)
        assert await store.trim_history("/p", 0) == len(b"other")
        assert await store.blob(blob.id) == data
