"""How many messages are below each node: counted once, then kept up with what changes.

Not a part of the folded state: few sessions are ever asked for it, and to count up the line with
every message would make each message of a deep session dearer than the one before.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Final

from weft.ids import NodeId
from weft.tree.skeleton import NodeSkeleton

_NOWHERE: Final = -1


class SubtreeCounts:
    """The counts of one tree."""

    # By number, in two arrays: a line of thousands of nodes is walked when something came at its
    # end, and to look each of them up in a map takes ten times as long.
    def __init__(self) -> None:
        self._numbers: dict[NodeId, int] = {}
        self._below = array("q")
        self._above = array("q")
        """The number of the node above each."""
        self._new: list[NodeId] = []
        """The nodes that came since, and have no number yet."""
        self._is_ordered = True
        """The nodes come in the order of their numbers."""
        self._changes: dict[NodeId, int] | None = None
        """What is still to be added to a node and to all above it; None: nothing is counted yet."""

    def copied(self) -> SubtreeCounts:
        """Equal counts that go their own way."""
        other = SubtreeCounts()
        other._numbers = self._numbers.copy()
        other._below, other._above = self._below[:], self._above[:]
        other._new = self._new.copy()
        other._is_ordered = self._is_ordered
        other._changes = None if self._changes is None else self._changes.copy()
        return other

    def add(self, node: NodeId, parent: NodeId | None, *, hidden: bool) -> None:
        """A message came."""
        if self._numbers:
            self._new.append(node)
            self.change(parent, 0 if hidden else 1)

    def change(self, node: NodeId | None, by: int) -> None:
        """So many messages came (or went) somewhere below `node`."""
        if node is not None and self._changes is not None:
            self._changes[node] = self._changes.get(node, 0) + by

    def restart(self) -> None:
        """Count anew when it is asked for again."""
        self._changes = None

    def below(self, node: NodeId, nodes: Mapping[NodeId, NodeSkeleton]) -> int:
        """The messages below a node, without deleted ones."""
        changes, self._changes = self._changes, {}
        if not self._numbers:
            self._number(nodes, nodes)
        else:
            self._number(self._new, nodes)
        self._new = []
        # New answers share their parent, so there are few lines to walk. Where there are many, one
        # pass over all nodes is less work.
        if changes is None or sum(nodes[each].depth for each in changes) > len(nodes):
            self._count_all(nodes)
        else:
            for changed, by in changes.items():
                self._add(self._numbers[changed], by)
        return 0 if nodes[node].hidden else self._below[self._numbers[node]]

    def _add(self, number: int, by: int) -> None:
        below, above = self._below, self._above
        while number != _NOWHERE:
            below[number] += by
            number = above[number]

    def _number(self, new: Iterable[NodeId], nodes: Mapping[NodeId, NodeSkeleton]) -> None:
        numbers, above, below = self._numbers, self._above, self._below
        for node in new:
            if node in numbers:
                continue
            parent = nodes[node].parent
            # A message comes after the one that it hangs on, which has its number by now; unless
            # that one is the second half of a message that was split later.
            if parent is not None and parent not in numbers:
                self._is_ordered = False
                self._number(_line_to(parent, nodes, numbers), nodes)
            above.append(_NOWHERE if parent is None else numbers[parent])
            below.append(0)
            numbers[node] = len(numbers)

    def _count_all(self, nodes: Mapping[NodeId, NodeSkeleton]) -> None:
        below, above = array("q", bytes(8 * len(nodes))), self._above
        held = nodes.values() if self._is_ordered else map(nodes.__getitem__, self._numbers)
        hidden = [each.hidden for each in held]
        for number in range(len(nodes) - 1, -1, -1):
            if not hidden[number] and above[number] != _NOWHERE:
                below[above[number]] += 1 + below[number]
        self._below = below


def _line_to(
    node: NodeId, nodes: Mapping[NodeId, NodeSkeleton], known: Mapping[NodeId, int]
) -> list[NodeId]:
    """The nodes above one that are not known yet, and itself, from the top down."""
    line: list[NodeId] = []
    at: NodeId | None = node
    while at is not None and at not in known:
        line.append(at)
        at = nodes[at].parent
    line.reverse()
    return line
