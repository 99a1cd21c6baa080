"""Environment notes: what the model is told of the place where it works, and when.

The date, the git branch, the permission mode and the like change while a session lasts.  They never
stand in the prefix, whose bytes vendors cache: all of them go with the first message, and later
only those that have changed.  What was told is kept in the note, so that a line knows what its
model knows, also after a restart, on another branch and behind a compaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ids import NodeId
from weft.tree import ConversationTree

INSTRUCTIONS_VERSION: Final = "instructions"
"""The subject whose value names a version of the instructions; every other value but the next is a
sentence.
"""
MEMORY_VERSION: Final = "memory"
"""The same of what the user asked to be remembered."""
DECISION_SUBJECT: Final = "decision "
"""What subjects begin with that are decisions of the project."""
DECISIONS_HEADING: Final = "Decisions of this project (do not propose again what was rejected):"


def told_on(
    tree: ConversationTree,
    tip: NodeId | None,
    known: tuple[NodeId | None, Mapping[str, str]] | None = None,
) -> Mapping[str, str]:
    """What the model was told on the line that ends at `tip`, by subject; empty when nothing.

    What a summary stands for is forgotten with the messages that it was told with.  `known` is what
    holds at some node since the newest compaction: the walk up the line can end there, so that a
    turn costs the same however long the line is.
    """
    compaction = tree.compaction_for(tip)
    # A note at the last node that was summarized is still sent: it comes after the summary.
    first = 0 if compaction is None else tree.nodes[compaction.upto].depth
    told = tree.notes_by_node.environments
    for node in tree.ancestors(tip):
        if known is not None and node == known[0]:
            return known[1]
        if node in told:
            return told[node]
        if tree.nodes[node].depth <= first:
            break
    return {}


def environment_text(
    now: Mapping[str, str], told: Mapping[str, str], instructions: str, memory: str = ""
) -> str:
    """The note that brings a model from what it was told to what is so now; empty when it
    knows all.
    """
    versions = (INSTRUCTIONS_VERSION, MEMORY_VERSION)
    sentences = {subject: text for subject, text in now.items() if subject not in versions}
    new = {subject: text for subject, text in sentences.items() if told.get(subject) != text}
    changed = [text for subject, text in new.items() if not subject.startswith(DECISION_SUBJECT)]
    decided = [f"- {text}" for name, text in new.items() if name.startswith(DECISION_SUBJECT)]
    if decided:
        changed += [DECISIONS_HEADING, *decided]
    pieces = []
    if changed:
        lines = "\n".join(changed)
        pieces.append(f"<environment>\n{lines}\n</environment>")
    if now.get(INSTRUCTIONS_VERSION) != told.get(INSTRUCTIONS_VERSION):
        pieces.append(_changed_instructions(instructions))
    if now.get(MEMORY_VERSION, "") != told.get(MEMORY_VERSION, ""):
        pieces.append(_changed_memory(memory))
    return "\n\n".join(pieces)


def _changed_instructions(text: str) -> str:
    if not text:
        return (
            "<environment>\nThe instruction files were removed: what the system prompt has "
            "of them no longer counts.\n</environment>"
        )
    return (
        "<environment>\nThe instruction files have changed. These count now, in place of those in "
        f"the system prompt:\n\n{text}\n</environment>"
    )


def _changed_memory(text: str) -> str:
    if not text:
        return (
            "<environment>\nThe user has had the memory emptied: what the system prompt has of it "
            "no longer counts.\n</environment>"
        )
    return (
        "<environment>\nThe memory has changed. This counts now, in place of what you were given "
        f"of it before:\n\n{text}\n</environment>"
    )
