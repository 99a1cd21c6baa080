"""The graph for other programs: JSON, DOT (Graphviz) and Mermaid."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from weft.decisions.facts import DecisionNode
from weft.decisions.graph import DecisionGraph
from weft.decisions.narrative import shown_status

FORMAT: Final = "weft-decisions"
VERSION: Final = 1
SHAPES: Final = {
    "goal": ("doubleoctagon", "([", "])"),
    "decision": ("diamond", "{{", "}}"),
    "option": ("box", "[", "]"),
    "action": ("cds", "[/", "/]"),
    "outcome": ("ellipse", "([", "])"),
    "observation": ("note", "[", "]"),
    "revisit": ("hexagon", "{{", "}}"),
    "constraint": ("octagon", "[[", "]]"),
}
"""The shape of each kind in DOT, and the marks around it in Mermaid."""
_OVER: Final = ("superseded", "abandoned")


def to_json(graph: DecisionGraph) -> str:
    """All nodes and edges."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "nodes": [
            {**msgspec.to_builtins(node), "session_id": graph.sessions[node.id]}
            for node in graph.nodes.values()
        ],
        "edges": [msgspec.to_builtins(edge) for edge in graph.edges.values()],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def to_dot(graph: DecisionGraph) -> str:
    """A digraph for Graphviz."""
    lines = ["digraph decisions {", "  rankdir=LR;", '  node [fontname="sans-serif"];']
    for node in graph.nodes.values():
        shape = SHAPES.get(node.kind, ("box", "", ""))[0]
        style = ', style="dashed"' if node.status in _OVER else ""
        label = f"{_quoted(f'{node.kind}: {node.title}')}\\n({_quoted(shown_status(graph, node))})"
        lines.append(f'  {_name(node)} [shape={shape}, label="{label}"{style}];')
    for edge in graph.edges.values():
        if edge.source in graph.nodes and edge.target in graph.nodes:
            ends = f"{_name(graph.nodes[edge.source])} -> {_name(graph.nodes[edge.target])}"
            lines.append(f'  {ends} [label="{_quoted(edge.kind)}"];')
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(graph: DecisionGraph) -> str:
    """A flowchart for Mermaid."""
    lines = ["flowchart LR"]
    for node in graph.nodes.values():
        _, first, last = SHAPES.get(node.kind, ("box", "[", "]"))
        label = _plain(f"{node.kind}: {node.title} ({shown_status(graph, node)})")
        lines.append(f'  {_name(node)}{first}"{label}"{last}')
    for edge in graph.edges.values():
        if edge.source in graph.nodes and edge.target in graph.nodes:
            source, target = _name(graph.nodes[edge.source]), _name(graph.nodes[edge.target])
            lines.append(f"  {source} -->|{_plain(edge.kind)}| {target}")
    over = [_name(node) for node in graph.nodes.values() if node.status in _OVER]
    if over:
        lines += [
            "  classDef over stroke-dasharray: 4 4,opacity:0.6",
            f"  class {','.join(over)} over",
        ]
    return "\n".join(lines) + "\n"


def _name(node: DecisionNode) -> str:
    # Ids are data: one from elsewhere must not end the statement that it stands in.
    return re.sub(r"[^A-Za-z0-9_]", "_", node.id)


def _quoted(text: str) -> str:
    """Text inside a quoted string of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _plain(text: str) -> str:
    """Text inside a quoted label of Mermaid, which has entities and no escapes."""
    # The mark of an entity is one itself: `#12;` in a title is no character.
    marks = {
        "#": "#35;",
        "&": "#amp;",
        '"': "#quot;",
        "<": "#lt;",
        ">": "#gt;",
        "|": "#124;",
        "`": "#96;",
    }
    return "".join(marks.get(letter, letter) for letter in text.replace("\n", " "))
