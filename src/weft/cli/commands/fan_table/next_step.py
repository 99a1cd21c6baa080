"""What the user can do with a fan-out now, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.api.fan import Fan, FanCandidate


async def next_step(fan: Fan) -> str:
    """The sentence; empty where all is decided."""
    candidates = fan.candidates()
    if fan.is_closed or any(each.state == "kept" for each in candidates):
        return ""
    best = next((each for each in candidates if each.is_best), None)
    if best is not None:
        return _offer(fan.id, best.index)
    if len(candidates) < fan.planned or any(each.state == "interrupted" for each in candidates):
        return f"`weft fan resume {fan.id}` goes on where it was interrupted"
    changed = [each for each in candidates if each.files]
    if not changed:
        return "no candidate changed anything"
    return await _why_none(fan, changed)


def _offer(fan_id: str, number: int) -> str:
    return (
        f"`weft fan diff {fan_id} {number}` shows it, `weft fan keep {fan_id} {number} --dry-run` "
        f"what keeping would do, `weft fan keep {fan_id} {number}` keeps it"
    )


async def _why_none(fan: Fan, changed: Sequence[FanCandidate]) -> str:
    """Why none of those that changed something is the one to keep."""
    first = changed[0]
    shows = f"`weft fan diff {fan.id} {first.index}` shows what candidate {first.index} changed"
    if not fan.verify_command:
        return f"no candidate came to an end by itself; {shows}"
    if not any(each.verify for each in changed):
        return f"the check was not run; `weft fan resume {fan.id}` runs it"
    verdicts = {each.verify for each in changed}
    if first.base_verify == "failed" and verdicts <= {"failed", ""}:
        checked = next(each for each in changed if each.verify)
        words = (await fan.verify_output(checked.index)).split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return (
            "the check fails on the project as it was, too, so it tells nothing of the candidates"
            f"{f' ({last[:200]})' if last else ''}; {shows}"
        )
    return f"no candidate passed the check by its own work; {shows}"
