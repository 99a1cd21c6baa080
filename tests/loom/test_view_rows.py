"""One view of a text tree: each row of its contract, and the edges of its seed."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.support.world import World
from weft.errors import InvalidPlan, NodeElsewhere, NodeNotFound, UsageError
from weft.ids import NodeId, SessionId
from weft.loom import GenerationStore, LoomNode, LoomSession
from weft.runtime.ports.local import LocalPort
from weft.session import ChangeSetting

pytestmark = pytest.mark.anyio

HOW: dict[str, Any] = {"model": "m", "strategy": "system", "max_tokens": 10, "temperature": 0.9}


async def grown(loom: GenerationStore) -> tuple[LoomNode, list[LoomNode], LoomNode]:
    """Root → [A, B, D], and A has a child C."""
    root, children = await loom.save_continuations("Root", ["A", "B", "D"], **HOW)
    below = await loom.add_child(children[0].id, "C", **HOW)
    return root, children, below


async def test_row_state_has_what_a_screen_draws(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, second, third), below = await grown(app.loom)
        view = await app.loom.open(root.id)
        state = view.get_state()
        assert (state.current_node_id, state.full_text) == (root.id, "Root")
        assert [child.id for child in state.children] == [first.id, second.id, third.id]
        assert state.continuation_text == "C"
        assert [each.node_id for each in state.continuation_segments] == [below.id]
        assert state.descendant_counts == {root.id: 4, first.id: 1, second.id: 0, third.id: 0}
        assert (state.root_id, state.view_mode, state.tree_nodes) == (root.id, "branch", None)
        assert (state.hoisted_node_id, state.show_model_names) == (None, True)
        assert (state.max_tokens, state.temperature, state.n_branches) == (200, 0.9, 1)
        assert (state.model, state.context) == (view.model, "")
        assert [each.text for each in state.lineage_segments] == ["Root"]
        assert (state.cost, state.pricing_complete) == (0.0, True)
        with pytest.raises(AttributeError):
            state.model = "x"  # type: ignore[misc]


async def test_row_opening_a_root_goes_where_the_tree_was_left(world: World) -> None:
    async with world.open() as app:
        root, (_, second, _), _ = await grown(app.loom)
        view = await app.loom.open(root.id)
        view.select_sibling(1)
        assert view.navigate_child().current_node_id == second.id
        await view.save()
    async with world.open() as app:
        view = await app.loom.open(root.id)
        assert view.get_state().current_node_id == second.id
        assert view.navigate_parent().selected_child_idx == 1
        # Any other node opens at itself, a prefix of its id too.
        assert (await app.loom.open(second.id)).get_state().current_node_id == second.id
        assert (await app.loom.open(second.id[:-1])).get_state().current_node_id == second.id


async def test_row_opening_the_constructor_is_for_loaded_trees(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, _ = await grown(app.loom)
        assert LoomSession(app.loom, root.id).get_state().current_node_id == root.id
        with pytest.raises(NodeNotFound):
            LoomSession(app.loom, "nod_none")
        with pytest.raises(NodeNotFound):
            LoomSession(app.loom, "")


async def test_row_opening_what_another_process_has_can_only_be_read(
    shared_world: World,
) -> None:
    async with shared_world.open() as owner, shared_world.open() as guest:
        root, _, below = await grown(owner.loom)
        with pytest.raises(UsageError, match="another process"):
            await guest.loom.open(root.id)
        view = await guest.loom.open(below.id, read_only=True)
        assert view.get_state().full_text == "RootAC"
        assert view.navigate_parent().current_node_id != below.id
        with pytest.raises(UsageError):
            view.toggle_bookmark()
        with pytest.raises(UsageError):
            view.generate()


async def test_edge_navigate_child_at_a_leaf_and_parent_at_the_root_do_nothing(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        root, _, below = await grown(app.loom)
        view = await app.loom.open(below.id)
        assert view.navigate_child().current_node_id == below.id
        view.navigate_parent()
        assert view.navigate_parent().current_node_id == root.id
        assert view.navigate_parent().current_node_id == root.id


async def test_edge_navigate_child_restores_the_selection_below(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, _, _), _ = await grown(app.loom)
        other = await app.loom.add_child(first.id, "E", **HOW)
        view = await app.loom.open(first.id)
        view.select_sibling(1)
        view.navigate_parent()
        state = view.navigate_child()
        assert state.children[state.selected_child_idx].id == other.id
        assert root.id == state.root_id


async def test_edge_navigate_parent_selects_the_child_that_was_left(plain_world: World) -> None:
    async with plain_world.open() as app:
        _, (_, _, third), _ = await grown(app.loom)
        view = await app.loom.open(third.id)
        assert view.navigate_parent().selected_child_idx == 2


@pytest.mark.parametrize(("by", "index"), [(1, 1), (-1, 2), (3, 0), (7, 1), (-7, 2), (0, 0)])
async def test_edge_select_sibling_wraps_at_both_ends_for_any_number(
    plain_world: World, by: int, index: int
) -> None:
    async with plain_world.open() as app:
        root, _, below = await grown(app.loom)
        view = await app.loom.open(root.id)
        assert view.select_sibling(by).selected_child_idx == index
        leaf = await app.loom.open(below.id)
        assert leaf.select_sibling(by).selected_child_idx == 0


async def test_edge_checkout_selects_the_whole_line_and_saves_the_place(world: World) -> None:
    async with world.open() as app:
        root, (first, _, third), below = await grown(app.loom)
        view = await app.loom.open(third.id)
        assert view.checkout(below.id).current_node_id == below.id
        await view.save()
        assert await app.loom.checked_out_child(root.id) == first.id
        assert await app.loom.checked_out_child(first.id) == below.id
        assert await app.loom.active_node(root.id) == below.id


async def test_row_errors_checkout_knows_other_trees(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, _ = await grown(app.loom)
        other = await app.loom.create_root("elsewhere")
        view = await app.loom.open(root.id)
        with pytest.raises(NodeElsewhere):
            view.checkout(other.id)
        for unknown in ("nod_none", ""):
            with pytest.raises(NodeNotFound):
                view.checkout(unknown)
        assert view.get_state().current_node_id == root.id


async def test_row_several_views_have_places_of_their_own(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, below = await grown(app.loom)
        one, two = await app.loom.open(root.id), await app.loom.open(root.id)
        one.select_sibling(1)
        one.toggle_hoist()
        one.toggle_tree_view()
        state = two.get_state()
        assert (state.selected_child_idx, state.hoisted_node_id, state.view_mode) == (
            1,
            None,
            "branch",
        )  # what nobody has selected in this view is what was stored last
        two.checkout(below.id)
        two.select_sibling(1)
        assert one.get_state().current_node_id == root.id
        assert one.get_state().selected_child_idx == 1


async def test_row_several_views_last_write_wins_across_sessions(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, _ = await grown(app.loom)
        one, two = await app.loom.open(root.id), await app.loom.open(root.id)
        one.set_max_tokens(50)
        two.set_max_tokens(70)
        assert one.get_state().max_tokens == two.get_state().max_tokens == 70
        one.toggle_model_names()
        assert two.get_state().show_model_names is False


async def test_row_settings_are_clamped(plain_world: World) -> None:
    async with plain_world.open() as app:
        view = await app.loom.open((await app.loom.create_root("x")).id)
        found = [
            *(view.set_max_tokens(given).max_tokens for given in (0, 99_999, 77)),
            *(view.set_n_branches(given).n_branches for given in (0, -5, 1000, 3)),
            *(view.set_temperature(given).temperature for given in (-1.0, 9.0, 0.5)),
            view.set_temperature(float("nan")).temperature,
        ]
        assert found == [10, 8000, 77, 1, 1, 64, 3, 0.0, 2.0, 0.5, 0.0]


async def test_row_settings_setters_change_the_first_enabled_entry(plain_world: World) -> None:
    async with plain_world.open() as app:
        view = await app.loom.open((await app.loom.create_root("x")).id)
        view.set_model_plan(
            [
                {"model": "p:a", "enabled": False},
                {"model": "p:b", "n_branches": 1},
                {"model": "p:c"},
            ]
        )
        view.set_model("p:d")
        view.set_max_tokens(33)
        view.set_temperature(0.1)
        state = view.set_n_branches(2)
        assert [each.model for each in state.model_plan] == ["p:a", "p:d", "p:c"]
        assert [each.max_tokens for each in state.model_plan] == [200, 33, 200]
        assert [each.n_branches for each in state.model_plan] == [1, 2, 2]
        assert (state.n_branches, view.branches_per_model, state.model) == (4, 2, "p:d")
        assert state.temperature == 0.1


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        ([{"model": ""}], "0.model"),
        ([{"model": "m", "max_tokens": 9}], "0.max_tokens"),
        ([{"model": "m", "max_tokens": "many"}], "0.max_tokens"),
        ([{"model": "m"}, {"model": "n", "n_branches": 65}], "1.n_branches"),
        ([{"model": "m", "n_branches": True}], "0.n_branches"),
        ([{"model": "m", "temperature": float("nan")}], "0.temperature"),
        ([{"model": "m", "temperature": 2.1}], "0.temperature"),
        ([{"model": "m", "colour": 1}], "0.colour"),
        ([{"model": "m", "n_branches": 40}, {"model": "n", "n_branches": 40}], "n_branches"),
        ([], "model_plan"),
        (["m"], "0"),
        ("m", "model_plan"),
    ],
)
async def test_row_settings_a_wrong_plan_names_its_fields(
    plain_world: World, plan: Any, field: str
) -> None:
    async with plain_world.open() as app:
        view = await app.loom.open((await app.loom.create_root("x")).id)
        before = view.model_plan
        with pytest.raises(InvalidPlan) as wrong:
            view.set_model_plan(plan)
        assert field in wrong.value.fields
        assert view.model_plan == before


async def test_edge_stored_plan_entries_that_are_wrong_are_left_out(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("x")
        port = await app.host.port(await app.loom.session_of(root.id))
        await port.call(ChangeSetting(name="model_plan", value=[{"model": "m"}, {"model": 3}, "x"]))
        view = await app.loom.open(root.id)
        assert [each.model for each in view.model_plan] == ["m"]


async def test_edge_toggle_hoist_clears_only_where_it_was_set(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, _, _), below = await grown(app.loom)
        view = await app.loom.open(first.id)
        view.toggle_tree_view()
        assert view.toggle_hoist().hoisted_node_id == first.id
        state = view.navigate_child()
        assert state.hoisted_node_id == first.id
        assert state.tree_nodes is not None
        assert [node.id for node in state.tree_nodes] == [first.id, below.id]
        assert view.toggle_hoist().hoisted_node_id == below.id
        assert view.toggle_hoist().hoisted_node_id is None
        assert len(view.get_state().tree_nodes or ()) == 5
        assert view.toggle_tree_view().tree_nodes is None
        assert root.id == view.root_id


async def test_edge_chat_headers_only_in_trees_with_two_roles(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("hi", metadata={"role": "user"})
        child = await app.loom.add_child(root.id, "hello", metadata={"role": "assistant"}, **HOW)
        view = await app.loom.open(child.id)
        assert view.get_state().render_chat_headers
        assert [each.role for each in view.get_state().lineage_segments] == ["user", "assistant"]
        assert not view.toggle_chat_headers().render_chat_headers
        plain, _, _ = await grown(app.loom)
        other = await app.loom.open(plain.id)
        assert not other.get_state().render_chat_headers
        assert not other.toggle_chat_headers().render_chat_headers


async def test_edge_bookmarks_go_in_the_order_of_creation_and_wrap(world: World) -> None:
    async with world.open() as app:
        root, (first, second, _), below = await grown(app.loom)
        view = await app.loom.open(root.id)
        assert view.next_bookmark().current_node_id == root.id
        for node in (below, first):
            view.checkout(node.id)
            assert view.toggle_bookmark() is True
        view.checkout(second.id)
        found = [view.next_bookmark().current_node_id for _ in range(3)]
        assert found == [below.id, first.id, below.id]
        assert view.toggle_bookmark() is False
        await view.save()
        assert not (await app.loom.get(below.id)).bookmarked
        assert (await app.loom.get(first.id)).bookmarked


async def test_row_context_is_inherited_and_cleared_below_an_ancestor_that_has_one(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        root, (first, second, _), below = await grown(app.loom)
        view = await app.loom.open(root.id)
        assert view.update_context("be brief").context == "be brief"
        assert view.checkout(below.id).context == "be brief"
        view.checkout(first.id)
        assert view.update_context("").context == ""
        assert view.checkout(below.id).context == ""
        assert view.checkout(second.id).context == "be brief"


async def test_row_fault_the_shown_child_is_the_stored_one_after_reopening(world: World) -> None:
    async with world.open() as app:
        root, _, _ = await grown(app.loom)
        view = await app.loom.open(root.id)
        shown = view.select_sibling(2)
        await view.save()
    async with world.open() as app:
        again = (await app.loom.open(root.id)).get_state()
        assert again.selected_child_idx == shown.selected_child_idx == 2


async def test_save_is_done_when_all_is_durable_and_closing_waits(world: World) -> None:
    async with world.open() as app:
        root, _, _ = await grown(app.loom)
        view = await app.loom.open(root.id)
        view.toggle_bookmark()
        view.rate(4)
        view.label("start")
        assert view.get_state().current_node.rating == 4
        await view.aclose()
        await view.aclose()
    async with world.open() as app:
        node = await app.loom.get(root.id)
        assert (node.bookmarked, node.rating, node.metadata["label"]) == (True, 4, "start")


async def test_a_walk_through_a_tree_stores_only_its_end(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, _ = await grown(app.loom)
        view = await app.loom.open(root.id)
        await view.save()
        before = await app.store.last_seq(await app.loom.session_of(root.id))
        for _ in range(50):
            view.select_sibling(1)
        await view.save()
        after = await app.store.last_seq(await app.loom.session_of(root.id))
        assert after - before <= 3


async def test_failures_that_are_not_awaited_are_on_record_once(plain_world: World) -> None:
    from weft.errors import StoreUnavailable
    from weft.store import MemoryStore

    class Full(MemoryStore):
        is_full = False

        async def append(self, *appends: Any) -> None:
            if self.is_full:
                self.is_full = False
                raise StoreUnavailable("the disk is full")
            await super().append(*appends)

    store = Full()
    async with plain_world.open(store=store) as app:
        root, _, _ = await grown(app.loom)
        view = await app.loom.open(root.id)
        await view.save()
        store.is_full = True
        assert view.toggle_bookmark() is True
        with pytest.raises(StoreUnavailable):
            await view.save()
        assert not view.get_state().current_node.bookmarked
        session = await app.loom.session_of(root.id)
        records = await app.store.read(session)
        assert [each.kind for each in records].count("error_raised") == 1
        assert view.toggle_bookmark() is True
        await view.save()


async def test_row_moves_without_a_state_are_the_same_moves(world: World) -> None:
    async with world.open() as app:
        root, (first, second, third), below = await grown(app.loom)
        view = await app.loom.open(root.id)
        assert view.selected_child() == first.id
        view.go(root.id, second.id)
        assert (view.current_node_id, view.selected_child()) == (root.id, second.id)
        view.go(second.id)
        assert (view.current_node_id, view.selected_child()) == (second.id, None)
        view.go(below.id)
        assert view.current_node_id == below.id
        view.go(first.id)
        # The child that was left is selected.
        assert view.selected_child() == below.id
        view.go(root.id, third.id)
        assert view.selected_child(first.id) == below.id
        for wrong in ("nod_none", ""):
            with pytest.raises(NodeNotFound):
                view.go(NodeId(wrong))
        await view.save()
    async with world.open() as app:
        view = await app.loom.open(root.id)
        assert (view.current_node_id, view.selected_child()) == (root.id, third.id)


async def test_row_any_node_can_be_bookmarked(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, *_), _ = await grown(app.loom)
        view = await app.loom.open(root.id)
        assert view.toggle_bookmark(first.id)
        assert (await app.loom.get(first.id)).bookmarked
        assert not (await app.loom.get(root.id)).bookmarked
        assert not view.toggle_bookmark(first.id)


async def test_row_opening_a_session_stays_loaded_while_a_view_is_open(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("Root")
        view = await app.loom.open(root.id)
        port = app.host.running(SessionId(await app.loom.session_of(root.id)))
        assert isinstance(port, LocalPort)
        # Its subscription ends at the log's end where it is not told to stay.
        await anyio.wait_all_tasks_blocked()
        assert port.actor.is_watched
        await view.aclose()
        await anyio.wait_all_tasks_blocked()
        assert not port.actor.is_watched
