"""Notes on decisions.  For the model, one line for each, what was rejected first; for the user,
that a correction was noted.

A token is taken for four characters, as everywhere else.  What does not fit is left out, whole:
half a reason misleads.  What the user is told is stored, so that every client can show it; a chat
has a key for what it asks, and shows the key in place of the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from weft.decisions.entry import shortened
from weft.decisions.facts import DecisionNode
from weft.decisions.graph import DecisionGraph
from weft.ids import DecisionId

TOKEN: Final = 4
LONGEST_LINE: Final = 420
"""Characters of one line."""
SHORTEST_LINE: Final = 40
"""Characters that no line does without: an id and the fewest words."""
LONGEST_PART: Final = 140
PATH_HEADING: Final = "Decided before about this file:"
_TAG: Final = re.compile(
    r"<(?=\s*/\s*[a-z]|\s*(?:environment|system|user|assistant|human|instructions|tool\w*)\b)",
    re.IGNORECASE,
)
_NOTED: Final = re.compile(
    r"Noted as a proposed decision: (.+) \((\S+)\)\. Keep it: weft decisions accept (\S+)",
    re.DOTALL,
)


def note_line(graph: DecisionGraph, node: DecisionNode) -> str:
    """A node as the model reads it, in one line."""
    pieces = [_rejected(graph, node), _held(graph, node)]
    text = " ".join(piece for piece in pieces if piece)
    return without_tags(f"{_cut(text, LONGEST_LINE)} [{_about(node)}]")


def path_note(
    graph: DecisionGraph, nodes: Iterable[DecisionNode], tokens: int
) -> tuple[str, list[DecisionNode]]:
    """The block inside a tool's result, and the nodes that are in it; empty where none fits."""
    taken: list[DecisionNode] = []
    lines = [f"[{PATH_HEADING}"]
    room = tokens * TOKEN - len(lines[0]) - 1
    for node in nodes:
        if room < SHORTEST_LINE:
            break
        line = note_line(graph, node)
        if len(line) + 1 > room and not taken and room > 120:
            # Half of this room is better than nothing: the id leads to the rest.
            short = _cut(_rejected(graph, node) or node.title, room - 20)
            line = without_tags(f"{short} [{node.id}]")
        if len(line) + 1 > room:
            continue
        room -= len(line) + 1
        taken.append(node)
        lines.append(line)
    return ("\n".join(lines) + "]", taken) if taken else ("", [])


def _rejected(graph: DecisionGraph, node: DecisionNode) -> str:
    if node.status == "abandoned":
        said = graph.reasons.get(node.id) or node.why
        why = f": {_part(said)}" if said else ""
        return f"Tried and given up: {node.title}{why}."
    found = graph.options(node.id, "rejected")
    if not found:
        return ""
    named = [_with_reason(option.title, edge.rationale or option.why) for option, edge in found]
    return f"Rejected: {'; '.join(named)}."


def _held(graph: DecisionGraph, node: DecisionNode) -> str:
    if node.status == "abandoned":
        return ""
    label = {"decision": "Decided", "constraint": "Standing order", "goal": "Goal"}
    # Only the user gives orders: what a model calls one, another has no reason to follow.
    is_order = node.by != "model" or node.id in graph.of_user
    start = label.get(node.kind, "") if is_order or node.kind != "constraint" else ""
    start = start or node.kind.capitalize()
    chosen = [option.title for option, _ in graph.options(node.id, "chosen")]
    more = f" ({', '.join(chosen)})" if chosen and not rejects_same(node, chosen) else ""
    why = f": {_part(node.why)}" if node.why else ""
    return f"{start}: {node.title}{more}{why}."


def rejects_same(node: DecisionNode, chosen: list[str]) -> bool:
    """Whether the title says already what was chosen."""
    return all(option.lower() in node.title.lower() for option in chosen)


def _about(node: DecisionNode) -> str:
    pieces: list[str] = [node.id]
    if node.status != "active":
        pieces.append(node.status)
    pieces.append("by the user" if node.by == "user" else f"by {node.by}")
    if node.scope:
        pieces.append(_cut(" ".join(node.scope), 80))
    return ", ".join(pieces)


def without_tags(line: str) -> str:
    """A line that cannot end the note it stands in: titles are words of models and documents."""
    return _TAG.sub("‹", line)


def _with_reason(title: str, why: str) -> str:
    return f"{title} ({_part(why)})" if why else title


def _part(text: str) -> str:
    return _cut(" ".join(text.split()).rstrip("."), LONGEST_PART)


def _cut(text: str, most: int) -> str:
    return shortened(text, most) if len(text) > most else text


def noted_text(title: str, id: DecisionId) -> str:
    """What a session says of a decision that it has noted."""
    return f"Noted as a proposed decision: {title} ({id}). Keep it: weft decisions accept {id}"


def noted_title(text: str) -> str | None:
    """The title of the decision that a sentence says was noted; None for any other sentence."""
    found = _NOTED.fullmatch(text)
    return found[1] if found is not None and found[2] == found[3] else None
