"""The whole tree as an outline; only the rows of the window are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.panels.view_panel import CLOSES, NOTHING, ViewPanel
from weft.cli.loom_view.text_rows import ViewFrame, money, panel_frame, short_model
from weft.cli.loom_view.tree_walk import TreeWalk
from weft.cli.loom_view.view_command import ViewCommand
from weft.cli.sanitize import clean_line
from weft.ids import NodeId
from weft.loom.trees.loom_tree import LoomTree


class TreePanel(ViewPanel):
    """An outline of a tree, or of what is below one node."""

    def __init__(
        self,
        tree: LoomTree,
        at: NodeId,
        *,
        current: Callable[[], NodeId],
        order: Callable[[NodeId], Sequence[NodeId]] | None = None,
        top: NodeId | None = None,
        is_blind: bool = False,
    ) -> None:
        self._tree = tree
        self._current = current
        self._order = order
        self._is_blind = is_blind
        self._top = top if top is not None else tree.root_id
        self._at = at
        self._height = 20
        self.is_over = False
        if not self._is_below(at):
            self._at = self._top

    def _is_below(self, node: NodeId) -> bool:
        return self._top in self._tree.tree.ancestors(node)

    @property
    def _walk(self) -> TreeWalk:
        return TreeWalk(self._tree, self._top, self._order)

    def press(self, key: str) -> Sequence[ViewCommand]:
        page = max(1, self._height - 1)
        moves = {
            "j": 1,
            "down": 1,
            "k": -1,
            "up": -1,
            "pagedown": page,
            "pageup": -page,
            "space": page,
        }
        if key in (*CLOSES, "v"):
            self.is_over = True
        elif key == "enter":
            self.is_over = True
            return (ViewCommand("go", node=self._at),)
        elif key == "b":
            return (ViewCommand("bookmark", node=self._at),)
        elif key == "Z":
            self._top = self._tree.root_id if self._top == self._at else self._at
            return (ViewCommand("hoist", node=self._at),)
        elif key in moves:
            self._move(moves[key])
        else:
            self._jump(key)
        return NOTHING

    def _move(self, step: int) -> None:
        walk = self._walk
        ahead = walk.after(self._at) if step > 0 else walk.before(self._at)
        for _, node in zip(range(abs(step)), ahead, strict=False):
            self._at = node

    def _jump(self, key: str) -> None:
        tree, found = self._tree, None
        if key in ("h", "left") and self._at != self._top:
            found = tree.parent(self._at)
        elif key in ("l", "right"):
            found = tree.checked_out_child(self._at) or next(iter(tree.children(self._at)), None)
        elif key in ("J", "K"):
            found = self._walk.next_fork(self._at, 1 if key == "J" else -1)
        elif key in ("home", "end"):
            found = self._top if key == "home" else self._walk.last()
        self._at = found or self._at

    def paste(self, text: str) -> Sequence[ViewCommand]:
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        self._height = max(1, size.rows - 2)
        if self._tree.find(self._at) is None or self._tree.find(self._top) is None:
            self._top = self._at = self._tree.root_id
        half = (self._height - 1) // 2
        walk = self._walk
        nodes = walk.around(self._at, half, self._height - 1 - half)
        rows = [self._row(node, walk, size.columns - 4, styles) for node in nodes]
        count = self._tree.descendant_count(self._top) + 1
        title = "Tree" if self._top == self._tree.root_id else "Tree, from the hoisted node on"
        hint = "v returns · Enter goes there · J K forks · b bookmark · Z hoist"
        return ViewFrame(panel_frame(title, f"{count:,} nodes", rows, hint, size, styles))

    def _row(self, node: NodeId, walk: TreeWalk, width: int, styles: RowStyles) -> str:
        tree = self._tree
        held, marks = tree.tree.nodes[node], tree.marks(node)
        is_at = node == self._at
        margin = walk.margin(node)
        signs = "● here " if node == self._current() else ""
        signs += "⚑ " if marks.get("bookmark") else ""
        rating = marks.get("rating")
        signs += f"★{rating} " if isinstance(rating, int) else ""
        signs += "◐ " if held.partial else ""
        label = marks.get("label")
        named = f"{clean_line(str(label))}: " if label else ""
        text = clean_line(tree.text(node)[: 4 * width]) or "(empty)"
        detail = self._detail(node, width)
        room = max(4, width - cells(margin) - cells(detail) - 3)
        words = fit(f"{signs}{named}{text}", room)
        gap = " " * max(1, width - 2 - cells(margin) - cells(words) - cells(detail))
        lead = "❯ " if is_at else "  "
        if is_at:
            return styles("picked", f"{lead}{margin}{words}{gap}{detail}")
        return f"{lead}{styles('quiet', margin)}{words}{gap}{styles('quiet', detail)}"

    def _detail(self, node: NodeId, width: int) -> str:
        if width < 50:
            return ""
        shown = self._tree.node(node)
        below = self._tree.descendant_count(node)
        parts = [f"+{below}" if below else ""]
        if not self._is_blind:
            parts = [fit(short_model(shown.model or ""), 14), *parts, money(shown.cost_usd)]
        return "  ".join(filter(None, parts))
