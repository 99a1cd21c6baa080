"""The Postgres store keeps the contract, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer
from weft.store import Store
from weft.store.postgres import PostgresStore, open_postgres
from weft.testing.store_contract import StoreContract

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres_server: PostgresServer) -> None:
        self._dsn = postgres_server.dsn()

    async def open(self, place: Path) -> PostgresStore:
        # A tenant for each place: what one writes, no other may see.
        return await open_postgres(self._dsn, tenant=str(place))

    async def abandon(self, store: Store) -> None:
        assert isinstance(store, PostgresStore)
        await store.abandon()
