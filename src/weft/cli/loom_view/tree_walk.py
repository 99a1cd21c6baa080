"""Walks through a tree in the order of an outline, a step at a time: only what is passed is looked
at, so that a step takes the same in any tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from weft.ids import NodeId
from weft.loom.trees.loom_tree import LoomTree

LEVELS: Final = 12
"""Forks above a node of which an outline draws the branches; more would leave no room for text."""


class TreeWalk:
    """The nodes below one, each after its parent."""

    def __init__(
        self,
        tree: LoomTree,
        top: NodeId,
        order: Callable[[NodeId], Sequence[NodeId]] | None = None,
    ) -> None:
        """`order` gives the children of a node in the order of the walk; as they came without."""
        # As it is now: to ask for it again at each of thousands of steps takes longer than these.
        self._tree = tree.tree
        self._nodes = self._tree.nodes
        self._top = top
        self._order = order or self._tree.children

    def after(self, node: NodeId) -> Iterator[NodeId]:
        """The nodes that come after one."""
        at = node
        while True:
            children = self._children(at)
            if children:
                at = children[0]
            elif (found := self._next_beside(at)) is not None:
                at = found
            else:
                return
            yield at

    def _children(self, node: NodeId) -> Sequence[NodeId]:
        # Most have none, deleted ones included: then nothing has to be left out.
        return self._order(node) if self._nodes[node].children else ()

    def _next_beside(self, at: NodeId) -> NodeId | None:
        """The next sibling of a node, or of the nearest one above that has one."""
        while at != self._top and (parent := self._nodes[at].parent) is not None:
            siblings = self._children(parent)
            if siblings and siblings[-1] != at:
                return siblings[siblings.index(at) + 1]
            at = parent
        return None

    def before(self, node: NodeId) -> Iterator[NodeId]:
        """The nodes that come before one, the nearest first."""
        at = node
        while at != self._top and (parent := self._nodes[at].parent) is not None:
            siblings = self._children(parent)
            place = siblings.index(at)
            at = self._last_below(siblings[place - 1]) if place else parent
            yield at

    def _last_below(self, at: NodeId) -> NodeId:
        while children := self._children(at):
            at = children[-1]
        return at

    def last(self) -> NodeId:
        """The last of all."""
        return self._last_below(self._top)

    def next_fork(self, node: NodeId, step: int) -> NodeId | None:
        """The nearest node with several children after (or before) one, round the ends; None where
        there is no other.
        """
        ahead = self._forks_after(node) if step > 0 else self._forks_before(node)
        return next((each for each in ahead if each != node), None)

    def _forks_after(self, node: NodeId) -> Iterator[NodeId]:
        """All forks after a node, then those from the top on.  Leaves are passed in one look."""
        yield from self._forks_below(node)
        at = node
        while at != self._top and (parent := self._nodes[at].parent) is not None:
            siblings = self._children(parent)
            for each in siblings[siblings.index(at) + 1 :]:
                yield from self._forks_below(each)
            at = parent
        yield from self._forks_below(self._top)

    def _forks_before(self, node: NodeId) -> Iterator[NodeId]:
        at = node
        while at != self._top and (parent := self._nodes[at].parent) is not None:
            siblings = self._children(parent)
            for each in reversed(siblings[: siblings.index(at)]):
                yield from self._forks_back(each)
            if self.is_fork(parent):
                yield parent
            at = parent
        yield from self._forks_back(self._top)

    def _forks_below(self, top: NodeId) -> Iterator[NodeId]:
        """The forks of a subtree, each before those below it."""
        ahead = [top]
        while ahead:
            node = ahead.pop()
            children = self._children(node)
            if len(children) > 1:
                yield node
            ahead += [each for each in reversed(children) if self._nodes[each].children]

    def _forks_back(self, top: NodeId) -> Iterator[NodeId]:
        """The same from the end on."""
        ahead = [(top, False)]
        while ahead:
            node, is_passed = ahead.pop()
            if is_passed:
                yield node
                continue
            children = self._children(node)
            if len(children) > 1:
                ahead.append((node, True))
            ahead += [(each, False) for each in children if self._nodes[each].children]

    def is_fork(self, node: NodeId) -> bool:
        """Whether it has several children."""
        return len(self._nodes[node].children) > 1 and len(self._children(node)) > 1

    def around(self, node: NodeId, before: int, after: int) -> list[NodeId]:
        """A node and its neighbours: as many as are asked for, from the other side where one side
        has fewer.
        """
        above = list(islice(self.before(node), before))
        below = list(islice(self.after(node), after + before - len(above)))
        if len(below) < after:
            above = list(islice(self.before(node), before + after - len(below)))
        return [*reversed(above), node, *below]

    def margin(self, node: NodeId) -> str:
        """What stands before a row of an outline: the branches of the forks above it, `│ ├ ` and
        the like.  Only a fork goes one further in.
        """
        lasts: list[bool] = []
        at, is_branch = node, False
        while at != self._top and (parent := self._nodes[at].parent) is not None:
            if self.is_fork(parent):
                is_branch = is_branch or at == node
                lasts.append(self._children(parent)[-1] == at)
                if len(lasts) > LEVELS:
                    break
            at = parent
        hidden = "… " if len(lasts) > LEVELS else ""
        levels = lasts[:LEVELS]
        own = (["└ "] if levels.pop(0) else ["├ "]) if is_branch else []
        return hidden + "".join(["  " if each else "│ " for each in reversed(levels)] + own)
