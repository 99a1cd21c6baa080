"""Rows of the documented example system that a user of it would miss, one test for each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.loom_views import HOW, events_of, view_of
from tests.support.world import World
from weft.loom import GenerationError
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_row_errors_short_beginnings_of_ids_mean_one_node(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, children = await app.loom.save_continuations("Root", list("abcdefgh"), **HOW)
        for child in children:
            assert (await app.loom.get(child.id[:12])).id == child.id
        view = await app.loom.open(root.id)
        view.select_sibling(2)
        cut = view.truncate_selected_child(1) or view.edit_node_text(root.id, "R", fork=True)
        assert cut is not None
        assert (await app.loom.get(cut.id[:12])).id == cut.id
        split, tail = view.split_node(root.id, 2)
        assert (split.id, await app.loom.resolve_node_id(tail.id[:12])) == (root.id, tail.id)


async def test_row_store_an_import_brings_the_settings_that_its_root_carries(
    plain_world: World,
) -> None:
    metadata = {"model": "model-a", "max_tokens": 123, "temperature": 0.4, "n_branches": 2}
    async with plain_world.open() as app:
        record = {"id": "one", "parent_id": None, "text": "root", "metadata": metadata}
        assert await app.loom.import_nodes([record]) == 1
        settings = await app.loom.tree_settings("one")
        [entry] = settings.model_plan
        assert (entry.model, entry.n_branches, entry.max_tokens) == ("model-a", 2, 123)
        assert entry.temperature == 0.4
        assert (await app.loom.get("one")).metadata == {}


async def test_row_store_an_import_with_wrong_settings_is_imported_without_them(
    plain_world: World,
) -> None:
    wrong: dict[str, Any] = {
        "config": {"model_plan": [{"model": ""}, "x", {"model": "ok", "max_tokens": -1}]},
        "name": 7,
        "show_model_names": "no",
        "source": "elsewhere",
    }
    async with plain_world.open() as app:
        await app.loom.import_nodes([{"id": "one", "text": "root", "metadata": wrong}])
        settings = await app.loom.tree_settings("one")
        assert [each.model for each in settings.model_plan] == [app.loom.default_model()]
        assert (settings.name, settings.show_model_names) == ("", True)
        assert (await app.loom.get("one")).metadata == {"source": "elsewhere"}


async def test_row_store_a_tree_has_no_name_until_it_is_given_one(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("Once")
        assert (await app.loom.tree_settings(root.id)).name == ""
        assert (await app.loom.tree_record(root.id)).name == ""
        await app.loom.update_metadata(root.id, {"name": "a-tale"})
        assert (await app.loom.tree_settings(root.id)).name == "a-tale"


@pytest.mark.parametrize(
    ("attributes", "category"),
    [
        ({"status_code": 429}, "rate_limit"),
        ({"status": 401}, "authentication"),
        ({"status_code": 503}, "provider_unavailable"),
        ({"status_code": 422}, "invalid_request"),
        ({"status_code": "429"}, "provider_error"),
        ({}, "provider_error"),
    ],
)
async def test_row_error_a_failure_of_a_model_of_the_programs_own_has_its_category(
    attributes: dict[str, Any], category: str, plain_world: World
) -> None:
    def refused(_: object) -> None:
        error = RuntimeError("key=sk-secret")
        for name, value in attributes.items():
            setattr(error, name, value)
        raise error

    async with plain_world.open(ScriptedModel([], choose=refused)) as app:
        [closing] = await events_of((await view_of(app)).generate())
        assert isinstance(closing, GenerationError)
        assert closing.category == category
        status = next(iter(attributes.values()), None)
        assert closing.status == (status if isinstance(status, int) else None)
        assert "sk-secret" not in closing.error


async def test_row_error_a_time_out_of_a_model_of_the_programs_own(plain_world: World) -> None:
    def late(_: object) -> None:
        raise TimeoutError

    async with plain_world.open(ScriptedModel([], choose=late)) as app:
        [closing] = await events_of((await view_of(app)).generate())
        assert isinstance(closing, GenerationError)
        assert closing.category == "timeout"


async def test_row_error_the_size_of_the_whole_prompt_is_checked_before_any_call(
    plain_world: World,
) -> None:
    model = ScriptedModel([" never"])
    async with plain_world.open(model) as app:
        view = await view_of(app)
        size = sum(len(part.text) for entry in view.prompt_entries() for part in entry.parts)
        # The text alone would fit: the instructions around it count.
        [closing] = await events_of(view.generate(max_context_tokens=size // 8))
        assert isinstance(closing, GenerationError)
        assert closing.category == "context_overflow"
        assert model.requests == []
        view.update_context("x" * 4 * size)
        [closing] = await events_of(view.generate(max_context_tokens=size))
        assert isinstance(closing, GenerationError)
        assert closing.category == "context_overflow"
        view.update_context("")
        assert len(await events_of(view.generate(max_context_tokens=size))) > 1
