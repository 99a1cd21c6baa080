"""Changes of a text tree: facts, and what takes each of them back.

Every function here writes to a `LoomTree` and returns at once; the tree sees to the rest.  Text is
never overwritten: an edit is a new revision or a new node, a deletion hides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from weft.errors import UsageError
from weft.events import (
    Fact,
    HeadMoved,
    MovedNode,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    RefMoved,
    SettingChanged,
    SubtreeDeleted,
    SubtreeRestored,
)
from weft.ids import NodeId, new_text_id
from weft.loom.node import CONTEXT, LOOM, stored_marks
from weft.loom.trees.loom_tree import LoomTree
from weft.messages import Node, Part, Role, Text, Usage, clean_text, clean_value


def text_parts(text: str) -> tuple[Part, ...]:
    """A text as parts of a message; an empty one has none."""
    return (Text(text=clean_text(text)),) if text else ()


def text_node(
    node_id: NodeId,
    text: str,
    *,
    parent: NodeId | None,
    parent_revision: int = 0,
    model: str = "",
    strategy: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
) -> Node:
    """A node of text as it is stored."""
    how = {"strategy": strategy, "max_tokens": max_tokens, "temperature": temperature}
    made = {name: value for name, value in how.items() if value is not None}
    marks: dict[str, Any] = clean_value(stored_marks(metadata or {}))
    role: Role = "assistant" if model else "user"
    return Node(
        id=node_id,
        role=role,
        parts=text_parts(text),
        parent=parent,
        parent_revision=parent_revision,
        model=model,
        usage=usage,
        metadata={LOOM: made, **marks},
    )


def add_nodes(tree: LoomTree, nodes: Sequence[Node]) -> list[NodeId]:
    """Add nodes, each after its parent; undone as one."""
    ids = [node.id for node in nodes]
    tops = [node.id for node in nodes if node.parent not in ids]
    tree.write(
        [NewMessage(node=node, advance=False) for node in nodes],
        undo=lambda: [SubtreeDeleted(node=top) for top in tops],
    )
    return ids


def add_child(tree: LoomTree, parent: NodeId, text: str, **how: Any) -> NodeId:
    """Add a child that goes on from its parent's newest revision."""
    held = tree.require(parent)
    node = text_node(new_text_id(), text, parent=parent, parent_revision=held.revision, **how)
    return add_nodes(tree, [node])[0]


def revise(tree: LoomTree, node: NodeId, text: str, carries: Sequence[NodeId] = ()) -> None:
    """Give a node another text, as a new revision.  Its children keep the one that they grew from,
    but for those named: theirs is the line that was edited.
    """
    _check_plain(tree, node)
    before = tree.text(node)
    tree.write(
        [_revision(tree, node, text, carries)],
        undo=lambda: [_revision(tree, node, before, carries)],
    )


def revise_line(tree: LoomTree, changed: Mapping[NodeId, str], tip: NodeId) -> None:
    """Give several nodes of a line other texts; the line down to `tip` goes on from them."""
    _check_plain(tree, *changed)
    line = tree.line(tip)
    below = dict(pairwise(line))
    before = {node: text for node, text in tree.line_texts(tip) if node in changed}

    def facts(texts: Mapping[NodeId, str]) -> list[Fact]:
        return [
            _revision(tree, node, text, (below[node],) if node in below else ())
            for node, text in texts.items()
        ]

    tree.write(facts(changed), undo=lambda: facts(before))


def _check_plain(tree: LoomTree, *nodes: NodeId) -> None:
    """Refuse to write text over a message that holds more.

    Raises:
        UsageError: it does.
    """
    for node in nodes:
        if not tree.words.is_plain(node, tree.require(node)):
            raise UsageError(
                f"the message {node!r} holds more than text (calls of tools, pictures, files or "
                "thinking), which an edit here would lose; edit it in its session, or fork the line"
            )


def _revision(tree: LoomTree, node: NodeId, text: str, carries: Sequence[NodeId]) -> NodeEdited:
    revision = tree.tree.nodes[node].revision + 1
    return NodeEdited(node=node, revision=revision, parts=text_parts(text), carries=tuple(carries))


def mark(tree: LoomTree, node: NodeId, marks: Mapping[str, Any]) -> None:
    """Set marks of a node; None removes one."""
    before = {name: tree.marks(node).get(name) for name in marks}

    def facts(values: Mapping[str, Any]) -> list[Fact]:
        return [NodeMarked(node=node, mark=name, value=value) for name, value in values.items()]

    tree.write(facts(marks), undo=lambda: facts(before))


