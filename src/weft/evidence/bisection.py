"""The search for the state of the files at which a check began to fail (`git bisect`, on the turns
of a session), and what it found.

Pure: it says which states are to be checked next, and takes what came of it.  States of equal files
are one (`distinct`), a state that cannot be checked is passed by, and what stands on both sides of
the border is checked once more, because a check that answers twice in two ways shows nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from weft.ids import CallUid, NodeId

Verdict: TypeAlias = Literal["good", "bad", "none"]
"""`none`: the check was not possible there, or did not come to an end."""

SKIP_CODE: Final = 125
"""By this a check says that these files cannot be judged."""
_NOT_RUN: Final = {126: "it cannot be run", 127: "it was not found"}
_SIGNAL_CODE: Final = 128
"""A shell adds the number of the signal that ended what it ran."""
_LAST_SIGNAL: Final = 64


class BisectState(msgspec.Struct, frozen=True, kw_only=True):
    """The project's files at one moment of a session's line."""

    index: int
    """Its place among all states, the oldest is 0."""
    kind: str
    """`start` (before the first turn), `turn` (at the end of one), `before` (between two turns:
    changed by something else than the turn), `now` (the files as they are); open."""
    turn: int
    """The number of the turn on the line: that at whose end it is, or before which it lies."""
    name: str
    """`turn 23`, `before turn 24`, …"""
    node: NodeId | None = None
    """The last message with these files; None before the first."""
    made_by: str = ""
    """Who changed the files since the state before: `session`, `outside` (the user, mostly),
    `unknown`, or `branch` (they are those of another branch); open."""
    why: str = ""
    """Why it cannot be checked; empty where it can."""


class BisectCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the check."""

    state: int
    """The index of the state."""
    name: str
    verdict: Verdict
    exit_code: int | None = None
    """None where it was ended, or did not run."""
    seconds: float = 0.0
    detail: str = ""
    """How it ended: `exit code 1`, `it was ended after 600 s`, …"""
    output: str = ""
    """The end of what it printed."""
    is_again: bool = False
    """The second run on a state beside the border."""
    call: CallUid | None = None
    """The call of the turn after which the files were so; None for a state."""


class BreakingCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the turn that was found, with what it changed."""

    tool_name: str
    target: str
    """What it did, in one line: `edit auth.py:41`."""
    paths: tuple[str, ...]
    call_uid: CallUid | None = None
    """None for a rewind."""
    node: NodeId | None = None
    """The message with the call."""
    reason: str = ""
    """What the model said when it made the call; empty where it said nothing."""
    is_by_user: bool = False
    """The user did it: a command line of theirs, or a rewind."""


class BreakingDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision on record that was taken in the turn that was found."""

    id: str
    title: str
    reason: str = ""


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """What a bisection found."""

    check: str
    outcome: str
    """`found`, `range` (states at the border could not be checked), `flaky`, `bad_at_start` (the
    check fails at the good end), `good_at_end` (it passes at the bad end), `no_verdict` (it cannot
    be run at an end), `nothing` (no two states differ); open."""
    sentence: str
    """What was found, in words."""
    good: BisectState | None = None
    """The last state at which the check passes; of `flaky`, the last that is certain."""
    bad: BisectState | None = None
    """The first state at which it fails; of `flaky`, the first that is certain."""
    paths: tuple[str, ...] = ()
    """The files that differ between the two; not all where there are very many."""
    calls: tuple[BreakingCall, ...] = ()
    """The call that broke it; several where they cannot be told apart."""
    decisions: tuple[BreakingDecision, ...] = ()
    branch_at: NodeId | None = None
    """The last good message: where to go on from (`can_branch`); None: before the first."""
    checks: tuple[BisectCheck, ...] = ()
    states: tuple[BisectState, ...] = ()
    notes: tuple[str, ...] = ()
    """What the checks did not see as it was: ignored files are today's, and the like."""

    @property
    def skipped(self) -> tuple[BisectState, ...]:
        """The states that could not be rebuilt."""
        return tuple(state for state in self.states if state.why)

    @property
    def can_branch(self) -> bool:
        """True where the session broke it, so that to go back before that takes it back."""
        if self.outcome not in ("found", "range") or self.bad is None:
            return False
        is_theirs = bool(self.calls) and all(call.is_by_user for call in self.calls)
        return self.bad.made_by == "session" and not is_theirs

    @property
    def count(self) -> int:
        """States that were checked; neither the second runs, nor those inside a turn."""
        return sum(not check.is_again and check.call is None for check in self.checks)


