"""How many messages are below each node: counted once, then kept up with what changes.

Not a part of the folded state: few sessions are ever asked for it, and to count up the line with
every message would make each message of a deep session dearer than the one before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from weft.ids import NodeId
from weft.tree.skeleton import NodeSkeleton

_NOWHERE: Final = -1


class NodeNumbers(Protocol):
    """The number of each node; a dict is one."""

    def __contains__(self, node: object, /) -> bool: ...

    def __getitem__(self, node: NodeId, /) -> int: ...

    def __setitem__(self, node: NodeId, number: int, /) -> None: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...

    def copy(self) -> Any: ...


class SubtreeCounts:
    """The counts of one tree."""

    # By number, in two arrays: a line of thousands of nodes is walked when something came at its
    # end, and to look each of them up in a map takes ten times as long.
    def __init__(self) -> None:
        self._numbers: NodeNumbers = {}
        self._below = array("i")
        self._above = array("i")
        """The number of the node above each."""
        self._new: list[NodeId] = []
        """The nodes that came since, and have no number yet."""
        self._is_ordered = True
        """The nodes come in the order of their numbers."""
        self._is_downward = True
        """Each node has a greater number than the one above it."""
        self._unread: Callable[[], tuple[array[int], array[int]]] | None = None
        """What the two arrays are read with, where nothing was asked for yet."""
        self._changes: dict[NodeId, int] | None = None
        """What is still to be added to a node and to all above it; None: nothing is counted yet."""

    @classmethod
    def restored(
        cls, numbers: NodeNumbers, read: Callable[[], tuple[array[int], array[int]]]
    ) -> SubtreeCounts:
        """The counts of a snapshot, whose nodes have these numbers, from the roots down; `read`
        gives how many are below each, and the number of the one above it.
        """
        counts = cls()
        counts._numbers, counts._unread = numbers, read
        counts._is_ordered = False
        counts._changes = {}
        return counts

    def copied(self) -> SubtreeCounts:
        """Equal counts that go their own way."""
        other = SubtreeCounts()
        other._numbers = self._numbers.copy()
        other._below, other._above = self._below[:], self._above[:]
        other._unread = self._unread
        other._new = self._new.copy()
        other._is_ordered, other._is_downward = self._is_ordered, self._is_downward
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

    def move(
        self, node: NodeId, old: NodeId, new: NodeId, nodes: Mapping[NodeId, NodeSkeleton]
    ) -> None:
        """A node with all below it hangs on another one now."""
        if self._changes is None:
            # Nothing is counted yet, but what has a number has it from where it stood.
            self._forget_numbers()
            return
        if self._settle(nodes, (node, old)) == "anew":
            return
        number = self._numbers[node]
        size = 0 if nodes[node].hidden else 1 + self._below[number]
        self._add(self._numbers[old], -size)
        self._above[number] = self._numbers[new]
        self._add(self._above[number], size)
        self._is_downward = self._is_downward and self._above[number] < number

    def show(self, shown: Sequence[NodeId], nodes: Mapping[NodeId, NodeSkeleton]) -> None:
        """These nodes, each after the one above it, are seen again; the first hangs on one that
        was seen.
        """
        if self._changes is None or not shown or self._settle(nodes):
            return
        numbers, below = self._numbers, self._below
        for node in reversed(shown):
            seen = [child for child in nodes[node].children if not nodes[child].hidden]
            below[numbers[node]] = sum(1 + below[numbers[child]] for child in seen)
        self.change(nodes[shown[0]].parent, len(shown))

    def below(self, node: NodeId, nodes: Mapping[NodeId, NodeSkeleton]) -> int:
        """The messages below a node, without deleted ones."""
        self._settle(nodes)
        return 0 if nodes[node].hidden else self._below[self._numbers[node]]

    def _settle(
        self,
        nodes: Mapping[NodeId, NodeSkeleton],
        moved: tuple[NodeId, NodeId] | tuple[()] = (),
    ) -> Literal["", "all", "anew"]:
        """Take in all that has changed; says whether all nodes were counted for it, as the tree is
        now, and whether they have other numbers.

        `moved` is a node that hangs on another one now, and the one that it hung on: unless all
        have other numbers, it still counts there.
        """
        if self._unread is not None:
            (self._below, self._above), self._unread = self._unread(), None
        changes, self._changes = self._changes, {}
        # New answers share their parent, so there are few lines to walk. Where there are many, one
        # pass over all nodes is less work.
        counts_all = changes is None or sum(nodes[each].depth for each in changes) > len(nodes)
        if counts_all and not self._is_downward:
            self._forget_numbers()
        is_anew = not self._numbers
        if is_anew:
            self._number(nodes, nodes)
        else:
            self._number(self._new, nodes, moved)
        self._new = []
        if counts_all or is_anew:
            self._count_all(nodes)
            return "anew" if is_anew else "all"
        for changed, by in (changes or {}).items():
            self._add(self._numbers[changed], by)
        return ""

    def _forget_numbers(self) -> None:
        self._numbers, self._above, self._below = {}, array("i"), array("i")
        self._new, self._unread = [], None
        self._is_ordered = self._is_downward = True

    def _add(self, number: int, by: int) -> None:
        below, above = self._below, self._above
        while number != _NOWHERE:
            below[number] += by
            number = above[number]

    def _number(
        self,
        new: Iterable[NodeId],
        nodes: Mapping[NodeId, NodeSkeleton],
        moved: tuple[NodeId, NodeId] | tuple[()] = (),
    ) -> None:
        numbers, above, below = self._numbers, self._above, self._below
        for node in new:
            if node in numbers:
                continue
            # What came below a node before it was moved is still to be added to its old line.
            parent = moved[1] if moved and moved[0] == node else nodes[node].parent
            # A message comes after the one that it hangs on, which has its number by now; unless
            # that one is the second half of a message that was split later.
            if parent is not None and parent not in numbers:
                self._is_ordered = False
                self._number(_line_to(parent, nodes, numbers), nodes, moved)
            above.append(_NOWHERE if parent is None else numbers[parent])
            below.append(0)
            numbers[node] = len(numbers)

    def _count_all(self, nodes: Mapping[NodeId, NodeSkeleton]) -> None:
        below, above = array("i", bytes(4 * len(nodes))), self._above
        held = nodes.values() if self._is_ordered else (nodes[NodeId(n)] for n in self._numbers)
        hidden = [each.hidden for each in held]
        for number in range(len(nodes) - 1, -1, -1):
            if not hidden[number] and above[number] != _NOWHERE:
                below[above[number]] += 1 + below[number]
        self._below = below


def _line_to(
    node: NodeId, nodes: Mapping[NodeId, NodeSkeleton], known: Container[object]
) -> list[NodeId]:
    """The nodes above one that are not known yet, and itself, from the top down."""
    line: list[NodeId] = []
    at: NodeId | None = node
    while at is not None and at not in known:
        line.append(at)
        at = nodes[at].parent
    line.reverse()
    return line
