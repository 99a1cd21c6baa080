"""The view as a user drives it: a key changes what is shown, or says what is to be done.

It holds a scene, where a cursor stands in a text, and the panel that has the keys.  It never
touches the tree: what it asks for is a `ViewCommand`, and the driver puts the next scene here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.focus import TokenCursor, cursor_spans, moved_cursor
from weft.cli.loom_view.key_map import ACTIONS, KeyMap
from weft.cli.loom_view.panels.list_panels import SearchPanel
from weft.cli.loom_view.panels.view_panel import (
    AskPanel,
    EditPanel,
    PagesPanel,
    TextPage,
    ViewPanel,
)
from weft.cli.loom_view.scene import LoomScene
from weft.cli.loom_view.scene_rows import ScenePainter, SceneStatus
from weft.cli.loom_view.text_rows import ViewFrame
from weft.cli.loom_view.view_command import CommandName, ViewCommand
from weft.cli.sanitize import clean_line
from weft.ids import NodeId

LONGEST_EDIT: Final = 20_000
"""Characters of a text that is edited in place; a longer one would be slow to type in."""
SCROLL_ROWS: Final = 5
MOST_RATING: Final = 5
_NONE: Final[tuple[ViewCommand, ...]] = ()
_PLAIN: Final[dict[str, ViewCommand]] = {
    "parent": ViewCommand("parent"),
    "next_fork": ViewCommand("fork", number=1),
    "previous_fork": ViewCommand("fork", number=-1),
    "first": ViewCommand("first"),
    "last": ViewCommand("last"),
    "undo": ViewCommand("undo"),
    "models": ViewCommand("open_models"),
    "editor": ViewCommand("editor"),
    "context": ViewCommand("open_context"),
    "prompt": ViewCommand("open_prompt"),
    "next_bookmark": ViewCommand("next_bookmark"),
    "tree": ViewCommand("open_tree"),
    "hoist": ViewCommand("hoist"),
    "reading": ViewCommand("open_reading"),
    "trees": ViewCommand("open_trees"),
    "blind": ViewCommand("blind"),
    "quit": ViewCommand("quit"),
}
_WRITES: Final = frozenset(
    {
        "generate",
        "generate_short",
        "edit",
        "editor",
        "undo",
        "delete",
        "bookmark",
        "rate",
        "name",
        "context",
        "models",
        "weave",
        "word_left",
        "word_right",
        "blind",
    }
)


class ViewScreen:
    """What is shown, and what keys do to it."""

    def __init__(
        self, scene: LoomScene, keys: KeyMap, styles: RowStyles, *, is_animated: bool = True
    ) -> None:
        self.scene = scene
        self._keys = keys
        self._styles = styles
        self._painter = ScenePainter(styles)
        self._is_animated = is_animated
        self.panel: ViewPanel | None = None
        self.under: ViewPanel | None = None
        """The panel that the open one goes back to."""
        self._closed: ViewPanel | None = None
        """The panel that was closed last."""
        self.notice = ""
        self.activity = ""
        """What grows; empty while nothing does."""
        self.marked: NodeId | None = None
        self.scroll = 0
        self._word: int | None = None
        self.tokens: TokenCursor | None = None

    # -- what the driver does

    def show(self, scene: LoomScene) -> None:
        """Another scene; a cursor stays only in the text that it stands in."""
        if (scene.target, scene.target_text) != (self.scene.target, self.scene.target_text):
            self._word = self.tokens = None
        if scene.node != self.scene.node:
            self.scroll = 0
        self.scene = scene

    def open(self, panel: ViewPanel, *, over: bool = False) -> None:
        """Open a panel, in the place of the one that is open or over it."""
        self.under = self.panel if over else None
        self.panel = panel

    def refuse(self, words: str) -> None:
        """What was asked for could not be done.  A text that was typed for it is not lost."""
        closed = self._closed
        if isinstance(closed, EditPanel) and self.panel is None:
            closed.refused(words)
            self.open(closed)
        else:
            self.notice = words

    # -- keys

    def press(self, key: str) -> Sequence[ViewCommand]:
        """One key; what is to be done."""
        self.notice, self._closed = "", None
        panel = self.panel
        if panel is not None:
            commands = panel.press(key)
            # A command may have opened another one meanwhile: not here, but in the driver.
            if panel.is_over:
                self.panel, self.under = self.under, None
                self._closed = panel
            return commands
        if key == "c-c":
            return (ViewCommand("stop" if self.activity else "quit"),)
        if self.tokens is not None and (found := self._press_token(self.tokens, key)) is not None:
            return found
        action = self._keys.action(key)
        if self.scene.is_read_only and (
            action in _WRITES or ("_" in action and action[-1].isdigit())
        ):
            self.notice = "this tree can only be read: another process has it"
            return (ViewCommand("write"),)
        return self._act(action)

    def paste(self, text: str) -> Sequence[ViewCommand]:
        """Pasted text is never keys."""
        return self.panel.paste(text) if self.panel is not None else _NONE

    def _act(self, action: str) -> Sequence[ViewCommand]:
        if action in _PLAIN:
            return (_PLAIN[action],)
        name, _, number = action.rpartition("_")
        if name in ("generate", "short") and number.isdigit():
            return self._generate(int(number), is_short=name == "short")
        act: Callable[[], Sequence[ViewCommand]] | None = getattr(self, f"_do_{action}", None)
        return act() if act is not None else _NONE

    def _press_token(self, tokens: TokenCursor, key: str) -> Sequence[ViewCommand] | None:
        """A key while tokens are looked at; None for one that means what it always does."""
        steps = {"l": 1, "L": 1, "right": 1, "h": -1, "H": -1, "left": -1}
        if key in steps:
            tokens.move(steps[key])
        elif key in ("[", "]"):
            tokens.turn(1 if key == "]" else -1)
        elif key in ("n", "N"):
            tokens.next_open(1 if key == "n" else -1)
        elif key == "enter":
            return self._branch_at(tokens)
        elif key in ("T", "escape", "q"):
            self.tokens = None
        else:
            return None
        return _NONE

    def _branch_at(self, tokens: TokenCursor) -> Sequence[ViewCommand]:
        if tokens.chosen is None:
            self.notice = "no alternative to this token is known"
            return _NONE
        return (
            ViewCommand(
                "branch_at_token", node=tokens.node, number=tokens.index, text=tokens.chosen
            ),
        )

    # -- what actions do

    def _do_child(self) -> Sequence[ViewCommand]:
        if self.scene.is_leaf:
            self.notice = f"nothing grows here yet: {self._keys.shown('generate')} grows branches"
            return _NONE
        return (ViewCommand("go", node=self.scene.target),)

    def _do_next_sibling(self) -> Sequence[ViewCommand]:
        return (ViewCommand("sibling", number=1),) if not self.scene.is_leaf else _NONE

    def _do_previous_sibling(self) -> Sequence[ViewCommand]:
        return (ViewCommand("sibling", number=-1),) if not self.scene.is_leaf else _NONE

    def _do_scroll_up(self) -> Sequence[ViewCommand]:
        self.scroll += SCROLL_ROWS
        return _NONE

    def _do_scroll_down(self) -> Sequence[ViewCommand]:
        self.scroll = max(0, self.scroll - SCROLL_ROWS)
        return _NONE

    def _do_generate(self) -> Sequence[ViewCommand]:
        return self._generate(0, is_short=False)

    def _do_generate_short(self) -> Sequence[ViewCommand]:
        return self._generate(0, is_short=True)

    def _generate(self, number: int, *, is_short: bool) -> Sequence[ViewCommand]:
        if self.activity:
            self.notice = f"branches grow already: {self._keys.shown('stop')} stops them"
            return _NONE
        cut, self._word = self._word, None
        return (ViewCommand("generate", number=number, is_short=is_short, cut=cut),)

    def _do_stop(self) -> Sequence[ViewCommand]:
        if self._word is not None:
            self._word = None
        elif self.activity:
            return (ViewCommand("stop"),)
        elif self.marked is not None:
            self.marked = None
            self.notice = "the mark is gone"
        elif any(row.state == "failed" for row in self.scene.rows):
            return (ViewCommand("stop"),)
        else:
            self.notice = f"nothing grows; {self._keys.shown('quit')} quits"
        return _NONE

    def _do_word_left(self) -> Sequence[ViewCommand]:
        return self._move_word(-1)

    def _do_word_right(self) -> Sequence[ViewCommand]:
        return self._move_word(1)

    def _move_word(self, step: int) -> Sequence[ViewCommand]:
        if self.scene.is_leaf and self.scene.depth == 0:
            self.notice = "the root is not cut: e edits it"
            return _NONE
        self._word = moved_cursor(self.scene.target_text, self._word, step)
        if self._word is None and step < 0:
            self.notice = "there is no word to cut behind"
        return _NONE

    def _do_tokens(self) -> Sequence[ViewCommand]:
        return (ViewCommand("open_tokens", node=self.scene.target),)

    def _do_edit(self) -> Sequence[ViewCommand]:
        scene = self.scene
        if len(scene.target_text) > LONGEST_EDIT:
            self.notice = f"too long to edit here: {self._keys.shown('editor')} opens your editor"
            return _NONE
        what = "the end of the line" if scene.is_leaf else f"▸{scene.selected + 1}"
        self.open(
            EditPanel(
                f"Edit {what}",
                scene.target_text,
                lambda text, is_fork: ViewCommand(
                    "edit", node=scene.target, text=text, is_fork=is_fork
                ),
                forks=True,
            )
        )
        return _NONE

    def _do_revisions(self) -> Sequence[ViewCommand]:
        return (ViewCommand("open_revisions", node=self.scene.target),)

    def _do_name(self) -> Sequence[ViewCommand]:
        scene = self.scene
        known = next((row.name for row in scene.rows if row.node == scene.target), "")
        self.open(
            EditPanel(
                "Name of this node",
                known,
                lambda text, is_fork: ViewCommand("name", node=scene.target, text=text),
                is_line=True,
            )
        )
        return _NONE

    def _do_compare(self) -> Sequence[ViewCommand]:
        return self._with_marked("compare", "compares it with this one")

    def _do_weave(self) -> Sequence[ViewCommand]:
        return self._with_marked("open_weave", "weaves it and this one into one")

    def _with_marked(self, do: CommandName, does: str) -> Sequence[ViewCommand]:
        target = self.scene.target
        if self.marked is None or self.marked == target:
            is_again = self.marked == target
            self.marked = None if is_again else target
            key = self._keys.shown("compare" if do == "compare" else "weave")
            self.notice = "the mark is gone" if is_again else f"marked; {key} at another {does}"
            return _NONE
        return (ViewCommand(do, node=self.marked, other=target),)

    def _do_delete(self) -> Sequence[ViewCommand]:
        scene = self.scene
        if scene.is_leaf and scene.depth == 0:
            self.notice = "the root stays: a tree needs one"
            return _NONE
        row = next((row for row in scene.rows if row.node == scene.target), None)
        below = row.below if row is not None else 0
        what = "the end of this line" if scene.is_leaf else f"▸{scene.selected + 1}"
        more = f" and {below} below" if below else ""
        self.open(
            AskPanel(
                f"Delete {what}{more}?",
                {"y": ViewCommand("delete", node=scene.target)},
                "y deletes · any other key keeps it",
            )
        )
        return _NONE

    def _do_bookmark(self) -> Sequence[ViewCommand]:
        return (ViewCommand("bookmark", node=self.scene.target),)

    def _do_rate(self) -> Sequence[ViewCommand]:
        target = self.scene.target
        answers = {
            str(number): ViewCommand("rate", node=target, number=number)
            for number in range(MOST_RATING + 1)
        }
        self.open(AskPanel("Rating?", answers, "1 to 5 · 0 takes it away"))
        return _NONE

    def _do_search(self) -> Sequence[ViewCommand]:
        self.open(SearchPanel())
        return _NONE

    def _do_coding(self) -> Sequence[ViewCommand]:
        return (ViewCommand("coding", node=self.scene.node),)

    def _do_help(self) -> Sequence[ViewCommand]:
        self.open(PagesPanel([TextPage("", tuple(help_spans(self._keys)))], about="Keys"))
        return _NONE

    # -- drawing

    def frame(self, size: ScreenSize) -> ViewFrame:
        """All rows of the window."""
        panel = self.panel
        if panel is not None and not isinstance(panel, AskPanel):
            return panel.frame(size, self._styles)
        notice = f"{panel.words} {panel.hint}" if panel is not None else self.notice
        status = SceneStatus(
            # It may be the sentence of a vendor.
            notice=clean_line(notice),
            activity=self.activity,
            tokens=self.tokens.words() if self.tokens is not None else "",
            hints=self._hints(),
            is_animated=self._is_animated,
        )
        frame = self._painter.frame(
            self.scene, size, status, focus=self._focus(), scroll=self.scroll
        )
        if not self.scene.is_cut:
            self.scroll = min(self.scroll, self._painter.most_scroll)
        return frame

    def _focus(self) -> Sequence[StyledSpan]:
        text = self.scene.target_text
        if self.tokens is not None:
            return self.tokens.spans(text)
        if self._word is not None:
            return cursor_spans(text, self._word)
        return ()

    def _hints(self) -> tuple[str, ...]:
        shown = self._keys.shown
        if self.tokens is not None:
            return ("h l token", "[ ] alternative", "n undecided", "Enter branches there", "T ends")
        if self._word is not None:
            return (f"{shown('generate')} cuts here and grows", "H L word", "Esc leaves it")
        moves = "".join(
            shown(each) for each in ("parent", "next_sibling", "previous_sibling", "child")
        )
        pairs = (
            (shown("generate"), "grows"),
            (moves, "moves"),
            (shown("help"), "keys"),
            (shown("quit"), "quits"),
            ("1-9", "so many"),
            (shown("edit"), "edits"),
            (shown("models"), "models"),
            (shown("undo"), "undoes"),
        )
        return tuple(f"{key} {does}" for key, does in pairs if key)


def help_spans(keys: KeyMap) -> list[StyledSpan]:
    """All keys in groups."""
    found: list[StyledSpan] = []
    group = ""
    for action in ACTIONS:
        is_number = action.name[-1].isdigit() and not action.name.endswith("_1")
        shown = " ".join(filter(None, [keys.shown(action.name)]))
        if is_number or not shown:
            continue
        if action.group != group:
            group = action.group
            found.append(StyledSpan(f"{'' if not found else chr(10)}{group}\n", "bold"))
        about = action.about
        if action.name.endswith("_1"):
            shown = f"{shown}-{keys.shown(action.name[:-1] + '9')}"
            about = "so many of each model" + (", 10 tokens" if "short" in action.name else "")
        found.append(StyledSpan(f"  {shown:12} ", "you"))
        found.append(StyledSpan(f"{about}\n"))
    said = '\nKeys are set with [loom.keys] in config.toml: next_fork = "f"'
    return [*found, StyledSpan(said, "quiet")]
