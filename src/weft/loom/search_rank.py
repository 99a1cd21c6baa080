"""Ranks of a search: several orders of the same nodes fused to one, and rolled up to trees.

A node may be found by its words, by its id, and by what is known of it; the scores of the three
cannot be compared, their ranks can.  Reciprocal rank fusion adds `1 / (60 + rank)` for each order
that has the node.  Pure: the orders come from stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from weft.errors import UsageError

RANK_CONSTANT: Final = 60
"""How little a first place counts more than a tenth; the value of the paper that the method is
from.
"""
_ID: Final = re.compile(r"[0-9A-Za-z_.:-]{4,128}")
_FILTERS: Final = ("model", "role", "tree", "after", "before", "is", "label")
_FILTER: Final = re.compile(rf"(?<!\S)(-?)({'|'.join(_FILTERS)}):(\"[^\"]*\"|\S+)")
_STATES: Final = ("bookmarked", "hidden", "partial", "rated")


class RankedNode(msgspec.Struct, frozen=True):
    """A node that was found, and how well it fits: the higher, the better."""

    id: str
    score: float


class RankedTree(msgspec.Struct, frozen=True):
    """A tree in which something was found: its best node, and that node's score."""

    root_id: str
    best_id: str
    score: float
    hits: int


class LoomQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A search as it was typed: words, and what has to hold beside them."""

    words: str = ""
    not_words: tuple[str, ...] = ()
    """None of these may stand in the text."""
    models: tuple[str, ...] = ()
    """Alternatives; so are those of the other lists."""
    not_models: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    states: tuple[tuple[str, bool], ...] = ()
    """`bookmarked`, `hidden`, `partial` or `rated`, and whether it has to hold."""
    after: float | None = None
    before: float | None = None

    @property
    def looks_like_id(self) -> bool:
        """Whether the words may be an id or the beginning of one."""
        return _ID.fullmatch(self.words) is not None


def parse_query(text: str) -> LoomQuery:
    """The search that a line of text asks for: `storm -sea model:haiku after:2026-05-01`.

    Raises:
        UsageError: a filter has a value that it cannot have.
    """
    given: dict[str, list[str]] = {name: [] for name in (*_FILTERS, "-model")}
    states: list[tuple[str, bool]] = []
    for minus, name, quoted in _FILTER.findall(text):
        value = quoted.strip('"')
        if name == "is":
            states.append((_state(value), not minus))
        elif minus and name != "model":
            raise UsageError(f"-{name}: cannot be asked for; only -model: and -is: can")
        else:
            given[minus + name].append(value)
    said = _FILTER.sub(" ", text).split()
    return LoomQuery(
        words=" ".join(word for word in said if not word.startswith("-")),
        not_words=tuple(bare for word in said if word[0] == "-" and (bare := word.lstrip("-"))),
        models=tuple(given["model"]),
        not_models=tuple(given["-model"]),
        roles=tuple(given["role"]),
        trees=tuple(given["tree"]),
        labels=tuple(given["label"]),
        states=tuple(states),
        after=max(map(_day, given["after"]), default=None),
        before=min(map(_day, given["before"]), default=None),
    )


def _state(value: str) -> str:
    if value not in _STATES:
        raise UsageError(f"is:{value} is not known; there are {', '.join(_STATES)}")
    return value


def _day(value: str) -> float:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise UsageError(f"{value!r} is no day; write it as 2026-05-01") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def fused(rankings: Iterable[Sequence[str]], constant: int = RANK_CONSTANT) -> list[RankedNode]:
    """One order of several, the best first; nodes of the same score as they were met."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        # An order that names a node twice has it once, at the better place.
        for rank, node in enumerate(dict.fromkeys(ranking), start=1):
            scores[node] = scores.get(node, 0.0) + 1 / (constant + rank)
    ordered = sorted(scores.items(), key=lambda each: -each[1])
    return [RankedNode(node, score) for node, score in ordered]


def id_order(reference: str, places: Iterable[tuple[str, str]]) -> list[str]:
    """Nodes by how near their ids, or their trees', are to what was typed.

    `places` are nodes with their roots, in the order that breaks ties.  The node of this very id
    comes first, then the nodes of the tree of this id, then those whose ids begin so.
    """
    found: list[tuple[int, str]] = []
    for node, root in places:
        if node == reference:
            found.append((0, node))
        elif root == reference:
            found.append((1, node))
        elif node.startswith(reference):
            found.append((2, node))
        elif root.startswith(reference):
            found.append((3, node))
    return [node for _, node in sorted(found, key=lambda each: each[0])]


def metadata_order(words: str, described: Iterable[tuple[str, Mapping[str, object]]]) -> list[str]:
    """Nodes by how many of the words their metadata has: models, labels, titles, strategies."""
    wanted = {word.casefold() for word in words.split()}
    found: list[tuple[int, str]] = []
    for node, facts in described:
        said = set(re.findall(r"\w+", " ".join(_flat(facts.values())).casefold()))
        hits = sum(_is_said(word, said) for word in wanted)
        if hits:
            found.append((-hits, node))
    return [node for _, node in sorted(found, key=lambda each: each[0])]


def rolled_up(
    ranked: Iterable[RankedNode], root_of: Callable[[str], str | None], limit: int = 20
) -> list[RankedTree]:
    """The trees of what was found, each by its best node; a node of no tree is left out."""
    best: dict[str, RankedTree] = {}
    for node in ranked:
        root = root_of(node.id)
        if root is None:
            continue
        known = best.get(root)
        if known is None or node.score > known.score:
            best[root] = RankedTree(root, node.id, node.score, known.hits + 1 if known else 1)
        else:
            best[root] = msgspec.structs.replace(known, hits=known.hits + 1)
    return sorted(best.values(), key=lambda tree: -tree.score)[:limit]


def _is_said(word: str, said: set[str]) -> bool:
    # Beginnings count from three letters on: one letter begins a word of nearly every name.
    return word in said or (len(word) > 2 and any(each.startswith(word) for each in said))


def _flat(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from (each for each in value if isinstance(each, str))
