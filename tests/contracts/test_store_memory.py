"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.store import MemoryData, MemoryStore, Store
from weft.testing.store_contract import StoreContract

pytestmark = pytest.mark.anyio


class TestMemoryStore(StoreContract):
    _places: dict[Path, MemoryData] = {}

    async def open(self, place: Path) -> MemoryStore:
        return MemoryStore(data=self._places.setdefault(place, MemoryData()))

    async def abandon(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        del store.data.living[store.owner.process_id]
