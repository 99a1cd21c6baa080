"""Entries for the decision graph: what a user, a model or a program wants to put down, checked, and
turned into facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from weft.decisions.facts import (
    LONGEST_TITLE,
    DecisionAdded,
    DecisionChanged,
    DecisionEdge,
    DecisionEvidence,
    DecisionFact,
    DecisionLinked,
    DecisionNode,
    DecisionSuperseded,
    FileEvidence,
)
from weft.decisions.graph import EDGE_KINDS, KINDS, STATUSES, DecisionGraph
from weft.decisions.sound_values import (
    LAST_TIME,
    LONGEST_SCOPE,
    LONGEST_WHY,
    LONGEST_WORD,
    MOST_SCOPES,
    MOST_TAGS,
    is_inside,
    one_line,
    some_lines,
)
from weft.errors import UsageError, did_you_mean
from weft.ids import BlobId, DecisionId, derived_id
from weft.messages import clean_text
from weft.sha256 import sha256

MOST_OPTIONS: Final = 10
SAMPLED_LINES: Final = 32
VERDICTS: Final = ("chosen", "rejected", "open")
_ID_LENGTH: Final = len("dec_") + 8
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_Value = TypeVar("_Value", bound=msgspec.Struct)


class DecisionOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that could be chosen, and what became of it."""

    title: str
    verdict: str = "rejected"
    """`chosen`, `rejected`, or `open` while nothing is decided."""
    why: str = ""


class DecisionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is to be put down, with its options and edges."""

    title: str
    kind: str = "decision"
    why: str = ""
    status: str = "proposed"
    confidence: int | None = None
    by: str = "user"
    author: str = ""
    scope: tuple[str, ...] = ()
    evidence: tuple[DecisionEvidence, ...] = ()
    tags: tuple[str, ...] = ()
    review_after: float | None = None
    options: tuple[DecisionOption, ...] = ()
    supersedes: str = ""
    """The node that it stands in the place of, by its id."""
    parent: str = ""
    """The node that leads to it, by its id."""
    at: float = 0.0


class LoggedEntry(msgspec.Struct, frozen=True):
    """The facts that put an entry down."""

    node: DecisionNode
    facts: tuple[DecisionFact, ...]

    @property
    def ids(self) -> tuple[DecisionId, ...]:
        """All nodes that it makes, its own first."""
        return tuple(fact.node.id for fact in self.facts if isinstance(fact, DecisionAdded))


def decision_id(*names: str) -> DecisionId:
    """The short id that these names always give: what comes again finds what was made before, and
    two machines do not make the same one for two things.
    """
    return DecisionId(derived_id("dec", *names)[:_ID_LENGTH])


def log_entry(
    entry: DecisionEntry, graph: DecisionGraph, *, seed: str, kinds: Collection[str] = KINDS
) -> LoggedEntry:
    """The facts of an entry.  `seed` names what it comes from: the same seed and words give the
    same ids.

    Raises:
        UsageError: it cannot be put down.
    """
    entry = checked(entry, kinds)
    node = DecisionNode(
        id=_free_id(graph, entry.kind, entry.title, seed),
        kind=entry.kind,
        title=entry.title,
        why=entry.why,
        status=entry.status,
        confidence=entry.confidence,
        by=entry.by,
        author=entry.author,
        scope=entry.scope,
        evidence=entry.evidence,
        tags=entry.tags,
        review_after=entry.review_after,
        at=entry.at,
    )
    facts: list[DecisionFact] = [DecisionAdded(node=node)]
    if entry.parent:
        parent = graph.find(entry.parent)
        facts.append(linked(parent.id, node.id, "leads_to"))
    for option in entry.options:
        facts += _option_facts(option, node, seed)
    if entry.supersedes:
        old = graph.find(entry.supersedes)
        facts.append(DecisionSuperseded(old=old.id, new=node.id, rationale=entry.why, by=entry.by))
    return LoggedEntry(node, tuple(facts))


def linked(
    source: DecisionId, target: DecisionId, kind: str, rationale: str = "", weight: float = 1.0
) -> DecisionLinked:
    """The fact of an edge."""
    edge = DecisionEdge(source=source, target=target, kind=kind, rationale=rationale, weight=weight)
    return DecisionLinked(edge=edge)


def accepted(
    graph: DecisionGraph, node: DecisionNode, *, by: str, reason: str = ""
) -> list[DecisionFact]:
    """The facts that make a node active, and its options with it.

    Raises:
        UsageError: it is over.
    """
    if node.status not in ("proposed", "active"):
        raise UsageError(f"{node.id} is {node.status}; log a new decision that supersedes it")
    options = [
        option for kind in ("chosen", "rejected") for option, _ in graph.options(node.id, kind)
    ]
    waiting = [each for each in (node, *options) if each.status == "proposed"]
    return [DecisionChanged(id=each.id, status="active", by=by, reason=reason) for each in waiting]


def checked(entry: DecisionEntry, kinds: Collection[str] = KINDS) -> DecisionEntry:
    """An entry as it can be stored.

    Raises:
        UsageError: it cannot be.
    """
    check_word("kind", entry.kind, kinds)
    check_word("status", entry.status, STATUSES)
    check_confidence(entry.confidence)
    check_review(entry.review_after)
    if len(entry.options) > MOST_OPTIONS:
        raise UsageError(f"a decision has at most {MOST_OPTIONS} options")
    options = tuple(
        msgspec.structs.replace(option, title=clean_title(option.title), why=clean_why(option.why))
        for option in entry.options
    )
    for option in options:
        check_word("verdict", option.verdict, VERDICTS)
    return msgspec.structs.replace(
        entry,
        title=clean_title(entry.title),
        why=clean_why(entry.why),
        scope=clean_scope(entry.scope),
        tags=clean_tags(entry.tags),
        author=one_line(entry.author),
        options=options,
    )


def checked_change(fact: DecisionChanged) -> DecisionChanged:
    """A change as it can be stored.

    Raises:
        UsageError: it cannot be.
    """
    if fact.status is not None:
        check_word("status", fact.status, STATUSES)
    check_confidence(fact.confidence)
    check_review(fact.review_after)
    return msgspec.structs.replace(
        fact,
        title=None if fact.title is None else clean_title(fact.title),
        why=None if fact.why is None else clean_why(fact.why),
        scope=None if fact.scope is None else clean_scope(fact.scope),
        tags=None if fact.tags is None else clean_tags(fact.tags),
        reason=clean_why(fact.reason),
    )


def check_word(what: str, given: str, known: Collection[str]) -> None:
    """Raises:
    UsageError: the word is none of those that are known.
    """
    if given not in known:
        hint = did_you_mean(given, known) or f"; there are {', '.join(known)}"
        raise UsageError(f"no {what} {given!r}{hint}")


def check_edge(kind: str, weight: float) -> None:
    """Raises:
    UsageError: there can be no such edge.
    """
    check_word("kind of edge", kind, EDGE_KINDS)
    if not 0 <= weight <= 100:
        raise UsageError(f"the weight of an edge is between 0 and 100, not {weight:g}")


def check_kind_name(name: str) -> None:
    """Raises:
    UsageError: it can be no kind of a node.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a kind: small letters, digits, - and _, at most 32"
        )


