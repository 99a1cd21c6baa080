"""What is left of a session that was deleted: nothing that can be read below the data folder."""

from __future__ import annotations

import pytest

from tests.support.file_tree import files_holding
from tests.support.rewind_project import open_world, shell, turns, write
from tests.support.sandboxed_session import skip_without_sandbox
from tests.support.world import World
from weft.ids import SessionId

pytestmark = [pytest.mark.anyio, pytest.mark.process]

MARK = "xylophone7"


def found(world: World) -> list[str]:
    """Files of ours that hold the mark; the project's own are the user's."""
    return [name for name in files_holding(world.base, MARK) if not name.startswith("project/")]


@pytest.mark.parametrize("store", ["sqlite", "jsonl"])
@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_a_deleted_session_leaves_nothing_to_read_below_the_data_folder(
    world: World, store: str, sandbox: str
) -> None:
    if world.kind == "memory":
        pytest.skip("it has no files")
    world.write("notes.txt", f"{MARK} before\n" * 50)
    model = turns(
        [
            write("notes.txt", f"{MARK} written"),
            shell(f"for i in $(seq 9000); do echo {MARK} $i; done; echo {MARK} more > more.txt"),
            shell("rm more.txt notes.txt"),
        ]
    )
    async with open_world(world, model, sandbox=sandbox) as app:
        where = None if store == "sqlite" else store
        session = await app.sessions.start_session(
            session_id="s", title=f"{MARK} title", auto_approve=True, store=where
        )
        await session.send_message(f"{MARK} prompt")
        await app.host.save_handover(SessionId("s"), f"{MARK} handover")
        assert found(world)
        await app.sessions.delete_session("s")
        assert found(world) == []
    assert found(world) == []


async def test_what_a_dead_process_left_in_the_sandbox_goes_with_the_session(world: World) -> None:
    if world.kind == "memory":
        pytest.skip("it has no files")
    model = turns(shell("echo 1 > a.txt"), shell("echo 2 > b.txt"))
    async with open_world(world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, world)
        gone = await app.sessions.start_session(session_id="gone", auto_approve=True)
        await gone.send_message("go")
    dead = world.base / "sandbox" / "1-dead"
    dead.mkdir()
    for name in ("lock", "done-0123456789abcdef-000001-0"):
        (dead / name).write_text(MARK)
    async with open_world(world, model, sandbox="auto") as app:
        await app.sessions.delete_session("gone")
    assert found(world) == []


async def test_the_files_of_a_project_are_forgotten_when_its_last_user_lets_go(
    world: World,
) -> None:
    if world.kind == "memory":
        pytest.skip("it has no files")
    world.write("notes.txt", MARK)
    model = turns(shell("rm notes.txt"), shell("echo 1 > a.txt"))
    async with open_world(world, model) as app:
        gone = await app.sessions.start_session(session_id="gone", auto_approve=True)
        stays = await app.sessions.start_session(session_id="stays", auto_approve=True)
        await gone.send_message("remove it")
        assert found(world)
        await app.sessions.delete_session("gone")
        await stays.send_message("go on")
        assert [each.path for each in await stays.touched_files()] == ["a.txt"]
    assert found(world) == []
