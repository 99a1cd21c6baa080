"""Branches and checkpoints: named places of the tree, and moving between them.  Pure.

The present line always has a name: `main`, until another is chosen.  Leaving it writes down where
it ended, so that no line is ever lost.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from weft.errors import UsageError
from weft.events import Fact, HeadMoved, RefDeleted, RefMoved, SettingChanged
from weft.ids import NodeId
from weft.state import SessionState
from weft.tree import Branch

FIRST_BRANCH: Final = "main"
LONGEST_NAME: Final = 100
REWOUND: Final = "rewound"
"""How the names of lines begin that a rewind left."""


def current_branch(state: SessionState) -> str:
    """The name of the present line."""
    return str(state.settings.get("branch", FIRST_BRANCH))


def node_at(state: SessionState, given: object) -> NodeId | None:
    """The node that a message id or an index in the history means.

    A tool's message means the answer that called, a message of the system what it was said after
    (None: the very beginning).

    Raises:
        UsageError: there is no such message.
    """
    tree = state.tree
    if isinstance(given, int) and not isinstance(given, bool):
        rows = _rows(state)
        if not -len(rows) <= given < len(rows):
            raise UsageError(f"there is no message {given}; the history has {len(rows)}")
        return rows[given]
    for node, skeleton in tree.nodes.items():
        if given == node or given in skeleton.calls:
            return node
    raise UsageError(f"there is no message {given!r} in this session")


def _rows(state: SessionState) -> list[NodeId | None]:
    """For each message of the present line, as people read it, the node that it belongs to."""
    tree = state.tree
    notes = Counter(note.node for note in tree.notes)
    rows: list[NodeId | None] = [None] * notes[None]
    for node in tree.line(tree.head):
        rows += [node] * (1 + len(tree.nodes[node].results) + notes[node])
    return rows


def branches(state: SessionState) -> list[Branch]:
    """Every branch; the present one ends at the head."""
    current = current_branch(state)
    ends = {name: ref.node for name, ref in state.tree.refs.items() if ref.ref == "branch"}
    ends[current] = state.tree.head
    return [
        Branch(
            name=name,
            node=node,
            is_current=name == current,
            length=_length(state, node),
        )
        for name, node in ends.items()
    ]


def _length(state: SessionState, node: NodeId | None) -> int:
    return 0 if node is None else state.tree.nodes[node].depth


def branch_at(state: SessionState, node: NodeId | None, name: str) -> tuple[list[Fact], Branch]:
    """The facts that begin a new branch at `node`."""
    if node is not None:
        state.tree.require(node)
    chosen = _new_name(state, name) if name else _next_name(state, "branch")
    facts: list[Fact] = [
        *_keep_current(state),
        SettingChanged(name="branch", value=chosen),
        RefMoved(name=chosen, node=node),
        HeadMoved(node=node),
    ]
    return facts, Branch(
        name=chosen,
        node=node,
        is_current=True,
        length=_length(state, node),
        left=left_line(state, node),
    )


def switch(state: SessionState, name: str) -> tuple[list[Fact], Branch]:
    """The facts that go on with the branch called `name`."""
    target = _existing(state, name)
    if target.is_current:
        return [], target
    facts: list[Fact] = [
        *_keep_current(state),
        SettingChanged(name="branch", value=name),
        HeadMoved(node=target.node),
    ]
    return facts, Branch(
        name=name,
        node=target.node,
        is_current=True,
        length=target.length,
        left=left_line(state, target.node),
    )


def left_line(state: SessionState, to: NodeId | None) -> NodeId | None:
    """The end of the present line, where the one that ends at `to` lacks messages of it."""
    head = state.tree.head
    return None if head is None or head in state.tree.ancestors(to) else head


def rename(state: SessionState, name: str, new_name: str) -> list[Fact]:
    """The facts that give a branch another name."""
    branch = _existing(state, name)
    chosen = _new_name(state, new_name)
    facts: list[Fact] = [RefMoved(name=chosen, node=branch.node)]
    if name in state.tree.refs:
        facts.append(RefDeleted(name=name))
    if branch.is_current:
        facts.append(SettingChanged(name="branch", value=chosen))
    return facts


def delete(state: SessionState, name: str) -> list[Fact]:
    """The facts that forget a branch's name."""
    if _existing(state, name).is_current:
        raise UsageError(f"{name!r} is the branch you are on; switch to another one first")
    return [RefDeleted(name=name)]


def checkpoint(state: SessionState, label: str) -> tuple[list[Fact], str]:
    """The facts that name the present place."""
    chosen = _new_name(state, label) if label else _next_name(state, "checkpoint")
    return [RefMoved(name=chosen, node=state.tree.head, ref="checkpoint")], chosen


def keep_line(state: SessionState, to: NodeId | None) -> list[Fact]:
    """The facts that give the present line a name before the head goes back to `to`, unless it
    stays on the line or has one.
    """
    head = state.tree.head
    if head is None or head in state.tree.ancestors(to):
        return []
    present = current_branch(state)  # its name goes along with the head
    refs = ((name, ref) for name, ref in state.tree.refs.items() if ref.ref == "branch")
    if any(name != present and ref.node == head for name, ref in refs):
        return []
    return [RefMoved(name=_next_name(state, REWOUND), node=head)]


def spare_lines(state: SessionState, to: NodeId | None) -> list[Fact]:
    """The facts that forget the names which rewinds gave to the line that ends at `to`: it is the
    present one again.
    """
    return [
        RefDeleted(name=name)
        for name, ref in state.tree.refs.items()
        if ref.ref == "branch" and ref.node == to and name.startswith(f"{REWOUND}-")
    ]


def _keep_current(state: SessionState) -> list[Fact]:
    return [RefMoved(name=current_branch(state), node=state.tree.head)]


def _existing(state: SessionState, name: str) -> Branch:
    known = {branch.name: branch for branch in branches(state)}
    if name not in known:
        raise UsageError(f"no branch {name!r}; there are {', '.join(known)}")
    return known[name]


def _new_name(state: SessionState, name: str) -> str:
    chosen = name.strip()
    if not chosen or len(chosen) > LONGEST_NAME or not chosen.isprintable():
        raise UsageError(f"{name!r} cannot be a name: use up to {LONGEST_NAME} plain characters")
    if chosen in state.tree.refs or chosen == current_branch(state):
        raise UsageError(f"the name {chosen!r} is taken")
    return chosen


def _next_name(state: SessionState, stem: str) -> str:
    number = 1
    while f"{stem}-{number}" in state.tree.refs or f"{stem}-{number}" == current_branch(state):
        number += 1
    return f"{stem}-{number}"
