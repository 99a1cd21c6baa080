"""A session that waits and is sent prompts later: section *Waiting* of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Unpack

import msgspec

from weft.api.handle import SessionBase
from weft.api.options import MessageOptions
from weft.errors import UsageError
from weft.events import WaitSubject
from weft.messages import Content, as_parts
from weft.session import BeginWait, CancelWait, ScheduleInput

if TYPE_CHECKING:  # few sessions wait
    from datetime import datetime

    from weft.api.unattended.waits import SessionWait

MOST_ROUNDS: Final = 100
LONGEST_SECONDS: Final = 7 * 24 * 3600.0
"""What a schedule with more than one round ends by, if nothing else is said."""


class WaitCalls(SessionBase):
    """What is done with no user there."""

    async def waits(self) -> list[SessionWait]:
        """What the session waits for: the wait of its turn, and prompts that are to be sent."""
        from weft.api.unattended.waits import waits_of  # as above

        return waits_of((await self._port()).state, self._host)

    async def wait_for(
        self,
        on: WaitSubject | Mapping[str, Any],
        until: str | float | datetime | None = None,
        *,
        input_id: str | None = None,
    ) -> SessionWait:
        """Begin a turn that is asleep until something has come: `{"kind": "file", "place":
        "dist/*.whl"}`; `time`, `command` and `agent` (by `name`), `file`, `port` and `ci` (by
        `place`).  Then the model is told, and goes on.  `until` is when it is woken at the latest.

        Raises:
            SessionBusy: a turn runs.
            UsageError: there is no such thing, or it has come already.
        """
        from weft.api.unattended.times import given_time  # as above

        try:
            subject = msgspec.convert(on, WaitSubject, from_attributes=True)
        except msgspec.ValidationError as error:
            raise UsageError(f"this cannot be waited for: {error}") from error
        ends = None if until is None else given_time(until, self._host.now())
        wait_id = await self._call(BeginWait(on=subject, until=ends, **self._by(input_id)))
        found = [each for each in await self.waits() if each.id == wait_id]
        if not found:
            raise UsageError("this was waited for before, and is over")
        return found[0]

    async def cancel_wait(self, id: str, *, input_id: str | None = None) -> bool:
        """End a wait by its id; True when it had not ended.  A turn that waited goes on; of a
        schedule no further round begins.
        """
        return await self._call(CancelWait(wait_id=id, **self._by(input_id)))

    async def schedule(
        self,
        at: str | float | datetime,
        prompt: Content,
        *,
        every: str | float | None = None,
        max_rounds: int | None = None,
        until: str | float | datetime | None = None,
        input_id: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> SessionWait:
        """Send a prompt at a time (`17:00`, ISO 8601, `+2h`, wall-clock seconds), once or `every`
        so often; by any process that wakes what is due.

        Its turns have the permission mode and the grants of the session as they are now, also where
        no user is there; `bypass` becomes `default`.  With `every` it ends after 100 rounds, or
        after 7 days, if nothing else is said.

        Raises:
            UsageError: it is no time within a year, or too often.
        """
        from weft.api.unattended.times import given_seconds, given_time  # as above

        now = self._host.now()
        model = str(options.get("model") or (await self._port()).state.settings.model)
        # Said now: at its time there is nobody to hear that it cannot be had.
        self._host.services.models.resolve(self._host.model_named(model).name)
        due = given_time(at, now)
        ends = None if until is None else given_time(until, now)
        if every is not None:
            max_rounds = MOST_ROUNDS if max_rounds is None else max_rounds
            ends = due + LONGEST_SECONDS if ends is None else ends
        command = ScheduleInput(
            parts=as_parts(prompt),
            due=due,
            every=None if every is None else given_seconds(every),
            max_rounds=max_rounds,
            ends=ends,
            options=self._options(options),
            **self._by(input_id),
        )
        schedule_id = await self._call(command)
        found = [each for each in await self.waits() if each.id == schedule_id]
        if not found:
            raise UsageError("this prompt was scheduled before, and is over or cancelled")
        return found[0]
