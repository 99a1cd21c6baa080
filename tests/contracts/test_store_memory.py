"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.store import MemoryData, MemoryStore
from weft.testing.store_contract import StoreContract

pytestmark = pytest.mark.anyio


class TestMemoryStore(StoreContract):
    _places: dict[Path, MemoryData] = {}

    async def open(self, place: Path) -> MemoryStore:
        return MemoryStore(data=self._places.setdefault(place, MemoryData()))
