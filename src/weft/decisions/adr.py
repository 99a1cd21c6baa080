"""Architecture decision records: read from Markdown files, and written as such.

Read are those of Nygard (`# 7. Title`, `## Status`, `## Context`, `## Decision`), of MADR
(`## Considered Options`, `## Decision Outcome`) and their like: headings are looked for by their
words, and what is not found is left out.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from weft.decisions.entry import (
    MOST_OPTIONS,
    DecisionEntry,
    DecisionOption,
    shortened,
)
from weft.decisions.facts import DecisionNode
from weft.decisions.graph import DecisionGraph
from weft.decisions.narrative import day, evidence_text
from weft.decisions.sound_values import LONGEST_WHY
from weft.errors import UsageError

_STATUS: Final = {
    "proposed": "proposed",
    "draft": "proposed",
    "accepted": "active",
    "approved": "active",
    "active": "active",
    "implemented": "active",
    "done": "done",
    "superseded": "superseded",
    "replaced": "superseded",
    "deprecated": "superseded",
    "rejected": "abandoned",
    "abandoned": "abandoned",
    "withdrawn": "abandoned",
}
_AUTHORS: Final = (
    *("author", "authors", "author(s)", "decider", "deciders", "decision-makers"),
    *("decision makers", "decision-maker", "decision maker", "decided by"),
)
"""What a record calls those who made it."""
_HEADING: Final = re.compile(r"#{1,4}\s+(\S.*)")
_NUMBER: Final = re.compile(r"^(?:ADR[- ]?)?\d+\s*[.:)–-]?\s+", re.IGNORECASE)
_DATE: Final = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_BULLET: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(.*)$")
_MADE_OF: Final = re.compile(r"^<!-- weft (dec_[A-Za-z0-9_-]{1,60}) -->$", re.MULTILINE)
# Bounded, as all of these: a record is a document of others, and must not take long to read.
_OWN_VERDICT: Final = re.compile(r"(.{1,400}?)\s\((chosen|rejected)(?::\s*(.*))?\)$")
"""An option as `to_adr` writes it."""
_LABEL: Final = re.compile(r"^(?:option|alternative)\s+\w{1,3}\s?[:.)–-]\s+", re.IGNORECASE)
_CHOSEN: Final = re.compile(
    r"chosen option:?[*_\s]*"
    r"(?:\"([^\"\n]{1,400})|“([^”\n]{1,400})|`([^`\n]{1,400})|'([^\n]{1,400}?)'(?!\w)"
    r"|([^\s:\"“`',][^,\n]{0,400}?)(?=,|\sbecause\b|\n|$))",
    re.IGNORECASE,
)
_LINK: Final = re.compile(r"\[([^\[\]]{0,500})\]\([^()]{0,2000}\)")


_ANYWHERE: Final = frozenset(["", "date", "status", "consequences", "scope", "evidence"])
"""Headings that say nothing against a record without a section Decision."""


def parse_adr(text: str, name: str) -> DecisionEntry:
    """The entry of a record; `name` is its file, for messages and where it names no author.

    Raises:
        UsageError: it has no title, or no section that says what was decided.
    """
    meta, text = _front_matter(text)
    title, sections = _sections(text)
    if not title:
        raise UsageError(f"{name} has no title: an ADR begins with a heading")
    author = _author(meta, sections, text) or name
    # Else "Decision Makers" would be what was decided.
    sections = {heading: said for heading, said in sections.items() if heading not in _AUTHORS}
    decision = _section(sections, "decision outcome", "decision", "resolution", "we decided")
    choice = _section(sections, "choice")
    context = _section(sections, "context", "problem", "reasons", "background")
    body = sections.get("", "")
    stated = meta.get("status") or _section(sections, "status") or _field(text, "status")
    # Some records are a title and a text; a README has other headings below it.
    is_record = name[:1].isdigit() or bool(stated) or not sections.keys() - _ANYWHERE
    if not (decision or choice or context or (body and is_record)):
        raise UsageError(f"{name} has no section Decision, Decision Outcome or Context")
    why = "\n\n".join(part for part in (decision or choice, context) if part) or body
    return DecisionEntry(
        title=shortened(_NUMBER.sub("", title)),
        why=_cut(_LINK.sub(r"\1", why)),
        status=_status(stated),
        author=shortened(author),
        tags=("adr",),
        options=_options(sections, decision),
        at=_date(meta.get("date") or _section(sections, "date") or _field(text, "date") or stated),
    )


def to_adr(graph: DecisionGraph, node: DecisionNode, number: int) -> str:
    """A record in Markdown."""
    lines = [f"# {number}. {node.title}", "", f"Date: {day(node.at)}", ""]
    lines += [f"Author: {node.author}", ""] if node.author else []
    lines += ["## Status", ""]
    lines += [_status_word(node), ""]
    for edge in graph.incoming(node.id, "supersedes"):
        if edge.source in graph.nodes:
            lines += [f"Superseded by: {graph.nodes[edge.source].title}", ""]
    lines += ["## Decision", "", node.title + ".", "", "## Context", "", node.why or "-", ""]
    chosen = graph.options(node.id, "chosen")
    rejected = graph.options(node.id, "rejected")
    if chosen or rejected:
        lines += ["## Considered Options", ""]
        for word, options in (("chosen", chosen), ("rejected", rejected)):
            for option, edge in options:
                why = edge.rationale or option.why
                lines.append(f"- {option.title} ({word}{f': {why}' if why else ''})")
        lines.append("")
    if node.scope:
        lines += ["## Scope", "", *(f"- `{scope}`" for scope in node.scope), ""]
    if node.evidence:
        lines += ["## Evidence", "", *(f"- {evidence_text(each)}" for each in node.evidence), ""]
    # Where the record came from: it is not imported again into the graph that has it.
    return "\n".join([*lines, f"<!-- weft {node.id} -->", ""])


def exported_id(text: str) -> str:
    """The node that a record was written of; empty for one that is not ours."""
    found = _MADE_OF.search(text)
    return found[1] if found else ""


def adr_name(node: DecisionNode, number: int) -> str:
    """The name of a record's file."""
    words = re.sub(r"[^a-z0-9]+", "-", node.title.lower()).strip("-")
    return f"{number:04d}-{words[:60].rstrip('-') or node.id}.md"


