"""The view as a user drives it: keys in, a screen out, and a tree that has changed."""

from __future__ import annotations

import math
import re
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.loom_stage import planned_tree, scripted, shown_view
from tests.support.memory_terminal import MemoryTerminal
from tests.support.world import World
from weft.app import App
from weft.cli.loom_view.start import run_view
from weft.errors import UsageError
from weft.loom import LoomNode
from weft.providers.script import Break, Fail, SayText, Stall

pytestmark = pytest.mark.anyio

UP, DOWN, ESC, ENTER, HOME, END = "\x1b[A", "\x1b[B", "\x1b", "\r", "\x1b[H", "\x1b[F"
HOW: dict[str, Any] = {"model": "scripted:haiku", "strategy": "system"}


async def grown(app: App) -> tuple[LoomNode, list[LoomNode], LoomNode]:
    """Root → [A, B, C], and A has a child D."""
    texts = [" kept every thread.\n\nOne more.", " sang at night.", " slept."]
    root, children = await app.loom.save_continuations("The loom", texts, **HOW)
    below = await app.loom.add_child(children[0].id, " And then it rained.", **HOW)
    return root, children, below


async def refused_view(app: App, start: str | None) -> None:
    terminal = MemoryTerminal()
    try:
        await run_view(app, start, terminal=terminal)
    finally:
        terminal.close()
        assert terminal.written == ""


async def children(app: App, node: str) -> list[str]:
    return [child.text for child in await app.loom.children(node)]


async def test_a_walk_through_a_tree_by_keys(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, second, _), below = await grown(app)
        async with shown_view(app, root.id) as view:
            await view.shows("▸1 ● kept every", "2 ● sang", "below ▸1: And then it rained.", "root")
            await view.press("j", "▸2 ● sang")
            await view.gone("below ▸")
            await view.press("kk", "▸3 ● slept")
            await view.press("j", "▸1 ● kept")
            await view.press(
                "l", "The loom kept every thread.", "▸1 ● And then it rained.", "depth 1"
            )
            await view.press("l", "One more. And then it rained.▏", "depth 2")
            await view.press("l", "nothing grows here yet: Space grows branches")
            await view.press("hh", "▸1 ● kept", "root")
            await view.press(END, "depth 2")
            await view.press("K", "root ─")
            await view.press("J", "there is no other fork")
            await view.press("jl", "The loom sang at night.▏")
            view.terminal.type("q")
            assert await view.left() == 0
        assert await app.loom.active_node(root.id) == second.id
        assert first.id != below.id


async def test_branches_grow_in_place_and_keep_their_order(plain_world: World) -> None:
    slow = scripted("slow", (SayText(text=" first "), Stall(gate="g"), SayText(text="words")))
    fast = scripted("fast", " second words")
    async with plain_world.open(slow, fast) as app:
        root = await planned_tree(app, "Once", slow, fast)
        async with shown_view(app, root) as view:
            await view.shows("n 2 · 40 tok")
            await view.press(" ", "1 ○ first", "2 ● second words", "1 growing", "Esc stops")
            slow.gate("g").opened.set()
            await view.shows("▸1 ● first words", "2 ● second words", "2 new branches", "3 nodes")


async def test_the_branches_belong_to_the_node_where_the_key_was_pressed(
    plain_world: World,
) -> None:
    model = scripted("m", " new")
    async with plain_world.open(model) as app:
        root, texts = await app.loom.save_continuations("Once", [" there"], **HOW)
        (await app.loom.open(root.id)).set_model("scripted:m")
        await app.loom.set_active_node(root.id)
        async with shown_view(app, root.id) as view:
            await view.shows("▸1 ● there")
            # In one go: the move comes before the first token.
            await view.press(" l", "Once there▏")
            await view.shows("1 new branch")
        assert await children(app, root.id) == [" there", " new"]
        assert await children(app, texts[0].id) == []


