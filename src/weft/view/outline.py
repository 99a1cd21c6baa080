"""The outline of a conversation: its tree as rows of text, one for each turn.

A turn is what the user said and all that was answered to it.  It is one row, and its place is its
last message: who jumps there continues behind the whole turn.  A turn is cut where another branch
leaves it, where a name stands, and at the head.  Rows keep one column as long as the branch path
does not part; where it does, each way is drawn one step further in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from weft.ids import NodeId, SessionId
from weft.view.sentences import SUCCESSFUL, count_of
from weft.view.snapshot import ChildInfo
from weft.view.tree import TreeMessage, TreeView

DEEPEST = 8
"""Steps that rows are drawn in; what is deeper stays in the last column, so that text has room."""


class OutlineRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row: a turn, or a session that worked for it."""

    margin: str = ""
    """The lines of the tree before it: ours, so they keep their spaces."""
    label: str
    detail: str = ""
    first: TreeMessage | None = None
    """What the turn begins with; None for a session."""
    node: NodeId | None = None
    """The message that a jump there makes the head."""
    is_here: bool = False
    on_line: bool = False
    branch: str = ""
    """The branch that ends here, if one does that is not the present one."""
    child: SessionId | None = None


def outline_rows(tree: TreeView, children: Sequence[ChildInfo] = ()) -> list[OutlineRow]:
    """All rows, from the first message down."""
    return _Outline(tree, children).rows()


class _Outline:
    def __init__(self, tree: TreeView, children: Sequence[ChildInfo]) -> None:
        self._tree = tree
        known = {message.id: message for message in tree.messages}
        self._below: dict[NodeId | None, list[TreeMessage]] = defaultdict(list)
        for message in tree.messages:
            # A message whose parent is hidden or deleted stands at the top: it is still there.
            self._below[message.parent if message.parent in known else None].append(message)
        self._names = _names(tree)
        self._agents: dict[NodeId | None, list[ChildInfo]] = defaultdict(list)
        for child in children:
            self._agents[child.node].append(child)
        self._line: set[NodeId] = set()
        at = tree.head
        while at is not None and at in known:
            self._line.add(at)
            at = known[at].parent

    def rows(self) -> list[OutlineRow]:
        found: list[OutlineRow] = []
        # A stack of our own: a conversation may be thousands of turns long, and recursion ends at a
        # thousand.
        tops = self._below[None]
        waiting = [
            (self._turn(top), "", len(tops) > 1, place == len(tops) - 1)
            for place, top in enumerate(tops)
        ]
        waiting.reverse()
        while waiting:
            turn, margin, parts, is_last = waiting.pop()
            mark, further = (
                ("└ " if is_last else "├ ", "  " if is_last else "│ ") if parts else ("", "")
            )
            if parts and len(margin) >= 2 * DEEPEST:
                margin, mark, further = margin[: 2 * DEEPEST - 2], mark, ""
            found.append(self._row(turn, margin + mark))
            margin += further
            found += self._agent_rows(turn, margin)
            ways = [self._turn(message) for message in self._below[turn[-1].id]]
            waiting += reversed(
                [
                    (way, margin, len(ways) > 1, place == len(ways) - 1)
                    for place, way in enumerate(ways)
                ]
            )
        return found

    def _turn(self, first: TreeMessage) -> list[TreeMessage]:
        turn = [first]
        while not self._ends(turn[-1]):
            turn.append(self._below[turn[-1].id][0])
        return turn

    def _ends(self, message: TreeMessage) -> bool:
        below = self._below[message.id]
        is_named = message.id in self._names or message.id == self._tree.head
        return is_named or len(below) != 1 or below[0].role == "user"

    def _row(self, turn: list[TreeMessage], margin: str) -> OutlineRow:
        first, last = turn[0], turn[-1]
        is_here = last.id == self._tree.head
        names = [*(["here"] if is_here else []), *self._names.get(last.id, ())]
        shown = f"[{', '.join(names)}] " if names else ""
        sign = "› " if first.role == "user" else ""
        return OutlineRow(
            margin=margin,
            label=f"{shown}{sign}{first.text or '(no text)'}",
            detail=self._detail(turn),
            first=first,
            node=last.id,
            is_here=is_here,
            on_line=last.id in self._line,
            branch=next(
                (b.name for b in self._tree.branches if b.node == last.id and not b.is_current), ""
            ),
        )

    def _detail(self, turn: list[TreeMessage]) -> str:
        calls = sum(message.calls for message in turn)
        about = [count_of(calls, "call")] if calls else []
        if any(message.is_partial for message in turn):
            about.append("cut off")
        if any(message.is_pinned for message in turn):
            about.append("pinned")
        if any(message.revision for message in turn):
            about.append("edited")
        if any(message.id == self._tree.summarized_to for message in turn):
            about.append("summarized up to here")
        if turn[-1].id not in self._line:
            about.append("other branch")
        return ", ".join(about)

    def _agent_rows(self, turn: list[TreeMessage], margin: str) -> Iterable[OutlineRow]:
        for message in turn:
            for child in self._agents.get(message.id, ()):
                yield OutlineRow(
                    margin=f"{margin}  ",
                    label=f"⤷ {child.name}: {child.title or child.id}",
                    detail=agent_status(child),
                    child=child.id,
                )


def _names(tree: TreeView) -> dict[NodeId, list[str]]:
    found: dict[NodeId, list[str]] = defaultdict(list)
    for branch in tree.branches:
        if branch.node is not None:
            found[branch.node].append(branch.name)
    for checkpoint in tree.checkpoints:
        if checkpoint.node is not None:
            found[checkpoint.node].append(f"⚑ {checkpoint.name}")
    return found


def agent_status(child: ChildInfo) -> str:
    """How an agent stands, and what it cost."""
    how = "done" if child.reason in SUCCESSFUL else child.reason or child.status
    where = " in the background" if child.background and child.reason is None else ""
    cost = "cost unknown" if child.cost_usd is None else f"${child.cost_usd:.4f}"
    return f"{how.replace('_', ' ')}{where}, {cost}"
