"""What a view can be set to show, and settings that are changed at once or configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.loom_views import HOW, events_of, scripted, view_of
from tests.support.world import World
from weft.errors import InvalidPlan, NodeNotFound
from weft.loom import ModelPlanEntry

pytestmark = pytest.mark.anyio


# --- blind ------------------------------------------------------------------------------------


async def test_a_blind_view_hides_who_wrote_what_and_changes_nothing_that_is_stored(
    world: World,
) -> None:
    one, two = scripted("a", *(f" {n}" for n in range(4))), scripted("b", " z")
    async with world.open(one, two) as app:
        view = await view_of(
            app, {"model": "scripted:a", "n_branches": 4}, {"model": "scripted:b", "n_branches": 1}
        )
        await events_of(view.generate())
        open_state = view.get_state()
        state = view.toggle_blind()
        assert state.is_blind
        assert {child.model for child in open_state.children} == {"scripted:a", "scripted:b"}
        for node in (*state.children, state.current_node):
            assert (node.model, node.strategy, node.usage, node.cost_usd) == (None,) * 4
            assert not {"gen_id", "slot"} & node.metadata.keys()
        assert {child.id for child in state.children} == {child.id for child in open_state.children}
        # The same child is selected, wherever it stands.
        chosen = state.children[state.selected_child_idx].id
        assert chosen == open_state.children[open_state.selected_child_idx].id
        tree = view.toggle_tree_view().tree_nodes
        assert tree is not None
        assert [node.model for node in tree] == [None] * 6
        assert tree[0].id == view.root_id
        # Others, and the store, see what there is.
        assert (await app.loom.get(chosen)).model is not None
        other = await app.loom.open(view.root_id)
        assert not other.get_state().is_blind
        assert view.toggle_blind().children == open_state.children


async def test_a_blind_view_is_walked_and_pruned_in_the_order_that_it_shows(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        root, _ = await app.loom.save_continuations("Root", list("abcdefgh"), **HOW)
        view = await app.loom.open(root.id)
        shown = [child.id for child in view.toggle_blind().children]
        assert shown != [child.id for child in await app.loom.children(root.id)]
        start = view.get_state().selected_child_idx
        for step in range(1, 9):
            state = view.select_sibling(1)
            assert state.selected_child_idx == (start + step) % 8
        gone = state.children[state.selected_child_idx].id
        assert view.delete_selected_child()
        assert [child.id for child in view.get_state().children] == [
            each for each in shown if each != gone
        ]
        target = view.get_state()
        into = target.children[target.selected_child_idx].id
        assert view.navigate_child().current_node_id == into
        back = view.navigate_parent()
        assert back.children[back.selected_child_idx].id == into


# --- patches ----------------------------------------------------------------------------------


async def test_a_patch_changes_several_settings_at_once_and_is_undone_as_one(
    plain_world: World,
) -> None:
    async with plain_world.open(scripted("a"), scripted("b")) as app:
        view = await view_of(
            app, {"model": "scripted:a"}, {"model": "scripted:b", "enabled": False}
        )
        before = view.get_state()
        state = view.apply_config_patch(
            {
                "max_tokens": 99_999,
                "temperature": 1.5,
                "n_branches": 3,
                "show_model_names": False,
                "context": "a storm",
                "name": "the tale",
                "logprobs": 2,
            }
        )
        assert (state.max_tokens, state.temperature, state.n_branches) == (8_000, 1.5, 3)
        assert (state.show_model_names, state.context, state.name) == (False, "a storm", "the tale")
        assert [each.n_branches for each in state.model_plan] == [3, 1]
        assert view.tree_settings().logprobs == 2
        after = view.undo()
        assert (after.model_plan, after.context) == (before.model_plan, before.context)
        assert (after.show_model_names, after.name) == (True, before.name)


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"max_tokens": "200", "temperature": 1.0}, "max_tokens"),
        ({"n_branches": True}, "n_branches"),
        ({"tokens": 5}, "tokens"),
        ({"model": " "}, "model"),
        ({"context": "x", "model_plan": [{"model": "a", "max_tokens": 9}]}, "0.max_tokens"),
    ],
)
async def test_a_patch_with_a_wrong_field_names_it_and_changes_nothing(
    patch: dict[str, Any], field: str, plain_world: World
) -> None:
    async with plain_world.open() as app:
        view = await view_of(app)
        before = view.get_state()
        with pytest.raises(InvalidPlan) as raised:
            view.apply_config_patch(patch)
        assert field in raised.value.fields
        assert view.get_state() == before


# --- configured -------------------------------------------------------------------------------


def configured(world: World) -> Path:
    """The user's settings file."""
    folder = world.base / ".config" / "weft"
    folder.mkdir(parents=True)
    return folder / "config.toml"


async def test_new_trees_begin_with_what_is_configured(plain_world: World) -> None:
    world = plain_world
    configured(world).write_text(
        "[loom]\nmax_tokens = 40\nn_branches = 3\ntemperature = 1.1\nshow_model_names = false\n"
        '[loom.models."scripted:b"]\nmax_tokens = 80\ntemperature = "hot"\nn_branches = 9\n'
    )
    async with world.open(scripted("a"), scripted("b")) as app:
        view = await view_of(app)
        state = view.get_state()
        assert (state.max_tokens, state.n_branches, state.temperature) == (40, 3, 1.1)
        assert not state.show_model_names
        # What an entry of a plan leaves out is as its model has it; what it says counts.
        view.set_model_plan([{"model": "scripted:b"}, {"model": "scripted:a", "max_tokens": 20}])
        assert view.model_plan == (
            ModelPlanEntry(model="scripted:b", n_branches=9, max_tokens=80, temperature=1.1),
            ModelPlanEntry(model="scripted:a", n_branches=3, max_tokens=20, temperature=1.1),
        )
        made = await app.loom.create_root("x", metadata={"model": "scripted:b", "n_branches": 2})
        [entry] = (await app.loom.tree_settings(made.id)).model_plan
        assert (entry.n_branches, entry.max_tokens) == (2, 80)


async def test_the_environment_comes_before_the_files(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = plain_world
    configured(world).write_text('[loom]\nmax_tokens = 40\nmodel = "scripted:b"\n')
    environ = {**world.environ, "WEFT_LOOM_MAX_TOKENS": "60"}
    monkeypatch.setattr(type(world), "environ", environ)
    async with world.open(scripted("a"), scripted("b")) as app:
        view = await view_of(app)
        assert (view.max_tokens, view.model) == (60, "scripted:b")


async def test_settings_of_a_tree_are_kept_for_new_ones(plain_world: World) -> None:
    world = plain_world
    async with world.open(scripted("a"), scripted("b")) as app:
        view = await view_of(app, {"model": "scripted:b", "max_tokens": 44, "n_branches": 2})
        view.toggle_model_names()
        kept = await app.loom.persist_config(view.root_id)
        assert kept.model == "scripted:b"
        assert (await view_of(app)).max_tokens == 44
    async with world.open(scripted("a"), scripted("b")) as app:
        state = (await view_of(app)).get_state()
        assert (state.model, state.max_tokens, state.n_branches) == ("scripted:b", 44, 2)
        assert not state.show_model_names
        with pytest.raises(NodeNotFound):
            await app.loom.persist_config("nod_none")