async def test_a_digit_grows_so_many_and_a_shifted_one_short_ones(plain_world: World) -> None:
    model = scripted("m", *[" a b c d e f g h i j k l m n o p q r s t u v w x y z"] * 5)
    async with plain_world.open(model) as app:
        root = await planned_tree(app, "Once", model)
        async with shown_view(app, root) as view:
            await view.press("3", "3 new branches")
            await view.press("@", "2 new branches")
        found = await app.loom.children(root)
        assert [child.max_tokens for child in found] == [40, 40, 40, 10, 10]
        assert (await app.loom.tree_settings(root)).model_plan[0].n_branches == 1


async def test_esc_stops_once_and_keeps_what_has_come(plain_world: World) -> None:
    model = scripted("m", (SayText(text=" half a "), Stall(gate="never")))
    async with plain_world.open(model) as app:
        root = await planned_tree(app, "Once", model)
        async with shown_view(app, root) as view:
            await view.press(" ", "○ half a")
            await view.press(" ", "branches grow already: Esc stops them")
            await view.press(ESC, "stopped; 1 new branch kept", "Once half a ▏")
        [child] = await app.loom.children(root)
        assert child.partial


async def test_leaving_in_mid_stream_keeps_what_has_come(world: World) -> None:
    model = scripted("m", (SayText(text=" half a "), Stall(gate="never")))
    async with world.open(model) as app:
        root = await planned_tree(app, "Once", model)
        async with shown_view(app, root) as view:
            await view.press(" ", "○ half a")
            view.terminal.type("q")
            assert await view.left() == 0
    async with world.open(model) as app:
        assert await children(app, root) == [" half a "]


async def test_a_failed_branch_says_why_and_one_that_broke_off_too(plain_world: World) -> None:
    good = scripted("good", " fine")
    bad = scripted("bad", (Fail(error="AuthFailed", message="the key was refused", status=401),))
    torn = scripted("torn", (SayText(text=" half a "), Break(message="the line broke")))
    async with plain_world.open(good, bad, torn) as app:
        root = await planned_tree(app, "Once", good, bad, torn)
        async with shown_view(app, root) as view:
            text = await view.press(" ", "▸1 ● fine", "2 ✗ ", "the key was refused", "2 failed")
            assert "3 ◐ (partial: " in text
            assert "the line broke" in text
            await view.press(ESC, "2 ◐ (partial) half a")
            await view.gone("✗")


async def test_the_word_cursor_cuts_and_grows(plain_world: World) -> None:
    model = scripted("m", " a new end")
    async with plain_world.open(model) as app:
        root, first = await app.loom.save_continuations("Once", [" upon a time"], **HOW)
        (await app.loom.open(root.id)).set_model("scripted:m")
        async with shown_view(app, root.id) as view:
            await view.press("H", "upon a▏ time", "Space cuts here and grows")
            await view.press("H", "upon▏ a time")
            await view.press("LL", "▸1 ● upon a time")
            await view.press("H ", "Once upon a a new end▏")
            cut = (await app.loom.children(root.id))[1]
            assert (cut.text, cut.metadata["truncated_from"]) == (" upon a", first[0].id)
            # At a leaf it is in the last part of the line.
            await view.press("HH", "a▏ new end")


TOKENS = (
    (" kept", math.log(0.6), ((" kept", math.log(0.6)), (" lost", math.log(0.3)))),
    (" all", math.log(0.05), ((" the", math.log(0.8)), (" all", math.log(0.05)))),
)


async def test_tokens_by_probability_and_a_branch_at_one(plain_world: World) -> None:
    model = scripted("m", SayText(text=" kept all", tokens=TOKENS))
    async with plain_world.open(model) as app:
        root, _ = await app.loom.save_continuations("It", [" x"], **HOW)
        (await app.loom.open(root.id)).set_model("scripted:m")
        async with shown_view(app, root.id) as view:
            await view.press("T", "no probabilities here: haiku gave none; from now on")
            await view.press(" ", "It kept all▏", "1 new branch")
            await view.press("T", "├ ␣kept 60% · [␣lost 30%]", "Enter branches there")
            await view.press("l", "␣all 5% · [␣the 80%]")
            await view.press(ENTER, "It kept the▏", "Space grows it")
        assert await children(app, root.id) == [" x", " kept all", " kept the"]


