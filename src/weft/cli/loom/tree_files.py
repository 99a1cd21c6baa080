"""`weft loom export`, `import` and `stats`: trees in files, and trees in numbers."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from weft.app import App
from weft.cli.commands.table import money
from weft.cli.exit_codes import FAILED, OK, USAGE
from weft.cli.loom.branch_text import counted, short_model, tree_name, write_rows
from weft.cli.loom.given_text import file_bytes, piped_bytes
from weft.cli.loom.node_references import NO_TREES, find_node, one_reference, short_id
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import complain, show_passing, tell, write, write_line, write_pretty
from weft.errors import UsageError
from weft.loom.formats.plain_json import MOST_BYTES
from weft.loom.formats.tree_file import parse_trees
from weft.loom.node_record import TreeRecord
from weft.loom.tree_scores import ModelScore, facts_of, model_scores, subtree_shape
from weft.loom.tree_transfer import TREE_FORMATS, export_tree, import_trees

OWN_FORMAT: Final = "weft-loom"
SHOWN_FROM: Final = 2_000
"""Nodes from which on an import says how far it is."""
_SUFFIXES: Final = {"markdown": "md", "txt": "md", "htm": "html"}


async def export(app: App, arguments: ParsedArguments) -> int:
    """Write a tree."""
    path = arguments.text("output")
    form = export_format(path, arguments.text("format"))
    at = await find_node(app.loom, one_reference(arguments))
    data = await export_tree(app.loom, at, form)
    if path is None:
        write(data.decode())
        return OK
    write_file(path, data)
    tell(f"{path}: {len(data)} bytes of {form}")
    return OK


def export_format(path: str | None, given: str | None) -> str:
    """The format that was given, or that the name of the file says; else JSON.

    Raises:
        UsageError: the name ends in something that is no format.
    """
    if given is not None:
        return given
    suffix = os.path.splitext(path or "")[1].removeprefix(".").lower()
    named = _SUFFIXES.get(suffix, suffix)
    if named and named not in TREE_FORMATS:
        raise UsageError(
            f"no format is called {suffix!r}; name one of {', '.join(TREE_FORMATS)} with --format"
        )
    return named or "json"


def write_file(path: str, data: bytes) -> None:
    """Written beside it and put in its place: what was there before is lost only when the new one
    is whole.
    """
    full = os.path.abspath(os.path.expanduser(path))
    beside = f"{full}.{os.getpid()}.part"
    try:
        if os.path.exists(full) and not os.path.isfile(full):
            # A pipe or a device has nothing to be replaced.
            with open(full, "wb") as file:
                file.write(data)
            return
        try:
            with open(beside, "wb", opener=_private) as file:
                file.write(data)
            os.replace(beside, full)
        except OSError:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {path!r}: {error.strerror}") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


async def import_files(app: App, arguments: ParsedArguments) -> int:
    """Read trees from files."""
    if not arguments.words:
        raise UsageError("`weft loom import` takes files; - is what is piped in")
    done: list[dict[str, Any]] = []
    problems: list[str] = []
    for path in arguments.words:
        try:
            data = piped_bytes(MOST_BYTES) if path == "-" else file_bytes(path, MOST_BYTES)
            found = await import_trees(app.loom, data, partial(_show_progress, path))
        except UsageError as error:
            show_passing("")
            # The others are read all the same.
            problems.append(str(error) if repr(path) in str(error) else f"{path}: {error}")
            continue
        source = found.source or OWN_FORMAT
        done.append({"file": path, **msgspec.to_builtins(found), "source": source})
    if arguments.flag("json"):
        write_pretty(done)
    else:
        for each in done:
            _tell_import(each)
    for problem in problems:
        complain(problem)
    if not problems:
        return OK
    return FAILED if done else USAGE


def _show_progress(path: str, done: int, total: int) -> None:
    """What is seen of a large import while it lasts."""
    if total < SHOWN_FROM:
        return
    show_passing(f"{path}: {done:,} of {total:,} nodes" if done < total else "")


def _tell_import(done: dict[str, Any]) -> None:
    trees = counted(len(done["roots"]), "tree")
    known = f", {done['known']} known already" if done["known"] else ""
    write_line(f"{done['file']}: {trees} of {done['source']}, {counted(done['added'])} new{known}")
    for root in done["roots"][:10]:
        write_line(f"  {short_id(root)}")
    if len(done["roots"]) > 10:
        write_line(f"  and {len(done['roots']) - 10} more; `weft loom list` shows them")


async def stats(app: App, arguments: ParsedArguments) -> int:
    """Show how well models did."""
    trees = await _trees(app, arguments)
    # Ids are unique in a tree alone: two files may name their roots alike.
    facts = [
        msgspec.structs.replace(
            each,
            id=f"{place} {each.id}",
            parent_id=None if each.parent_id is None else f"{place} {each.parent_id}",
        )
        for place, tree in enumerate(trees)
        for each in facts_of(tree)
    ]
    scores = model_scores(facts)
    shapes = [subtree_shape(facts_of(tree), tree.root_id) for tree in trees]
    if arguments.flag("json"):
        write_pretty(
            {
                "trees": [
                    {"root": tree.root_id, "name": tree.name, **msgspec.to_builtins(shape)}
                    for tree, shape in zip(trees, shapes, strict=True)
                ],
                "models": [msgspec.to_builtins(each) for each in scores],
            }
        )
        return OK
    size, leaves = sum(each.size for each in shapes), sum(each.leaves for each in shapes)
    deepest = max((each.depth for each in shapes), default=0)
    name = tree_name(trees[0].name, trees[0].nodes[0].text)
    named = name if len(trees) == 1 else f"{len(trees)} trees"
    write_line(f"{named}: {counted(size)}, {counted(leaves, 'end')}, {deepest} deep")
    if not scores:
        tell("no model has written here yet")
        return OK
    head = ("model", "nodes", "kept", "wins", "marked", "cost")
    write_rows([_row(each) for each in scores], head, narrow=(0, 1, 2, 3))
    return OK


def _row(score: ModelScore) -> tuple[str, ...]:
    wins = f"{score.win_rate.mean:.0%} of {score.win_rate.count}" if score.win_rate.count else "–"
    return (
        short_model(score.model),
        f"{score.nodes}",
        f"{score.kept:.0%}",
        wins,
        f"{score.bookmarked}" if score.bookmarked else "",
        money(score.cost_usd),
    )


async def _trees(app: App, arguments: ParsedArguments) -> list[TreeRecord]:
    path, given = arguments.text("file"), one_reference(arguments)
    if sum((path is not None, given is not None, arguments.flag("all"))) > 1:
        raise UsageError("give one of ID, --all and --file")
    if path is not None:
        try:
            return list(parse_trees(file_bytes(path, MOST_BYTES)))
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
    if arguments.flag("all"):
        listed = await app.loom.catalogue(limit=1_000_000)
        if not listed.entries:
            raise UsageError(NO_TREES)
        return [await app.loom.tree_record(each.root_id) for each in listed.entries]
    return [await app.loom.tree_record(await find_node(app.loom, given))]
