"""Decisions of a repository count in all of its folders and worktrees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import weft
from tests.support.file_tree import files_holding
from weft.app import App
from weft.providers import ChatMessage
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A repository `shop` with a folder `src`, and a worktree of it."""
    shop = tmp_path / "shop"
    (shop / "src" / "store").mkdir(parents=True)
    (shop / "src" / "store" / "base.py").write_text("one\n")
    git(shop, "init", "-q")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "one")
    git(shop, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    nested = shop / "src" / "vendored"
    nested.mkdir()
    git(nested, "init", "-q")
    return tmp_path


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "-C", str(folder), *identity, *args], check=True, capture_output=True)


@asynccontextmanager
async def opened(base: Path, folder: str, store: str = "sqlite") -> AsyncGenerator[App]:
    environ = {"HOME": str(base), "PATH": os.environ["PATH"]}
    place = f"sqlite:{base}/w.db" if store == "sqlite" else f"jsonl:{base}/logs"
    settings = {"sandbox.mode": "off", "repo.index": False}
    async with weft.open(base / folder, place, settings, environ=environ) as app:
        yield app


async def scopes(app: App) -> dict[str, tuple[str, ...]]:
    return {node.title: node.scope for node in await app.decisions.nodes()}


@pytest.mark.parametrize("store", ["sqlite", "jsonl"])
async def test_a_decision_is_seen_from_every_folder_and_worktree_of_its_repository(
    base: Path, store: str
) -> None:
    async with opened(base, "shop", store) as app:
        await app.decisions.log("Keep one writer", scope=["src/store/*.py"])
    async with opened(base, "shop/src", store) as app:
        assert await scopes(app) == {"Keep one writer": ("store/*.py",)}
        await app.decisions.log("No threads", scope=["store/base.py"])
        assert [each.title for each in (await app.decisions.why("store/base.py")).decisions] == [
            "No threads",
            "Keep one writer",
        ]
        assert [each.check for each in (await app.decisions.pulse()).findings] == [
            "decision_without_options",
            "decision_without_options",
        ]
    both = {"Keep one writer": ("src/store/*.py",), "No threads": ("src/store/base.py",)}
    for folder in ("shop", "tree"):
        async with opened(base, folder, store) as app:
            assert await scopes(app) == both
    async with opened(base, "tree", store) as app:
        await app.decisions.log("Log to a file")
    for folder in ("shop", "shop/src", "tree/src"):
        async with opened(base, folder, store) as app:
            assert {*await scopes(app)} == {*both, "Log to a file"}


async def test_other_repositories_have_decisions_of_their_own(base: Path) -> None:
    async with opened(base, "shop") as app:
        await app.decisions.log("Keep one writer")
    for folder in ("other", "shop/src/vendored"):
        async with opened(base, folder) as app:
            assert await scopes(app) == {}
            await app.decisions.log("Ours alone")
    async with opened(base, "shop") as app:
        assert {*await scopes(app)} == {"Keep one writer"}


async def test_what_is_done_to_a_decision_in_a_folder_is_done_for_the_repository(
    base: Path,
) -> None:
    async with opened(base, "shop") as app:
        old = await app.decisions.log("Use YAML", status="proposed", by="model")
        other = await app.decisions.log("Use INI")
    async with opened(base, "shop/src") as app:
        await app.decisions.accept(old.id)
        new = await app.decisions.log("Use TOML", supersedes=other.id)
    for folder in ("shop", "tree"):
        async with opened(base, folder) as app:
            states = {node.id: node.status for node in await app.decisions.nodes()}
            assert states == {old.id: "active", other.id: "superseded", new.id: "active"}


async def test_what_is_purged_in_a_folder_is_gone_from_the_repository(base: Path) -> None:
    async with opened(base, "shop") as app:
        await app.decisions.log("Keep one writer")
        secret = await app.decisions.log("The word is xylophone")
    async with opened(base, "shop/src") as app:
        await app.decisions.change(secret.id, why="xylophone, because")
    async with opened(base, "tree") as app:
        await app.decisions.purge(secret.id)
        assert {*await scopes(app)} == {"Keep one writer"}
    assert files_holding(base, "xylophone") == []
    for folder in ("shop", "shop/src"):
        async with opened(base, folder) as app:
            assert {*await scopes(app)} == {"Keep one writer"}


async def test_the_model_of_a_session_in_a_folder_is_told_what_the_repository_decided(
    base: Path,
) -> None:
    async with opened(base, "shop") as app:
        await app.decisions.log(
            "Store sessions in SQLite", kind="decision", options=["Postgres"], why="One file."
        )
    model = ScriptedModel(["Hello."])
    async with opened(base, "tree/src") as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("Should sessions be stored in Postgres or SQLite?")
    [request] = model.requests
    said = "".join(
        str(message.parts) for message in request.messages if isinstance(message, ChatMessage)
    )
    assert "Store sessions in SQLite" in said
