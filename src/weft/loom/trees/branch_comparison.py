"""Two branches side by side, and one woven out of both."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.errors import UsageError
from weft.ids import NodeId
from weft.loom.trees.loom_tree import LoomTree
from weft.loom.trees.text_diff import DiffPart, paragraphs, word_diff


class BranchComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What two branches share, and how they differ."""

    ancestor: NodeId | None
    """The last node that both go through."""
    first: NodeId
    second: NodeId
    shared: str
    """The text up to there."""
    parts: tuple[DiffPart, ...]
    """The two texts below, word by word."""

    @property
    def first_text(self) -> str:
        """What only the first says below the ancestor."""
        return "".join(part.first for part in self.parts)

    @property
    def second_text(self) -> str:
        """What only the second says."""
        return "".join(part.second for part in self.parts)


def compare_branches(tree: LoomTree, first: NodeId, second: NodeId) -> BranchComparison:
    """Two branches of a tree from where they part."""
    one, two = tree.line_texts(first), tree.line_texts(second)
    same = _shared(one, two)
    return BranchComparison(
        ancestor=one[same - 1][0] if same else None,
        first=first,
        second=second,
        shared="".join(text for _, text in one[:same]),
        parts=tuple(word_diff(_joined(one[same:]), _joined(two[same:]))),
    )


def _shared(one: Sequence[tuple[NodeId, str]], two: Sequence[tuple[NodeId, str]]) -> int:
    """How many segments two lines have in common, in the same revision."""
    number = 0
    while number < min(len(one), len(two)) and one[number] == two[number]:
        number += 1
    return number


def _joined(texts: Sequence[tuple[NodeId, str]]) -> str:
    return "".join(text for _, text in texts)


def woven_text(
    tree: LoomTree,
    first: NodeId,
    second: NodeId,
    picks: Sequence[tuple[int, int]] | None,
) -> tuple[NodeId, str]:
    """The node that a woven child hangs on, and its text.

    Raises:
        UsageError: there is no such paragraph, or the branches do not part.
    """
    found = compare_branches(tree, first, second)
    if found.ancestor is None or found.ancestor in (first, second):
        raise UsageError("only branches that part from each other can be woven into one")
    sides = (paragraphs(found.first_text), paragraphs(found.second_text))
    if picks is None:
        known = {each.strip() for each in sides[0]}
        chosen = [*sides[0], *(each for each in sides[1] if each.strip() not in known)]
    else:
        chosen = [_paragraph(sides, side, number) for side, number in picks]
    return found.ancestor, _stitched(chosen)


def _paragraph(sides: Sequence[Sequence[str]], side: int, number: int) -> str:
    if side not in (0, 1) or not 0 <= number < len(sides[side]):
        raise UsageError(
            f"there is no paragraph {number} of branch {side}; the first branch (0) has "
            f"{len(sides[0])}, the second (1) {len(sides[1])}"
        )
    return sides[side][number]


def _stitched(chosen: Sequence[str]) -> str:
    """Paragraphs as one text, with an empty line between two."""
    text = ""
    for each in chosen:
        if text and not text.endswith("\n\n"):
            text = text.rstrip("\n") + "\n\n"
        text += each
    return text