def _status_word(node: DecisionNode) -> str:
    words = {"active": "Accepted", "done": "Accepted", "abandoned": "Rejected"}
    return words.get(node.status, node.status.capitalize())


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    if not text.startswith("---\n"):
        return {}, text
    head, mark, rest = text[4:].partition("\n---")
    if not mark:
        return {}, text
    found: dict[str, str] = {}
    last = ""
    for line in head.splitlines():
        entry = _BULLET.match(line)
        if entry is not None and last:
            # A list below its name, one entry a line.
            found[last] = ", ".join(filter(None, (found[last], entry[1].strip(" \"'"))))
            continue
        key, colon, value = line.partition(":")
        if colon:
            last = key.strip().lower()
            found[last] = value.strip(" \"'")
    return found, rest


def _author(meta: dict[str, str], sections: dict[str, str], text: str) -> str:
    """Who made a decision, as far as the record says so."""
    for name in _AUTHORS:
        said = meta.get(name) or sections.get(name, "") or _field(text, name)
        names = _bullets(said) or re.split(r"[,;\n]", _LINK.sub(r"\1", said).strip(" []"))
        if found := ", ".join(filter(None, (each.strip(" \"'*_\t") for each in names))):
            return found
    return ""


def _sections(text: str) -> tuple[str, dict[str, str]]:
    """The title, and each heading with the text below it."""
    title, heading = "", ""
    found: dict[str, list[str]] = {}
    is_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        match = None if is_code else _HEADING.match(line)
        if match is None:
            found.setdefault(heading, []).append(line)
        elif not title:
            title = match[1].rstrip("# \t")
        else:
            heading = match[1].rstrip("# \t").lower()
            found.setdefault(heading, [])
    return title, {name: "\n".join(lines).strip() for name, lines in found.items()}