def change_settings(tree: LoomTree, settings: Mapping[str, Any]) -> None:
    """Set settings of the tree; None removes one."""
    before = {name: tree.setting(name) for name in settings}

    def facts(values: Mapping[str, Any]) -> list[Fact]:
        return [SettingChanged(name=name, value=value) for name, value in values.items()]

    tree.write(facts(settings), undo=lambda: facts(before))


def delete(tree: LoomTree, node: NodeId) -> int:
    """Hide a node and all below it; returns how many were hidden."""
    tree.require(node)
    gone = tree.descendant_count(node) + 1
    ends, back = _ends_below(tree, node)
    hide: list[Fact] = [SubtreeDeleted(node=node), *ends]
    show: list[Fact] = [SubtreeRestored(node=node)]
    if _is_listed(tree, node):
        # A list reads one row of each tree, and must not show one whose root is gone, nor by it.
        other = _other_root(tree, node)
        name, gone_as = ("mode", "loom_deleted") if other is None else ("loom_root", other)
        hide.append(SettingChanged(name=name, value=gone_as))
        show.append(SettingChanged(name=name, value=tree.setting(name)))
    tree.write(
        hide,
        undo=lambda: [
            *show,
            *(there for here, there in zip(ends, back, strict=True) if _is_at(tree, here)),
        ],
    )
    return gone


def _is_listed(tree: LoomTree, node: NodeId) -> bool:
    """Whether a node is the root of a tree of text; the mode of other sessions is their own."""
    return tree.parent(node) is None and str(tree.setting("mode", "")).startswith("loom")


def _other_root(tree: LoomTree, node: NodeId) -> NodeId | None:
    """The root that a tree is named by where this one is not seen."""
    if tree.root_id != node and tree.find(tree.root_id) is not None:
        return tree.root_id
    return next((root for root in tree.tree.children(None) if root != node), None)


def _is_at(tree: LoomTree, moved: HeadMoved | RefMoved) -> bool:
    """Whether it still stands where it was moved to."""
    if isinstance(moved, HeadMoved):
        return tree.tree.head == moved.node
    ref = tree.tree.refs.get(moved.name)
    return ref is not None and ref.node == moved.node


def _ends_below(
    tree: LoomTree, node: NodeId
) -> tuple[list[HeadMoved | RefMoved], list[HeadMoved | RefMoved]]:
    """What takes the head and the branches that end below a node above it, and back."""
    held, above = tree.tree, tree.tree.nodes[node].parent
    ends: list[HeadMoved | RefMoved] = []
    back: list[HeadMoved | RefMoved] = []
    if held.head is not None and node in held.walk_up(held.head):
        ends.append(HeadMoved(node=above))
        back.append(HeadMoved(node=held.head))
    for name, ref in held.refs.items():
        # A checkpoint stays: it stands for the files of its moment as well.
        if ref.ref == "branch" and ref.node is not None and node in held.walk_up(ref.node):
            ends.append(RefMoved(name=name, node=above))
            back.append(RefMoved(name=name, node=ref.node))
    return ends, back


def restore(tree: LoomTree, node: NodeId) -> int:
    """Show a deleted node and what is below it again; returns how many are shown.

    Raises:
        UsageError: it was not deleted.
    """
    if node not in tree.tree.deleted:
        raise UsageError(f"{node!r} was not deleted")
    show: list[Fact] = [SubtreeRestored(node=node)]
    hide: list[Fact] = [SubtreeDeleted(node=node)]
    if _is_listed(tree, node):
        # The first of the roots that are seen names the tree.
        seen = [root for root in tree.tree.roots if root == node or tree.find(root) is not None]
        show += [
            SettingChanged(name="mode", value="loom"),
            SettingChanged(
                name="loom_root", value=None if seen[0] == tree.tree.roots[0] else seen[0]
            ),
        ]
        hide += [
            SettingChanged(name="mode", value=tree.setting("mode", "loom")),
            SettingChanged(name="loom_root", value=tree.setting("loom_root")),
        ]
    tree.write(show, undo=lambda: hide)
    # Below a parent that is deleted itself it stays unseen.
    return tree.descendant_count(node) + 1 if tree.find(node) is not None else 0