def check_confidence(given: int | None) -> None:
    """Raises:
    UsageError: it is none.
    """
    if given is not None and not 0 <= given <= 100:
        raise UsageError(f"confidence is between 0 and 100, not {given}")


def check_review(given: float | None) -> None:
    """Raises:
    UsageError: it is no time.
    """
    if given is not None and not 0 <= given <= LAST_TIME:
        raise UsageError(f"review_after is a time in seconds since 1970, not {given}")


def check_texts(**given: str) -> None:
    """Raises:
    UsageError: one is no text.
    """
    for name, each in given.items():
        if not isinstance(each, str):
            raise UsageError(f"{name} is a text, not {type(each).__name__}")


def several(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    """What a program gives as a sequence.

    Raises:
        UsageError: it is none; a text would be taken for one of single letters.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"{name} is a list, not {type(given).__name__}: give [{given!r}]")
    return tuple(given)


def well_typed(value: _Value) -> _Value:
    """The same value.

    Raises:
        UsageError: a field is of another type than it is declared: stored, it could never be read
            again.
    """
    try:
        msgspec.convert(msgspec.to_builtins(value), type(value))
    except (msgspec.ValidationError, TypeError, OverflowError) as error:
        raise UsageError(f"this cannot be put down: {error}") from error
    return value


def clean_title(text: str) -> str:
    """A title in one line.

    Raises:
        UsageError: it is empty, or too long.
    """
    title = _plain(text)
    if not title:
        raise UsageError("a decision needs a title")
    if len(title) > LONGEST_TITLE:
        raise UsageError(
            f"a title has at most {LONGEST_TITLE} characters, this one {len(title)}; "
            "put the rest into why"
        )
    return title


def shortened(text: str, most: int = LONGEST_TITLE) -> str:
    """A text as a title: in one line, cut where it is too long."""
    line = _plain(text)
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[most // 2 :] else cut).rstrip(" ,.;:") + "…"


def _plain(text: str) -> str:
    """A text in one line, of any length."""
    return one_line(text, max(len(text), LONGEST_TITLE)).strip()


def clean_why(text: str) -> str:
    """Raises:
    UsageError: it is too long.
    """
    why = some_lines(text, max(len(text), LONGEST_WHY)).strip()
    if len(why) > LONGEST_WHY:
        raise UsageError(f"why has at most {LONGEST_WHY} characters, this one {len(why)}")
    return why


def clean_scope(scope: Iterable[str]) -> tuple[str, ...]:
    """Globs and symbols, without repeats.

    Raises:
        UsageError: one is no path inside the project, or there are too many.
    """
    found = dict.fromkeys(
        clean_text(each).strip().removeprefix("./") for each in scope if each.strip()
    )
    for each in found:
        if not is_inside(each) or not each.isprintable():
            raise UsageError(
                f"{each[:LONGEST_SCOPE]!r} is no scope: give a path or a glob relative to the "
                "project, or a symbol"
            )
        if len(each) > LONGEST_SCOPE:
            raise UsageError(
                f"a scope has at most {LONGEST_SCOPE} characters, {each[:40]!r}… has {len(each)}"
            )
    if len(found) > MOST_SCOPES:
        raise UsageError(f"a decision has at most {MOST_SCOPES} scopes, not {len(found)}")
    return tuple(found)


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Raises:
    UsageError: there are too many.
    """
    found = dict.fromkeys(one_line(tag, LONGEST_WORD).strip().lower() for tag in tags)
    found.pop("", None)
    if len(found) > MOST_TAGS:
        raise UsageError(f"a decision has at most {MOST_TAGS} tags, not {len(found)}")
    return tuple(found)


def file_evidence(path: str, content: bytes | None) -> FileEvidence:
    """A file as it is now, for a later look at how much of it is left."""
    if content is None:
        return FileEvidence(path=path)
    lines = sorted(line_hashes(content))[:SAMPLED_LINES]
    blob = BlobId(sha256(content).hexdigest())
    return FileEvidence(path=path, blob=blob, sample="".join(lines))


def line_hashes(content: bytes) -> set[str]:
    """A short hash of each line that says something."""
    stripped = (line.strip() for line in content.splitlines())
    return {sha256(line).hexdigest()[:8] for line in stripped if line}


def share_left(evidence: FileEvidence, content: bytes | None) -> float:
    """How much of a file is left in what is there now: 1.0 for all of it."""
    if content is None:
        return 0.0
    if sha256(content).hexdigest() == evidence.blob:
        return 1.0
    sample = evidence.sample
    sampled = [sample[start : start + 8] for start in range(0, len(sample), 8)]
    if not sampled:
        return 1.0
    now = line_hashes(content)
    return sum(each in now for each in sampled) / len(sampled)


def options_of(given: Sequence[Any]) -> tuple[DecisionOption, ...]:
    """Options as a program gives them: values, maps, or titles of what was rejected.

    Raises:
        UsageError: one is none of these.
    """
    given = several("options", given)
    try:
        return tuple(
            DecisionOption(title=each)
            if isinstance(each, str)
            else msgspec.convert(each, DecisionOption, from_attributes=True)
            for each in given
        )
    except msgspec.ValidationError as error:
        raise UsageError(f"an option has title, verdict and why: {error}") from error


def checked_evidence(given: Sequence[Any]) -> tuple[DecisionEvidence, ...]:
    """Evidence as a program gives it.

    Raises:
        UsageError: one is none: stored, it could never be read again.
    """
    try:
        values = msgspec.to_builtins(tuple(given))
        return msgspec.convert(values, tuple[DecisionEvidence, ...])
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(
            f"evidence is a TurnEvidence, FileEvidence, CommitEvidence or CheckEvidence: {error}"
        ) from error


def _option_facts(option: DecisionOption, of: DecisionNode, seed: str) -> list[DecisionFact]:
    node = DecisionNode(
        id=decision_id("option", option.title, of.id, seed),
        kind="option",
        title=option.title,
        why=option.why,
        status=of.status,
        by=of.by,
        author=of.author,
        scope=of.scope,
        at=of.at,
    )
    kind = "leads_to" if option.verdict == "open" else option.verdict
    return [DecisionAdded(node=node), linked(of.id, node.id, kind, option.why)]


def _free_id(graph: DecisionGraph, kind: str, title: str, seed: str) -> DecisionId:
    """An id for a node: the same for the same seed, and never that of another node."""
    name = decision_id(kind, title, seed)
    number = 0
    while (there := graph.nodes.get(name)) is not None and (there.kind, there.title) != (
        kind,
        title,
    ):
        number += 1
        name = decision_id(kind, title, seed, str(number))
    return name
