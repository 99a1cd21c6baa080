"""A turn that a crash has cut off: what the user has chosen for it, and what it costs to go on."""

from __future__ import annotations

import msgspec

from weft.api.context_size import estimated_use
from weft.errors import WeftError
from weft.messages import Usage
from weft.runtime.session_host import SessionHost
from weft.session.decide.prompts import resume_choice
from weft.session.port import SessionPort


class ComingBack(msgspec.Struct, frozen=True, kw_only=True):
    """How a session stands to a turn that a crash has cut off."""

    resume: str = "ask"
    """What the user has chosen: `ask`, `auto` or `never`."""
    is_interrupted: bool = False
    """Whether there is such a turn, and no process works on it."""
    restarts: int = 0
    """How often it went on by itself since the user looked at it."""
    parked: str = ""
    """Why it does not go on by itself; empty where it may."""
    tokens: int = 0
    """About what its next model call sends."""
    max_cost_usd: float | None = None
    """What that call costs at most; None where no call is to come, or the price is unknown."""


async def coming_back(port: SessionPort, host: SessionHost) -> ComingBack:
    """How a session stands now."""
    state, turn = port.state, port.state.turn.open
    choice = resume_choice(state)
    if turn is None or port.status != "interrupted":
        return ComingBack(resume=choice)
    last = state.ledger.last_call
    estimated = await estimated_use(port, host)
    tokens = estimated if estimated is not None else last.total_tokens if last else 0
    return ComingBack(
        resume=choice,
        is_interrupted=True,
        restarts=len(turn.restarts),
        parked=turn.parked,
        tokens=tokens,
        max_cost_usd=_most(host, state.settings.model, tokens),
    )


def _most(host: SessionHost, model: str, tokens: int) -> float | None:
    """What a call costs at most: nothing of it from a cache, and the longest answer."""
    try:
        info = host.model(model).info
    except WeftError:  # its key is gone; the call itself will say so
        return None
    answer = info.max_output_tokens
    costs = [
        info.cost(Usage(input_tokens=tokens, output_tokens=answer)),
        info.cost(Usage(cache_write_tokens=tokens, output_tokens=answer)),
    ]
    known = [each for each in costs if each is not None]
    return max(known, default=None)
