"""What a dead process left running is killed as soon as a store finds that it is dead."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import msgspec
import pytest

from tests.crash import plug
from tests.support.background_shell import plays
from weft.runtime.workspaces.orphan_search import ORPHAN_SEARCH, OrphanSearch
from weft.workspace.process.command_keeper import CommandKeeper


@pytest.mark.anyio
@pytest.mark.process
async def test_another_session_on_the_same_store_is_enough_to_end_orphans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = plug.prepared(tmp_path)
    found = plug.planned(1, "outside", 8)
    plan = msgspec.structs.replace(found, strays=("session+double",), token=f"{found.token}-left")
    with monkeypatch.context() as without_keeper:
        without_keeper.setattr(CommandKeeper, "_taken", lambda keeper, environ: None)
        assert isinstance(plug.killed_inside(world, plan), dict)
    assert plug.bearing(plan.token)
    async with world.open(plays("hello")) as app:
        session = await app.sessions.start_session(session_id="another")
        await session.send_message("hello")
        await anyio.to_thread.run_sync(ORPHAN_SEARCH.wait)
    assert not plug.bearing(plan.token)


def test_a_death_during_a_search_begins_another_one() -> None:
    seen: list[int] = []

    def kill() -> int:
        seen.append(len(seen))
        if len(seen) == 1:
            search.begin()
        return 0

    search = OrphanSearch(kill)
    search.begin()
    search.wait()
    assert seen == [0, 1]


def test_a_search_that_fails_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []

    def kill() -> int:
        seen.append(len(seen))
        if len(seen) == 1:
            raise ValueError("a strange process")
        return 0

    search = OrphanSearch(kill)
    for _ in range(2):
        search.begin()
        search.wait()
    assert seen == [0, 1]
    assert "a strange process" in caplog.text
