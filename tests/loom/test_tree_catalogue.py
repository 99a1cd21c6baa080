"""The catalogue of trees: facets, their counts and orders; what became of models' branches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.loom_views import HOW, events_of, scripted, view_of
from tests.support.world import World
from weft.errors import UsageError
from weft.loom import CatalogueEntry
from weft.loom.tree_scores import facts_of, model_scores, subtree_shape
from weft.loom.trees.tree_catalogue import catalogue_page
from weft.messages import Usage
from weft.providers.script import SayText, Spend

pytestmark = pytest.mark.anyio


def entry(name: str, **fields: Any) -> CatalogueEntry:
    known: dict[str, Any] = {
        "root_id": f"nod_{name}",
        "model": "a",
        "nodes": 1,
        "created": 1.0,
        "updated": 1.0,
        "cost_usd": 0.0,
        "archived": False,
        "project_path": "/p",
    }
    return CatalogueEntry(name=name, **{**known, **fields})


TREES = (
    entry("tale", models=("a", "b"), nodes=5, metadata={"category": "fiction", "tags": ["sea"]}),
    entry(
        "poem", models=("b",), model="b", created=2.0, cost_usd=2.0, metadata={"category": "verse"}
    ),
    entry("log", models=("c",), updated=3.0, cost_usd=None, metadata={"category": "notes"}),
)


def names(facets: dict[str, list[Any]], sort: Any = "name") -> list[str]:
    page = catalogue_page(TREES, facets, sort=sort, offset=0, limit=10)
    return [each.name for each in page.entries]


def test_values_of_one_facet_are_alternatives_and_facets_all_have_to_fit() -> None:
    assert names({"category": ["fiction", "verse"]}) == ["poem", "tale"]
    assert names({"category": ["fiction", "verse"], "models": ["b"]}) == ["poem", "tale"]
    assert names({"category": ["fiction", "notes"], "models": ["b", "c"]}) == ["log", "tale"]
    assert names({"category": ["fiction"], "models": ["c"]}) == []
    assert names({"tags": ["sea"]}) == ["tale"]
    # One without a value filters nothing: a list of which the last one was taken away.
    assert names({"category": []}) == ["log", "poem", "tale"]


def test_counts_say_how_many_trees_there_would_be_with_a_value() -> None:
    facets = {"category": ["fiction"], "models": ["b"]}
    page = catalogue_page(TREES, facets, sort="name", offset=0, limit=10)
    assert page.total == 1
    assert page.facets["category"] == {"fiction": 1, "verse": 1}
    assert page.facets["models"] == {"a": 1, "b": 1}
    assert page.facets["model"] == {"a": 1}


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("name", ["log", "poem", "tale"]),
        ("nodes", ["tale", "poem", "log"]),
        ("updated", ["log", "tale", "poem"]),
        ("created", ["poem", "tale", "log"]),
        ("oldest", ["log", "tale", "poem"]),
        ("cost", ["poem", "tale", "log"]),
    ],
)
def test_trees_are_sorted_in_each_of_the_orders(sort: str, order: list[str]) -> None:
    assert names({}, sort) == order


def test_what_is_no_facet_no_list_and_no_order_is_refused() -> None:
    for facets, sort in (({"colour": ["red"]}, "name"), ({"category": "x"}, "name"), ({}, "size")):
        with pytest.raises(UsageError):
            catalogue_page(TREES, facets, sort=sort, offset=0, limit=1)  # type: ignore[arg-type]


async def test_row_store_catalogue_opens_trees_for_what_only_they_tell(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        one, _ = await loom.save_continuations("Sea", [" a"], **{**HOW, "model": "x"})
        two, _ = await loom.save_continuations("Hill", [" b"], **{**HOW, "model": "y"})
        await loom.update_tree_settings(one.id, metadata={"category": "fiction"})
        await loom.update_tree_settings(two.id, metadata={"category": "notes"})
        found = await loom.catalogue(facets={"category": ["fiction"]})
        assert [each.root_id for each in found.entries] == [one.id]
        assert found.entries[0].models == ("x",)
        assert found.facets["category"] == {"fiction": 1, "notes": 1}
        assert [
            each.root_id for each in (await loom.catalogue(facets={"models": ["y"]})).entries
        ] == [two.id]
        assert (await loom.catalogue()).entries[0].models == ()
        assert (await loom.catalogue(details=True)).facets["models"] == {"x": 1, "y": 1}


async def test_row_store_stats_say_what_became_of_each_models_branches(world: World) -> None:
    def paid(text: str) -> list[Any]:
        return [SayText(text=text), Spend(usage=Usage(output_tokens=100, cost_usd=0.25))]

    one = scripted("a", paid(" good"), paid(" more"))
    two = scripted("b", paid(" bad"), paid(" worse"))
    async with world.open(one, two) as app:
        view = await view_of(app, {"model": "scripted:a"}, {"model": "scripted:b"})
        await events_of(view.generate())
        good = next(child for child in view.get_state().children if child.text == " good")
        view.checkout(good.id)
        view.toggle_bookmark()
        await events_of(view.generate())
        stats = await app.loom.stats(view.root_id)
        best, other = stats.models
        assert (best.model, best.nodes, best.expanded) == ("scripted:a", 2, 1)
        assert (best.win_rate, best.kept_rate, best.cost_usd) == (0.5, 0.5, 0.5)
        assert (other.model, other.win_rate, other.kept_rate) == ("scripted:b", 0.0, 0.0)
        assert (other.cost_usd, other.output_tokens) == (0.5, 200)


async def test_row_store_shape_and_stats_agree_with_the_scores_of_files(world: World) -> None:
    async with world.open() as app:
        loom = app.loom
        root, (first, _) = await loom.save_continuations(
            "Root", ["a", "b"], **{**HOW, "model": "x"}
        )
        await loom.save_continuations("", ["c", "d"], parent_id=first.id, **{**HOW, "model": "y"})
        await loom.update_metadata(first.id, {"rating": 2, "generation_id": "g"})
        facts = facts_of(await loom.tree_record(root.id))
        stats = await loom.stats(root.id)
        scores = model_scores(facts)
        assert [each.model for each in stats.models] == [each.model for each in scores]
        assert [each.utility for each in stats.models] == [each.discounted.mean for each in scores]
        assert [each.kept_rate for each in stats.models] == [each.kept for each in scores]
        shape, known = await loom.shape(root.id), subtree_shape(facts, root.id)
        assert (shape.size, shape.leaves, shape.width) == (known.size, known.leaves, known.width)
        assert (shape.branching, shape.branchiness) == (known.branching, known.branchiness)
        line = await loom.create_root("a line")
        below = await loom.add_child(line.id, " b", **HOW)
        await loom.add_child(below.id, " c", **HOW)
        assert (await loom.shape(line.id)).branchiness == 0.0
