"""The jsonl store keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.store import Store
from weft.store.jsonl import JsonlStore, open_jsonl
from weft.testing.store_contract import StoreContract

pytestmark = pytest.mark.anyio


class TestJsonlStore(StoreContract):
    async def open(self, place: Path) -> JsonlStore:
        return await open_jsonl(place / "store")

    async def abandon(self, store: Store) -> None:
        assert isinstance(store, JsonlStore)
        store._presence.abandon()
