"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from weft.ids import SessionId
from weft.store import MemoryData, MemoryStore, SessionRow, Store
from weft.testing.store_contract import StoreContract, add_row

pytestmark = pytest.mark.anyio


class TestMemoryStore(StoreContract):
    _places: dict[Path, MemoryData] = {}

    async def open(self, place: Path) -> MemoryStore:
        return MemoryStore(data=self._places.setdefault(place, MemoryData()))

    async def abandon(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        del store.data.living[store.owner.process_id]


class PagedStore(MemoryStore):
    """One without an index of what waits, that lists two rows at once at most."""

    due = Store.due

    async def rows(self, **wanted: Any) -> list[SessionRow]:
        return await super().rows(**{**wanted, "limit": 2})


async def test_a_store_without_an_index_of_what_waits_looks_at_all_its_sessions() -> None:
    async with PagedStore() as store:
        for number in range(7):
            path = f"/{number % 2}"
            row = SessionRow(id=SessionId(f"ses_{number}"), last_active=number, project_path=path)
            await add_row(store, msgspec.structs.replace(row, wake_at=1.0 + number))
        await add_row(store, SessionRow(id=SessionId("ses_child"), wake_at=0.5, is_child=True))
        found = await store.due(5.0, project_path="/0")
        assert [row.id for row in found] == ["ses_0", "ses_2", "ses_4"]
        assert [row.id for row in await store.due(5.0, limit=3)] == ["ses_0", "ses_1", "ses_2"]
