"""The screen without a tree: a key in, a command out, or another picture."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.terminal_attacks import ATTACKS
from weft.cli.chat.paint.text_cells import without_attributes
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.key_map import KeyMap
from weft.cli.loom_view.scene import BranchRow, LinePart, LoomScene
from weft.cli.loom_view.view_command import ViewCommand
from weft.cli.loom_view.view_screen import LONGEST_EDIT, ViewScreen
from weft.ids import NodeId

HERE, FIRST, SECOND = NodeId("here"), NodeId("first"), NodeId("second")
SIZE = ScreenSize(80, 20)
FORK = LoomScene(
    node=HERE,
    line=(LinePart("Once"),),
    rows=(
        BranchRow(place=0, node=FIRST, text=" upon a time", below=3),
        BranchRow(place=1, node=SECOND, text=" there was"),
    ),
    count=2,
    selected=0,
    target=FIRST,
    target_text=" upon a time",
    depth=1,
)
LEAF = replace(FORK, rows=(), count=0, selected=-1, target=HERE, target_text="Once more")


def screen_of(scene: LoomScene = FORK, **state: Any) -> ViewScreen:
    screen = ViewScreen(scene, KeyMap(), RowStyles(coloured=False))
    for name, value in state.items():
        setattr(screen, name, value)
    return screen


def shown(screen: ViewScreen) -> str:
    return "\n".join(without_attributes(row) for row in screen.frame(SIZE).rows)


def pressed(screen: ViewScreen, *keys: str) -> list[ViewCommand]:
    return [command for key in keys for command in screen.press(key)]


@pytest.mark.parametrize(
    ("keys", "command"),
    [
        ("h", ViewCommand("parent")),
        ("l", ViewCommand("go", node=FIRST)),
        ("j", ViewCommand("sibling", number=1)),
        ("k", ViewCommand("sibling", number=-1)),
        ("J", ViewCommand("fork", number=1)),
        ("K", ViewCommand("fork", number=-1)),
        (" ", ViewCommand("generate")),
        ("5", ViewCommand("generate", number=5)),
        ("S", ViewCommand("generate", is_short=True)),
        ("$", ViewCommand("generate", number=4, is_short=True)),
        ("T", ViewCommand("open_tokens", node=FIRST)),
        ("R", ViewCommand("open_revisions", node=FIRST)),
        ("b", ViewCommand("bookmark", node=FIRST)),
        ("g3", ViewCommand("rate", node=FIRST, number=3)),
        ("Dy", ViewCommand("delete", node=FIRST)),
        ("x", ViewCommand("coding", node=HERE)),
        ("q", ViewCommand("quit")),
    ],
)
def test_a_key_is_a_command(keys: str, command: ViewCommand) -> None:
    names = ["space" if key == " " else key for key in keys]
    assert pressed(screen_of(), *names) == [command]


@pytest.mark.parametrize("key", ["l", "j", "k"])
def test_at_a_leaf_there_is_nothing_to_go_to(key: str) -> None:
    assert pressed(screen_of(LEAF), key) == []


def test_at_a_leaf_keys_act_on_the_current_node() -> None:
    assert pressed(screen_of(LEAF), "b") == [ViewCommand("bookmark", node=HERE)]
    assert pressed(screen_of(LEAF), "D", "y") == [ViewCommand("delete", node=HERE)]
    root = screen_of(replace(LEAF, depth=0))
    assert pressed(root, "D", "y", "H", "space") == [ViewCommand("generate")]


def test_the_word_cursor_is_part_of_the_next_command_and_of_no_later_one() -> None:
    screen = screen_of()
    assert pressed(screen, "H", "H") == []
    assert "upon▏ a time" in shown(screen)
    assert pressed(screen, "2") == [ViewCommand("generate", number=2, cut=5)]
    assert pressed(screen, "2") == [ViewCommand("generate", number=2)]


def test_a_cursor_goes_with_the_text_that_it_stands_in() -> None:
    screen = screen_of()
    pressed(screen, "H")
    screen.show(replace(FORK, selected=1, target=SECOND, target_text=" there was"))
    assert pressed(screen, "space") == [ViewCommand("generate")]


def test_while_branches_grow_esc_stops_them_and_no_others_begin() -> None:
    screen = screen_of(activity="3 growing")
    assert pressed(screen, "space", "3") == []
    assert "branches grow already: Esc stops them" in shown(screen)
    assert pressed(screen, "escape") == [ViewCommand("stop")]
    assert pressed(screen, "c-c") == [ViewCommand("stop")]
    assert pressed(screen_of(), "escape") == []
    assert pressed(screen_of(), "c-c") == [ViewCommand("quit")]


def test_two_branches_are_named_by_two_keys() -> None:
    screen = screen_of()
    assert pressed(screen, "=") == []
    assert screen.marked == FIRST
    screen.show(replace(FORK, selected=1, target=SECOND))
    assert pressed(screen, "=") == [ViewCommand("compare", node=FIRST, other=SECOND)]
    assert pressed(screen, "w") == [ViewCommand("open_weave", node=FIRST, other=SECOND)]
    pressed(screen, "escape")
    assert screen.marked is None


@pytest.mark.parametrize("key", [" ", "1", "!", "e", "E", "u", "D", "b", "g", "n", "c", "m", "M"])
def test_a_tree_that_can_only_be_read_is_not_changed(key: str) -> None:
    screen = screen_of(replace(FORK, is_read_only=True))
    # The driver looks whether the other process still has it.
    assert pressed(screen, "space" if key == " " else key) == [ViewCommand("write")]
    assert screen.panel is None
    assert "can only be read" in shown(screen)


def test_a_text_that_is_too_long_is_not_edited_in_place() -> None:
    screen = screen_of(replace(FORK, target_text="x" * (LONGEST_EDIT + 1)))
    assert pressed(screen, "e") == []
    assert screen.panel is None
    assert "E opens your editor" in shown(screen)


def test_a_key_without_a_meaning_does_nothing() -> None:
    screen = screen_of()
    before = shown(screen)
    assert pressed(screen, "ä", "f1", "c-x", "m-q", "_") == []
    assert shown(screen) == before


def test_pasted_text_is_never_keys() -> None:
    screen = screen_of()
    assert list(screen.paste("qD y")) == []
    assert screen.panel is None


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=list(ATTACKS))
def test_a_sentence_of_others_is_not_obeyed(attack: str) -> None:
    text = shown(screen_of(notice=attack)).replace("\n", "")
    assert not any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in text)
