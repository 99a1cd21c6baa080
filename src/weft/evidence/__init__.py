"""Evidence: what a session's facts say about what its model claims.  Pure.

Which commands run tests, builds and checks (`command_kinds`), what the calls of messages show
(`command_runs`), what an answer claims (`claims`), each claim beside the record (`receipts`), and
whether two runs say the same (`output_digest`); the search for the state of the files at which a
check began to fail (`bisection`).
It reads messages that it is handed, asks no model and knows no session, store or screen.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.evidence.claim_hints import may_claim
from weft.evidence.receipt import ClaimKind, Receipt, ReceiptColor

if TYPE_CHECKING:  # their expressions take milliseconds, and few answers claim anything
    from weft.evidence.bisection import (
        BisectCheck,
        Bisection,
        BisectState,
        BreakingCall,
        BreakingDecision,
        signal_of,
    )
    from weft.evidence.claims import AnswerClaim, claims_in
    from weft.evidence.command_runs import CommandRun, EvidenceRuns, MessageCalls, runs_of
    from weft.evidence.output_digest import verdict_digest
    from weft.evidence.receipts import judged_claims

__all__ = [
    "AnswerClaim",
    "BisectCheck",
    "BisectState",
    "Bisection",
    "BreakingCall",
    "BreakingDecision",
    "ClaimKind",
    "CommandRun",
    "EvidenceRuns",
    "MessageCalls",
    "Receipt",
    "ReceiptColor",
    "claims_in",
    "judged_claims",
    "may_claim",
    "runs_of",
    "signal_of",
    "verdict_digest",
]

_HOMES = {
    "BisectCheck": "bisection",
    "Bisection": "bisection",
    "BisectState": "bisection",
    "BreakingCall": "bisection",
    "BreakingDecision": "bisection",
    "signal_of": "bisection",
    "verdict_digest": "output_digest",
    "AnswerClaim": "claims",
    "claims_in": "claims",
    "CommandRun": "command_runs",
    "EvidenceRuns": "command_runs",
    "MessageCalls": "command_runs",
    "runs_of": "command_runs",
    "judged_claims": "receipts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
