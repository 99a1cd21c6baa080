"""Rows of the documented example system that a user of it would miss, one test for each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.loom_views import HOW, events_of, scripted, view_of
from tests.support.world import World
from weft.errors import NodeNotFound, ProviderUnavailable
from weft.loom import GenerationComplete, GenerationError
from weft.loom.branches.generation import category_of
from weft.providers.script import CallTool, SayText
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


async def test_row_loom_node_of_a_coding_turn_shows_its_text_and_folds_calls_and_results(
    plain_world: World,
) -> None:
    read = CallTool(name="read", args={"path": "a.txt"})
    plain_world.write("a.txt", "the fox\n")
    async with plain_world.open(
        ScriptedModel([[SayText(text="Let me look."), read], "A fox."])
    ) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("What is in it?")
        line = [each for each, _ in await session.messages_with_ids() if each.startswith("nod_")]
        asked, looked, answered = [await app.loom.get(node) for node in line]
        assert [node.kind for node in (asked, looked, answered)] == ["message"] * 3
        assert [node.text for node in (asked, looked, answered)] == [
            *("What is in it?", "Let me look.", "A fox.")
        ]
        [call] = looked.metadata["calls"]
        assert (call["tool"], call["arguments"]) == ("read", {"path": "a.txt"})
        assert "the fox" in str(call)
        assert "calls" not in answered.metadata
        view = await app.loom.open(answered.id)
        assert "the fox" not in view.get_state().full_text


async def test_edge_cancel_of_nothing_stops_nothing(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([" on"])) as app:
        view = await view_of(app)
        view.cancel()
        done = (await events_of(view.generate()))[-1]
        assert isinstance(done, GenerationComplete)


async def test_edge_select_sibling_is_remembered_by_the_tree(world: World) -> None:
    async with world.open() as app:
        root, children = await app.loom.save_continuations("Root", ["a", "b", "c"], **HOW)
        view = await app.loom.open(root.id)
        view.select_sibling(-1)
        await view.save()
        assert await app.loom.checked_out_child(root.id) == children[2].id
    async with world.open() as app:
        assert (await app.loom.open(root.id)).get_state().selected_child_idx == 2


async def test_row_state_says_what_the_tree_used_and_whether_that_is_all(
    plain_world: World,
) -> None:
    priced = scripted("p", " a", price_input=1.0, price_output=2.0)
    async with plain_world.open(priced, scripted("free", " b")) as app:
        view = await view_of(app, {"model": "scripted:p"})
        await events_of(view.generate())
        state = view.get_state()
        assert state.usage.total_tokens > 0
        assert state.cost is not None
        assert state.pricing_complete
        view.set_model("scripted:free")
        await events_of(view.generate())
        state = view.get_state()
        assert (state.cost, state.pricing_complete) == (None, False)


async def test_row_state_prompt_entries_are_what_is_sent(plain_world: World) -> None:
    model = scripted("a", " on")
    async with plain_world.open(model) as app:
        view = await view_of(
            app, {"model": "scripted:a"}, {"model": "scripted:b", "enabled": False}
        )
        view.update_context("A storm.")
        [entry] = view.prompt_entries()
        await events_of(view.generate())
        sent = model.last_request
        shown = {part.role: part.text for part in entry.parts}
        assert shown["system"] == sent.system
        assert "A storm." in shown["system"]
        assert shown["user"] in str(sent.messages[-1])
        assert (entry.model, entry.strategy) == ("scripted:a", "system")


async def test_edge_edit_of_a_node_that_is_not_there_is_refused(plain_world: World) -> None:
    async with plain_world.open() as app:
        view = await view_of(app)
        with pytest.raises(NodeNotFound):
            view.edit_node_text("nod_none", "x")
        assert view.edit_node_text(view.root_id, "Once") is None


async def test_row_error_a_time_out_of_a_vendor_is_one(plain_world: World) -> None:
    late = ProviderUnavailable("no answer came")
    late.timed_out = True
    assert category_of(late) == "timeout"
