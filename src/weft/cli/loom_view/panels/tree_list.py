"""Other trees, what a search finds in them, and models: lists that wait for a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from weft.api.inspection import ModelInfo
from weft.app import App
from weft.cli.chat.screens.list_question import ListAnswer, ListKey, ListQuestion, ListRow
from weft.cli.commands.table import when
from weft.cli.loom_view.panels.list_panels import MOST_HITS, PickPanel
from weft.cli.loom_view.text_rows import money, short_model
from weft.cli.loom_view.view_command import TreeListQuery, TreeSort, ViewCommand
from weft.cli.sanitize import clean_line
from weft.errors import NodeNotFound, UsageError
from weft.ids import NodeId
from weft.loom import LoomSession
from weft.loom.search_rank import parse_query
from weft.loom.tree_search import from_match

MOST_TREES: Final = 500
_LABEL: Final = 80
_ORDERS: Final = {
    "updated": "last use",
    "created": "age",
    "name": "name",
    "nodes": "size",
}
_SORTS: Final[tuple[TreeSort, ...]] = ("updated", "created", "name", "nodes")


async def open_tree(app: App, reference: str) -> tuple[LoomSession, str]:
    """A view of a tree, and what the user is told of it; one that another process has is opened to
    be read.
    """
    try:
        return await app.loom.open(reference), ""
    except NodeNotFound:
        # A list names a tree by its session; the root of one that was imported has another id.
        if not reference.startswith("nod_"):
            raise
        return await open_tree(app, f"ses_{reference.removeprefix('nod_')}")
    except UsageError as error:
        if "another process" not in str(error):
            raise
    return await app.loom.open(reference, read_only=True), "another process has it: to read only"


async def tree_question(app: App, asked: TreeListQuery, current: str = "") -> PickPanel:
    """Trees to pick from; what `asked` has typed already narrows them down."""
    facets = {"project_path": [app.project_path]} if asked.is_here else None
    found = await app.loom.catalogue(facets=facets, sort=asked.sort, limit=MOST_TREES)
    rows = tuple(
        ListRow(
            clean_line(entry.name)[:_LABEL] or "Loom",
            (
                f"{entry.nodes:,} nodes" if entry.nodes != 1 else "1 node",
                when(entry.updated),
                short_model(entry.model),
                money(entry.cost_usd),
            ),
            is_current=entry.root_id == current,
            words=f"{entry.root_id} {entry.model} {entry.project_path}",
        )
        for entry in found.entries
    )

    def picked(answer: ListAnswer) -> Sequence[ViewCommand]:
        if answer.key == "enter":
            return (ViewCommand("switch", text=found.entries[answer.row].root_id),)
        changed = replace(asked, words=answer.words)
        if answer.key == "tab":
            changed = replace(changed, is_here=not asked.is_here)
        else:
            changed = replace(changed, sort=_SORTS[(_SORTS.index(asked.sort) + 1) % len(_SORTS)])
        return (ViewCommand("open_trees", trees=changed),)

    question = ListQuestion(
        title="Trees of this folder" if asked.is_here else "Trees",
        rows=rows,
        words=asked.words,
        enter="opens it",
        keys=(
            ListKey("tab", "all folders" if asked.is_here else "this folder", needs_row=False),
            ListKey("c-s", "another order", needs_row=False),
        ),
        keeps=(0, 1, 2),
        about=f"by {_ORDERS[asked.sort]}",
        empty="there is no tree here yet",
    )
    return PickPanel(question, picked)


async def hit_rows(
    app: App, query: str, roots: Sequence[str] | None
) -> list[tuple[ListRow, NodeId]]:
    """Where the words of a query are said."""
    hits = await app.loom.search(query, roots=roots, limit=MOST_HITS)
    asked = parse_query(query)
    return [
        (
            ListRow(
                from_match(clean_line(hit.snippet or hit.node.text), asked)[:200] or "(empty)",
                (short_model(hit.node.model or ""), "⚑" if hit.node.bookmarked else ""),
            ),
            hit.node.id,
        )
        for hit in hits
    ]


def model_question(models: Iterable[ModelInfo], picked: Callable[[str], None]) -> PickPanel:
    """The models that there are; `picked` gets the name of one."""
    names = [f"{info.provider}:{info.name}" for info in models if info.name]

    def take(answer: ListAnswer) -> Sequence[ViewCommand]:
        picked(names[answer.row])
        return ()

    rows = tuple(
        ListRow(name.partition(":")[2].rpartition("/")[2], (name.partition(":")[0],), words=name)
        for name in names
    )
    question = ListQuestion(title="Add a model", rows=rows, enter="adds it, or the name as typed")
    return PickPanel(question, take, typed=picked)
