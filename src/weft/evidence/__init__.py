"""Evidence: what a session's facts say about what its model claims.  Pure.

Which commands run tests, builds and checks (`command_kinds`), what the calls of messages show
(`command_runs`), what an answer claims (`claims`), each claim beside the record (`receipts`), and
whether two runs say the same (`output_digest`); the search for the state of the files at which a
check began to fail (`bisection`); why a request was not read from its vendor's cache
(`cache_causes`), and what its parts cost (`request_parts`).
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
    from weft.evidence.blame import Blame, BlamedCheck
    from weft.evidence.blame_words import allowed_words
    from weft.evidence.cache_causes import CacheCause, CacheReport
    from weft.evidence.claims import AnswerClaim, claims_in
    from weft.evidence.command_runs import CommandRun, EvidenceRuns, MessageCalls, runs_of
    from weft.evidence.output_digest import verdict_digest
    from weft.evidence.receipts import judged_claims
    from weft.evidence.request_parts import RequestPart
    from weft.evidence.request_words import PART_HEAD, cache_lines, part_rows

__all__ = [
    "PART_HEAD",
    "AnswerClaim",
    "BisectCheck",
    "BisectState",
    "Bisection",
    "Blame",
    "BlamedCheck",
    "BreakingCall",
    "BreakingDecision",
    "CacheCause",
    "CacheReport",
    "ClaimKind",
    "CommandRun",
    "EvidenceRuns",
    "MessageCalls",
    "Receipt",
    "ReceiptColor",
    "RequestPart",
    "allowed_words",
    "cache_lines",
    "claims_in",
    "judged_claims",
    "may_claim",
    "part_rows",
    "runs_of",
    "signal_of",
    "verdict_digest",
]

_HOMES = {
    "PART_HEAD": "request_words",
    "cache_lines": "request_words",
    "part_rows": "request_words",
    "CacheCause": "cache_causes",
    "CacheReport": "cache_causes",
    "RequestPart": "request_parts",
    "BisectCheck": "bisection",
    "Bisection": "bisection",
    "BisectState": "bisection",
    "BreakingCall": "bisection",
    "BreakingDecision": "bisection",
    "Blame": "blame",
    "BlamedCheck": "blame",
    "allowed_words": "blame_words",
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
