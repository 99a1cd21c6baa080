"""Decisions about the line: branches, edits of messages, marks, checkpoints and compaction.

The line is the path from the root of the tree to the head: what the model reads.
"""

from __future__ import annotations

from typing import assert_never

from weft.errors import UsageError
from weft.events import CompactionUndone, NodeEdited, NodeMarked, SettingChanged
from weft.ids import NodeId
from weft.session.commands import (
    BranchAt,
    CompactNow,
    DeleteBranch,
    EditNode,
    ExcludeNode,
    MarkNode,
    RenameBranch,
    SetCheckpoint,
    SwitchBranch,
    ToggleCollapse,
    UndoCompaction,
)
from weft.session.decide.base import (
    DecidedCommand,
    DecisionContext,
    HeadCommand,
    LineCommand,
    NameCommand,
    refuse_while_running,
)
from weft.session.decide.branches import branch_at, checkpoint, delete, rename, switch
from weft.state import SessionState
from weft.tree import EXCLUDED


def decide_line(
    command: LineCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command about the line does."""
    match command:
        case EditNode() | BranchAt() | SwitchBranch():
            return _move_head(command, state, context)
        case RenameBranch() | DeleteBranch() | SetCheckpoint():
            return _name_branch(command, state)
        case MarkNode(node=node, mark=mark, value=value):
            state.tree.require(node)
            return DecidedCommand(facts=(NodeMarked(node=node, mark=mark, value=value),))
        case ExcludeNode(node=node, is_excluded=is_excluded):
            return _exclude(node, state, is_excluded=is_excluded)
        case ToggleCollapse(node=node):
            return _toggle_all(state) if node is None else _toggle(node, state)
        case CompactNow(focus=focus):
            return _compact(focus, state, context)
        case UndoCompaction():
            return _undo_compaction(state, context)
        case _:
            assert_never(command)


def _exclude(node: NodeId, state: SessionState, *, is_excluded: bool) -> DecidedCommand:
    """A message goes with the results of its calls, so that no call is sent without one.

    Raises:
        UsageError: there is no such message, or its calls have no results yet.
    """
    state.tree.require(node)
    if state.tree.unsettled(node) and state.turn.open is not None:
        raise UsageError("the tool calls of this message still run: wait for their results")
    marked = NodeMarked(node=node, mark=EXCLUDED, value=True if is_excluded else None)
    return DecidedCommand(facts=(marked,))


def _move_head(
    command: HeadCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    refuse_while_running(state, context, "change the line it works on")
    match command:
        case EditNode(node=node, parts=parts):
            revision = state.tree.require(node).revision + 1
            return DecidedCommand(facts=(NodeEdited(node=node, revision=revision, parts=parts),))
        case BranchAt(node=node, name=name):
            facts, branch = branch_at(state, node, name)
            return DecidedCommand(facts=tuple(facts), answer=branch)
        case SwitchBranch(name=name):
            facts, branch = switch(state, name)
            return DecidedCommand(facts=tuple(facts), answer=branch)
        case _:
            assert_never(command)


def _name_branch(command: NameCommand, state: SessionState) -> DecidedCommand:
    # Also while a turn runs: it knows its place by the node it stands on, and not by a name.
    match command:
        case RenameBranch(name=name, new_name=new_name):
            return DecidedCommand(facts=tuple(rename(state, name, new_name)))
        case DeleteBranch(name=name):
            return DecidedCommand(facts=tuple(delete(state, name)))
        case SetCheckpoint(label=label):
            facts, chosen = checkpoint(state, label)
            return DecidedCommand(facts=tuple(facts), answer=chosen)
        case _:
            assert_never(command)


def _compact(focus: str, state: SessionState, context: DecisionContext) -> DecidedCommand:
    refuse_while_running(state, context, "compact it")
    if state.tree.head is None:
        raise UsageError("there is nothing to compact: the session is empty")
    return DecidedCommand(answer=state.seq, then="compact", focus=focus)


def _undo_compaction(state: SessionState, context: DecisionContext) -> DecidedCommand:
    refuse_while_running(state, context, "undo the compaction")
    compaction = state.tree.undoable_for(state.tree.head)
    if compaction is None:
        raise UsageError("nothing on this line was compacted")
    undone = CompactionUndone(compaction=compaction.at.seq, log=compaction.at.log)
    return DecidedCommand(facts=(undone,))


def _toggle(node: NodeId, state: SessionState) -> DecidedCommand:
    """Tool calls are folded unless unfolded, by a mark of their own or by the session's setting."""
    marks = state.tree.require(node).marks
    unfolded = not marks.get("unfolded", state.settings.get("unfolded", False))
    marked = NodeMarked(node=node, mark="unfolded", value=unfolded)
    return DecidedCommand(facts=(marked,), answer=unfolded)


def _toggle_all(state: SessionState) -> DecidedCommand:
    """Unfold everything if anything is folded, else fold everything."""
    marked = [each for each, skeleton in state.tree.nodes.items() if "unfolded" in skeleton.marks]
    unfolded = not state.settings.get("unfolded", False) or any(
        not state.tree.nodes[each].marks["unfolded"] for each in marked
    )
    # Marks of single messages would outlive the new setting, so they go with it.
    cleared = tuple(NodeMarked(node=each, mark="unfolded", value=None) for each in marked)
    setting = SettingChanged(name="unfolded", value=unfolded or None)
    return DecidedCommand(facts=(setting, *cleared), answer=unfolded)
