"""Facts of the decision graph: what a project's stream holds of it, and their codec.

They stand apart from the facts of sessions, so that a program that never meets a decision loads
none of this; the rules are the same.  A tag is stored for ever, a field that is added needs a
default, and a change that an old reader would misread gets a new tag and an upcaster.
`docs/formats/decisions.md` describes every field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias, get_args

import msgspec

from weft.errors import Corrupt
from weft.events import FactBase
from weft.ids import BlobId, DecisionId, NodeId, SessionId, TurnId

LONGEST_TITLE: Final = 120
"""Characters of a node's title."""


class EvidenceBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Something that shows where a node of the graph comes from, or whether it still holds."""


class TurnEvidence(EvidenceBase, frozen=True, tag="turn"):
    """It was said or done in a turn."""

    session_id: SessionId
    turn_id: TurnId | None = None
    node: NodeId | None = None


class FileEvidence(EvidenceBase, frozen=True, tag="file"):
    """It was about a file as that was then."""

    path: str
    """Relative to the project, with forward slashes."""
    blob: BlobId | None = None
    """SHA-256 of the content; None where there was no such file."""
    # The blob itself may be dropped with old file history, so the fact carries what is needed to
    # say how much of the file is left.
    sample: str = ""
    """Hashes of some of its lines, 8 hexadecimal digits each: those with the smallest hashes."""


class CommitEvidence(EvidenceBase, frozen=True, tag="commit"):
    """It is part of a commit."""

    commit: str
    """The commit's hash; perhaps only its beginning."""


class CheckEvidence(EvidenceBase, frozen=True, tag="check"):
    """A command showed it."""

    command: str
    exit: int


DecisionEvidence: TypeAlias = TurnEvidence | FileEvidence | CommitEvidence | CheckEvidence


class DecisionNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node of the graph: a goal, a decision, an option, …"""

    id: DecisionId
    # Open words, here and below: programs register kinds of their own, and an older program shows
    # what it does not know as it is.
    kind: str
    """`goal`, `decision`, `option`, `action`, `outcome`, `observation`, `revisit`, `constraint`, or
    a kind of a program's own."""
    title: str
    """One line, at most 120 characters."""
    why: str = ""
    status: str = "proposed"
    """`proposed`, `active`, `superseded`, `abandoned` or `done`."""
    confidence: int | None = None
    """0 to 100; None where nothing was said of it."""
    by: str = "user"
    """Who wrote it: `user`, `model` or `auto` (from what the log shows)."""
    author: str = ""
    """Their name: of an agent, of a model; of an imported record those who decided it, or its file
    where it does not name them."""
    scope: tuple[str, ...] = ()
    """What it is about: globs of paths, or names of symbols; empty is the whole project."""
    evidence: tuple[DecisionEvidence, ...] = ()
    tags: tuple[str, ...] = ()
    review_after: float | None = None
    """Wall-clock seconds after which it should be looked at again."""
    at: float = 0.0
    """When it was decided; 0.0: when it was stored."""


class DecisionEdge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edge of the graph."""

    source: DecisionId
    target: DecisionId
    kind: str
    """`leads_to`, `chosen`, `rejected`, `requires`, `blocks`, `enables`, `supersedes`, `supports`,
    `revises` or `summarizes`."""
    rationale: str = ""
    weight: float = 1.0
    """0.0 takes the edge away."""


class DecisionAdded(FactBase, frozen=True, tag="decision_added"):
    """A node came into the graph.  One whose id is there already changes nothing."""

    node: DecisionNode


class DecisionChanged(FactBase, frozen=True, tag="decision_changed"):
    """A node is otherwise than before, where a field is not null."""

    id: DecisionId
    status: str | None = None
    title: str | None = None
    why: str | None = None
    confidence: int | None = None
    scope: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    review_after: float | None = None
    """0.0: it need not be looked at again."""
    evidence: tuple[DecisionEvidence, ...] = ()
    """What is added."""
    by: str = "user"
    reason: str = ""


class DecisionLinked(FactBase, frozen=True, tag="decision_linked"):
    """An edge came into the graph, in place of one of the same ends and kind."""

    edge: DecisionEdge


class DecisionSuperseded(FactBase, frozen=True, tag="decision_superseded"):
    """One node stands in the place of another."""

    old: DecisionId
    new: DecisionId
    rationale: str = ""
    by: str = "user"


class DecisionPurged(FactBase, frozen=True, tag="decision_purged"):
    """A node and its edges are gone for good; the facts before this one have no words of it."""

    id: DecisionId


DecisionFact: TypeAlias = (
    DecisionAdded | DecisionChanged | DecisionLinked | DecisionSuperseded | DecisionPurged
)

DECISION_FACTS: dict[str, type[DecisionFact]] = {
    cls.__struct_config__.tag: cls for cls in get_args(DecisionFact)
}
"""Every kind by its stored name."""
DECISION_UPCASTERS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Old tag → the step to the next one.  Empty: every kind is in its first version."""


@cache
def _decoder() -> msgspec.json.Decoder[DecisionFact]:
    return msgspec.json.Decoder(DecisionFact)


def decode_decision(kind: str, body: bytes) -> DecisionFact | None:
    """A fact of a project's stream; None for one of a kind that is not about decisions.

    Raises:
        Corrupt: it is of such a kind, and its content does not fit.
    """
    if kind not in DECISION_FACTS and kind not in DECISION_UPCASTERS:
        return None
    try:
        if kind in DECISION_FACTS:
            return _decoder().decode(body)
        newer: dict[str, Any] = msgspec.json.decode(body)
        while (step := DECISION_UPCASTERS.get(newer["kind"])) is not None:
            newer = step(newer)
        # A union type is fine at run time.
        return msgspec.convert(newer, DecisionFact)  # type: ignore[no-any-return]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError) as error:
        raise Corrupt("the project's stream", f"{kind}: {error}") from error
