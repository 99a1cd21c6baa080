"""Snapshots: the project's files at the end of each turn that had an effect, in the log."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.support.file_tree import TreeEntry, tree, with_git_modes
from tests.support.rewind_project import (
    last_id,
    make_files,
    open_world,
    project_tree,
    shell,
    start,
    turns,
    write,
)
from tests.support.world import World, facts, running, until
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import SystemNote, ToolComplete, ToolOutput, TurnFinished, WorkspaceSnapshot
from weft.providers.script import CallTool
from weft.runtime.snapshots.project_snapshots import MOST_FILES
from weft.store import MemoryStore
from weft.store.base import files_stream
from weft.workspace.history.project_tree import tree_mode

pytestmark = [pytest.mark.anyio, pytest.mark.process]

SANDBOX = pytest.mark.parametrize("sandbox", ["off", "auto"])


async def snapshots(session: Session) -> list[WorkspaceSnapshot]:
    return await facts(session, WorkspaceSnapshot)


def changes(snapshot: WorkspaceSnapshot) -> list[tuple[str, str]]:
    return [(each.path, each.by) for each in snapshot.changes]


@SANDBOX
async def test_a_turn_with_an_effect_ends_with_a_snapshot_that_says_who_changed_what(
    world: World, sandbox: str
) -> None:
    world.write("kept.txt", "1\n")
    model = turns(
        shell("echo 1 > made.txt"), [write("b.txt", "2"), shell("mkdir d; echo 3 > d/c.txt")]
    )
    async with open_world(world, model, sandbox=sandbox) as app:
        session = await start(app)
        await session.send_message("first")
        world.write("kept.txt", "the user's\n")
        await session.send_message("second")
        first, between, second = await snapshots(session)
    assert first.tree
    assert (first.changes, first.after) == ((), None)
    assert changes(between) == [("kept.txt", "outside")]
    assert changes(second) == [("b.txt", "session"), ("d", "session"), ("d/c.txt", "session")]
    assert (between.after, second.after) == (first.tree, between.tree)


@pytest.mark.requirement("session:files_at", "session:write_files")
@SANDBOX
async def test_files_of_every_kind_are_rebuilt_though_the_project_is_gone(
    world: World, sandbox: str
) -> None:
    make_files(world)
    model = turns(
        [write("a.txt", "2"), shell("rm -r d; chmod 755 secret; ln -sfn binary link; mkdir away2")],
        shell("rm binary; echo 9 > a.txt"),
    )
    async with open_world(world, model, sandbox=sandbox) as app:
        session = await start(app)
        beginning = project_tree(world)
        copies: dict[str, dict[str, TreeEntry]] = {}
        for prompt in ("first", "second"):
            await session.send_message(prompt)
            copies[await last_id(session)] = project_tree(world)
        (prompt, _), *_ = await session.messages_with_ids()
        copies[prompt] = beginning
    for path in ("a.txt", "dos.txt", "secret", "link"):
        (world.project / path).unlink()
    async with open_world(world, turns(), sandbox=sandbox) as app:
        session = await start(app)
        for node, copy in copies.items():
            files = await session.files_at(node)
            assert files.is_exact
            target = world.base / f"rebuilt-{node}"
            assert await session.write_files(target, node) == []
            assert tree(target) == with_git_modes(copy)
            assert {path: each.mode for path, each in files.files.items()} == {
                path: tree_mode(each.mode) for path, each in copy.items()
            }


async def test_a_turn_without_effect_has_no_snapshot_and_the_files_of_the_one_before(
    world: World,
) -> None:
    world.write("a.txt", "1\n")
    model = turns([], CallTool(name="read", args={"path": "a.txt"}), shell("echo 2 > a.txt"), [])
    async with open_world(world, model) as app:
        session = await start(app)
        for prompt in ("talk", "read"):
            await session.send_message(prompt)
        assert await snapshots(session) == []
        with pytest.raises(UsageError, match="no snapshot"):
            await session.files_at(await last_id(session))
        await session.send_message("change")
        await session.send_message("talk")
        assert len(await snapshots(session)) == 1
        files = await session.files_at(await last_id(session))
        assert not files.is_exact
        assert (await session.read_file("a.txt", -1)).text == "2\n"


async def test_a_turn_that_only_talks_still_tells_what_the_user_changed(world: World) -> None:
    world.write("a.txt", "1\n")
    async with open_world(world, turns(shell("true"), [])) as app:
        session = await start(app)
        await session.send_message("look")
        world.write("a.txt", "the user's\n")
        await session.send_message("talk")
        _, second = await snapshots(session)
        assert changes(second) == [("a.txt", "outside")]
        assert (await session.read_file("a.txt", -1)).text == "the user's\n"


async def test_an_edit_of_another_session_is_not_marked_as_the_users(world: World) -> None:
    world.write("a.txt", "1\n")
    model = turns(shell("true"), shell("echo 2 > a.txt"), shell("true"))
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("look")
        other = await app.sessions.start_session(auto_approve=True)
        await other.send_message("edit")
        await session.send_message("look again")
        _, second, _ = await snapshots(session)
    assert changes(second) == [("a.txt", "outside")]


async def test_an_effect_that_changed_nothing_names_the_same_tree(world: World) -> None:
    world.write("a.txt", "1\n")
    async with open_world(world, turns(shell("true"), shell("cat a.txt"))) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        first, second = await snapshots(session)
    assert second.tree == second.after == first.tree
    assert second.changes == ()


@SANDBOX
async def test_the_tree_hash_stands_beside_each_exit_code(world: World, sandbox: str) -> None:
    world.write("a.txt", "1\n")
    calls = [shell("true"), shell("echo 2 > a.txt; exit 3"), shell("echo 1 > a.txt")]
    async with open_world(world, turns(shell("true"), calls), sandbox=sandbox) as app:
        session = await start(app)
        await session.send_message("look")  # from here on every file is known
        await session.send_message("go")
        done = [fact.result.data for fact in await facts(session, ToolComplete)][1:]
        first, last = await snapshots(session)
    assert [each["exit_code"] for each in done] == [0, 3, 0]
    one, two, three = (each["tree"] for each in done)
    assert one == three == first.tree == last.tree
    assert two != one


async def test_a_background_command_says_on_which_files_it_ended(world: World) -> None:
    args = {"command": "until test -e go; do :; done; echo 1 > made.txt", "background": True}
    model = turns(CallTool(name="shell", args=args), [])
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("start it")
        world.write("go", "")
        note = await until(session, SystemNote, after=(await session.editor_snapshot()).seq)
        await until(session, TurnFinished, after=note.seq)
        *_, last = await snapshots(session)
    assert note.background is not None
    assert note.background.tree == str(last.tree)
    # The user was at work while it ran, and so neither can be told for certain.
    assert set(changes(last)) == {("go", "unknown"), ("made.txt", "unknown")}


async def test_what_a_tool_of_a_program_changed_is_not_taken_for_an_edit_from_outside(
    world: World,
) -> None:
    async def scribble() -> str:
        """Write something."""
        world.write("scribbled.txt", "x")
        return "done"

    model = turns(shell("true"), CallTool(name="scribble", args={}))
    async with open_world(world, model) as app:
        session = await start(app, tools=["shell", scribble])
        await session.send_message("one")
        await session.send_message("two")
        _, second = await snapshots(session)
    assert changes(second) == [("scribbled.txt", "unknown")]


@pytest.mark.requirement("session:read_file")
async def test_what_a_limit_leaves_out_is_named(world: World) -> None:
    world.write("small.txt", "1\n")
    (world.project / "large.bin").write_bytes(bytes(3_000))
    os.mkfifo(world.project / "pipe")
    model = turns(shell("true"), shell("head -c 4000 /dev/zero > large.bin; echo 2 > small.txt"))
    async with open_world(world, model, history__max_file=2_000) as app:
        session = await start(app)
        await session.send_message("one")
        await session.send_message("two")
        first, second = await snapshots(session)
        at = await last_id(session)
        assert (await session.read_file("small.txt", at)).text == "2\n"
        world.write("small.txt", "3\n")
        assert (await session.read_file("small.txt")).text == "3\n"
        with pytest.raises(UsageError, match="is not kept: too large"):
            await session.read_file("large.bin", at)
    named = {each.path: each.why for each in first.left_out}
    assert named == {"large.bin": "too large", "pipe": "not a regular file"}
    assert [(each.path, each.why) for each in second.left_out] == [("large.bin", "too large")]


@pytest.mark.parametrize("call", [shell("true"), write("a.txt", "")], ids=["shell", "write"])
async def test_content_beyond_the_quota_is_named_and_its_hash_is_known(
    world: World, call: CallTool
) -> None:
    for number in range(9):
        (world.project / f"{number}.bin").write_bytes(bytes([number]) * 10_000)
    async with open_world(world, turns(call), history__quota=32 * 45_000) as app:
        session = await start(app)
        await session.send_message("one")
        (snapshot,) = await snapshots(session)
        files = await session.files_at(await last_id(session))
    left = [each.path for each in snapshot.left_out]
    assert len(left) == 5
    assert {each.why for each in snapshot.left_out} == {"quota"}
    assert all(files.files[path].content for path in left)
    assert not files.is_exact
    assert [(each.path, each.why) for each in files.left_out] == [(path, "quota") for path in left]
    assert files.why.startswith("not every content is stored: 4.bin (quota)")


async def test_a_content_that_is_gone_is_named_and_the_files_are_not_exact(world: World) -> None:
    world.write("a.txt", "1\n")
    world.write("b.txt", "2\n")
    async with open_world(world, turns(shell("true"))) as app:
        session = await start(app)
        await session.send_message("one")
        assert (await session.files_at(-1)).is_exact
        await app.store.trim_history(str(world.project), 2)
        files = await session.files_at(-1)
        (gone,) = files.left_out
        assert (gone.why, files.files[gone.path].why, files.is_exact) == ("quota", "quota", False)
        assert gone.path in files.why
        with pytest.raises(UsageError, match="is not kept"):
            await session.read_file(gone.path, -1)


async def test_the_quota_drops_what_was_replaced_and_not_the_files_of_now(world: World) -> None:
    world.write("old.txt", "never changed\n")
    work = [shell(f"head -c 9000 /dev/zero | tr '\\0' {letter} > big") for letter in "abcdefgh"]
    async with open_world(world, turns(*work), history__quota=64_000) as app:
        session = await start(app)
        for number in range(len(work)):
            await session.send_message(f"{number}")
        files = await session.files_at(-1)
        assert (files.is_exact, files.why) == (True, "")
        assert (await session.read_file("old.txt", -1)).text == "never changed\n"
        assert not (await session.files_at(1)).is_exact


async def test_a_second_session_names_the_tree_and_stores_no_file_again(plain_world: World) -> None:
    for number in range(30):
        plain_world.write(f"d{number % 3}/{number}.txt", f"{number}\n")
    async with open_world(plain_world, turns(shell("true"), shell("true"))) as app:
        await (await start(app)).send_message("one")
        store = app.store
        assert isinstance(store, MemoryStore)
        files = store.data.streams[files_stream(str(plain_world.project))]
        assert len(files.history) == 30
        other = await app.sessions.start_session(session_id="t", auto_approve=True)
        await other.send_message("two")
        (snapshot,) = await snapshots(other)
        added = store.data.streams["t"]
        assert added.history == {}
        assert added.blobs & {*files.blobs, *files.history} == {snapshot.tree}
        await app.sessions.delete_session("s")
        assert (await other.files_at(-1)).is_exact
        await app.sessions.delete_session("t")
        assert store.data.blobs == {}


async def test_where_commands_are_not_watched_the_snapshot_says_why(world: World) -> None:
    async with open_world(world, turns(shell("true")), history__quota=0) as app:
        session = await start(app)
        await session.send_message("one")
        (snapshot,) = await snapshots(session)
        with pytest.raises(UsageError, match="no snapshot"):
            await session.files_at(await last_id(session))
    assert (snapshot.tree, snapshot.why) == (None, "history.quota is 0")


async def test_a_turn_that_is_stopped_has_a_snapshot_of_what_it_had_done(world: World) -> None:
    model = turns(shell("echo 1 > half.txt; echo ready; sleep 600"))
    async with open_world(world, model) as app:
        session = await start(app)
        async with running(lambda: session.send_message("go")):
            await until(session, ToolOutput)
            await session.abort()
        (snapshot,) = await snapshots(session)
        files = await session.files_at(await last_id(session))
        assert snapshot.tree == files.tree
        assert (await session.read_file("half.txt", -1)).text == "1\n"


async def test_another_process_marks_what_happened_meanwhile_as_from_outside(world: World) -> None:
    world.write("a.txt", "1\n")
    model = turns(write("b.txt", "1"), write("c.txt", "2"))
    async with open_world(world, model) as app:
        await (await start(app)).send_message("one")
    world.write("a.txt", "the user's\n")
    (world.project / "b.txt").unlink()
    async with open_world(world, model) as app:
        session = await start(app)
        await session.send_message("two")
        *_, last = await snapshots(session)
    assert changes(last) == [("a.txt", "outside"), ("b.txt", "outside"), ("c.txt", "session")]


async def test_a_fork_shares_the_snapshots_and_outlives_what_it_was_forked_from(
    world: World,
) -> None:
    world.write("a.txt", "1\n")
    async with open_world(world, turns(shell("echo 2 > b.txt"), shell("rm b.txt"))) as app:
        session = await start(app)
        await session.send_message("one")
        place = await last_id(session)
        fork = await app.sessions.fork_session("s", place)
        await app.sessions.delete_session("s")
        assert (await fork.read_file("a.txt", place)).text == "1\n"
        assert (await fork.read_file("b.txt", place)).text == "2\n"


async def test_a_file_at_a_message_is_what_the_user_had_there_then(world: World) -> None:
    world.write("a.txt", "1\n")
    async with open_world(world, turns(shell("true"), shell("rm a.txt"))) as app:
        session = await start(app)
        await session.send_message("one")
        place = await last_id(session)
        world.write("a.txt", "the user's\n")
        world.write("later.txt", "the user's\n")
        await session.send_message("two")
        assert (await session.read_file("a.txt", place)).text == "1\n"
        with pytest.raises(UsageError, match="there was no file"):
            await session.read_file("later.txt", place)
        with pytest.raises(UsageError, match="there is no file"):
            await session.read_file("a.txt")


@pytest.mark.requirement("session:read_file:at")
async def test_a_file_at_a_message_is_decided_by_the_stored_tree_alone(world: World) -> None:
    world.write(".gitignore", "ignored.txt\n")
    world.write("plain/a.txt", "1\n")
    world.write("keys/key.txt", "then\n")
    (world.project / "link.txt").symlink_to("plain/a.txt")
    (world.project / "way").symlink_to("plain")
    async with open_world(world, turns(shell("true"))) as app:
        session = await start(app)
        await session.send_message("one")
        # What the user does since is in no snapshot: the disk must not be asked.
        world.write("made-since.txt", "now\n")
        world.write("ignored.txt", "now\n")
        shutil.rmtree(world.project / "keys")
        (world.project / "keys").symlink_to("plain")
        (world.project / "keys" / "key.txt").write_text("now\n")
        (world.project / "link.txt").unlink()
        world.write("link.txt", "now\n")
        shutil.rmtree(world.project / "plain")
        world.write("plain", "now\n")
        for path in ("made-since.txt", "ignored.txt", "plain", "never/was.txt", "way/a.txt"):
            with pytest.raises(UsageError, match=f"'{path}'"):
                print(await session.read_file(path, -1))
        with pytest.raises(UsageError, match="'way' was a link"):
            await session.read_file("way/a.txt", -1)
        with pytest.raises(UsageError, match="outside the project"):
            await session.read_file("../elsewhere.txt", -1)
        assert (await session.read_file("plain/a.txt", -1)).text == "1\n"
        assert (await session.read_file("keys/key.txt", -1)).text == "then\n"
        absolute = await session.read_file(str(world.project / "keys" / "key.txt"), -1)
        assert (absolute.path, absolute.text) == ("keys/key.txt", "then\n")
        link = await session.read_file("link.txt", -1)
        assert (link.text, link.media_type, link.is_exact) == ("plain/a.txt", "inode/symlink", True)


async def test_without_a_snapshot_a_file_at_a_message_is_not_guessed(world: World) -> None:
    world.write("a.txt", "1\n")
    world.write("b.txt", "1\n")
    model = turns([], [CallTool(name="read", args={"path": "b.txt"}), write("b.txt", "2\n")])
    async with open_world(world, model, history__quota=0) as app:
        session = await start(app)
        await session.send_message("talk")
        place = await last_id(session)
        await session.send_message("change")
        with pytest.raises(UsageError, match=r"what 'a\.txt' held at .* is not known"):
            await session.read_file("a.txt", place)
        # The session kept what it found there; what came in between is not known.
        found = await session.read_file("b.txt", place)
        assert (found.text, found.is_exact) == ("1\n", False)


async def test_a_content_of_a_file_that_may_not_be_read_is_refused(world: World) -> None:
    world.write("keys/a.key", "TOPSECRET\n")
    world.write("b.txt", "1\n")
    model = turns(write("c.txt", "2"))
    async with open_world(world, model, permissions__deny=["read(keys/**)"]) as app:
        session = await start(app)
        await session.send_message("one")
        files = (await session.files_at(-1)).files
        key, other = files["keys/a.key"].content, files["b.txt"].content
        assert key
        assert other
        assert await app.read_blob(other) == b"1\n"
        with pytest.raises(UsageError, match="which is not read"):
            await app.read_blob(key)


@SANDBOX
async def test_secrets_have_a_hash_and_their_content_is_not_stored(
    world: World, sandbox: str
) -> None:
    secrets = {".env", "app/.env.local", "deploy/id_rsa", "home/.ssh/config", "keys/a.key"}
    for number, path in enumerate(sorted(secrets)):
        world.write(path, f"TOPSECRET {number}\n")
    world.write(".env.example", "KEY=\n")
    rules = ["read(keys/**)"]
    async with open_world(
        world, turns(write("c.txt", "2")), sandbox=sandbox, permissions__deny=rules
    ) as app:
        session = await start(app)
        await session.send_message("one")
        (snapshot,) = await snapshots(session)
        files = (await session.files_at(-1)).files
        left = await session.write_files(world.base / "to", -1)
    assert {(each.path, each.why) for each in snapshot.left_out} == {
        (path, "secret") for path in secrets
    }
    assert {each.path for each in left} == secrets
    assert all(files[path].content for path in secrets)
    assert (world.base / "to" / ".env.example").read_text() == "KEY=\n"


async def test_files_beyond_the_number_of_one_snapshot_are_named_and_their_hashes_known(
    plain_world: World,
) -> None:
    for number in range(MOST_FILES + 3):
        (plain_world.project / f"{number:05}.txt").write_text(f"{number}\n")
    async with open_world(plain_world, turns(shell("true"))) as app:
        session = await start(app)
        await session.send_message("one")
        (snapshot,) = await snapshots(session)
        files = (await session.files_at(-1)).files
    assert {each.why for each in snapshot.left_out} == {"too many files at once"}
    assert [each.path for each in snapshot.left_out] == ["04000.txt", "04001.txt", "04002.txt"]
    assert all(files[each.path].content for each in snapshot.left_out)
