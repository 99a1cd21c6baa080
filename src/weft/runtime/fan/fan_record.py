"""What the log says of fan-outs: each with its candidates, folded from facts, and their rank.

Pure.  The rank is lexicographic, and every column of it is shown: an argument among columns
would hide why one candidate is above another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from weft.events import (
    AnyFact,
    FanCandidateDropped,
    FanCandidateEnded,
    FanCandidateRestored,
    FanCandidateStarted,
    FanClosed,
    FanJudged,
    FanKept,
    FanStarted,
    FanVerified,
)
from weft.ids import BlobId, SessionId

Verdict: TypeAlias = Literal["passed", "flaky", "failed", "none"]
FINISHED: Final = ("stop", "submitted")
_WORST: Final = 1_000_000_000.0


class CandidateRecord(msgspec.Struct, kw_only=True):
    """One candidate."""

    index: int
    child: SessionId
    model: str = ""
    isolation: str = "overlay"
    place: str = ""
    network: bool = False
    ended: FanCandidateEnded | None = None
    verified: list[FanVerified] = []
    """Its runs since its last end."""
    dropped: str = ""
    detail: str = ""
    """Why it was given up, in a sentence."""
    work: BlobId | None = None
    """What it had changed when it was pruned."""
    kept: bool = False

    @property
    def is_open(self) -> bool:
        """True while no end of it is on record."""
        return self.ended is None and not self.dropped

    @property
    def has_finished(self) -> bool:
        """True when it came to its end by itself."""
        return self.ended is not None and self.ended.finish_reason in FINISHED

    @property
    def verdict(self) -> Verdict:
        """What its runs of the verify command come to."""
        return _verdict([run for run in self.verified if run.on == "candidate"])

    @property
    def base_verdict(self) -> Verdict:
        """The same with the tests as the base has them; `none` where it changed none."""
        return _verdict([run for run in self.verified if run.on == "base_tests"])

    @property
    def cost_usd(self) -> float | None:
        """What it cost; None where that is not known."""
        return self.ended.usage.cost_usd if self.ended and self.ended.usage else None


class FanRecord(msgspec.Struct, kw_only=True):
    """One fan-out."""

    started: FanStarted
    candidates: dict[int, CandidateRecord] = {}
    base_runs: list[FanVerified] = []
    kept: list[FanKept] = []
    judged: FanJudged | None = None
    is_closed: bool = False

    @property
    def fan_id(self) -> str:
        """Its id."""
        return self.started.fan_id

    @property
    def base_verdict(self) -> Verdict:
        """What the verify command says of the base itself."""
        return _verdict(self.base_runs)

    def agreement(self, candidate: CandidateRecord) -> tuple[int, int]:
        """How many candidates came to the same change, and of how many that changed something."""
        ends = [each.ended for each in self.candidates.values()]
        groups = [end.group for end in ends if end is not None and end.group]
        mine = candidate.ended.group if candidate.ended is not None else ""
        return (groups.count(mine) if mine else 0), len(groups)

    def is_checked(self, candidate: CandidateRecord) -> bool:
        """Whether the check said all that it was to say of a candidate."""
        if not self.started.verify:
            return True
        runs = sum(run.on == "candidate" for run in candidate.verified)
        touches = candidate.ended is not None and candidate.ended.touches_checks
        return runs >= self.started.verify_runs and (
            not touches or candidate.base_verdict != "none"
        )

    def has_passed(self, candidate: CandidateRecord) -> bool:
        """Whether a candidate passed the check by its own work: one that changed tests has to pass
        the base's as well.
        """
        touches = candidate.ended is not None and candidate.ended.touches_checks
        is_own_work = not touches or candidate.base_verdict == "passed"
        return candidate.verdict == "passed" and is_own_work and self.is_checked(candidate)

    def ranked(self) -> list[CandidateRecord]:
        """The candidates, the best first."""
        return sorted(self.candidates.values(), key=self._rank)

    def merit(self, candidate: CandidateRecord) -> tuple[float, ...]:
        """The columns that come before all others: the end, the check, and the tests left alone."""
        end = candidate.ended
        order: dict[Verdict, int] = {"passed": 0, "none": 0, "flaky": 1, "failed": 2}
        # A check that edits of tests made pass is worth less than one that none did: first those
        # without, then those that also pass the base's tests, then the others.
        touched = 0 if end is None or not end.touches_checks else 1
        if touched and candidate.base_verdict in ("failed", "flaky"):
            touched = 2
        return (
            candidate.dropped == "pruned",
            not candidate.has_finished,
            order[candidate.verdict] if self.is_checked(candidate) else len(order),
            touched,
            end is None or not end.files,
        )

    def judged_place(self, candidate: CandidateRecord) -> int:
        """Which place the judge gave a candidate, or one with the same change; those that it did
        not compare come after.
        """
        if self.judged is None:
            return 0
        group = candidate.ended.group if candidate.ended is not None else ""
        for place, index in enumerate(self.judged.order):
            other = self.candidates.get(index)
            is_same = other is not None and other.ended is not None and other.ended.group == group
            if index == candidate.index or (group and is_same):
                return place
        return len(self.judged.order)

    def _rank(self, candidate: CandidateRecord) -> tuple[float, ...]:
        end = candidate.ended
        return (
            *self.merit(candidate),
            self.judged_place(candidate),
            -self.agreement(candidate)[0],
            end.added + end.removed if end is not None else _WORST,
            len(end.files) if end is not None else _WORST,
            _WORST if candidate.cost_usd is None else candidate.cost_usd,
            end.seconds if end is not None else _WORST,
            candidate.index,
        )


def _verdict(runs: Sequence[FanVerified]) -> Verdict:
    if not runs:
        return "none"
    passed = sum(run.passed for run in runs)
    return "passed" if passed == len(runs) else "flaky" if passed else "failed"


class FanLog(msgspec.Struct):
    """The fan-outs of one session."""

    fans: dict[str, FanRecord] = {}
    seq: int = 0
    """The last fact that was taken in."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        self.seq = fact.seq
        if isinstance(fact, FanStarted):
            self.fans[fact.fan_id] = FanRecord(started=fact)
            return
        if not isinstance(
            fact,
            FanCandidateStarted
            | FanCandidateEnded
            | FanVerified
            | FanKept
            | FanJudged
            | FanCandidateDropped
            | FanCandidateRestored
            | FanClosed,
        ):
            return
        fan = self.fans.get(fact.fan_id)
        if fan is not None:
            _apply(fan, fact)

    def apply_all(self, facts: Iterable[AnyFact]) -> None:
        """Take many facts in, in order."""
        for fact in facts:
            self.apply(fact)