def _section(sections: dict[str, str], *names: str) -> str:
    for name in names:
        for heading, text in sections.items():
            if heading and heading.startswith(name) and text:
                return text
    return ""


def _field(text: str, name: str) -> str:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip("*_- \t").lower() == name:
            return value.strip("*_ \t")
    return ""


def _status(text: str) -> str:
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in _STATUS:
            return _STATUS[word]
    return "proposed"


def _date(text: str) -> float:
    found = _DATE.search(text or "")
    if found is None:
        return 0.0
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _options(sections: dict[str, str], decision: str) -> tuple[DecisionOption, ...]:
    named = _bullets(_section(sections, "considered options", "options", "alternatives"))
    verdicts = _verdicts(named, _chosen_name(decision))
    found: list[DecisionOption] = []
    for text, verdict in zip(named, verdicts, strict=True):
        own = _OWN_VERDICT.match(_without_marks(text))
        title, why = (own[1], own[3] or "") if own else _split_reason(_LABEL.sub("", text))
        found.append(
            DecisionOption(
                title=shortened(title), verdict=own[2] if own else verdict, why=_cut(why)
            )
        )
    for text in _bullets(_section(sections, "what was rejected", "rejected")):
        title, why = _split_reason(text)
        found.append(DecisionOption(title=title, why=why))
    return tuple(found[:MOST_OPTIONS])


def _chosen_name(decision: str) -> str:
    """The option that a record says was chosen; empty where it names none."""
    found = _CHOSEN.search(_LINK.sub(r"\1", decision))
    return _comparable(next(filter(None, found.groups()), "")) if found else ""


def _verdicts(named: list[str], wanted: str) -> list[str]:
    """What became of each option, given the name of the one that was chosen.

    Names alone are compared, and whole words of them: a reason may speak of the chosen option, and
    "SQL" is in "PostgreSQL".  Where a name fits several equally well, these stay open: to call a
    chosen one rejected is as wrong as the opposite.
    """
    whole = [_comparable(text) for text in named]
    titles = [_comparable(_split_reason(_LABEL.sub("", text))[0]) for text in named]
    short = _comparable(_split_reason(_LABEL.sub("", wanted))[0])
    tiers = (
        [name == wanted for name in whole],
        [title in (wanted, short) for title in titles],
        [
            _begins(name, wanted) or _begins(wanted, title)
            for name, title in zip(whole, titles, strict=True)
        ],
    )
    hits = next((tier for tier in tiers if wanted and any(tier)), [False] * len(named))
    fits = "chosen" if sum(hits) == 1 else "open"
    return [fits if hit else "rejected" for hit in hits]


def _comparable(text: str) -> str:
    return " ".join(_without_marks(text).casefold().rstrip(". ").split())


def _begins(text: str, words: str) -> bool:
    return text.startswith(words) and not text[len(words) : len(words) + 1].isalnum()


def _bullets(text: str) -> list[str]:
    """The entries of a list, each in one line."""
    found: list[str] = []
    for line in text.splitlines():
        match = _BULLET.match(line)
        if match is not None:
            found.append(match[1])
        elif found and line.strip():
            found[-1] += f" {line.strip()}"
    return [_LINK.sub(r"\1", each).strip() for each in found]


def _without_marks(text: str) -> str:
    """Text without marks of emphasis, code and quotation.  An underscore inside a word, or in code,
    is a part of a name.
    """
    parts = text.split("`")
    parts[::2] = [re.sub(r'[*"]|(?<!\w)_+|_+(?!\w)', "", part) for part in parts[::2]]
    return "".join(parts).strip()


def _split_reason(text: str) -> tuple[str, str]:
    """The title of an option, and why: what stands in brackets, or behind a colon or a dash."""
    plain = _without_marks(text)
    match = re.match(
        r"^(.{2,120}?)(?:\s*\((.+)\)\s*|:\s+(.+)|\s[–—-]\s+(.+)|,? because (.+))$", plain
    )
    if match is None:
        return shortened(plain), ""
    return shortened(match[1].rstrip(".")), _cut(next(each for each in match.groups()[1:] if each))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WHY else text[: LONGEST_WHY - 1] + "…"
