"""`app.index`: files, symbols, outlines and maps of the project."""

from __future__ import annotations

import fcntl
from pathlib import Path

import anyio
import pytest

import weft
from tests.support.world import World
from weft.app import app as app_module
from weft.errors import RetryableToolError, UsageError
from weft.providers.scripted import ScriptedModel
from weft.repo import ProjectIndex

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.mark.requirement("app:index")
async def test_the_index_of_a_project_answers_as_the_files_are_now(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("class Cart:\n    def total(self): ...\n")
    (tmp_path / "notes.txt").write_text("words\n")
    async with weft.open(tmp_path, "memory", {"repo.index": True}) as app:
        assert not (await app.index.status()).is_there
        assert await app.index.files() == ["cart.py", "notes.txt"]
        [symbol] = await app.index.symbols("Cart.total")
        assert (symbol.path, symbol.definition.first) == ("cart.py", 2)
        assert await app.index.find("ntxt") == await app.index.find("NOTES") == ["notes.txt"]
        assert await app.index.find("t", ["notes.txt"]) == ["notes.txt", "cart.py"]
        (tmp_path / "cart.py").write_text("def basket(): ...\n")
        assert await app.index.symbols("Cart.total") == []
        assert [each.name for each in await app.index.outline("cart.py")] == ["basket"]
        assert (await app.index.map("the basket")).startswith("cart.py\n  def basket()")
        with pytest.raises(UsageError, match="no source file"):
            await app.index.outline("notes.txt")
        with pytest.raises(UsageError, match="tokens"):
            await app.index.map("x", tokens=0)


async def test_without_the_setting_there_is_no_index(tmp_path: Path) -> None:
    async with weft.open(tmp_path, "memory", {"repo.index": False}) as app:
        with pytest.raises(UsageError, match=r"repo\.index is off"):
            _ = app.index


async def test_an_index_that_cannot_be_made_or_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("class Cart: ...\n")
    async with weft.open(tmp_path, "memory", {"repo.index": True}) as app:
        folder = app.places.index_of(app.project_path)
        folder.parent.mkdir(parents=True)
        folder.write_text("a file in its place")
        with pytest.raises(RetryableToolError, match="could not be brought up to date"):
            await app.index.map("cart")
        folder.unlink()
        assert await app.index.map("cart")


async def test_the_index_of_another_project_of_a_session_is_kept_current(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    there = tmp_path / "there"
    (there / "cart.py").write_text("class Cart: ...\n")
    config = {"repo.index": True}
    async with weft.open(there, tmp_path / "store", config) as app:
        await app.index.files()
        index = ProjectIndex(str(there), app.places.index_of(str(there)))
    (there / "cart.py").write_text("class Basket: ...\n")
    async with weft.open(tmp_path / "here", tmp_path / "store", config) as app:
        session = await app.sessions.start_session(project_path=there, model=ScriptedModel(["one"]))
        await session.send_message("zzz")
        folder = app.places.index_of(str(there))
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # it is held as long as the indexer works
    assert [each.path for each in index.symbols("Basket")] == ["cart.py"]
    index.close()


@pytest.mark.requirement("app:topics")
async def test_the_topic_of_the_project_tells_which_files_change(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text("class Cart: ...\n")
    async with weft.open(tmp_path, "memory", {"repo.index": True}) as app:
        events = await app.subscribe("repo:updates")
        (tmp_path / "cart.py").write_text("class Basket: ...\n")
        (tmp_path / "rate.py").write_text("RATE = 1\n")
        seen: dict[str, str] = {}
        with anyio.fail_after(30):
            async for update in events:
                seen |= update.changes
                if seen == {"cart.py": "modified", "rate.py": "created"}:
                    break
        assert [each.path for each in await app.index.symbols("Basket")] == ["cart.py"]
    with anyio.fail_after(30):
        assert [update async for update in events] == []


async def test_a_project_that_is_not_watched_has_no_such_topic(tmp_path: Path) -> None:
    async with weft.open(tmp_path, "memory", {"repo.index": True, "repo.watch": False}) as app:
        with pytest.raises(UsageError, match=r"repo\.watch is off"):
            await app.subscribe("repo:updates")
        with pytest.raises(UsageError, match="there are 'sessions' and 'repo:updates'"):
            await app.subscribe("nothing")


async def test_a_project_without_code_is_not_looked_at_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def look(project: str) -> bool:
        looked.append(project)
        return False

    monkeypatch.setattr(app_module, "holds_source", look)
    world = World("sqlite", tmp_path)
    async with world.open(ScriptedModel([]), config={"repo.index": True}) as app:
        for _ in range(3):
            app._update_indexes(set())
        assert len(looked) == 1