def verdict_of(exit_code: int | None) -> tuple[Verdict, str]:
    """What an exit code says, and in words."""
    if exit_code is None:
        return "none", "it did not run"
    if exit_code == 0:
        return "good", "exit code 0"
    if exit_code == SKIP_CODE:
        return "none", f"exit code {SKIP_CODE}: it says that these files cannot be checked"
    if exit_code in _NOT_RUN:
        return "none", f"exit code {exit_code}: {_NOT_RUN[exit_code]}"
    if signal := signal_of(exit_code):
        return "none", f"it was ended by signal {signal}"
    return "bad", f"exit code {exit_code}"


def signal_of(exit_code: int) -> int:
    """The signal that ended a command; 0 for none: 255, of `exit -1`, is above all of them."""
    signal = exit_code - _SIGNAL_CODE if exit_code > 0 else -exit_code
    return signal if 0 < signal <= _LAST_SIGNAL else 0


class BorderSearch:
    """Which states to check, to find one with a good state before and a bad one behind it."""

    def __init__(self, groups: Sequence[int], unknown: Collection[int] = ()) -> None:
        """`groups` has a number for each state, equal for equal files; `unknown` are the states
        that cannot be checked.
        """
        self._groups = list(groups)
        self._unknown = {self._groups[index] for index in unknown}
        self._verdicts: dict[int, Verdict] = {}
        self._misses = 0
        self.good = 0
        """The last state that is known to be good, once the first is checked."""
        self.bad = len(self._groups) - 1
        """The first state behind it that is known to be bad, once the last is checked."""

    def verdict(self, state: int) -> Verdict | None:
        """What is known of a state."""
        if self._groups[state] in self._unknown:
            return "none"
        return self._verdicts.get(self._groups[state])

    def take(self, state: int, verdict: Verdict) -> None:
        """Take in what a check came to."""
        self._verdicts[self._groups[state]] = verdict
        self._misses = self._misses + 1 if verdict == "none" else 0
        if self.verdict(0) == "good" and self.verdict(len(self._groups) - 1) == "bad":
            self._narrow()

    def _narrow(self) -> None:
        inside = range(self.good, self.bad + 1)
        # The first bad one, and the last good one before it: where there are several borders, this
        # is one of them.
        self.bad = next(index for index in inside if self.verdict(index) == "bad")
        before = range(self.good, self.bad)
        self.good = max(index for index in before if self.verdict(index) == "good")

    def wanted(self, most: int = 1) -> list[int]:
        """The states to check next, so many at once; none when there is nothing left to find."""
        last = len(self._groups) - 1
        # The bad end first: where the check passes there, nothing is broken.
        ends = [end for end in (last, 0) if self.verdict(end) is None]
        if ends or self.verdict(0) != "good" or self.verdict(last) != "bad":
            failed = any(
                known not in (None, wanted)
                for known, wanted in ((self.verdict(0), "good"), (self.verdict(last), "bad"))
            )
            return [] if failed else ends[:most]
        return self._between(most)

    def _between(self, most: int) -> list[int]:
        inside = [n for n in range(self.good + 1, self.bad) if self.verdict(n) is None]
        one_each = list({self._groups[index]: index for index in inside}.values())
        if not one_each:
            return []
        count = min(most, len(one_each))
        if count == 1:
            return [one_each[self._place(len(one_each))]]
        step = len(one_each) / (count + 1)
        return sorted({one_each[int(step * number)] for number in range(1, count + 1)})

    def _place(self, count: int) -> int:
        """The middle; after a state that could not be checked, farther away from it each time, so
        that a row of them is left quickly.
        """
        fraction, step, number = 0.0, 0.5, self._misses + 1
        while number:
            fraction += step * (number % 2)
            number //= 2
            step /= 2
        return min(count - 1, int(fraction * count))

    def certain(self, doubtful: Collection[int]) -> tuple[int, int]:
        """The states nearest to the border of which only one answer is known."""
        known = {index: self.verdict(index) for index in range(len(self._groups))}
        groups = {self._groups[index] for index in doubtful}
        sure = {n: each for n, each in known.items() if self._groups[n] not in groups}
        good = [n for n, each in sure.items() if each == "good" and n <= self.good]
        bad = [n for n, each in sure.items() if each == "bad" and n >= self.bad]
        return max(good, default=-1), min(bad, default=-1)


def distinct(keys: Sequence[str]) -> list[int]:
    """A number for each key, equal for equal ones."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
