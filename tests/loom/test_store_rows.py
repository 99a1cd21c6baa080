"""The store of text trees: each row of its contract, on every kind of store."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import weft
from tests.support.world import World
from weft.errors import AmbiguousId, InvalidPlan, NodeNotFound, UsageError
from weft.loom import GenerationStore, LoomNode

pytestmark = pytest.mark.anyio

HOW: dict[str, Any] = {"model": "m", "strategy": "system", "max_tokens": 10, "temperature": 0.9}


async def grown(loom: GenerationStore) -> tuple[LoomNode, list[LoomNode], LoomNode]:
    """Root → [A, B], and A has a child C."""
    root, children = await loom.save_continuations("Root", ["A", "B"], **HOW)
    below = await loom.add_child(children[0].id, "C", **HOW)
    return root, children, below


async def test_row_loom_node_says_where_it_stands_and_how_it_was_made(world: World) -> None:
    async with world.open() as app:
        root, (first, _), below = await grown(app.loom)
        assert (root.kind, root.parent_id, root.root_id, root.role) == ("root", None, root.id, None)
        assert (first.kind, first.parent_id, first.root_id) == ("text", root.id, root.id)
        assert (first.model, first.strategy, first.max_tokens, first.temperature) == (
            "m",
            "system",
            10,
            0.9,
        )
        assert (below.text, below.revision, below.partial, below.bookmarked) == (
            "C",
            0,
            False,
            False,
        )
        with pytest.raises(AttributeError):
            below.text = "other"  # type: ignore[misc]


async def test_row_get_and_resolve_take_ids_and_unique_prefixes(world: World) -> None:
    async with world.open() as app:
        root, _, below = await grown(app.loom)
        assert await app.loom.get(below.id) == below
        assert await app.loom.resolve_node_id(below.id[:-1]) == below.id
        assert (await app.loom.get(root.id)).text == "Root"


async def test_row_errors_unknown_empty_and_wildcards_are_not_found(world: World) -> None:
    async with world.open() as app:
        await grown(app.loom)
        for reference in ("nod_none", "", "%", "_", "nod%", "n_d"):
            with pytest.raises(NodeNotFound):
                await app.loom.get(reference)


async def test_row_errors_an_ambiguous_prefix_names_the_newest_first(world: World) -> None:
    async with world.open() as app:
        _, children, below = await grown(app.loom)
        with pytest.raises(AmbiguousId) as ambiguous:
            await app.loom.get("nod_")
        assert set(ambiguous.value.matches) >= {below.id, *(child.id for child in children)}
        assert ambiguous.value.matches[0] == below.id


async def test_stored_trees_are_found_by_a_process_that_has_not_opened_them(world: World) -> None:
    async with world.open() as app:
        root, _, below = await grown(app.loom)
        empty = await app.loom.create_root("")
    async with world.open() as app:
        assert (await app.loom.get(below.id[:-1])).text == "C"
        assert (await app.loom.get(root.id)).text == "Root"
        assert (await app.loom.get(empty.id)).text == ""
        assert await app.loom.full_text(below.id) == "RootAC"


async def test_row_store_children_tree_lineage_root_and_counts(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (first, second), below = await grown(loom)
        assert [node.id for node in await loom.children(root.id)] == [first.id, second.id]
        assert [node.text for node in await loom.tree(below.id)] == ["Root", "A", "B", "C"]
        assert [node.text for node in await loom.lineage(below.id)] == ["Root", "A", "C"]
        assert (await loom.root(below.id)).id == root.id
        assert await loom.descendant_counts([root.id, first.id, second.id]) == {
            root.id: 3,
            first.id: 1,
            second.id: 0,
        }
        assert list(await loom.nodes_by_ids([first.id, "nod_none"])) == [first.id]


async def test_row_store_checked_out_child_and_active_node(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (_, second), below = await grown(loom)
        assert await loom.checked_out_child(root.id) is None
        await loom.set_checked_out_child(root.id, second.id)
        await loom.set_active_node(below.id)
        with pytest.raises(UsageError):
            await loom.set_checked_out_child(root.id, below.id)
        assert (await loom.select_branch(root.id, 1)).text == "A"
        for number in (0, 3):
            with pytest.raises(UsageError):
                await loom.select_branch(root.id, number)
        await loom.select_branch(root.id, 2)
    async with world.open() as app:
        assert await app.loom.checked_out_child(root.id) == second.id
        assert await app.loom.active_node(root.id) == below.id
        assert await app.loom.active_node() == below.id


async def test_row_store_metadata_is_merged_and_none_removes(world: World) -> None:
    async with world.open() as app:
        root, _, _ = await grown(app.loom)
        await app.loom.update_metadata(root.id, {"bookmarked": True, "source": "x", "rating": 2})
        node = await app.loom.update_metadata(root.id, {"source": None, "note": "n"})
        assert dict(node.metadata) == {"bookmarked": True, "rating": 2, "note": "n"}
        assert (node.bookmarked, node.rating) == (True, 2)
        named = await app.loom.update_metadata(root.id, {"name": "the topic"})
        assert "name" not in named.metadata
        assert (await app.loom.tree_settings(root.id)).name == "the topic"


async def test_row_settings_belong_to_the_tree(world: World) -> None:
    async with world.open() as app:
        root = await app.loom.create_root(
            "X", metadata={"model": "scripted:a", "n_branches": 2, "name": "mine"}
        )
        settings = await app.loom.tree_settings(root.id)
        assert (settings.name, settings.model_plan[0].model) == ("mine", "scripted:a")
        assert settings.model_plan[0].n_branches == 2
        assert "model" not in root.metadata
        await app.loom.update_tree_settings(root.id, name="other", show_model_names=None)
        for wrong, error in (({"colour": 1}, UsageError), ({"model_plan": []}, InvalidPlan)):
            with pytest.raises(error):
                await app.loom.update_tree_settings(root.id, **wrong)
    async with world.open() as app:
        assert (await app.loom.tree_settings(root.id)).name == "other"


async def test_row_archive_leaves_a_tree_out_of_lists(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        kept, hidden = await loom.create_root("kept"), await loom.create_root("hidden")
        await loom.archive(hidden.id)
        assert [node.id for node in await loom.roots()] == [kept.id]
        assert [node.id for node in await loom.roots(archived=True)] == [hidden.id]
        assert {node.id for node in await loom.roots(archived=None)} == {kept.id, hidden.id}
        await loom.archive(hidden.id, archived=False)
        assert len(await loom.roots()) == 2


async def test_row_context_belongs_to_a_node_is_inherited_and_cleared(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (first, second), below = await grown(loom)
        await loom.set_context(root.id, "be brief")
        await loom.set_context(first.id, "")
        found = [await loom.context_of(node.id) for node in (root, first, below, second)]
        assert found == ["be brief", "", "", "be brief"]


@pytest.mark.requirement("event:SubtreeDeleted", "event:SubtreeRestored")
async def test_row_deletion_is_unseen_by_every_read_and_comes_back(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (first, second), below = await grown(loom)
        await loom.set_active_node(below.id)
        assert await loom.delete_subtree(first.id) == 2
        for gone in (first.id, below.id):
            with pytest.raises(NodeNotFound):
                await loom.get(gone)
        assert [node.id for node in await loom.children(root.id)] == [second.id]
        assert [node.text for node in await loom.tree(root.id)] == ["Root", "B"]
        assert await loom.descendant_counts(root.id) == {root.id: 1}
        assert await loom.active_node(root.id) == root.id
        assert await loom.search("C") == []
        assert below.id not in {node.id for node in await loom.recent()}
    async with world.open() as app:
        assert await app.loom.restore_subtree(first.id) == 2
        assert await app.loom.active_node(root.id) == below.id
        with pytest.raises(UsageError):
            await app.loom.restore_subtree(first.id)


async def test_row_deletion_of_a_root_takes_the_tree_out_of_lists(world: World) -> None:
    async with world.open() as app:
        root, _, _ = await grown(app.loom)
        assert await app.loom.delete_subtree(root.id) == 4
        assert await app.loom.roots(archived=None) == []
        assert await app.loom.restore_subtree(root.id) == 4
        assert [node.id for node in await app.loom.roots()] == [root.id]
        assert await app.loom.delete_tree(root.id) == 4
        with pytest.raises(NodeNotFound):
            await app.loom.restore_subtree(root.id)


async def test_row_store_finds_roots_by_text_recent_nodes_and_the_catalogue(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, _, _ = await grown(loom)
        world.clock.advance(1)
        long = await loom.create_root("a long beginning " * 40)
        found = await loom.find_root_by_text("Root")
        assert found == await loom.get(root.id)
        assert await loom.find_root_by_text("Roo") is None
        again = await loom.find_root_by_text("a long beginning " * 40)
        assert again == long
        assert {node.text for node in await loom.recent(5)} >= {"A", "B", "C", "Root"}
        page = await loom.catalogue(limit=1)
        assert (len(page.entries), page.total) == (1, 2)
        assert (await loom.catalogue(query="beginning")).total == 1
        assert (await loom.catalogue(facets={"root_id": [root.id]})).entries[0].nodes == 4
        with pytest.raises(UsageError):
            await loom.catalogue(facets={"colour": ["red"]})


async def test_row_store_search_by_words_ids_and_filters(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (first, _), _ = await grown(loom)
        fox = await loom.add_child(first.id, " the quick fox", model="other")
        await loom.update_metadata(fox.id, {"bookmarked": True})
        hits = await loom.search("quick")
        assert [(hit.node.id, hit.root) for hit in hits] == [(fox.id, root.id)]
        assert "quick" in hits[0].snippet
        assert hits[0].score > 0
        assert [hit.node.id for hit in await loom.search(fox.id)] == [fox.id]
        assert await loom.search("quick", models=["m"]) == []
        assert await loom.search("quick", bookmarked=False) == []
        assert await loom.search("quick", roots=["nod_x"]) == []
        assert len(await loom.search("quick", models=["other"], bookmarked=True)) == 1
        assert await loom.search("  ") == []


async def test_row_store_search_by_trees_time_and_number(world: World) -> None:
    async with world.open(clock=world.clock) as app:
        loom = app.loom
        early = await loom.create_root("a quick start")
        world.clock.advance(100)
        between = world.clock.now()
        world.clock.advance(100)
        late = await loom.create_root("a quick end")
        children = await loom.save_continuations("", [" quick 1", " quick 2"], parent_id=late.id)
        found = await loom.search("quick", roots=[late.id])
        assert {hit.root for hit in found} == {late.id}
        assert len(found) == 3
        assert len(await loom.search("quick", limit=2)) == 2
        newer = {hit.node.id for hit in await loom.search("quick", after=between)}
        assert newer == {late.id, *(each.id for each in children[1])}
        assert early.id in {hit.node.id for hit in await loom.search("quick")}


async def test_a_search_finds_what_is_left_where_most_that_was_said_so_is_deleted(
    world: World,
) -> None:
    async with world.open() as app:
        loom = app.loom
        root = await loom.create_root("Root")
        left = await loom.add_child(root.id, " a rare fox among many words")
        gone = await loom.add_child(root.id, " gone")
        await loom.save_continuations("", [" fox"] * 60, parent_id=gone.id, model="m")
        assert len(await loom.search("fox", limit=5)) == 5
        await loom.delete_subtree(gone.id)
        assert [hit.node.id for hit in await loom.search("fox", limit=5)] == [left.id]
        assert [hit.node.id for hit in await loom.search("fox", limit=5, models=["m"])] == []


async def test_row_store_shape_and_stats(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (first, second), _ = await grown(loom)
        await loom.update_metadata(second.id, {"hidden": True})
        await loom.update_metadata(first.id, {"bookmarked": True, "rating": 3})
        shape = await loom.shape(root.id)
        assert (shape.size, shape.depth, shape.width, shape.leaves, shape.forks) == (4, 3, 2, 2, 1)
        assert (await loom.shape(first.id)).size == 2
        stats = await loom.stats(root.id)
        [model] = stats.models
        assert (stats.nodes, stats.bookmarked, model.nodes, model.expanded) == (4, 1, 3, 1)
        assert model.win_rate == 0.5


async def test_row_import_keeps_ids_parents_first_and_can_be_repeated(world: World) -> None:
    records = [
        {"id": "leaf", "parent_id": "mid", "text": "c"},
        {"id": "mid", "parent_id": "top", "text": "b", "model": "m", "metadata": {"rating": 1}},
        {"id": "top", "parent_id": None, "text": "a", "created_at": "2024-01-01T00:00:00Z"},
    ]
    async with world.open() as app:
        assert await app.loom.import_nodes(records) == 3
        assert await app.loom.import_nodes(records) == 0
        assert await app.loom.full_text("leaf") == "abc"
        assert (await app.loom.get("top")).created_at == 1704067200.0
        more = {"id": "other", "parent_id": "mid", "text": "d"}
        assert await app.loom.import_nodes([*records, more]) == 1
    async with world.open() as app:
        assert await app.loom.full_text("other") == "abd"
        assert await app.loom.import_nodes(records) == 0


async def test_row_export_a_record_of_a_tree_comes_back_as_the_same_tree(world: World) -> None:
    async with world.open() as app:
        root, (first, second), below = await grown(app.loom)
        await app.loom.update_metadata(first.id, {"bookmarked": True, "rating": 2, "note": "n"})
        await app.loom.set_context(first.id, "brief")
        await app.loom.set_checked_out_child(root.id, second.id)
        await app.loom.set_active_node(below.id)
        await app.loom.update_tree_settings(root.id, name="mine")
        record = await app.loom.tree_record(root.id)
        assert [node.id for node in record.nodes] == [root.id, first.id, below.id, second.id]
        await app.loom.delete_tree(root.id)
        assert await app.loom.import_tree(record) == 4
        again = await app.loom.tree_record(root.id)
        assert again.nodes == record.nodes
        assert (again.name, again.current_id) == ("mine", below.id)
        assert await app.loom.context_of(below.id) == "brief"
        assert await app.loom.import_tree(record) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        [{"text": "no id"}],
        [{"id": "x" * 500}],
        [{"id": "a", "parent_id": "nowhere"}],
        [{"id": "a", "parent_id": "b"}, {"id": "b", "parent_id": "a"}],
        [{"id": "a"}, {"id": "a"}],
        ["no map"],
        [{"id": "a", "text": 7}],
    ],
)
async def test_row_import_refuses_what_is_no_tree(plain_world: World, wrong: Any) -> None:
    async with plain_world.open() as app:
        with pytest.raises(UsageError):
            await app.loom.import_nodes(wrong)
        assert await app.loom.roots() == []


async def test_a_conversation_whose_first_message_was_deleted_stays_one(world: World) -> None:
    from weft.testing import ScriptedModel

    async with world.open(ScriptedModel(["Hello!"])) as app:
        session = await app.sessions.start_session(tools=[])
        await session.send_message("Hi there")
        question = (await session.messages_with_ids())[0][0]
        view = await app.loom.open(question)
        for undoes in (True, False):
            await app.loom.delete_subtree(question)
            assert [(row.id, row.mode) for row in await app.store.rows()] == [
                (session.id, "normal")
            ]
            if undoes:
                view.undo()
                await view.save()
            else:
                await app.loom.restore_subtree(question)
            assert [row.mode for row in await app.store.rows()] == ["normal"]
        assert await app.loom.roots() == []


async def test_a_coding_session_opens_as_a_loom_and_a_node_starts_one(world: World) -> None:
    from weft.testing import ScriptedModel

    model = ScriptedModel(["Hello!", "Again."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[])
        await session.send_message("Hi there")
        [question, answer] = [node for node, _ in await session.messages_with_ids()]
        view = await app.loom.open(answer)
        state = view.get_state()
        assert state.full_text == "Hi thereHello!"
        assert [each.role for each in state.lineage_segments] == ["user", "assistant"]
        assert state.current_node.kind == "message"
        assert state.render_chat_headers
        await app.loom.add_child(question, "Another", model="m")
        assert len(await app.loom.children(question)) == 2
        # The head of the conversation has not moved.
        assert [node for node, _ in await session.messages_with_ids()] == [question, answer]
        home = await app.loom.session_of(answer)
        assert home == session.id
        fork = await app.sessions.fork_session(home, at=question)
        assert [node for node, _ in await fork.messages_with_ids()] == [question]


def test_row_opening_by_weft_sync_for_scripts(world: World) -> None:
    path = world.base / "loom.db"
    store = weft.sync.loom(path, project_path=world.project, environ=world.environ)
    root, children = store.save_continuations("Hello", [" world"], **HOW)
    view = weft.LoomSession(store, children[0].id)
    assert view.get_state().full_text == "Hello world"
    assert view.navigate_parent().current_node_id == root.id
    view.toggle_bookmark()
    view.save()
    assert store.get(root.id).bookmarked
    store.close()
    again = weft.sync.loom(path, project_path=world.project, environ=world.environ)
    assert again.get(root.id).bookmarked
    again.close()


class StretchCounter:
    """The calls between two turns of the event loop: a cost that no other load changes."""

    def __init__(self) -> None:
        self.longest = 0
        self.turns = 0
        self._calls = 0

    def _see(self, frame: Any, event: str, argument: Any) -> None:
        self._calls += event == "call"

    async def _watch(self) -> None:
        while True:
            self.longest = max(self.longest, self._calls)
            self._calls = 0
            self.turns += 1
            await anyio.lowlevel.checkpoint()

    async def during(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """What the work gives."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            await anyio.lowlevel.checkpoint()
            sys.setprofile(self._see)
            try:
                return await work()
            finally:
                sys.setprofile(None)
                self.longest = max(self.longest, self._calls)
                group.cancel_scope.cancel()