def _apply(
    fan: FanRecord,
    fact: FanCandidateStarted
    | FanCandidateEnded
    | FanVerified
    | FanKept
    | FanJudged
    | FanCandidateDropped
    | FanCandidateRestored
    | FanClosed,
) -> None:
    match fact:
        case FanCandidateStarted():
            fan.candidates[fact.index] = CandidateRecord(
                index=fact.index,
                child=fact.child,
                model=fact.model,
                isolation=fact.isolation,
                place=fact.place,
                network=fact.network,
            )
        case FanVerified(index=0):
            fan.base_runs.append(fact)
        case FanClosed():
            fan.is_closed = True
        case FanJudged():
            fan.judged = fact
        case FanCandidateDropped(why="failed") if fact.index not in fan.candidates:
            # It failed before it was at work: it has no session yet.
            fan.candidates[fact.index] = CandidateRecord(
                index=fact.index, child=SessionId(""), dropped=fact.why, detail=fact.detail
            )
        case _ if fact.index not in fan.candidates:
            pass  # damage, or a newer program: nothing is known of it
        case FanCandidateEnded():
            fan.judged = None  # it compared something else
            candidate = fan.candidates[fact.index]
            candidate.ended, candidate.dropped, candidate.verified = fact, "", []
            candidate.detail = ""
        case FanVerified(on="merged"):
            pass
        case FanVerified():
            fan.candidates[fact.index].verified.append(fact)
        case FanKept():
            fan.kept.append(fact)
            fan.candidates[fact.index].kept = True
        case FanCandidateDropped():
            candidate = fan.candidates[fact.index]
            candidate.dropped, candidate.detail = fact.why, fact.detail
            candidate.work = fact.work or candidate.work
        case FanCandidateRestored():
            fan.candidates[fact.index].dropped = ""
