"""The files of the page: sent compressed to those who take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "assets" / "main-A.js").write_text("plain")
    (folder / "assets" / "main-A.js.br").write_bytes(b"packed")
    (folder / "assets" / "other-B.js").write_text("only plain")
    return folder


async def asked(served: ServedWorld, name: str, accepted: str | None) -> tuple[bytes, str, str]:
    headers = {"Connection": "close", "Accept-Encoding": accepted, "Authorization": None}
    answer = await served.exchange(served.head("GET", f"/assets/{name}", headers, b""))
    assert answer.status == 200
    found = {key.lower(): value for key, value in answer.headers.items()}
    return answer.body, found.get("content-encoding", ""), found["content-type"]


async def test_a_file_is_sent_compressed_to_a_browser_that_takes_it(
    plain_world: World, page: Path
) -> None:
    script = "text/javascript; charset=utf-8"
    async with serving(plain_world, ScriptedModel([]), page=page) as served:
        packed = await asked(served, "main-A.js", "gzip, br;q=0.9")
        assert packed == (b"packed", "br", script)
        for accepted in (None, "gzip", "brotli, x-br"):
            assert await asked(served, "main-A.js", accepted) == (b"plain", "", script)
        assert await asked(served, "other-B.js", "br") == (b"only plain", "", script)


async def test_a_part_that_was_sent_once_is_there_after_another_build(
    plain_world: World, page: Path
) -> None:
    async with serving(plain_world, ScriptedModel([]), page=page) as served:
        first = await asked(served, "main-A.js", "br")
        for name in ("main-A.js", "main-A.js.br"):
            (page / "assets" / name).unlink()
        assert await asked(served, "main-A.js", "br") == first
