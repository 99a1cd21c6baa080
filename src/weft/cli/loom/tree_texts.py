"""`weft loom show`, `compare` and `weave`: texts, beside each other and out of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.app import App
from weft.cli.chat.paint.text_cells import fit
from weft.cli.exit_codes import OK
from weft.cli.loom.branch_text import (
    bold,
    diff_text,
    dim,
    is_terminal,
    node_data,
    node_signs,
    one_line,
    short_model,
    width,
    write_branch,
    write_painted,
)
from weft.cli.loom.node_references import find_node, one_reference, short_id, two_references
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write, write_line, write_pretty
from weft.errors import UsageError
from weft.ids import NodeId
from weft.loom import BranchComparison, LoomNode
from weft.loom.trees.text_diff import paragraphs

_TEXT = 300


async def show(app: App, arguments: ParsedArguments) -> int:
    """Print the text down to a node."""
    at = await find_node(app.loom, one_reference(arguments))
    if arguments.flag("tree"):
        return await _outline(app, at, is_json=arguments.flag("json"))
    node = await app.loom.get(at)
    if arguments.flag("segment"):
        if arguments.flag("json"):
            write_pretty(node_data(node))
        else:
            write_line(node.text)
        return OK
    if arguments.flag("json"):
        line = await app.loom.lineage(at)
        write_pretty(
            {
                "id": node.id,
                "root": node.root_id,
                "text": await app.loom.full_text(at),
                "context": await app.loom.context_of(at),
                "line": [node_data(each) for each in line],
            }
        )
        return OK
    write_line(await app.loom.full_text(at))
    return OK


async def _outline(app: App, at: NodeId, *, is_json: bool) -> int:
    """The nodes below one, each indented by its depth."""
    nodes = await app.loom.tree(at)
    active = await app.loom.active_node(nodes[0].root_id)
    below: dict[str | None, list[LoomNode]] = {}
    for node in nodes:
        below.setdefault(node.parent_id, []).append(node)
    top = next(node for node in nodes if node.id == at)
    rows, waiting = list[tuple[LoomNode, int, int]](), [(top, 0, 0)]
    while waiting:
        node, level, number = waiting.pop()
        rows.append((node, level, number))
        children = below.get(node.id, [])
        # One child goes on in the same column: only forks indent.
        deeper = level + (len(children) > 1)
        waiting += [
            (child, deeper, place if len(children) > 1 else 0)
            for place, child in reversed(list(enumerate(children, start=1)))
        ]
    if is_json:
        write_pretty([{"level": level, **node_data(node)} for node, level, _ in rows])
        return OK
    for node, level, number in rows:
        _write_outline_row(node, level, number, is_active=node.id == active)
    return OK


def _write_outline_row(node: LoomNode, level: int, number: int, *, is_active: bool) -> None:
    start = f"{'  ' * level}{number or '·'} "
    about = "  ".join(filter(None, (node_signs(node), short_model(node.model))))
    said = one_line(node.text)[:_TEXT]
    if not is_terminal():
        here = "  (active)" if is_active else ""
        write_line(f"{start}{node.id}{here}  {about}  {said}".rstrip())
        return
    here = " ◂ here" if is_active else ""
    about = f"  {short_id(node.id)}  {about}".rstrip() if width() >= 60 else ""
    room = max(10, width() - len(start) - len(about) - len(here) - 1)
    write_painted(f"{start}{fit(said, room)}{dim(about)}{bold(here)}")


async def compare(app: App, arguments: ParsedArguments) -> int:
    """Show how two branches differ."""
    found = await _compared(app, arguments)
    if arguments.flag("json"):
        write_pretty(
            {
                **msgspec.to_builtins(found),
                "first_text": found.first_text,
                "second_text": found.second_text,
            }
        )
        return OK
    for letter, node_id in (("-", found.first), ("+", found.second)):
        node = await app.loom.get(node_id)
        about = "  ".join(filter(None, (short_model(node.model), node_signs(node))))
        write_painted(dim(f"{letter} {short_id(node.id)}  {about}".rstrip()))
    write_painted("")
    text = diff_text([(part.kind, part.first, part.second) for part in found.parts])
    if is_terminal():
        write_painted(text)
    else:
        write(f"{text}\n")
    if not found.parts or all(part.kind == "same" for part in found.parts):
        tell("they say the same")
    return OK


async def _of_one_tree(app: App, one: str, two: str) -> tuple[NodeId, NodeId]:
    """Two nodes that a command puts beside each other.

    Raises:
        UsageError: they are of two trees.
    """
    first, second = await find_node(app.loom, one), await find_node(app.loom, two)
    trees = [(await app.loom.root(each)).id for each in (first, second)]
    if trees[0] != trees[1]:
        raise UsageError(
            f"only nodes of one tree can be put beside each other: {short_id(first)} is of the "
            f"tree {short_id(trees[0])}, {short_id(second)} of {short_id(trees[1])}"
        )
    return first, second


async def _compared(app: App, arguments: ParsedArguments) -> BranchComparison:
    one, two = two_references(arguments)
    first, second = await _of_one_tree(app, one, two)
    view = await app.loom.open(first, read_only=True)
    try:
        await view.loom_tree.load_all()
        return view.compare(first, second)
    finally:
        await view.aclose()


async def weave(app: App, arguments: ParsedArguments) -> int:
    """Make one child out of two branches."""
    if arguments.flag("list"):
        return _list_paragraphs(await _compared(app, arguments), arguments)
    given = arguments.text("paragraphs")
    picks = None if given is None else read_picks(given)
    one, two = two_references(arguments)
    first, second = await _of_one_tree(app, one, two)
    view = await app.loom.open(first)
    await view.loom_tree.load_all()
    _check_picks(picks or (), view.compare(first, second))
    node = view.weave(first, second, picks)
    await view.save()
    # In this very tree: by its id alone, a parent that a fork shares is that of another tree.
    tree = view.loom_tree
    number = tree.children(tree.resolve(node.parent_id or "")).index(node.id) + 1
    await view.aclose()
    if arguments.flag("json"):
        write_pretty({"number": number, **node_data(node)})
        return OK
    write_branch(number, node)
    tell("it is the active node now; `weft loom continue` continues there")
    return OK


def _check_picks(picks: Sequence[tuple[int, int]], found: BranchComparison) -> None:
    sides = (paragraphs(found.first_text), paragraphs(found.second_text))
    for side, number in picks:
        if number >= len(sides[side]):
            raise UsageError(
                f"there is no paragraph {'ab'[side]}{number + 1}; the first branch has "
                f"{len(sides[0])}, the second {len(sides[1])}"
            )


def _list_paragraphs(found: BranchComparison, arguments: ParsedArguments) -> int:
    named: list[tuple[str, str]] = [
        (f"{letter}{number}", text)
        for letter, whole in (("a", found.first_text), ("b", found.second_text))
        for number, text in enumerate(paragraphs(whole), start=1)
    ]
    if arguments.flag("json"):
        listed: list[dict[str, Any]] = [{"name": name, "text": text} for name, text in named]
        write_pretty(listed)
        return OK
    for name, text in named:
        line = f"{name}  {one_line(text)}"
        write_line(fit(line, width()) if is_terminal() else line)
    return OK


def read_picks(given: str) -> list[tuple[int, int]]:
    """Paragraphs as the command line names them: `a1,b2`.

    Raises:
        UsageError: something else stands there.
    """
    picks: list[tuple[int, int]] = []
    for word in given.replace(",", " ").split():
        side, number = "ab".find(word[0].lower()), word[1:]
        if side < 0 or not number.isdecimal() or int(number) < 1:
            raise UsageError(
                f"--paragraphs takes names as a1,b2, not {word!r}; `weft loom weave A B --list` "
                "shows them"
            )
        picks.append((side, int(number) - 1))
    if not picks:
        raise UsageError("--paragraphs takes names as a1,b2, and at least one of them")
    return picks
