"""The SQLite store keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.store import Store
from weft.store.sqlite import SqliteStore, open_sqlite
from weft.testing.store_contract import StoreContract

pytestmark = pytest.mark.anyio


class TestSqliteStore(StoreContract):
    async def open(self, place: Path) -> SqliteStore:
        return await open_sqlite(place / "weft.db")

    async def abandon(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        store._presence.abandon()
