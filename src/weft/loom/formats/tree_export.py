"""Trees for reading: the line that was chosen as Markdown, the whole tree as a page."""

from __future__ import annotations

import html
from typing import Final

from weft.loom.formats.plain_json import iso_time
from weft.loom.node_record import NodeRecord, TreeRecord

_DEEPEST_INDENT: Final = 16
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; }
article { margin: 0 0 .6rem calc(var(--fork) * 1.2rem); padding-left: .6rem;
  border-left: 2px solid #8884; overflow-wrap: anywhere; }
article.chosen { border-left-color: #46a; }
article.hidden { opacity: .5; }
header { font-size: .75rem; color: #777; }
header a { color: inherit; }
p { margin: 0; white-space: pre-wrap; }
"""


def dump_markdown(tree: TreeRecord, node_id: str = "") -> str:
    """The line down to a node as text, or the chosen line where none is named.

    Messages of a conversation get headings; segments of a text are joined as they are.

    Raises:
        KeyError: there is no such node.
    """
    parts: list[str] = []
    for node in tree.line(node_id):
        if node.kind == "message" and node.text:
            # A blank line before, whatever came before it: else the heading would be text.
            said = "".join(parts[-1:])
            gap = "" if not said else "\n" if said.endswith("\n") else "\n\n"
            parts.append(f"{gap}## {_one_line(node.role or 'message')}\n\n{node.text}")
        else:
            parts.append(node.text)
    text = "".join(parts)
    return text if text.endswith("\n") else f"{text}\n"


def dump_html(tree: TreeRecord) -> str:
    """The whole tree as one page that loads nothing and runs nothing.

    Flat, and indented by forks: a line of thousands of nodes, each inside the other, is more than
    browsers take.
    """
    title = html.escape(_one_line(tree.name) or "A tree of text")
    pages = _Pages(tree)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{''.join(map(pages.article, tree.nodes))}</body>\n</html>\n"
    )


class _Pages:
    """What a page needs to know of a whole tree."""

    def __init__(self, tree: TreeRecord) -> None:
        self._place = {node.id: number for number, node in enumerate(tree.nodes)}
        self._below: dict[str | None, list[str]] = {}
        self._rank: dict[str, int] = {}
        self._forks: dict[str | None, int] = {None: 0}
        self._chosen = {node.id for node in tree.line()}
        for node in tree.nodes:
            beside = self._below.setdefault(node.parent_id, [])
            self._rank[node.id] = len(beside)
            beside.append(node.id)
        for node in tree.nodes:
            is_fork = len(self._below[node.parent_id]) > 1
            self._forks[node.id] = self._forks[node.parent_id] + is_fork

    def article(self, node: NodeRecord) -> str:
        kinds = ["chosen"] * (node.id in self._chosen) + ["hidden"] * node.hidden
        named = f' class="{" ".join(kinds)}"' if kinds else ""
        indent = min(self._forks[node.id], _DEEPEST_INDENT)
        return (
            f'<article id="n{self._place[node.id]}"{named} style="--fork:{indent}">\n'
            f"<header>{self._head(node)}</header>\n<p>{html.escape(node.text)}</p>\n</article>\n"
        )

    def _head(self, node: NodeRecord) -> str:
        facts = [
            node.role,
            node.model,
            (iso_time(node.created_at) or "")[:16].replace("T", " "),
            "bookmarked" if node.bookmarked else "",
            "broken off" if node.partial else "",
            "" if node.rating is None else f"rated {node.rating:g}",
        ]
        said = [html.escape(_one_line(fact)) for fact in facts if fact]
        return " · ".join([*said, *self._siblings(node)])

    def _siblings(self, node: NodeRecord) -> list[str]:
        """Where it stands among its siblings, with links to its neighbours."""
        beside = self._below[node.parent_id]
        if len(beside) < 2:
            return []
        at = self._rank[node.id]
        before, behind = beside[at - 1], beside[(at + 1) % len(beside)]
        return [
            f'<a href="#n{self._place[before]}">‹</a> {at + 1}/{len(beside)} '
            f'<a href="#n{self._place[behind]}">›</a>'
        ]


def _one_line(text: str) -> str:
    return " ".join(text.split())