@pytest.mark.parametrize("reads", ["tree", "children", "nodes_by_ids", "tree_record"])
async def test_many_nodes_are_read_while_others_have_their_turns(
    tmp_path: Path, reads: str
) -> None:
    world, found = World("sqlite", tmp_path), dict[int, int]()
    for nodes in (3_000, 9_000):
        ids = [f"{nodes}-{n}" for n in range(nodes)]
        records = [{"id": each, "parent_id": ids[0]} for each in ids]
        if reads == "tree":
            records = [{"id": ids[n], "parent_id": ids[n - 1]} for n in range(nodes)]
        records[0]["parent_id"] = ""
        async with world.open() as app:
            await app.loom.import_nodes(records)
        async with world.open() as app:
            await app.loom.get(f"{nodes}-7")  # opened before: only the reading is counted
            counter = StretchCounter()
            asked: Any = ids if reads == "nodes_by_ids" else ids[0]
            answer = await counter.during(partial(getattr(app.loom, reads), asked))
            nodes_of = answer.nodes if reads == "tree_record" else answer
            read = list(answer) if reads == "nodes_by_ids" else [node.id for node in nodes_of]
            assert read == (ids[1:] if reads == "children" else ids)
        found[nodes] = counter.longest
    assert found[9_000] < 2 * found[3_000], found


