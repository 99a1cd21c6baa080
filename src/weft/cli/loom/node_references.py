"""Nodes as they are named on a command line: by the beginning of an id, or from the active node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.cli.loom.given_text import is_unicode
from weft.cli.parse import ParsedArguments
from weft.errors import AmbiguousId, NodeNotFound, UsageError
from weft.ids import NodeId
from weft.loom import GenerationStore

PREFIX: Final = "nod_"
SHORT: Final = 8
"""Characters of an id that lists show; it is random from its beginning."""
SHORT_TIMED: Final = 14
"""The same of an id that begins with the time it was made: those of one moment differ behind it."""
_TIMED: Final = 26
LONGEST_FOREIGN: Final = 20
"""Characters of an id of another program's that lists show."""
BY_ID: Final = "id:"
"""Before an id that would be taken for the number of a child."""
_LONGEST_NUMBER: Final = 3
"""Digits of the number of a child; a longer one that no child has may begin an id."""
_SHORTEST: Final = 4
"""Characters that an id is found by where no letter is among them."""
NO_TREES: Final = "there are no trees yet; `weft loom new 'Once upon a time'` makes one"


def short_id(node_id: str) -> str:
    """An id as lists show it; a beginning of it that a command takes back."""
    if node_id.startswith("ses_"):
        # A fork of a tree has no root of its own; it is called by its session, and by all of that.
        return node_id
    if is_number(node_id):
        return BY_ID + node_id
    if not node_id.startswith(PREFIX):
        return node_id[:LONGEST_FOREIGN]
    digits = node_id[len(PREFIX) :]
    return digits[: SHORT_TIMED if len(digits) == _TIMED else SHORT]


def is_number(reference: str) -> bool:
    """Whether this is the number of a child, and nothing else."""
    return reference.isdecimal() and len(reference) <= _LONGEST_NUMBER


async def find_node(store: GenerationStore, reference: str | None) -> NodeId:
    """The node that is meant.

    None and `.` are the active node, `..` is its parent, `/` the root of its tree, a number the
    child of that number; `../2` and `ID/1` go on from there.  `id:2` is the node of that very id.

    Raises:
        UsageError: there is no active node, or none that stands there.
        NodeNotFound, AmbiguousId: no id begins so, or several do.
    """
    if reference is None:
        return await active_node(store)
    if not is_unicode(reference):
        raise NodeNotFound(reference)
    if is_from_active(reference):
        return await _from_active(store, reference)
    first, *steps = reference.split("/")
    if not steps:
        return await _by_id(store, reference)
    try:
        # Whole first: the ids of other programs may have anything in them.
        return await _by_id(store, reference)
    except NodeNotFound:
        at = await _by_id(store, first)
    return await _walked(store, at, steps)


def is_from_active(reference: str) -> bool:
    """Whether a node is named by steps from the active one."""
    first, *steps = reference.split("/")
    return first in (".", "..") or (first == "" and bool(steps)) or first.isdecimal()


async def _from_active(store: GenerationStore, reference: str) -> NodeId:
    try:
        at = await active_node(store)
        if reference.startswith("/"):
            at = (await store.root(at)).id
        return await _walked(store, at, reference.split("/"))
    except UsageError:
        # A long number may be an id: that of another program, or the beginning of one of ours. A
        # short one never is: whoever miscounts would change a node that is anywhere.
        if is_number(reference.partition("/")[0]):
            raise
        try:
            return await _by_id(store, reference)
        except (NodeNotFound, AmbiguousId):
            pass
        raise


async def _walked(store: GenerationStore, at: NodeId, steps: Sequence[str]) -> NodeId:
    for step in steps:
        at = await _step(store, at, step)
    return at


async def active_node(store: GenerationStore) -> NodeId:
    """Where the tree that was used last was left.

    Raises:
        UsageError: there is no tree.
    """
    found = await store.active_node()
    if found is None:
        raise UsageError(NO_TREES)
    return found


async def _by_id(store: GenerationStore, reference: str) -> NodeId:
    exact = reference.removeprefix(BY_ID)
    if exact != reference and exact in await store.nodes_by_ids([exact]):
        return NodeId(exact)
    if len(reference) < _SHORTEST and not any(map(str.isalpha, reference)):
        raise NodeNotFound(reference)
    try:
        return await store.resolve_node_id(reference)
    except NodeNotFound:
        # As sessions are found without `ses_`.
        if not reference or reference.startswith(PREFIX):
            raise
    try:
        return await store.resolve_node_id(PREFIX + reference)
    except NodeNotFound:
        raise NodeNotFound(reference) from None


async def child_of(store: GenerationStore, at: NodeId, number: int) -> NodeId:
    """The child of that number.

    Raises:
        UsageError: there is none.
    """
    return await _step(store, at, f"{number}")


async def _step(store: GenerationStore, at: NodeId, step: str) -> NodeId:
    if step in ("", "."):
        return at
    if step == "..":
        parent = (await store.get(at)).parent_id
        if parent is None:
            raise UsageError(f"{short_id(at)} is the root of its tree; there is nothing above it")
        return parent
    children = await store.children(at)
    if not step.isdecimal() or not 1 <= int(step) <= len(children):
        is_id = is_number(step) and bool(await store.nodes_by_ids([step]))
        hint = f"; `{BY_ID}{step}` is the node of that id" if is_id else ""
        more = "" if children else await _instead(store, at)
        raise UsageError(_no_branch(step, at, len(children)) + more + hint)
    return children[int(step) - 1].id


def _no_branch(step: str, at: NodeId, count: int) -> str:
    have = {0: "has no children", 1: "has 1 child"}.get(count, f"has {count} children")
    return f"there is no branch {step!r}: {short_id(at)} {have}"


async def _instead(store: GenerationStore, at: NodeId) -> str:
    """What there is to do where there are no children."""
    if (await store.get(at)).parent_id is None:
        return "; `weft loom continue` grows some"
    return "; `../N` is a sibling of it, `weft loom select ..` goes up"


def one_reference(arguments: ParsedArguments) -> str | None:
    """The node that a command names; None where it names none.

    Raises:
        UsageError: it names several.
    """
    if len(arguments.words) > 1:
        raise UsageError(f"`weft {arguments.verb}` takes one node, not {len(arguments.words)}")
    return arguments.words[0] if arguments.words else None


def two_references(arguments: ParsedArguments) -> tuple[str, str]:
    """The two nodes that a command names.

    Raises:
        UsageError: it does not name two.
    """
    if len(arguments.words) != 2:
        raise UsageError(
            f"`weft {arguments.verb}` takes two nodes, as in `weft {arguments.verb} 1 2`"
        )
    return arguments.words[0], arguments.words[1]
