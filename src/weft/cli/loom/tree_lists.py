"""`weft loom list`, `roots`, `children`, `active` and `search`: what there is, in rows."""

from __future__ import annotations

from typing import Any, cast

from weft.app import App
from weft.cli.commands.table import money, when
from weft.cli.exit_codes import OK
from weft.cli.loom.branch_text import (
    node_data,
    node_signs,
    one_line,
    short_model,
    tree_name,
    write_fact,
    write_rows,
)
from weft.cli.loom.node_references import NO_TREES, find_node, one_reference, short_id
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError
from weft.loom import CatalogueEntry, LoomHit, LoomNode
from weft.loom.search_rank import LoomQuery, parse_query
from weft.loom.tree_search import from_match, holds
from weft.loom.trees.tree_catalogue import CatalogueSort

LIMIT = 20
_FIELDS = (
    *("root_id", "name", "model", "nodes", "created", "updated", "cost_usd", "archived"),
    "project_path",
)
"""What JSON shows of a tree: all that is known without opening it."""
_WITH_ARCHIVED = {"archived": (True, False)}
_TEXT = 200
"""Characters of a text that a row has."""


async def list_trees(app: App, arguments: ParsedArguments) -> int:
    """List trees."""
    words = " ".join(arguments.words)
    facets = _WITH_ARCHIVED if arguments.flag("archived") else {}
    # All of them: the days and the models are looked at here.
    found = await app.loom.catalogue(
        facets=cast("Any", facets),
        query=words or None,
        sort=cast("CatalogueSort", arguments.text("sort") or "updated"),
        limit=1_000_000,
        details=bool(arguments.many("model")),
    )
    entries = [each for each in found.entries if _fits(each, arguments)]
    if arguments.flag("bookmarked"):
        entries = [each for each in entries if await _has_bookmark(app, each)]
    shown = entries[: arguments.whole("limit") or len(entries)]
    if arguments.flag("json"):
        write_pretty([{name: getattr(each, name) for name in _FIELDS} for each in shown])
        return OK
    if not shown:
        tell("no tree fits" if found.total or words else await _nothing(app))
        return OK
    rows = [
        (
            short_id(each.root_id),
            when(each.updated),
            f"{each.nodes}",
            money(each.cost_usd),
            short_model(each.model),
            one_line(each.name) + (" (archived)" if each.archived else ""),
        )
        for each in shown
    ]
    write_rows(rows, ("id", "used", "nodes", "cost", "model", "name"), narrow=(0, 5))
    return OK


async def _nothing(app: App) -> str:
    all_trees = await app.loom.catalogue(facets=cast("Any", _WITH_ARCHIVED), limit=1)
    return "all trees are archived; --archived lists them" if all_trees.total else NO_TREES


def _fits(entry: CatalogueEntry, arguments: ParsedArguments) -> bool:
    models = arguments.many("model")
    days = parse_query(_day_filters(arguments))
    names = (entry.model, *entry.models)
    return (
        (not models or any(each in name for each in models for name in names))
        and (days.after is None or entry.updated >= days.after)
        and (days.before is None or entry.updated < days.before)
    )


async def _has_bookmark(app: App, entry: CatalogueEntry) -> bool:
    return any(node.bookmarked for node in await app.loom.tree(entry.root_id))


async def roots(app: App, arguments: ParsedArguments) -> int:
    """List the roots of trees."""
    found = await app.loom.roots(archived=None if arguments.flag("archived") else False)
    found = found[: arguments.whole("limit") or len(found)]
    if arguments.flag("json"):
        write_pretty([node_data(node) for node in found])
        return OK
    if not found:
        tell(NO_TREES)
        return OK
    rows = [
        (short_id(node.id), when(node.created_at), one_line(node.text)[:_TEXT]) for node in found
    ]
    write_rows(rows, ("id", "made", "text"), narrow=(0, 2))
    return OK


