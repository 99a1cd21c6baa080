"""Which tree an id means, what lists name, and what a reader leaves alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec
import pytest

from tests.support.world import World, crash
from weft.app import App
from weft.errors import NodeNotFound, UsageError
from weft.events import NewMessage
from weft.ids import NodeId, new_node_id
from weft.loom import GenerationStore
from weft.loom.tree_transfer import export_tree, import_trees
from weft.loom.trees.tree_edits import text_node
from weft.loop import Commit
from weft.providers.script import SayText
from weft.providers.scripted import ScriptedModel
from weft.store import Append

pytestmark = pytest.mark.anyio


async def grown(loom: GenerationStore) -> tuple[NodeId, NodeId]:
    """A root and its child."""
    root, [child] = await loom.save_continuations("Root", [" and more"], model="m")
    return root.id, child.id


# --- forks -----------------------------------------------------------------------------


async def test_a_write_by_node_id_goes_to_the_tree_that_the_node_was_written_in(
    world: World,
) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
        home = await app.loom.session_of(root)
        fork = (await app.sessions.fork_session(home)).id
        # The fork is in memory, and was used last.
        view = await app.loom.open(fork)
        view.rate(3)
        await view.save()
        added = await app.loom.add_child(child, " written at home")
        await app.loom.update_metadata(child, {"rating": 5})
        assert await app.loom.session_of(added.id) == home
        assert [node.id for node in await app.loom.children(child)] == [added.id]
        assert await app.loom.children(f"{fork}/{child}") == []
        assert (await app.loom.get(f"{fork}/{child}")).rating is None
        assert await app.loom.session_of(child) == home
        await view.aclose()
    async with world.open() as app:
        await app.loom.open(fork, read_only=True)
        assert await app.loom.session_of(child) == home
        await app.loom.add_child(f"{fork}/{child}", " written in the fork")
        assert [node.text for node in await app.loom.children(child)] == [" written at home"]
        below = await app.loom.children(f"{fork}/{child}")
        assert [node.text for node in below] == [" written in the fork"]


async def test_nodes_of_a_deleted_tree_are_found_in_the_oldest_fork(world: World) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
        home = await app.loom.session_of(root)
        first = (await app.sessions.fork_session(home)).id
        world.clock.advance(1)
        await app.sessions.fork_session(home)
        await app.loom.delete_tree(root)
        assert await app.loom.session_of(child) == first
        listed = [str(tree.root_id) for tree in (await app.loom.catalogue()).entries]
        assert listed[-1] == first


async def test_a_branch_that_is_selected_in_a_fork_is_selected_there_alone(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, [first, second] = await loom.save_continuations("Root", [" one", " two"])
        fork = (await app.sessions.fork_session(await loom.session_of(root.id))).id
        own = await loom.add_child(fork, " in the fork alone")
        for number, expected in ((2, second), (3, own)):
            assert (await loom.select_branch(fork, number)).id == expected.id
            assert await loom.checked_out_child(fork) == expected.id
            assert await loom.checked_out_child(root.id) is None
        await loom.set_checked_out_child(fork, first.id)
        assert await loom.checked_out_child(fork) == first.id
        assert await loom.checked_out_child(root.id) is None


async def test_a_node_of_a_fork_is_resolved_to_an_id_that_means_the_fork(world: World) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
        fork = (await app.sessions.fork_session(await app.loom.session_of(root))).id
        named = await app.loom.resolve_node_id(f"{fork}/{child}")
        assert await app.loom.session_of(named) == fork
        await app.loom.update_metadata(named, {"of": "the fork"})
        assert (await app.loom.get(named)).metadata["of"] == "the fork"
        assert "of" not in (await app.loom.get(child)).metadata
        assert await app.loom.resolve_node_id(child) == child


# --- lists -----------------------------------------------------------------------------


async def a_root(app: App) -> None:
    await grown(app.loom)


async def a_fork(app: App) -> None:
    root, _ = await grown(app.loom)
    await app.sessions.fork_session(await app.loom.session_of(root))


async def a_fork_with_a_root_of_its_own(app: App) -> None:
    root, _ = await grown(app.loom)
    fork = (await app.sessions.fork_session(await app.loom.session_of(root))).id
    view = await app.loom.open(fork)
    view.edit_node_text(view.root_id, "Anew", fork=True)
    await view.save()
    await app.loom.delete_subtree(f"{fork}/{root}")
    await view.aclose()


async def an_import(app: App) -> None:
    records = [{"id": "1", "text": "a"}, {"id": "2", "parent_id": "1", "text": "b"}]
    await app.loom.import_nodes(records)


async def two_imports(app: App) -> None:
    await an_import(app)
    await app.loom.import_nodes([{"id": "1", "text": "another"}])


async def an_empty_root(app: App) -> None:
    await app.loom.create_root("")


async def a_second_root(app: App) -> None:
    root, _ = await grown(app.loom)
    view = await app.loom.open(root)
    view.edit_node_text(root, "Anew", fork=True)
    await app.loom.delete_subtree(root)
    await view.aclose()


@pytest.mark.parametrize(
    "make",
    [
        a_root,
        a_fork,
        a_fork_with_a_root_of_its_own,
        an_import,
        two_imports,
        an_empty_root,
        a_second_root,
    ],
)
async def test_what_lists_name_is_the_same_everywhere_and_opens(
    world: World, make: Callable[[App], Awaitable[None]]
) -> None:
    async with world.open() as app:
        await make(app)
        before = {entry.root_id for entry in (await app.loom.catalogue()).entries}
        assert before == {root.id for root in await app.loom.roots()}
    async with world.open() as app:
        loom = app.loom
        entries = (await loom.catalogue()).entries
        listed = {entry.root_id for entry in entries}
        assert listed == before
        assert len(listed) == len(entries)
        assert listed == {root.id for root in await loom.roots()}
        for named in listed:
            node = await loom.get(named)
            assert (node.id, node.root_id, node.parent_id) == (named, named, None)
            assert (await loom.root(named)).id == named
            assert await loom.resolve_node_id(named) == named
            assert {each.root_id for each in await loom.tree(named)} == {named}
            assert {each.parent_id for each in await loom.children(named)} <= {named}
            for read_only in (True, False):
                view = await loom.open(named, read_only=read_only)
                assert view.root_id == view.get_state().root_id == named
                assert view.checkout(named).current_node_id == named
                assert view.get_state().current_node.id == named
                await view.aclose()


async def test_a_coding_session_opens_by_its_id_and_by_its_first_message(world: World) -> None:
    model = ScriptedModel([SayText(text="done")])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("do it")
        first = (await session.messages_with_ids())[0][0]
        view = await app.loom.open("s")
        assert view.root_id == first
        assert (await app.loom.open(view.root_id)).root_id == first
        assert await app.loom.session_of(first) == "s"


async def test_rows_that_name_no_root_are_listed_by_the_one_they_have(world: World) -> None:
    async with world.open() as app:
        await an_import(app)
        [row] = await app.store.rows()
        lease = await app.store.lease_of(row.id)
        assert lease is not None
        old = Append(
            stream=row.id,
            expected_seq=row.last_seq,
            records=(),
            fence=lease.fence,
            row=msgspec.structs.replace(row, root=""),
        )
        await app.store.append(old)
        assert [entry.root_id for entry in (await app.loom.catalogue()).entries] == ["1"]


# --- readers ---------------------------------------------------------------------------


async def test_readers_take_no_lease(world: World) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
        session = await app.loom.session_of(root)
        await app.loom.save_continuations("Another", [" one"])
    async with world.open() as reader:
        loom = reader.loom
        view = await loom.open(child, read_only=True)
        view.get_state()
        await loom.roots()
        await loom.catalogue()
        await loom.recent()
        await loom.search("more")
        await loom.stats(root)
        await export_tree(loom, root, "json")
        await loom.active_node()
        for row in await reader.store.rows():
            assert await reader.store.lease_of(row.id) is None
        # Another process writes meanwhile, and the reader sees it.
        async with world.open() as writer:
            added = await writer.loom.add_child(child, " by another")
            held = await reader.store.lease_of(session)
            assert held is not None
            assert held.owner.process_id == writer.store.owner.process_id
            # Nor is the owner asked for anything.
            assert reader.host.running(session) is None
            assert [node.id for node in await loom.children(child)] == [added.id]
            assert await loom.full_text(added.id) == "Root and more by another"
            assert [hit.node.id for hit in await loom.search("another", roots=[root])] == [added.id]
            with pytest.raises(UsageError, match="another process"):
                await loom.open(root)
            with pytest.raises(UsageError, match="another process"):
                await loom.add_child(root, "x")
            assert view.get_state().children[0].id == added.id
        await view.aclose()
        await loom.add_child(child, " by the reader, who writes now")


async def test_what_another_process_has_deleted_is_gone_for_a_reader(world: World) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
        other, kept = await grown(app.loom)
    async with world.open() as reader:
        assert (await reader.loom.get(child)).id == child
        assert (await reader.loom.get(kept)).id == kept
        async with world.open() as writer:
            await writer.loom.delete_tree(root)
            await writer.loom.delete_subtree(kept)
        for gone in (root, child, kept):
            with pytest.raises(NodeNotFound):
                await reader.loom.get(gone)
        assert [node.id for node in await reader.loom.roots()] == [other]
        assert [node.id for node in await reader.loom.recent()] == [other]


async def test_a_view_that_reads_goes_on_when_its_process_begins_to_write(world: World) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
    async with world.open() as app:
        looks = await app.loom.open(child, read_only=True)
        writes = await app.loom.open(child)
        writes.edit_node_text(child, " and less")
        assert looks.get_state().full_text == "Root and less"
        added = await app.loom.add_child(root, "!")
        assert added.id in {node.id for node in looks.checkout(root).children}
        with pytest.raises(UsageError, match="read only"):
            looks.toggle_bookmark()


# --- what is stored while something else is written --------------------------------------


async def test_nodes_that_are_stored_meanwhile_are_seen_beside_what_is_not_stored_yet(
    world: World,
) -> None:
    async with world.open() as app:
        root, child = await grown(app.loom)
        view = await app.loom.open(root)
        tree = view.loom_tree
        view.edit_node_text(child, " edited")
        node = text_node(
            new_node_id(0), " broken off", parent=child, model="m", metadata={"partial": True}
        )
        await tree.actor.append(lambda state: Commit(facts=(NewMessage(node=node, advance=False),)))
        found = view.checkout(child)
        assert found.current_node.text == " edited"
        assert [(each.text, each.partial) for each in found.children] == [(" broken off", True)]
        assert len(await app.loom.tree(root)) == 3
        await view.save()
        assert [each.id for each in view.get_state().children] == [node.id]
        assert view.get_state().current_node.revision == 1


async def test_two_that_open_a_tree_at_once_see_each_others_changes(world: World) -> None:
    async with world.open() as app:
        root, _ = await grown(app.loom)
    async with world.open() as app:
        views = []

        async def open_one() -> None:
            views.append(await app.loom.open(root))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_one)
            tasks.start_soon(open_one)
        views[0].edit_node_text(root, "Changed")
        assert views[1].get_state().full_text == "Changed"


async def test_a_node_without_a_word_is_found_after_a_restart(world: World) -> None:
    async with world.open() as app:
        root, _ = await grown(app.loom)
        empty = await app.loom.add_child(root, "")
    async with world.open() as app:
        assert (await app.loom.get(empty.id)).parent_id == root
        assert (await app.loom.get(empty.id[:-1])).id == empty.id


async def test_a_deleted_node_is_not_found_and_a_crash_changes_nothing(world: World) -> None:
    app = world.open()
    await app.__aenter__()
    root, child = await grown(app.loom)
    await app.loom.delete_subtree(child)
    await crash(app)
    async with world.open() as again:
        with pytest.raises(NodeNotFound):
            await again.loom.get(child)
        assert await again.loom.restore_subtree(child) == 1
        data = await export_tree(again.loom, root, "json")
        assert (await import_trees(again.loom, data)).added == 0