def split(tree: LoomTree, node: NodeId, position: int) -> NodeId:
    """Cut a node in two; it keeps its id for the first part, and the second gets its children.

    Raises:
        UsageError: one of the parts would be empty, or it holds more than text.
    """
    held = tree.require(node)
    _check_plain(tree, node)
    text = tree.text(node)
    if not 0 < position < len(text):
        raise UsageError(f"a node of {len(text)} characters cannot be split at {position}")
    head = tree.words.head(node, held)
    how = tree.marks(node).get(LOOM)
    tail = text_node(
        new_text_id(),
        text[position:],
        parent=node,
        parent_revision=held.revision + 1,
        model=head.model,
        metadata={"split_from": node},
        **(dict(how) if isinstance(how, Mapping) else {}),
    )
    # Only those that go on from this text: others grew from an earlier one, which stays.
    moves = tuple(
        MovedNode(node=child)
        for child in held.children
        if tree.tree.nodes[child].parent_revision == held.revision
    )
    fact = NodeSplit(
        node=node,
        revision=held.revision + 1,
        tail=tail,
        parts=text_parts(text[:position]),
        moves=moves,
    )
    tree.write([fact], undo=lambda: _joined(tree, node, tail.id))
    return tail.id


def join(tree: LoomTree, node: NodeId) -> NodeId:
    """Join a node with its parent, which takes its text and its children; returns the parent.

    Raises:
        UsageError: it is a root, or one of the two holds more than text.
    """
    held = tree.require(node)
    parent = held.parent
    if parent is None:
        raise UsageError("a root has no parent to be joined with")
    _check_plain(tree, parent, node)
    before, nodes = tree.text(parent), tree.tree.nodes
    moved = [MovedNode(node=each, revision=nodes[each].parent_revision) for each in held.children]
    tree.write(
        _joined(tree, parent, node), undo=lambda: [_parted(tree, parent, before, node, moved)]
    )
    return parent


def _joined(tree: LoomTree, parent: NodeId, child: NodeId) -> list[Fact]:
    """The join, after a revision for each other text that a child of `child` goes on from."""
    nodes = tree.tree.nodes
    held, newest = nodes[child], nodes[parent].revision
    above = tree.text(parent, held.parent_revision)
    # The parent's present text, which is not always the one that the child grew from.
    joined = tree.text(parent) + tree.text(child)
    read = {each: above + tree.text(child, nodes[each].parent_revision) for each in held.children}
    texts = [*dict.fromkeys(text for text in read.values() if text != joined), joined]
    numbers = {text: newest + at for at, text in enumerate(texts, 1)}
    earlier = [
        NodeEdited(node=parent, revision=numbers[text], parts=text_parts(text))
        for text in texts[:-1]
    ]
    join = NodesJoined(
        node=parent,
        revision=numbers[joined],
        child=child,
        parts=text_parts(joined),
        moves=tuple(MovedNode(node=each, revision=numbers[text]) for each, text in read.items()),
    )
    return [*earlier, join]


def _parted(
    tree: LoomTree, parent: NodeId, text: str, child: NodeId, moved: Sequence[MovedNode]
) -> NodeSplit:
    revision = tree.tree.nodes[parent].revision + 1
    tail = text_node(child, tree.text(child), parent=parent, parent_revision=revision)
    return NodeSplit(
        node=parent, revision=revision, tail=tail, parts=text_parts(text), moves=tuple(moved)
    )


def fork_line(tree: LoomTree, line: Sequence[NodeId], texts: Sequence[str], first: int) -> NodeId:
    """Write a line anew from its `first` node on, beside the old one; returns its last node.

    A root that is written anew stands beside the first one, in the same tree: settings and context
    are the tree's.
    """
    nodes: list[Node] = []
    parent = line[first - 1] if first else None
    revision = tree.tree.nodes[line[first]].parent_revision
    for at in range(first, len(line)):
        copied = _copy(tree, line[at], texts[at], parent, revision)
        nodes.append(copied)
        parent, revision = copied.id, 0
    add_nodes(tree, nodes)
    return nodes[-1].id


def _copy(tree: LoomTree, node: NodeId, text: str, parent: NodeId | None, revision: int) -> Node:
    known = tree.node(node)
    metadata = {name: value for name, value in known.metadata.items() if name in ("role", "label")}
    if known.role is not None:
        metadata["role"] = known.role
    if known.text != text:
        metadata["edited_from"] = node
    copied = text_node(
        new_text_id(),
        text,
        parent=parent,
        parent_revision=revision,
        model=known.model or "",
        strategy=known.strategy,
        max_tokens=known.max_tokens,
        temperature=known.temperature,
        metadata=metadata,
    )
    context = tree.marks(node).get(CONTEXT)
    if context is not None:
        copied.metadata[CONTEXT] = context
    return copied
