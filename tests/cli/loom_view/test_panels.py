"""Panels: keys in, commands and rows out; nothing foreign is obeyed by the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.support.example_count import cases
from tests.support.loom_stage import planned_tree, scripted
from tests.support.terminal_attacks import ATTACKS
from tests.support.world import World
from weft.app import App
from weft.cli.chat.paint.text_cells import row_cells, without_attributes
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.key_map import KeyMap
from weft.cli.loom_view.panels.diff_panels import ComparePanel, WeavePanel
from weft.cli.loom_view.panels.panel_maker import PanelMaker
from weft.cli.loom_view.panels.plan_panel import PlanPanel
from weft.cli.loom_view.panels.tree_list import hit_rows, tree_question
from weft.cli.loom_view.panels.view_panel import (
    AskPanel,
    EditPanel,
    PagesPanel,
    TextPage,
    ViewPanel,
)
from weft.cli.loom_view.scene_reader import SceneReader
from weft.cli.loom_view.text_rows import LongText, span
from weft.cli.loom_view.view_command import TreeListQuery, ViewCommand
from weft.cli.loom_view.view_screen import help_spans
from weft.ids import NodeId
from weft.loom import BranchComparison, DiffPart, LoomSession, ModelPlanEntry

SIZES = [ScreenSize(*size) for size in ((80, 24), (40, 12), (200, 50), (10, 3), (4, 1))]
STYLES = RowStyles(coloured=False)
A, B = NodeId("a"), NodeId("b")


def drawn(panel: ViewPanel, size: ScreenSize = SIZES[0]) -> str:
    frame = panel.frame(size, STYLES)
    assert len(frame.rows) == size.rows
    assert [row for row in frame.rows if row_cells(row) > size.columns] == []
    text = "\n".join(map(without_attributes, frame.rows))
    assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in text.replace("\n", ""))
    return text


def press(panel: ViewPanel, *keys: str) -> list[ViewCommand]:
    return [command for key in keys for command in panel.press(key)]


def compared(first: str, second: str) -> BranchComparison:
    return BranchComparison(
        ancestor=NodeId("r"),
        first=A,
        second=B,
        shared="Once ",
        parts=(DiffPart("same", "the ", "the "), DiffPart("changed", first, second)),
    )


def pure_panels(text: str) -> Iterator[ViewPanel]:
    """Every panel that needs no tree, with a text in all places."""
    yield PagesPanel([TextPage(text, (span(text),), A)] * 2, about="Reading")
    panel = EditPanel("Edit", text, edited, forks=True)
    panel.refused(text)
    yield panel
    yield ComparePanel(compared(text, text * 3), ("one", "two"))
    yield WeavePanel(compared(text, text), ("one", "two"), ([text, text], [text]))
    yield PlanPanel([ModelPlanEntry(model=text), ModelPlanEntry(model="x:y", enabled=False)], 5)


def edited(text: str, is_fork: bool) -> ViewCommand:
    return ViewCommand("edit", node=A, text=text, is_fork=is_fork)


@pytest.mark.parametrize("attack", cases(ATTACKS.values()), ids=cases(ATTACKS))
def test_nothing_foreign_in_a_panel_is_obeyed_and_no_row_is_too_wide(attack: str) -> None:
    for panel in pure_panels(attack):
        for size in SIZES:
            drawn(panel, size)


def test_pages_are_scrolled_and_turned_and_lead_to_their_node() -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    panel = PagesPanel([TextPage("one", (span(text),), A), TextPage("two", (span("end"),), B)])
    assert "line 0 " in drawn(panel)
    press(panel, "space")
    assert "line 21" in drawn(panel).split("\n")[1]
    press(panel, "end")
    assert "line 99" in drawn(panel)
    press(panel, "home", "k")
    assert "line 0 " in drawn(panel)
    press(panel, "n", "n")
    assert "2 of 2" in drawn(panel)
    assert press(panel, "enter") == [ViewCommand("go", node=B)]
    assert panel.is_over


def test_a_long_text_is_wrapped_only_where_it_is_looked_at() -> None:
    text = LongText([span("word " * 200_000)])
    rows, top, has_more = text.window(0, 20, 60, STYLES)
    assert (len(rows), top, has_more) == (20, 0, True)
    assert len(text._rows) == 1
    rows, top, has_more = text.window(1 << 30, 20, 60, STYLES)
    assert (len(rows), has_more) == (20, False)
    assert "".join(rows).count("word") > 100


@pytest.mark.parametrize(
    ("keys", "text", "is_fork"),
    [
        (("X", "enter"), "oneX", False),
        (("m-enter", "a", "enter"), "one\na", False),
        (("c-a", "Y", "tab"), "Yone", True),
    ],
)
def test_a_text_is_edited_and_kept(keys: Sequence[str], text: str, is_fork: bool) -> None:
    panel = EditPanel("Edit", "one", edited, forks=True)
    assert press(panel, *keys) == [edited(text, is_fork)]
    assert panel.is_over


def test_a_change_is_dropped_only_by_two_keys() -> None:
    panel = EditPanel("Edit", "one", edited)
    over = []
    for keys in (("X", "escape"), ("Y", "escape"), ("escape",)):
        press(panel, *keys)
        over.append(panel.is_over)
        assert over[-1] or "Esc again drops the change" in drawn(panel)
    assert over == [False, False, True]
    untouched = EditPanel("Edit", "one", edited)
    press(untouched, "escape")
    assert untouched.is_over


def test_the_cursor_of_an_edit_is_inside_the_frame() -> None:
    panel = EditPanel("Edit", "one\ntwo", edited)
    assert panel.frame(SIZES[0], STYLES).cursor == (2, 5)
    panel.paste("\nthree")
    assert panel.frame(SIZES[0], STYLES).cursor == (3, 7)


def test_a_question_is_answered_by_its_keys_alone() -> None:
    yes = ViewCommand("delete", node=A)
    for key, given in (("y", [yes]), ("n", []), ("escape", []), ("enter", [])):
        panel = AskPanel("Delete?", {"y": yes}, "y deletes")
        assert press(panel, key) == given
        assert panel.is_over


def test_a_weave_takes_paragraphs_in_the_order_of_the_picks() -> None:
    def panel() -> WeavePanel:
        return WeavePanel(compared("a", "b"), ("one", "two"), (["a1", "a2"], ["b1"]))

    order = ViewCommand("weave", node=A, other=B, picks=((1, 0), (0, 0)))
    assert press(panel(), "j", "j", "space", "k", "k", "space", "enter") == [order]
    assert press(panel(), "enter")[0].picks is None
    unpicked = press(panel(), "space", "k", "space", "enter")
    assert unpicked[0].picks is None
    left = panel()
    assert press(left, "space", "escape") == []
    assert left.is_over


def test_a_plan_is_changed_within_its_limits() -> None:
    panel = PlanPanel([ModelPlanEntry(model="x:a", n_branches=1, max_tokens=20)], 0)
    press(panel, "-", "l", "-", "-", "-", "l", *"-" * 30)
    [entry] = panel.plan
    assert (entry.n_branches, entry.max_tokens, entry.temperature) == (1, 10, 0.0)
    press(panel, "3", "l", "9", "9", "l", "8", "0", "0", "0", "0", "h")
    [entry] = panel.plan
    assert (entry.n_branches, entry.max_tokens, entry.temperature) == (64, 8_000, 2.0)
    panel.add("x:a")
    assert "already" in panel.notice
    assert "it is in the list already" in drawn(panel)


def test_help_lists_what_has_a_key() -> None:
    text = "".join(each.text for each in help_spans(KeyMap({"delete": ""})))
    assert "to the next fork anywhere" in text
    assert "1-9" in text
    assert "delete" not in text


async def opened(app: App, attack: str) -> LoomSession:
    model = scripted("m")
    root = await planned_tree(app, attack, model)
    children = [await app.loom.add_child(root, attack * 2, model=attack) for _ in range(2)]
    session = await app.loom.open(root)
    session.label(attack, children[0].id)
    session.toggle_bookmark(children[0].id)
    session.edit_node_text(children[1].id, "other")
    session.update_context(attack)
    return session


@pytest.mark.anyio
async def test_nothing_that_a_tree_holds_is_obeyed_by_any_panel(plain_world: World) -> None:
    attack = "".join(ATTACKS.values())[:3_000].replace("\ud800", "")
    async with plain_world.open(scripted("m")) as app:
        session = await opened(app, attack)
        maker = PanelMaker(session, SceneReader(session))
        first, second = session.loom_tree.children(session.root_id)
        revisions = maker.revisions(second)
        assert revisions is not None
        panels = [
            maker.tree(None),
            maker.context(),
            maker.prompts(),
            maker.reading(),
            maker.compare(first, second),
            maker.weave(first, second),
            revisions,
            await tree_question(app, TreeListQuery(), session.root_id),
        ]
        for panel in panels:
            for size in SIZES[:3]:
                drawn(panel, size)
        for listed, _ in await hit_rows(app, "other", None):
            assert listed.label.isprintable()
        await session.aclose()