async def test_an_export_of_a_tree_that_changes_meanwhile_is_of_one_moment(
    tmp_path: Path,
) -> None:
    world, ids = World("sqlite", tmp_path), [f"n-{n}" for n in range(3_000)]
    records = [{"id": each, "parent_id": ids[0]} for each in ids]
    records[0]["parent_id"] = ""
    async with world.open() as app:
        await app.loom.import_nodes(records)
        view = await app.loom.open(ids[1])
        for turns in range(24):
            found = list[Any]()

            async def export(found: list[Any] = found) -> None:
                found.append(await app.loom.tree_record(ids[0]))

            async with anyio.create_task_group() as group:
                group.start_soon(export)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                # In one step: an export has both, or neither.
                view.toggle_bookmark(ids[1])
                view.toggle_bookmark(ids[-1])
            marked = [node.id for node in found[0].nodes if node.bookmarked]
            assert marked in ([], [ids[1], ids[-1]]), turns
        await view.aclose()


async def test_counts_of_many_nodes_look_once_for_their_tree(tmp_path: Path) -> None:
    world, ids = World("sqlite", tmp_path), [f"n-{n}" for n in range(1_000)]
    records = [{"id": each, "parent_id": ids[0]} for each in ids]
    records[0]["parent_id"] = ""
    async with world.open() as app:
        await app.loom.import_nodes(records)
        await app.loom.get(ids[0])
        counter = StretchCounter()
        found = await counter.during(partial(app.loom.descendant_counts, ids))
    assert list(found.values()) == [999] + [0] * 999
    assert counter.turns < 100, "each look gives others a turn"


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (
            weft.loom.LoomNode,
            "id parent_id root_id text revision parent_revision kind role model strategy "
            "max_tokens temperature created_at partial bookmarked hidden rating usage cost_usd "
            "metadata tokens",
        ),
        (weft.events.TokenReceived, "branch_idx token model model_idx node_id"),
        (weft.loom.GenerationComplete, "completions new_nodes failures"),
        (
            weft.loom.BranchFailure,
            "branch_idx model category status incident_id sentence partial_node",
        ),
        (weft.loom.GenerationError, "error category"),
        (weft.loom.GenerationCancelled, "new_nodes"),
        (weft.loom.LoomHit, "node root score snippet"),
        (
            weft.loom.LoomState,
            "current_node_id current_node full_text children selected_child_idx "
            "descendant_counts continuation_text model max_tokens temperature n_branches context "
            "root_id view_mode hoisted_node_id tree_nodes show_model_names model_plan usage cost "
            "lineage_segments continuation_segments render_chat_headers "
            "pricing_complete",
        ),
    ],
)
def test_row_values_have_every_field_of_the_contract(value: Any, fields: str) -> None:
    assert set(fields.split()) <= set(value.__struct_fields__)
