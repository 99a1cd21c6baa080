"""A key that is saved over HTTP: it counts in every project at once, and is never handed back."""

from __future__ import annotations

import pytest

from tests.support.served_world import serving
from tests.support.world import World

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-" + "Zx9" * 30


async def test_a_saved_key_counts_in_every_project_that_is_open(plain_world: World) -> None:
    other = plain_world.base / "other"
    other.mkdir()
    async with serving(plain_world, providers=None) as served:
        await served.good("POST", "/sessions", {"project_path": str(other), "title": "T"})
        names = [each["id"] for each in await served.good("GET", "/projects")]
        assert len(names) == 2
        answer = await served.call("PUT", f"/projects/{names[0]}/keys/any", {"key": KEY})
        assert answer.status == 200
        assert KEY not in answer.body.decode()
        for name in names:
            found = await served.good("GET", f"/projects/{name}/model-access")
            usable = [each["name"] for each in found["providers"] if each["is_usable"]]
            assert usable == ["anthropic"], name
            assert KEY not in str(found)
