"""What a bisection found, in one sentence.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.evidence.bisection import BisectCheck, BisectState, BreakingCall

_NAMED: Final = 3


def sentence_of(
    outcome: str,
    good: BisectState | None,
    bad: BisectState | None,
    calls: Sequence[BreakingCall] = (),
    paths: Sequence[str] = (),
    checks: Sequence[BisectCheck] = (),
    skipped: Sequence[BisectState] = (),
) -> str:
    """The answer."""
    match outcome:
        case "found" if good is not None and bad is not None:
            return f"{_broken(good, bad, calls, paths)}; {_passing(good, bad)}"
        case "range" if good is not None and bad is not None:
            between = [each for each in skipped if good.index < each.index < bad.index]
            named = f" ({named_states(between)})" if between else ""
            return (
                f"it broke after {good.name} and not later than {bad.name}; the check gives no "
                f"verdict in between{named}"
            )
        case "flaky":
            return _flaky(good, bad, checks)
        case "bad_at_start" if good is not None:
            return (
                f"the check fails at the good end too ({good.name}: {_last(good, checks)}), so it "
                "cannot tell what broke; name a turn at which it passes with --good"
            )
        case "good_at_end" if bad is not None:
            return f"the check passes at the bad end ({bad.name}): nothing is broken there"
        case "no_verdict":
            end = good or bad
            assert end is not None
            why = end.why or _last(end, checks)
            return f"the check gives no verdict at one end ({end.name}): {why}"
        case _:
            return "the files were the same all along: nothing can have broken"


def named_states(states: Sequence[BisectState]) -> str:
    """A few of them by name, each with the reason why it could not be checked."""
    named = "; ".join(f"{each.name}: {each.why}" for each in states[:_NAMED])
    more = len(states) - _NAMED
    return f"{named}; and {more} more" if more > 0 else named


def _broken(
    good: BisectState,
    bad: BisectState,
    calls: Sequence[BreakingCall],
    paths: Sequence[str],
) -> str:
    if bad.made_by == "session":
        if not calls:
            return f"{bad.name} broke it ({_few(paths)})"
        if all(call.is_by_user for call in calls):
            return f"{_by_user(calls)} broke it, {_when(good, bad)}"
        what = " or ".join(f"`{call.target}`" for call in calls[:_NAMED])
        more = f" or one of {len(calls) - _NAMED} more calls" if len(calls) > _NAMED else ""
        return f"{bad.name} broke it: {what}{more}"
    if bad.made_by == "branch":
        return f"files of another branch broke it, {_when(good, bad)}: {_few(paths)}"
    who = "you or another program" if bad.made_by == "outside" else "a command in the background"
    return f"a change from outside the turns broke it, {_when(good, bad)}: {_few(paths)}, by {who}"


def _by_user(calls: Sequence[BreakingCall]) -> str:
    call = calls[0]
    return "your rewind" if call.tool_name == "rewind" else f"your command `{call.target}`"


def _when(good: BisectState, bad: BisectState) -> str:
    if bad.kind == "now":
        return f"after {good.name}"
    return bad.name if good.kind == "start" else f"after {good.name} and {bad.name}"


def _few(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _passing(good: BisectState, bad: BisectState) -> str:
    """What is green, by turns."""
    last = bad.turn - 1
    if bad.made_by != "session":
        # Turns that only talked have no state of their own: it may have broken before one of them.
        last = good.turn if good.kind == "turn" else good.turn - 1
    if last <= 0 or good.kind == "start":
        return "it passes before"
    return "it passes at turn 1" if last == 1 else f"it passes up to turn {last}"


def _flaky(good: BisectState | None, bad: BisectState | None, checks: Sequence[BisectCheck]) -> str:
    again = [check for check in checks if check.is_again]
    names = list(dict.fromkeys(check.name for check in again if _differs(check, checks)))
    left = []
    if good is not None:
        left.append(f"passes at {good.name}")
    if bad is not None:
        left.append(f"fails at {bad.name}")
    range_left = f"; what is left: it {' and '.join(left)}" if left else ""
    return (
        f"the check is flaky: two runs at {' and at '.join(names)} came out differently{range_left}"
    )


def _differs(again: BisectCheck, checks: Sequence[BisectCheck]) -> bool:
    first = [each for each in checks if each.state == again.state and not each.is_again]
    return any(each.verdict != again.verdict and each.call is None for each in first) or not first


def _last(state: BisectState, checks: Sequence[BisectCheck]) -> str:
    details = [check.detail for check in checks if check.state == state.index]
    return details[-1] if details else "it was not run"