async def test_text_is_edited_in_place_and_taken_back(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, *_), _ = await grown(app)
        async with shown_view(app, root.id) as view:
            await view.press("jjeX", "Edit ▸3", "slept.X")
            await view.press(ESC, "Esc again drops the change")
            await view.press(ENTER, "▸3 ● slept.X", "changed; u undoes it")
            await view.press("R", "Earlier texts", "❯ ● slept.X", "text 1")
            await view.press(DOWN + ENTER, "▸3 ● slept.", "changed")
            await view.press("u", "▸3 ● slept.X", "undone")
            await view.press("u", "▸3 ● slept.", "undone")
            await view.press("kR", "its text was never changed")
            await view.press("keY\t", "One more.Y")
        assert len(await children(app, root.id)) == 4
        assert (await app.loom.get(first.id)).text.endswith("One more.")


async def test_deleting_asks_and_can_be_undone(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, _ = await grown(app)
        async with shown_view(app, root.id) as view:
            await view.press("D", "Delete ▸1 and 1 below? y deletes")
            await view.press("n", "▸1 ● kept", "root ─")
            await view.press("Dy", "deleted; u brings it back", "▸1 ● sang", "3 nodes")
            await view.press("u", "▸2 ● sang", "5 nodes")
            await view.press("lD", "Delete the end of this line?")
            await view.press("y", "deleted", "4 nodes", "▸2 ● slept")


async def test_nodes_are_bookmarked_rated_named_and_found_again(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, second, _), below = await grown(app)
        async with shown_view(app, root.id) as view:
            await view.press("B", "there is no bookmark yet")
            await view.press("jb", "▸2 ● ⚑ sang", "bookmarked")
            await view.press("g4", "▸2 ● ⚑ ★4 sang")
            await view.press("nchapter 2\r", "⚑ ★4 chapter 2: sang")
            await view.press("kllb", "One more. And then it rained.▏", "bookmarked")
            await view.press("L", "depth 2 · ⚑")
            await view.press("B", "The loom sang at night.▏", "chapter 2 ▸ depth 1")
            await view.press("B", "depth 2")
            text = await view.press("r", "Reading", "2 of 2")
            assert "And then it rained." in text
            await view.press("p", "Reading · chapter 2", "1 of 2", "The loom sang at night.")
            await view.press(ENTER, "chapter 2 ▸ depth 1")
            await view.press("g0", "depth 1")
        assert (await app.loom.get(second.id)).rating is None
        assert [first.bookmarked, (await app.loom.get(below.id)).bookmarked] == [False, True]


async def test_two_branches_are_compared_and_woven(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, _, _ = await grown(app)
        async with shown_view(app, root.id) as view:
            await view.press("=", "marked; = at another compares it", "= kept")
            await view.press("j=", "Compare ▸1 haiku", "with ▸2 haiku", "change")
            await view.press("w", "Weave ▸1", "nothing chosen: all", "❯    1")
            await view.press("j j ", "2 chosen")
            await view.press(ENTER, "woven into this one", "The loomOne more.")
            await view.press("hw", "marked")
            await view.press("w", "the mark is gone")
        woven = (await app.loom.children(root.id))[-1]
        assert woven.text == "One more.\n\n sang at night."
        assert len(woven.metadata["parents"]) == 2


async def test_the_tree_is_walked_as_an_outline(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (first, _, third), _ = await grown(app)
        async with shown_view(app, root.id) as view:
            text = await view.press("v", "┌ Tree", "5 nodes", "❯ ● here The loom")
            assert "├ kept every thread. One more." in text
            assert "│ And then it rained." in text
            assert "└ slept." in text
            await view.press("jj", "❯ │ And then it rained.")
            await view.press("hb", "├ ⚑ kept", "❯ ├ ⚑")
            await view.press("Z", "Tree, from the hoisted node on", "2 nodes")
            await view.press("q", "hoisted", "kept every thread.")
            await view.press("h", "this is the hoisted node")
            await view.press("Z", "the whole tree", "The loom kept every")
            await view.press("v" + END + ENTER, "The loom slept.▏")
        assert await app.loom.active_node(root.id) == third.id
        assert first.id


async def test_words_are_looked_for_while_they_are_typed(world: World) -> None:
    async with world.open() as app:
        root, (_, second, _), _ = await grown(app)
        other = await app.loom.create_root("Another loom that sang")
        async with shown_view(app, root.id) as view:
            await view.press("/", "Search this tree:", "type the words")
            await view.press("sang", "Search this tree: sang", "sang at night.", "1 of 1")
            await view.press("\t", "Search all trees: sang", "1 of 2")
            await view.press("\tx", "nothing has these words")
            await view.press("\x7f", "1 of 1")
            await view.press(ENTER, "The loom sang at night.▏")
            await view.press("/Another", "nothing has these words")
            await view.press("\t", "1 of 1")
            await view.press(ENTER, "Another loom that sang▏", "1 node")
        assert await app.loom.active_node(other.id) == other.id
        assert second.id


async def test_models_are_chosen_with_their_numbers(plain_world: World) -> None:
    one, two = scripted("one"), scripted("two")
    async with plain_world.open(one, two) as app:
        root = await planned_tree(app, "Once", one)
        async with shown_view(app, root) as view:
            await view.press("m", "┌ Models", "1 branch ┐", "❯ ● scripted:one")
            await view.press("+l+l--", "2 branches ┐", "50", "0.7")
            await view.press("a", "Add a model", "type to filter")
            await view.press("scripted:two" + ENTER, "❯ ● scripted:two", "4 branches ┐")
            await view.press("k ", "○ scripted:one", "2 branches ┐")
            await view.press("P", "Probabilities of tokens: on")
            await view.press(ENTER, "n 2 · 50 tok · 0.7", "1 model ┐")
            await view.press("mDD", "one model has to stay")
            await view.press(ESC, "n 2 · 50 tok")
            await view.press("mj120l33" + ENTER, "n 64")
        settings = await app.loom.tree_settings(root)
        assert [(each.model, each.enabled) for each in settings.model_plan] == [
            ("scripted:one", False),
            ("scripted:two", True),
        ]
        assert settings.logprobs == 5


async def test_context_prompt_and_help(plain_world: World) -> None:
    model = scripted("m")
    async with plain_world.open(model) as app:
        root = await planned_tree(app, "Once", model)
        async with shown_view(app, root) as view:
            await view.shows("ctx off")
            await view.press("cA fairy tale\r", "ctx on", "models are told this")
            await view.press("p", "┌ Prompt · scripted:m", "A fairy tale")
            await view.press("q?", "┌ Keys", "Moving", "to the parent")
            await view.press(END, "[loom.keys]")
            await view.press("q", "└ root")
        assert await app.loom.context_of(root) == "A fairy tale"


async def test_blind_hides_who_wrote_what_and_in_which_order(plain_world: World) -> None:
    models = [scripted(f"model{n}", f" text{n}") for n in range(6)]
    async with plain_world.open(*models) as app:
        root = await planned_tree(app, "Once", *models)
        async with shown_view(app, root) as view:
            await view.press("M", "names are hidden")
            text = await view.press(" ", "6 new branches", "text5")
            assert re.search(r"model\d", text) is None
            assert "$." not in text.replace("$0.", "")
            assert re.findall(r"text(\d)", text) != list("012345")
            order = re.findall(r"text(\d)", text)
            outline = await view.press("v", "┌ Tree", "text5")
            assert re.findall(r"text(\d)", outline) == order
            assert re.search(r"model\d", outline) is None
            await view.press("v", "└ ")
            text = await view.press("M", "names are shown", "model5")
            assert re.findall(r"text(\d)", text) == list("012345")


async def test_a_place_becomes_a_coding_session(world: World) -> None:
    async with world.open() as app:
        root, (first, *_), _ = await grown(app)
        async with shown_view(app, first.id) as view:
            await view.press("x", "weft -r ses_", "opens it as a coding session")
        trees = (await app.loom.catalogue()).entries
        assert [tree.root_id for tree in trees] == [root.id]
        sessions = await app.sessions.list_saved(app.project_path)
        assert {each.mode for each in sessions} == {"loom", "normal"}


async def test_without_a_word_the_user_picks_a_tree(plain_world: World) -> None:
    async with plain_world.open() as app:
        await app.loom.create_root("A tale of ships", title="ships")
        await app.loom.create_root("A tale of looms", title="looms")
        async with shown_view(app, None) as view:
            await view.shows("Trees", "❯ looms", "ships", "1 of 2")
            await view.press("shi", "/shi", "1 of 1")
            await view.press(ENTER, "A tale of ships▏")
            await view.press("\t", "Trees", "looms", "● ships")
            await view.press("loo" + ENTER, "A tale of looms▏")
        async with shown_view(app, "") as view:
            await view.shows("Trees")
            view.terminal.type(ESC)
            assert await view.left() == 0


async def test_without_a_tree_one_sentence_says_how_to_begin(plain_world: World) -> None:
    async with plain_world.open() as app:
        with pytest.raises(UsageError, match="there is no tree yet"):
            await refused_view(app, None)


async def test_a_tree_that_another_process_has_is_read(shared_world: World) -> None:
    async with shared_world.open() as owner, shared_world.open() as guest:
        root, _, _ = await grown(owner)
        async with shown_view(guest, root.id) as view:
            await view.shows("another process has it: to read only")
            for key in " 3eDbgu":
                await view.press(key, "can only be read")
                await view.press("j", "read only")
            await view.press("v", "┌ Tree")


async def test_a_tree_that_the_other_process_let_go_of_is_written_again(
    shared_world: World,
) -> None:
    async with shared_world.open() as guest:
        async with AsyncExitStack() as stack:
            owner = await stack.enter_async_context(shared_world.open())
            root, [first, *_], _ = await grown(owner)
            async with shown_view(guest, root.id) as view:
                await view.shows("another process has it: to read only")
                await stack.aclose()
                await view.press("b", "no other process has it any more")
                await view.press("b", "⚑")
        assert (await guest.loom.get(first.id)).bookmarked


async def test_what_another_process_adds_is_shown_without_a_key(shared_world: World) -> None:
    async with shared_world.open() as owner, shared_world.open() as guest:
        root, _, _ = await grown(owner)
        other = await owner.loom.create_root("Another tree")
        async with shown_view(guest, root.id) as view:
            await view.shows("▸1 ● kept")
            await owner.loom.add_child(root.id, " danced.", **HOW)
            await view.shows("4 ● danced.", "6 nodes")
            await view.press("\tAnother" + ENTER, "Another tree▏")
            await owner.loom.add_child(other.id, " grows.", **HOW)
            await view.shows("▸1 ● grows.")


async def test_a_new_size_is_drawn_in_mid_stream(plain_world: World) -> None:
    steps = (SayText(text=" one two "), Stall(gate="g"), SayText(text="three"))
    model = scripted("m", steps, steps)
    async with plain_world.open(model) as app:
        root = await planned_tree(app, "Once upon a time", model, n=2)
        async with shown_view(app, root, columns=80) as view:
            await view.press(" ", "1 ○ one two", "2 ○ one two")
            for columns, rows in ((40, 12), (200, 30), (100, 24)):
                view.terminal.resize(columns, rows)
                header = "┌ Once upon a time ".ljust(columns - 30, "─")
                await view.shows(header, "1 ○ one two", "2 ○ one two")
                assert {len(row) for row in view.terminal.rows[:-1]} == {columns}
            view.terminal.resize(20, 5)
            await view.gone("┌")
            view.terminal.resize(80, 24)
            model.gate("g").opened.set()
            await view.shows("1 ● one two three", "2 ● one two three", "2 new branches")


async def test_the_terminal_is_given_back(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("Once")
        async with shown_view(app, root.id) as view:
            terminal = view.terminal
            assert [terminal.is_alternate(), terminal.has_cursor] == [True, False]
            terminal.type("q")
            await view.left()
            assert [terminal.is_alternate(), terminal.has_cursor] == [False, True]
            assert not terminal.is_entered


async def test_a_terminal_that_goes_away_ends_the_view(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("Once")
        async with shown_view(app, root.id) as view:
            view.terminal.hang_up()
            assert await view.left() == 0


async def test_keys_of_the_user_are_used_and_shown(plain_world: World) -> None:
    config = {"loom.keys": {"generate": "g", "rate": "", "help": "f1"}}
    model = scripted("m", " there")
    async with plain_world.open(model, config=config) as app:
        root = await planned_tree(app, "Once", model)
        async with shown_view(app, root) as view:
            await view.shows("g grows", "F1 keys")
            await view.press("g", "Once there▏")


async def test_a_wrong_key_in_the_settings_is_told_before_anything_is_drawn(
    plain_world: World,
) -> None:
    async with plain_world.open(config={"loom.keys": {"gnerate": "g"}}) as app:
        root = await app.loom.create_root("Once")
        with pytest.raises(UsageError, match="did you mean 'generate'"):
            await refused_view(app, root.id)


async def test_what_was_typed_is_kept_where_it_cannot_be_taken(plain_world: World) -> None:
    model = scripted("m", (Stall(gate="g"),))
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(model="scripted:m")
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        async with shown_view(app, session.id) as view:
            # While a turn runs, its line is not changed.
            await view.press("eX", "goX")
            await view.press(ENTER, "goX", "change its text")
            await view.press(ESC, "Esc again drops the change")
            await view.press(ESC, "└ root")


async def test_a_long_sentence_is_shown_whole(plain_world: World) -> None:
    async with plain_world.open() as app:
        root = await app.loom.create_root("Once")
        async with shown_view(app, root.id, columns=40) as view:
            view.terminal.type("x")
            await view.shows("it as a coding session")
            text = view.terminal.text.replace(" │\n│ ", " ")
            assert re.search(r"weft -r ses_[0-9a-z]{26} opens it", " ".join(text.split()))


async def test_trees_are_listed_in_several_orders_and_typing_ahead_counts(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        for name in ("beta", "alpha", "gamma"):
            await app.loom.create_root(f"The text of {name}", title=name)
        async with shown_view(app, "The text of gamma") as view:
            # Before the list has come.  Whole words: two letters may stand in the id of a tree.
            await view.press("\talpha", "/alpha", "1 of 1", "❯   alpha")
            await view.press("\x7f" * 5 + "\x13", "by age")
            text = await view.press("\x13", "by name", "❯   alpha")
            assert text.index("alpha") < text.index("beta") < text.index("gamma")
            await view.press("\t", "Trees of this folder", "by name")
            await view.press("beta" + ENTER, "The text of beta▏")


async def test_an_imported_tree_is_opened_from_the_list(plain_world: World) -> None:
    async with plain_world.open() as app:
        await app.loom.create_root("Another tree")
        await app.loom.import_nodes([{"id": "r1", "parent_id": None, "text": "An imported tale"}])
        async with shown_view(app, None) as view:
            await view.shows("Trees", "imported")
            await view.press("imported" + ENTER, "An imported tale▏")


async def test_a_tree_that_was_unloaded_is_opened_again(world: World) -> None:
    async with world.open() as app:
        root, (_, second, _), _ = await grown(app)
        async with shown_view(app, root.id) as view:
            await view.press("j", "▸2 ● sang")
            await app.sessions.stop_session(await app.loom.session_of(root.id))
            await view.press("l", "it is opened again")
            await view.press("l", "The loom sang at night.▏")
        assert second.id


async def test_a_hit_of_a_search_shows_its_words_in_a_narrow_window(plain_world: World) -> None:
    async with plain_world.open() as app:
        long = f" {'It rained for days. ' * 20}Then a storm tore the roof off. {'Dry. ' * 40}"
        root, _ = await app.loom.save_continuations("Once", [long], **HOW)
        async with shown_view(app, root.id, columns=40) as view:
            await view.press("/storm", "a storm tore")


async def test_what_comes_after_a_generation_stands_behind_it(plain_world: World) -> None:
    model = scripted("m", " one", " two")
    async with plain_world.open(model) as app:
        root = await planned_tree(app, "Once", model, n=2)
        async with shown_view(app, root) as view:
            await view.press(" ", "▸1 ● one", "2 ● two")
            await app.loom.add_child(root, " three", **HOW)
            await view.shows("▸1 ● one", "2 ● two", "3 ● three")