async def children(app: App, arguments: ParsedArguments) -> int:
    """List the children of a node."""
    at = await find_node(app.loom, one_reference(arguments))
    found = await app.loom.children(at)
    below = await app.loom.descendant_counts([node.id for node in found])
    chosen = await app.loom.checked_out_child(at)
    if arguments.flag("json"):
        write_pretty(
            [
                {
                    "number": number,
                    "selected": node.id == chosen,
                    "descendants": below[node.id],
                    **node_data(node),
                }
                for number, node in enumerate(found, start=1)
            ]
        )
        return OK
    if not found:
        tell(f"{short_id(at)} has no children; `weft loom continue` grows some")
        return OK
    rows = [
        (
            f"{'▸' if node.id == chosen else ' '}{number}",
            short_id(node.id),
            short_model(node.model),
            f"+{below[node.id]}" if below[node.id] else "",
            node_signs(node),
            one_line(node.text)[:_TEXT],
        )
        for number, node in enumerate(found, start=1)
    ]
    write_rows(rows, (" #", "id", "model", "below", "", "text"), narrow=(0, 4, 5))
    return OK


async def active(app: App, arguments: ParsedArguments) -> int:
    """Show the active node."""
    given = one_reference(arguments)
    # Of a tree that is named, where that one was left.
    at = await find_node(app.loom, None if given is None else given)
    if given is not None:
        at = await app.loom.active_node((await app.loom.root(at)).id) or at
    node, line = await app.loom.get(at), await app.loom.lineage(at)
    settings = await app.loom.tree_settings(node.root_id)
    name = tree_name(settings.name, line[0].text)
    found = await app.loom.children(at)
    if arguments.flag("json"):
        write_pretty(
            {
                **node_data(node),
                "name": name,
                "depth": len(line) - 1,
                "children": [child.id for child in found],
            }
        )
        return OK
    write_line(node.id)
    write_fact("tree", f"{short_id(node.root_id)}  {name}")
    write_fact("depth", f"{len(line) - 1}")
    write_fact("children", f"{len(found)}")
    if about := "  ".join(filter(None, (short_model(node.model), node_signs(node)))):
        write_fact("about", about)
    write_fact("text", _end_of(node))
    return OK


def _end_of(node: LoomNode) -> str:
    line = one_line(node.text)
    return line if len(line) <= _TEXT else f"…{line[-_TEXT:]}"


async def search(app: App, arguments: ParsedArguments) -> int:
    """Find nodes."""
    filters = [f"model:{_quoted(each)}" for each in arguments.many("model")]
    filters += ["is:bookmarked"] * arguments.flag("bookmarked")
    query = " ".join([*arguments.words, *filters, _day_filters(arguments)]).strip()
    limit = arguments.whole("limit") or LIMIT
    if not query:
        raise UsageError("say what to look for: `weft loom search storm --bookmarked`")
    asked = parse_query(query)
    if asked.words:
        found = await app.loom.search(query, limit=limit)
    else:
        found = await _filtered(app, asked, limit)
    if arguments.flag("json"):
        write_pretty(
            [
                {
                    "root": hit.root,
                    "score": hit.score,
                    "snippet": hit.snippet,
                    **node_data(hit.node),
                }
                for hit in found
            ]
        )
        return OK
    if not found:
        tell("nothing was found")
        return OK
    rows = [
        (
            short_id(hit.node.id),
            short_id(hit.root),
            short_model(hit.node.model),
            node_signs(hit.node),
            from_match(one_line(hit.snippet), asked)[:_TEXT],
        )
        for hit in found
    ]
    write_rows(rows, ("id", "tree", "model", "", "text"), narrow=(0, 4))
    return OK


async def _filtered(app: App, query: LoomQuery, limit: int) -> list[LoomHit]:
    """The nodes that filters alone ask for, those of the trees used last first."""
    found: list[LoomHit] = []
    for entry in (await app.loom.catalogue(limit=1_000_000)).entries:
        nodes = await app.loom.tree(entry.root_id)
        hits = [
            LoomHit(node=node, root=node.root_id, score=0.0, snippet=node.text[:_TEXT])
            for node in reversed(nodes)
        ]
        found += [hit for hit in hits if holds(query, hit)]
        if len(found) >= limit:
            break
    return found[:limit]


def _day_filters(arguments: ParsedArguments) -> str:
    given = {name: arguments.text(name) for name in ("after", "before")}
    return " ".join(
        f"{name}:{_quoted(value)}" for name, value in given.items() if value is not None
    )


def _quoted(value: str) -> str:
    if '"' in value or not value:
        raise UsageError(f"{value!r} cannot be looked for")
    return f'"{value}"'
