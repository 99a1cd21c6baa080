"""The files of tinyloom and of MiniHF's looms: nodes that hold changes to their parent's text."""

from __future__ import annotations

from typing import Any, Final

from weft.errors import UsageError
from weft.loom.formats.assembly import assembled, with_facts
from weft.loom.formats.patched_text import decoded_text, encoded, patched
from weft.loom.formats.plain_json import (
    LONGEST_TEXT,
    Json,
    as_id,
    as_table,
    as_text,
    rating,
    seconds,
    short_text,
)
from weft.loom.node_record import NodeRecord, TreeRecord

TINYLOOM: Final = "tinyloom"
MINIHF: Final = "minihf"
_WRITERS: Final = {"root": "", "user": "user", "gen": "assistant", "rewrite": "assistant"}
"""What a node's type says of who wrote it; any other type is the model's name."""
_MOST_RENDERED: Final = 8 * 1024 * 1024 * 1024
"""Bytes of text in all that patches may be applied to: the work, not the room that it takes."""


def is_tinyloom(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("nodes"), dict)


def is_minihf(value: Any) -> bool:
    inner = value.get("loomTree") if isinstance(value, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("nodeStore"), dict)


def parse_tinyloom(value: Any) -> tuple[TreeRecord, ...]:
    """The tree of a file of tinyloom.

    Raises:
        UsageError: its nodes make no tree.
    """
    return _placed(_parsed(value["nodes"], TINYLOOM), value.get("focus") or value.get("current"))


def parse_minihf(value: Any) -> tuple[TreeRecord, ...]:
    """The tree of a file of MiniHF.

    Raises:
        UsageError: its nodes make no tree.
    """
    focus = value.get("focus")
    current = focus.get("id") if isinstance(focus, dict) else None
    return _placed(_parsed(value["loomTree"]["nodeStore"], MINIHF), current)


def _placed(trees: tuple[TreeRecord, ...], current: Any) -> tuple[TreeRecord, ...]:
    if not isinstance(current, str | int):
        return trees
    return tuple(with_facts(tree, current_id=str(current)) for tree in trees)


def _parsed(store: Json, source: str) -> tuple[TreeRecord, ...]:
    rows: dict[str, Json] = {}
    below: dict[str | None, list[str]] = {}
    for key, each in store.items():
        row = as_table(each, f"node {key!r}")
        node_id = as_id(row.get("id", key), f"node {key!r}")
        if node_id in rows:
            raise UsageError(f"the file has two nodes of the id {node_id!r}")
        rows[node_id] = row
        parent = row.get("parent")
        name = None if parent is None else as_id(parent, f"the parent of node {node_id!r}")
        below.setdefault(name, []).append(node_id)
    nodes = _Renderer(rows, below).nodes()
    if len(nodes) < len(rows):
        reached = {node.id for node in nodes}
        lost = next(name for name in rows if name not in reached)
        raise UsageError(f"no root leads to node {lost!r}")
    return assembled(nodes, source)


class _Renderer:
    """Turns patches into segments, from the roots down."""

    def __init__(self, rows: dict[str, Json], below: dict[str | None, list[str]]) -> None:
        self._rows = rows
        self._below = below
        self._lengths: dict[str, int] = {}
        """Bytes of each node's whole text, as it is put together here."""
        self._parents: dict[str, str | None] = {}
        self._rendered = 0

    def nodes(self) -> list[NodeRecord]:
        found: list[NodeRecord] = []
        # Each entry holds its parent's whole text, which siblings share: what is kept at a time is
        # the text of the nodes whose children still wait.
        waiting = [(name, b"") for name in reversed(self._below.get(None, []))]
        while waiting:
            name, above = waiting.pop()
            whole = self._whole(name, above)
            found.append(self._node(name, above, whole))
            waiting += [(child, whole) for child in reversed(self._below.get(name, []))]
        return found

    def _whole(self, name: str, above: bytes) -> bytes:
        row, where = self._rows[name], f"node {name!r}"
        patch = row.get("patches", row.get("patch"))
        if isinstance(row.get("text"), str) and not patch:
            whole = above + encoded(as_text(row["text"], where))
        else:
            whole = patched(above, patch, where)
        self._rendered += len(whole)
        if len(whole) > 2 * LONGEST_TEXT or self._rendered > _MOST_RENDERED:
            raise UsageError(f"the text of {where} grows too long")
        return whole

    def _node(self, name: str, above: bytes, whole: bytes) -> NodeRecord:
        row = self._rows[name]
        said = None if row.get("parent") is None else str(row["parent"])
        parent = self._ancestor(said, above, whole)
        begins = 0 if parent is None else self._lengths[parent]
        self._parents[name], self._lengths[name] = parent, len(whole)
        # A change inside the text has no node of its own here: its line leaves the tree where the
        # texts part.
        moved = {} if parent == said else {"source_parent": said}
        kind = short_text(row.get("type"))
        return NodeRecord(
            id=name,
            parent_id=parent,
            text=decoded_text(whole[begins:]),
            role=_WRITERS.get(kind, "assistant"),
            model=short_text(row.get("model")) or ("" if kind in _WRITERS else kind),
            created_at=seconds(row.get("timestamp")),
            bookmarked=row.get("bookmarked") is True,
            hidden=row.get("hidden") is True,
            rating=rating(row.get("rating")),
            metadata={**_summary(row), **moved},
        )

    def _ancestor(self, parent: str | None, above: bytes, whole: bytes) -> str | None:
        """The nearest ancestor whose whole text the node begins with."""
        if parent is None:
            return None
        same = len(above) if whole.startswith(above) else _common(above, whole)
        found: str | None = parent
        # Texts of ancestors are the beginnings of their descendants', so lengths are enough.
        while found is not None and self._lengths[found] > same:
            found = self._parents[found]
        return found


def _summary(row: Json) -> Json:
    said = short_text(row.get("summary") or row.get("_summary"))
    return {"summary": said} if said else {}


def _common(left: bytes, right: bytes) -> int:
    """How many bytes two texts begin with, in whole characters."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    low -= low % 2
    # Between the halves of an emoji no text ends.
    is_half = low >= 2 and 0xD8 <= left[low - 1] < 0xDC
    return low - 2 if is_half else low
