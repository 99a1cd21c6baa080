"""What a generation tells its consumer: tokens, and one closing event."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.events import TokenReceived
from weft.ids import NodeId
from weft.loom.node import LoomNode

FailureCategory: TypeAlias = Literal[
    "authentication",
    "rate_limit",
    "timeout",
    "provider_unavailable",
    "invalid_request",
    "network",
    "provider_error",
    "empty_response",
    "context_overflow",
    "no_models",
    "budget",
]


class BranchFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that came to nothing, or broke off."""

    branch_idx: int
    model: str
    category: FailureCategory
    sentence: str
    status: int | None = None
    """The HTTP status, where there was one."""
    incident_id: str = ""
    """Names it in the program's log, where the details are."""
    partial_node: NodeId | None = None
    """The node that has what had come of it."""


class GenerationComplete(msgspec.Struct, frozen=True, kw_only=True):
    """At least one branch was finished."""

    completions: tuple[str, ...]
    """The texts of the new nodes."""
    new_nodes: tuple[LoomNode, ...]
    """In the order of the plan, whichever came first."""
    failures: tuple[BranchFailure, ...] = ()
    reason: Literal["complete", "stopped"] = "complete"
    """`stopped`: the rule of a race ended it, and the others are partial nodes."""


class GenerationError(msgspec.Struct, frozen=True, kw_only=True):
    """No branch was finished."""

    error: str
    category: FailureCategory
    status: int | None = None
    incident_id: str = ""
    failures: tuple[BranchFailure, ...] = ()


class GenerationCancelled(msgspec.Struct, frozen=True, kw_only=True):
    """It was cancelled, or its consumer left."""

    new_nodes: tuple[LoomNode, ...] = ()
    """What was finished before, and what had come of the others."""


ClosingEvent: TypeAlias = GenerationComplete | GenerationError | GenerationCancelled
GenerationEvent: TypeAlias = TokenReceived | ClosingEvent
