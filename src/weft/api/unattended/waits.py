"""What sessions wait for, and what is to be sent to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from weft.errors import UsageError, WeftError
from weft.events import TurnWaiting, UnattendedPermission
from weft.ids import SessionId
from weft.messages import Text
from weft.runtime.session_host import SessionHost
from weft.session import is_sealed_by, schedule_words
from weft.state import OpenSchedule, SessionState

SHOWN_CHARACTERS: Final = 80
MOST_SESSIONS: Final = 1_000
"""Sessions that wait and are looked at for a list."""


class SessionWait(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a session waits for: the wait of its turn, or a prompt that is to be sent."""

    id: str
    session_id: SessionId
    kind: str
    """`time`, `command`, `agent`, `file`, `port`, `ci`; or `schedule`."""
    text: str
    """What it is: the path, the port, the command line; the words of the prompt."""
    since: float
    until: float | None = None
    """When it is over at the latest; of a schedule, when its next round begins."""
    every: float | None = None
    """Seconds between two rounds of a schedule; None for one round."""
    rounds: int = 0
    """Rounds that have begun."""
    max_rounds: int | None = None
    ends: float | None = None
    """After this time no round begins."""
    is_sealed: bool = True
    """False: what its rounds may do was given on another machine, or by another user, and none
    begins; cancel it, and schedule it again."""


Sealed = Callable[[SessionState, str, UnattendedPermission | None], bool]


def waits_of(state: SessionState, host: SessionHost) -> list[SessionWait]:
    """What a session waits for, its turn first, then what is due first."""
    found = [] if state.turn.asleep is None else [_turn_wait(state.session_id, state.turn.asleep)]
    seal = host.services.seal
    schedules = sorted(state.schedules.open.values(), key=lambda each: each.due)
    for each in schedules:
        scheduled = each.scheduled
        name, said = scheduled.schedule_id, schedule_words(scheduled)
        sealed = is_sealed_by(seal, state, name, scheduled.permission, said)
        found.append(_schedule(state.session_id, each, is_sealed=sealed))
    return found


def _turn_wait(session_id: SessionId, wait: TurnWaiting) -> SessionWait:
    on = wait.on
    return SessionWait(
        id=wait.wait_id,
        session_id=session_id,
        kind=on.kind,
        text=on.text or on.place or on.name,
        since=wait.at,
        until=wait.until,
    )


def _schedule(session_id: SessionId, schedule: OpenSchedule, *, is_sealed: bool) -> SessionWait:
    scheduled = schedule.scheduled
    words = " ".join(
        part.typed or part.text for part in scheduled.parts if isinstance(part, Text)
    ).split()
    return SessionWait(
        id=scheduled.schedule_id,
        session_id=session_id,
        kind="schedule",
        text=" ".join(words)[:SHOWN_CHARACTERS],
        since=scheduled.at,
        until=schedule.due,
        every=scheduled.every,
        rounds=schedule.rounds,
        max_rounds=scheduled.max_rounds,
        ends=scheduled.ends,
        is_sealed=is_sealed,
    )


async def all_waits(host: SessionHost, ids: Sequence[SessionId] | None = None) -> list[SessionWait]:
    """What these sessions wait for, or all of the store; nothing is opened for it."""
    store = host.services.stores.own
    if ids is None:
        ids = [row.id for row in await store.due(math.inf, limit=MOST_SESSIONS)]
    found: list[SessionWait] = []
    for each in ids:
        try:
            found += waits_of(await host.registry.stored_state(each), host)
        except WeftError:
            continue  # damaged, or deleted meanwhile: the list is of the others
    return found


async def find_wait(host: SessionHost, given: str) -> SessionWait:
    """A wait of any session, by its id or the unique beginning or end of it.

    Raises:
        UsageError: there is none, or several.
    """
    every = await all_waits(host)
    matches = [each for each in every if each.id.startswith(given) or each.id.endswith(given)]
    if len(matches) == 1 and given:
        return matches[0]
    if not matches or not given:
        raise UsageError(f"nothing waits under {given!r:.80}; `weft waits` shows what does")
    names = ", ".join(each.id for each in matches)
    raise UsageError(f"{given!r:.80} fits several waits: {names}")
