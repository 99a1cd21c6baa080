"""The tree of a conversation as rows of text, one for each turn.  Pure.

A turn is what a person said and all that was answered to it.  It is one row, and its place is its last message: whoever goes there goes on
behind the whole turn.  A turn is cut where another line leaves it, where a name stands, and where the conversation stands.  Rows keep one
column as long as the line does not part; where it does, each way is drawn one step further in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from weft.api.reports import ChildInfo
from weft.api.tree_view import TreeMessage, TreeView
from weft.ids import NodeId, SessionId

DEEPEST = 8
"""Steps that rows are drawn in; what is deeper stays in the last column, so that there is room for words."""


class OutlineRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row: a turn, or a session that worked for it."""

    margin: str = ""
    """The lines of the tree before it: ours, so that they keep their spaces."""
    label: str
    detail: str = ""
    first: TreeMessage | None = None
    """What the turn begins with; None for a session."""
    node: NodeId | None = None
    """Where whoever goes there stands."""
    is_here: bool = False
    on_line: bool = False
    branch: str = ""
    """The branch that ends here, if one does that is not the present one."""
    child: SessionId | None = None


class _Turn(msgspec.Struct, kw_only=True):
    messages: list[TreeMessage]
    turns: list[_Turn] = []

    @property
    def last(self) -> TreeMessage:
        return self.messages[-1]


def places(tree: TreeView, children: Sequence[ChildInfo] = ()) -> list[OutlineRow]:
    """All rows, from the first message down."""
    return _Outline(tree, children).rows()


class _Outline:
    def __init__(self, tree: TreeView, children: Sequence[ChildInfo]) -> None:
        self._tree = tree
        known = {message.id: message for message in tree.messages}
        self._below: dict[NodeId | None, list[TreeMessage]] = defaultdict(list)
        for message in tree.messages:
            self._below[message.parent if message.parent in known else None].append(message)
        self._names = _names(tree)
        self._workers: dict[NodeId | None, list[ChildInfo]] = defaultdict(list)
        for child in children:
            self._workers[child.node].append(child)
        self._line: set[NodeId] = set()
        at = tree.head
        while at is not None and at in known:
            self._line.add(at)
            at = known[at].parent

    def rows(self) -> list[OutlineRow]:
        found: list[OutlineRow] = []
        # A list in place of calls: a conversation may be thousands of turns long.
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
            found.append(self._place(turn, margin + mark))
            margin += further
            found += self._sessions(turn, margin)
            ways = [self._turn(message) for message in self._below[turn.last.id]]
            waiting += reversed(
                [
                    (way, margin, len(ways) > 1, place == len(ways) - 1)
                    for place, way in enumerate(ways)
                ]
            )
        return found

    def _turn(self, first: TreeMessage) -> _Turn:
        messages = [first]
        while not self._ends(messages[-1]):
            messages.append(self._below[messages[-1].id][0])
        return _Turn(messages=messages)

    def _ends(self, message: TreeMessage) -> bool:
        below = self._below[message.id]
        is_named = message.id in self._names or message.id == self._tree.head
        return is_named or len(below) != 1 or below[0].role == "user"

    def _place(self, turn: _Turn, margin: str) -> OutlineRow:
        first, last = turn.messages[0], turn.last
        is_here = last.id == self._tree.head
        names = [*(["here"] if is_here else []), *self._names.get(last.id, ())]
        shown = f"[{', '.join(names)}] " if names else ""
        sign = "› " if first.role == "user" else ""
        return OutlineRow(
            margin=margin,
            label=f"{shown}{sign}{first.text or '(nothing said)'}",
            detail=self._detail(turn),
            first=first,
            node=last.id,
            is_here=is_here,
            on_line=last.id in self._line,
            branch=next(
                (b.name for b in self._tree.branches if b.node == last.id and not b.is_current), ""
            ),
        )

    def _detail(self, turn: _Turn) -> str:
        calls = sum(message.calls for message in turn.messages)
        about = [_count(calls, "call")] if calls else []
        if any(message.is_partial for message in turn.messages):
            about.append("cut off")
        if any(message.is_pinned for message in turn.messages):
            about.append("pinned")
        if any(message.revision for message in turn.messages):
            about.append("edited")
        if any(message.id == self._tree.summarized_to for message in turn.messages):
            about.append("told as a summary up to here")
        if turn.last.id not in self._line:
            about.append("another line")
        return ", ".join(about)

    def _sessions(self, turn: _Turn, margin: str) -> Iterable[OutlineRow]:
        for message in turn.messages:
            for child in self._workers.get(message.id, ()):
                yield OutlineRow(
                    margin=f"{margin}  ",
                    label=f"⤷ {child.name}: {child.title or child.id}",
                    detail=child_state(child),
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


def child_state(child: ChildInfo) -> str:
    """How a session that works for another stands, and what it cost."""
    how = child.reason or child.status.replace("_", " ")
    beside = " in the background" if child.background and child.reason is None else ""
    cost = "cost unknown" if child.cost_usd is None else f"${child.cost_usd:.4f}"
    return f"{'done' if how in ('stop', 'submitted') else how}{beside}, {cost}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
