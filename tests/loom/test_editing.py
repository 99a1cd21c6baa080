"""Edits of a text tree: revisions, forks, split, join, weave, compare, and undo of everything."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.world import World
from weft.errors import NodeNotFound, SessionBusy, StaleEdit, UsageError
from weft.ids import NodeId
from weft.loom import GenerationStore, LoomNode
from weft.loom.trees.text_diff import mapped_segments, paragraphs, word_diff
from weft.loom.trees.tree_edits import delete
from weft.providers.script import CallTool, SayText, Stall, Think
from weft.testing import ScriptedModel

pytestmark = pytest.mark.anyio

HOW: dict[str, Any] = {"model": "m", "strategy": "s", "max_tokens": 10, "temperature": 0.9}


async def line(loom: GenerationStore, *texts: str) -> list[LoomNode]:
    """A root and nodes below it, one below the other."""
    nodes = [await loom.create_root(texts[0])]
    for text in texts[1:]:
        nodes.append(await loom.add_child(nodes[-1].id, text, **HOW))
    return nodes


async def test_row_apply_edit_gives_the_touched_segments_new_revisions(world: World) -> None:
    async with world.open() as app:
        _, middle, last = await line(app.loom, "Hello", " world", " again")
        other = await app.loom.add_child(middle.id, " aside", **HOW)
        view = await app.loom.open(last.id)
        assert view.apply_edit("Hello world again", "Hello world again") is None
        edited = view.apply_edit("Hello world again", "Hello earth again")
        assert edited is not None
        assert (edited.id, view.get_state().full_text) == (last.id, "Hello earth again")
        await view.save()
    async with world.open() as app:
        assert await app.loom.full_text(last.id) == "Hello earth again"
        # A branch that grew from the first revision still reads it.
        assert await app.loom.full_text(other.id) == "Hello world aside"
        assert [node.text for node in await app.loom.lineage(other.id)] == [
            "Hello",
            " world",
            " aside",
        ]
        node = await app.loom.get(middle.id)
        assert (node.text, node.revision) == (" earth", 1)
        session = await app.sessions.get(await app.loom.session_of(middle.id))
        assert len(await session.revisions(middle.id)) == 2


async def test_row_apply_edit_forks_a_sibling_line_and_shares_what_is_above(world: World) -> None:
    async with world.open() as app:
        root, middle, last = await line(app.loom, "Hello", " world", " again")
        view = await app.loom.open(last.id)
        edited = view.apply_edit("Hello world again", "Hello earth again", fork=True)
        assert edited is not None
        assert (edited.id != last.id, edited.root_id) == (True, root.id)
        assert view.get_state().current_node_id == edited.id
        await view.save()
        assert await app.loom.full_text(edited.id) == "Hello earth again"
        assert await app.loom.full_text(last.id) == "Hello world again"
        [first, second] = await app.loom.children(root.id)
        assert (first.id, second.text, second.model) == (middle.id, " earth", "m")


async def test_row_apply_edit_of_the_root_by_fork_keeps_settings_and_context(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        root, last = await line(app.loom, "Hello", " world")
        view = await app.loom.open(root.id)
        view.update_context("brief")
        view.set_max_tokens(77)
        view.checkout(last.id)
        edited = view.apply_edit("Hello world", "Howdy world", fork=True)
        state = view.get_state()
        assert edited is not None
        assert (state.full_text, state.context, state.max_tokens) == ("Howdy world", "brief", 77)
        assert await app.loom.full_text(last.id) == "Hello world"


async def test_row_apply_edit_of_a_stale_text_writes_nothing(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, last = await line(app.loom, "Hello", " world")
        view = await app.loom.open(last.id)
        before = await app.loom.tree(root.id)
        for fork in (False, True):
            with pytest.raises(StaleEdit):
                view.apply_edit("Hello moon", "Hello sun", fork=fork)
        assert await app.loom.tree(root.id) == before


async def test_row_edit_node_text_makes_a_revision_or_a_sibling(world: World) -> None:
    async with world.open() as app:
        root, middle, last = await line(app.loom, "Hello", " world", " again")
        view = await app.loom.open(middle.id)
        assert view.edit_node_text(middle.id, " world") is None
        edited = view.edit_node_text(middle.id, " earth")
        assert edited is not None
        assert (edited.id, view.get_state().full_text) == (middle.id, "Hello earth")
        assert view.checkout(last.id).full_text == "Hello world again"
        grown = await app.loom.add_child(middle.id, " anew")
        assert (edited.revision, last.parent_revision, grown.parent_revision) == (1, 0, 1)
        assert await app.loom.full_text(grown.id) == "Hello earth anew"
        forked = view.edit_node_text(last.id, " too", fork=True)
        assert forked is not None
        assert (forked.parent_id, view.get_state().full_text) == (middle.id, "Hello world too")
        with pytest.raises(NodeNotFound):
            view.edit_node_text("nod_none", "x")
        assert root.text == "Hello"


@pytest.mark.requirement("event:NodeSplit")
async def test_row_split_keeps_the_id_and_undoes(world: World) -> None:
    async with world.open() as app:
        root, middle, last = await line(app.loom, "Hello", " big world", " again")
        view = await app.loom.open(last.id)
        head, tail = view.split_node(middle.id, 4)
        assert (head.id, head.text, tail.text) == (middle.id, " big", " world")
        assert (tail.parent_id, tail.model) == (middle.id, "m")
        assert view.get_state().full_text == "Hello big world again"
        await view.save()
        assert await app.loom.descendant_counts([root.id, middle.id, tail.id]) == {
            root.id: 3,
            middle.id: 2,
            tail.id: 1,
        }
        for position in (0, 4, -1, 99):
            with pytest.raises(UsageError):
                view.split_node(middle.id, position)
    async with world.open() as app:
        assert [node.text for node in await app.loom.lineage(last.id)] == [
            "Hello",
            " big",
            " world",
            " again",
        ]
        view = await app.loom.open(last.id)
        assert not view.get_state().can_undo
        view.join_with_parent(tail.id)
        assert view.get_state().full_text == "Hello big world again"
        view.undo()
        assert [node.text for node in await app.loom.lineage(last.id)] == [
            "Hello",
            " big",
            " world",
            " again",
        ]


async def test_row_split_is_undone_by_undo(world: World) -> None:
    async with world.open() as app:
        _, middle, last = await line(app.loom, "Hello", " big world", " again")
        view = await app.loom.open(last.id)
        before = view.get_state().full_text
        view.split_node(middle.id, 4)
        assert view.undo().full_text == before
        await view.save()
        assert [node.text for node in await app.loom.lineage(last.id)] == [
            "Hello",
            " big world",
            " again",
        ]


@pytest.mark.requirement("event:NodesJoined")
async def test_row_join_takes_text_and_children_and_leaves_siblings_their_text(
    world: World,
) -> None:
    async with world.open() as app:
        root, middle, last = await line(app.loom, "Hello", " world", " again")
        sibling = await app.loom.add_child(root.id, " moon", **HOW)
        view = await app.loom.open(middle.id)
        joined = view.join_with_parent()
        assert (joined.id, joined.text) == (root.id, "Hello world")
        assert view.get_state().current_node_id == root.id
        await view.save()
        assert await app.loom.full_text(last.id) == "Hello world again"
        assert await app.loom.full_text(sibling.id) == "Hello moon"
        with pytest.raises(NodeNotFound):
            await app.loom.get(middle.id)
        with pytest.raises(UsageError):
            view.join_with_parent(root.id)
        view.undo()
        await view.save()
        assert await app.loom.full_text(last.id) == "Hello world again"
        assert (await app.loom.get(middle.id)).text == " world"
        assert await app.loom.descendant_counts(root.id) == {root.id: 3}


async def test_row_join_leaves_branches_of_earlier_texts_what_they_read(world: World) -> None:
    async with world.open() as app:
        root, middle, last = await line(app.loom, "Hello", " world", " again")
        view = await app.loom.open(middle.id)
        view.edit_node_text(middle.id, " earth")
        newer = await app.loom.add_child(middle.id, " too", **HOW)
        view.join_with_parent(middle.id)
        await view.save()
        for _ in range(2):
            assert await app.loom.full_text(last.id) == "Hello world again"
            assert await app.loom.full_text(newer.id) == "Hello earth too"
            view.undo()
            await view.save()
        assert await app.loom.full_text(root.id) == "Hello"
    async with world.open() as app:
        assert await app.loom.full_text(last.id) == "Hello world again"
        assert [node.text for node in await app.loom.lineage(last.id)] == [
            "Hello",
            " world",
            " again",
        ]


async def test_row_join_goes_on_from_the_present_text_of_the_parent(world: World) -> None:
    async with world.open() as app:
        root, middle, last = await line(app.loom, "Hello", " world", " again")
        view = await app.loom.open(middle.id)
        view.edit_node_text(root.id, "Howdy")
        joined = view.join_with_parent(middle.id)
        assert (joined.id, joined.text) == (root.id, "Howdy world")
        await view.save()
        assert await app.loom.full_text(last.id) == "Hello world again"
        view.undo()
        await view.save()
        assert (await app.loom.get(root.id)).text == "Howdy"
        assert await app.loom.full_text(last.id) == "Hello world again"


async def test_a_conversation_goes_on_where_its_end_went_by_split_join_and_deletion(
    world: World,
) -> None:
    async with world.open(ScriptedModel(["The answer is long."])) as app:
        session = await app.sessions.start_session(tools=[])
        await session.send_message("hi")

        async def said() -> list[str]:
            return [str(message.content) for _, message in await session.messages_with_ids()]

        asked, answer = [NodeId(node) for node, _ in await session.messages_with_ids()]
        view = await app.loom.open(answer)
        tree, _ = app.loom.loaded(answer)
        await session.checkpoint("here")
        changes: list[tuple[Callable[[], object], list[str], bool]] = [
            (lambda: view.split_node(answer, 10), ["hi", "The answer", " is long."], True),
            (lambda: view.join_with_parent(answer), ["hiThe answer is long."], True),
            (lambda: delete(tree, answer), ["hi"], False),
            (lambda: delete(tree, asked), [], False),
        ]
        for change, expected, follows in changes:
            change()
            await view.save()
            assert await said() == expected
            assert tree.tree.refs["here"].node == (tree.tree.head if follows else answer)
            view.undo()
            await view.save()
            assert await said() == ["hi", "The answer is long."]
            assert tree.tree.refs["here"].node == answer


async def test_messages_that_hold_more_than_text_are_not_written_over(world: World) -> None:
    thought = (Think(text="hm"), SayText(text="Done."))
    script = ScriptedModel([(SayText(text="Let me look."), CallTool(name="list")), thought])
    async with world.open(script) as app:
        session = await app.sessions.start_session()
        await session.send_message("hi")
        before = await session.messages_with_ids()
        asked, called, *_, last = [NodeId(node) for node, _ in before]
    async with world.open() as app:
        view = await app.loom.open(last)
        edits: list[Callable[[], object]] = [
            lambda: view.edit_node_text(called, "Let me see."),
            lambda: view.apply_edit("hiLet me look.Done.", "hiLet me see.Done."),
            lambda: view.split_node(called, 3),
            lambda: view.join_with_parent(called),
            lambda: view.edit_node_text(last, "So."),
            lambda: view.split_node(last, 3),
        ]
        for edit in edits:
            with pytest.raises(UsageError, match="holds more than text"):
                edit()
        view.edit_node_text(asked, "ho")
        await view.save()
        session = await app.sessions.get(await app.loom.session_of(last))
        assert [node for node, _ in await session.messages_with_ids()] == [n for n, _ in before]


async def test_the_line_of_a_turn_that_runs_is_not_changed_under_it(plain_world: World) -> None:
    script = ScriptedModel(["One.", (SayText(text="Two"), Stall(gate="g"))])
    async with plain_world.open(script) as app:
        session = await app.sessions.start_session(tools=[])
        await session.send_message("hi")
        asked, answer = [node for node, _ in await session.messages_with_ids()]
        view = await app.loom.open(answer)
        view.edit_node_text(asked, "ho")
        await view.save()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.send_message, "more")
            await script.gate("g").reached.wait()
            edits: list[Callable[[], object]] = [
                lambda: view.edit_node_text(answer, "x"),
                lambda: view.split_node(answer, 2),
                lambda: view.join_with_parent(answer),
                view.undo,
            ]
            for edit in edits:
                with pytest.raises(SessionBusy):
                    edit()
            with pytest.raises(SessionBusy):
                await app.loom.delete_subtree(answer)
            script.gate("g").opened.set()
        view.undo()
        await view.save()
        assert (await app.loom.get(asked)).text == "hi"


async def test_row_truncate_makes_a_sibling_with_the_kept_part(world: World) -> None:
    async with world.open() as app:
        root, child = await line(app.loom, "Hello", " big world")
        view = await app.loom.open(root.id)
        assert view.truncate_selected_child(0) is None
        assert view.truncate_selected_child(-3) is None
        assert view.truncate_selected_child(99) is None
        cut = view.truncate_selected_child(4)
        assert cut is not None
        assert (cut.text, cut.parent_id, cut.id != child.id) == (" big", root.id, True)
        assert view.get_state().current_node_id == cut.id
        assert view.truncate_selected_child(1) is None  # it has no child
        assert len(await app.loom.children(root.id)) == 2


async def test_edge_delete_selected_child_clamps_the_selection(world: World) -> None:
    async with world.open() as app:
        root, kids = await app.loom.save_continuations("R", ["a", "b", "c"], **HOW)
        view = await app.loom.open(root.id)
        view.select_sibling(2)
        assert view.delete_selected_child() is True
        assert view.get_state().selected_child_idx == 1
        view.select_sibling(-1)
        assert view.delete_selected_child() is True
        state = view.get_state()
        assert [child.text for child in state.children] == ["b"]
        assert view.delete_selected_child() is True
        assert view.delete_selected_child() is False
        for _ in range(3):
            view.undo()
        assert [child.id for child in view.get_state().children] == [kid.id for kid in kids]
        await view.save()


async def test_row_deletion_moves_views_that_stand_inside_to_the_nearest_living_node(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        root, middle, last = await line(app.loom, "a", "b", "c")
        view = await app.loom.open(last.id)
        await app.loom.delete_subtree(middle.id)
        assert view.get_state().current_node_id == root.id


async def test_undo_takes_back_every_kind_of_change(world: World) -> None:
    async with world.open() as app:
        root, child = await line(app.loom, "Hello", " world")
        view = await app.loom.open(child.id)

        def seen() -> Any:
            state = view.get_state()
            return (
                state.full_text, state.current_node.bookmarked, state.current_node.rating,
                state.current_node.metadata.get("label"), state.context, state.max_tokens,
                state.descendant_counts.get(root.id), state.show_model_names,
            )  # fmt: skip

        changes: list[Callable[[], object]] = [
            lambda: view.apply_edit("Hello world", "Hello there"),
            lambda: view.edit_node_text(child.id, " moon"),
            view.toggle_bookmark,
            lambda: view.rate(3),
            lambda: view.label("x"),
            lambda: view.update_context("brief"),
            lambda: view.set_max_tokens(50),
            lambda: view.split_node(child.id, 3),
        ]
        for change in changes:
            before = seen()
            change()
            assert seen() != before
            await view.save()
            view.undo()
            assert seen() == before
        await view.save()
        # What is left is the child itself, which was added last of all before.
        assert view.undo().full_text == "Hello"
        assert not view.get_state().can_undo
        view.undo()


async def test_compare_shows_two_branches_word_by_word(plain_world: World) -> None:
    async with plain_world.open() as app:
        root, (one, two) = await app.loom.save_continuations(
            "The fox ", ["jumped over the dog.", "ran over the cat."], **HOW
        )
        view = await app.loom.open(root.id)
        found = view.compare(one.id, two.id)
        assert (found.ancestor, found.shared) == (root.id, "The fox ")
        assert (found.first_text, found.second_text) == (one.text, two.text)
        assert [(part.kind, part.first, part.second) for part in found.parts] == [
            ("changed", "jumped", "ran"),
            ("same", " over the ", " over the "),
            ("changed", "dog", "cat"),
            ("same", ".", "."),
        ]


async def test_weave_takes_paragraphs_of_both_and_names_both(world: World) -> None:
    async with world.open() as app:
        root, (one, two) = await app.loom.save_continuations(
            "Start.\n\n", ["One.\n\nShared.", "Two.\n\nShared."], **HOW
        )
        view = await app.loom.open(root.id)
        woven = view.weave(one.id, two.id, [(1, 0), (0, 0)])
        assert (woven.text, woven.parent_id) == ("Two.\n\nOne.\n\n", root.id)
        assert woven.metadata["parents"] == [one.id, two.id]
        assert view.get_state().current_node_id == woven.id
        whole = view.weave(one.id, two.id)
        assert whole.text == "One.\n\nShared.\n\nTwo.\n\n"
        for wrong in ([(0, 9)], [(2, 0)]):
            with pytest.raises(UsageError):
                view.weave(one.id, two.id, wrong)
        with pytest.raises(UsageError):
            view.weave(one.id, root.id)
        await view.save()


@given(
    st.lists(st.text("ab \n", max_size=6), min_size=1, max_size=5), st.text("abc \n", max_size=30)
)
def test_mapped_segments_always_make_up_the_edited_text(segments: list[str], edited: str) -> None:
    mapped = mapped_segments(segments, edited)
    assert len(mapped) == len(segments)
    assert "".join(mapped) == edited
    assert mapped_segments(segments, "".join(segments)) == segments


def test_mapped_segments_put_an_insertion_between_two_into_the_later() -> None:
    assert mapped_segments(["Hello", " world"], "Hello big world") == ["Hello", " big world"]
    assert mapped_segments(["ab", "cd"], "abcdef") == ["ab", "cdef"]
    assert mapped_segments(["ab", "cd", "ef"], "abXef") == ["ab", "X", "ef"]


def test_an_edit_at_both_ends_of_a_long_text_leaves_what_is_between_alone() -> None:
    for count in (60, 260, 5_000):
        for words, end in (("some words {} of it. ", "XY "), ("the same words again ", "X ")):
            segments = [words.format(number) for number in range(count)]
            text = "".join(segments)
            started = time.process_time()
            mapped = mapped_segments(segments, f"X{text[1:-2]}{end}")
            assert time.process_time() - started < 0.5
            assert mapped[1:-1] == segments[1:-1]
            assert (mapped[0], mapped[-1]) == (f"X{segments[0][1:]}", f"{segments[-1][:-2]}{end}")


def test_several_edits_of_a_long_text_stay_where_they_were_made() -> None:
    segments = [f"some words {number} of it. " for number in range(1_000)]
    edited = list(segments)
    for at, text in ((3, "another thing. "), (500, ""), (501, segments[501] * 2), (990, "x")):
        edited[at] = text
    mapped = mapped_segments(segments, "".join(edited))
    differ = [at for at, text in enumerate(mapped) if text != edited[at]]
    assert set(differ) <= {499, 500, 501, 502}, "an empty one has no place of its own"
    assert mapped_segments(["one two", " three", " four"], "1 two 3 for") == [
        "1 two",
        " 3",
        " for",
    ]


@given(first=st.text("ab _.", max_size=12), second=st.text("ab _.", max_size=12))
def test_no_word_of_either_text_is_cut_by_a_word_diff(first: str, second: str) -> None:
    one, two = 0, 0
    for part in word_diff(first, second):
        one, two = one + len(part.first), two + len(part.second)
        for text, at in ((first, one), (second, two)):
            assert re.fullmatch(r"\w\w", text[at - 1 : at + 1]) is None or at == 0


@given(st.text("ab .", max_size=20), st.text("ab .", max_size=20))
def test_a_word_diff_holds_both_texts(first: str, second: str) -> None:
    parts = word_diff(first, second)
    assert "".join(part.first for part in parts) == first
    assert "".join(part.second for part in parts) == second
    assert all(part.first == part.second for part in parts if part.kind == "same")


@given(st.text("ab\n", max_size=20))
def test_paragraphs_make_up_their_text(text: str) -> None:
    assert "".join(paragraphs(text)) == text


def test_an_edit_of_a_long_text_takes_little_time() -> None:
    segments = ["word and more words " * 50] * 200
    text = "".join(segments)
    assert len(text) == 200_000
    edited = text[:100_000] + "X" + text[100_050:]
    started = time.process_time()
    mapped = mapped_segments(segments, edited)
    assert time.process_time() - started < 0.05
    assert "".join(mapped) == edited
