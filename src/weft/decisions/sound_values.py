"""Values of the graph as they can be shown and told: one line where it is one, and not too long.

Entries are made so when they are written.  Facts may come from elsewhere, or be damaged: what does
not fit is cut when it is read, so that no title can break out of a note for the model, a line on a
terminal or a diagram.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from weft.decisions.facts import (
    LONGEST_TITLE,
    CheckEvidence,
    CommitEvidence,
    DecisionChanged,
    DecisionEdge,
    DecisionEvidence,
    DecisionNode,
    FileEvidence,
    TurnEvidence,
)
from weft.messages import clean_text

LONGEST_WHY: Final = 4_000
LONGEST_SCOPE: Final = 300
LONGEST_WORD: Final = 40
LONGEST_COMMAND: Final = 2_000
MOST_SCOPES: Final = 20
MOST_TAGS: Final = 20
MOST_EVIDENCE: Final = 50
"""Pieces of evidence of one node: the first, and the newest of the rest."""
LAST_TIME: Final = 253_402_300_799.0
"""The end of the year 9999: what comes later is no date."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_id(name: str) -> bool:
    """Whether it can be the id of a node."""
    return _ID.fullmatch(name) is not None


def one_line(text: str, most: int = LONGEST_TITLE) -> str:
    """A text in one line that shows all that is in it; cut where it is too long."""
    if len(text) <= most and text.isprintable():
        return text
    line = " ".join(clean_text(text[: 8 * most]).split())
    line = "".join(letter for letter in line if letter.isprintable())
    return line if len(line) <= most else line[: most - 1] + "…"


def some_lines(text: str, most: int = LONGEST_WHY) -> str:
    """A text of several lines, without letters that a terminal obeys."""
    if len(text) <= most and text.isprintable():
        return text
    lines = clean_text(text[:most]).replace("\t", "    ").splitlines()
    return "\n".join(map(_shown, lines)).strip("\n")


def _shown(line: str) -> str:
    return "".join(each if each.isprintable() else " " if each.isspace() else "" for each in line)


def sound_node(node: DecisionNode, at: float) -> DecisionNode:
    """A node as it can be shown; `at` is when its fact was stored."""
    if _is_sound(node):  # nearly all are, and there may be thousands
        return node
    return msgspec.structs.replace(
        node,
        kind=one_line(node.kind, LONGEST_WORD),
        title=one_line(node.title) or "-",
        why=some_lines(node.why),
        status=one_line(node.status, LONGEST_WORD),
        confidence=_sure(node.confidence),
        by=one_line(node.by, LONGEST_WORD),
        author=one_line(node.author),
        scope=sound_scope(node.scope),
        evidence=sound_evidence(node.evidence),
        tags=sound_tags(node.tags),
        review_after=_time(node.review_after),
        at=_time(node.at) or _time(at) or 0.0,
    )


def _is_sound(node: DecisionNode) -> bool:
    words = (node.kind, node.status, node.by, node.author, *node.scope, *node.tags)
    return (
        0 < node.at <= LAST_TIME
        and not node.evidence
        and node.confidence is node.review_after is None
        and 0 < len(node.title) <= LONGEST_TITLE
        and len(node.why) <= LONGEST_WHY
        and len(words) < MOST_SCOPES
        and all(0 < len(word) <= LONGEST_WORD for word in words if word is not node.author)
        and len(node.author) <= LONGEST_TITLE
        and "".join((node.title, node.why, *words)).isprintable()
        and all(map(is_inside, node.scope))
    )


def sound_change(fact: DecisionChanged) -> DecisionChanged:
    """A change as it can be shown."""
    return msgspec.structs.replace(
        fact,
        title=None if fact.title is None else one_line(fact.title) or None,
        why=None if fact.why is None else some_lines(fact.why),
        status=None if fact.status is None else one_line(fact.status, LONGEST_WORD) or None,
        confidence=_sure(fact.confidence),
        scope=None if fact.scope is None else sound_scope(fact.scope),
        tags=None if fact.tags is None else sound_tags(fact.tags),
        review_after=_time(fact.review_after),
        evidence=sound_evidence(fact.evidence),
        reason=one_line(fact.reason, LONGEST_WHY),
    )


def sound_edge(edge: DecisionEdge) -> DecisionEdge:
    """An edge as it can be shown."""
    return msgspec.structs.replace(
        edge, kind=one_line(edge.kind, LONGEST_WORD), rationale=some_lines(edge.rationale)
    )


def sound_scope(scope: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes that can be some: inside the project, as entries have them."""
    fine = (each for each in scope[:MOST_SCOPES] if 0 < len(each) <= LONGEST_SCOPE)
    return tuple(each for each in fine if each.isprintable() and is_inside(each))


def is_inside(scope: str) -> bool:
    """Whether a scope stays in the project, whatever is there."""
    return not scope.startswith(("/", "~")) and ".." not in scope.split("/")


def sound_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags of one word each."""
    return tuple(one_line(tag, LONGEST_WORD) for tag in tags[:MOST_TAGS] if tag)


def sound_evidence(given: tuple[DecisionEvidence, ...]) -> tuple[DecisionEvidence, ...]:
    """Not too many pieces, each as it can be shown."""
    if len(given) > MOST_EVIDENCE:
        given = (given[0], *given[1 - MOST_EVIDENCE :])
    return tuple(map(_sound_piece, given))


def _sound_piece(each: DecisionEvidence) -> DecisionEvidence:
    match each:
        case FileEvidence(path=path):
            return msgspec.structs.replace(each, path=one_line(path, LONGEST_COMMAND))
        case CheckEvidence(command=command):
            return msgspec.structs.replace(each, command=one_line(command, LONGEST_COMMAND))
        case CommitEvidence(commit=commit):
            return msgspec.structs.replace(each, commit=one_line(commit, 64))
        case TurnEvidence(session_id=session, turn_id=turn):
            fits = is_id(session) and (turn is None or is_id(turn))
            return each if fits else TurnEvidence(session_id=type(session)("-"))


def _sure(given: int | None) -> int | None:
    return None if given is None else min(100, max(0, given))


def _time(given: float | None) -> float | None:
    return given if given is not None and 0 <= given <= LAST_TIME else None
