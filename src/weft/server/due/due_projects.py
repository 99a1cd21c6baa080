"""Projects with sessions that are due: opened by a server, so that they go on there.

An application wakes what is due of its own project, with its rules, hooks and settings.  So all
that a server does for the others is to open them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from weft.api import SessionRow
from weft.errors import Owned, WeftError
from weft.ids import SessionId
from weft.server.projects import ServedProjects, project_key

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
AT_ONCE: Final = 8
"""Sessions whose files are brought here in one look."""
MOST_DUE: Final = 1_000
"""Sessions that one look asks for: those of open projects take places in it, too."""
AGAIN_SECONDS: Final = 600.0
"""How long a project is left alone that could not be opened."""


class DueProjects:
    """Opens them, look by look."""

    def __init__(
        self,
        projects: ServedProjects,
        accepts: Callable[[], bool] | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """`accepts` says whether this server of several takes sessions now."""
        self._projects = projects
        self._accepts = accepts or (lambda: True)
        self._sleep = sleep
        self._failed: dict[str, float] = {}
        """Projects that could not be opened, sessions whose files could not be brought here, and
        when to try again.
        """

    async def run(self) -> None:
        """Look again and again; never returns."""
        while True:
            await self._sleep(LOOK_SECONDS)
            try:
                if self._accepts():
                    await self.look()
            except (WeftError, OSError):
                # With the next look it may be there again: the store, or a free descriptor.
                logger.warning("it could not be found out what is due", exc_info=True)

    async def look(self) -> list[str]:
        """Open the projects of what is due and have it go on; returns which were opened."""
        main = self._projects.main
        now = main.host.now()
        self._failed = {path: again for path, again in self._failed.items() if again > now}
        rows = await main.store.due(now, limit=MOST_DUE)
        if self._projects.is_clustered:
            rows = await self._at_home(rows, now)
        is_open = {app.project_path for app in self._projects.apps}
        paths = dict.fromkeys(row.project_path for row in rows if row.project_path)
        opened = []
        for path in paths:
            if path in is_open or path in self._failed or self._projects.is_closing:
                continue
            if await self._open(path):
                opened.append(path)
            else:
                # It may be on another host, or be back later.
                self._failed[path] = now + AGAIN_SECONDS
        return opened

    # -- at a server of several

    async def _at_home(self, rows: Sequence[SessionRow], now: float) -> list[SessionRow]:
        """Those of the sessions whose files are where lists say; of the others, those that no
        process has go on with files that are brought here.
        """
        found: list[SessionRow] = []
        woken = 0
        for row in rows:
            if self._projects.is_closing or not self._accepts():
                return []
            if await self._wake_open(row) or row.id in self._failed:
                continue
            if await self._projects.main.store.lease_of(row.id) is not None:
                continue  # another process has it, and wakes it
            try:
                if await self._projects.is_at_home(row):
                    found.append(row)
                    continue
            except (WeftError, OSError):
                is_woken = self._cannot_go_on(row.id)
            else:
                if woken == AT_ONCE:
                    continue  # each may ask a model at once: with the next look
                woken += 1
                is_woken = await self._wake_away(row.id)
            if not is_woken:
                self._failed[row.id] = now + AGAIN_SECONDS
        return found

    async def _wake_open(self, row: SessionRow) -> bool:
        """Whether a session is open here, and so goes on here: where it was brought to another
        folder than lists say, the look of no application finds it.
        """
        for app in self._projects.apps:
            if (port := app.host.running(row.id)) is None:
                continue
            here = project_key(app.project_path)
            # By the application of its folder alone: another one has other rules.
            if project_key(port.state.about.project_path) == here != project_key(row.project_path):
                await app.host.wake_open(row.id)
            return True
        return False

    async def _wake_away(self, session_id: SessionId) -> bool:
        """Go on with a session whose files are brought here for it; False where they cannot be."""
        store = self._projects.main.store
        try:
            # The lease first: its files are brought to one host, not to all that look.
            lease = await store.take_lease(session_id)
        except Owned:
            return True
        except WeftError:
            return self._cannot_go_on(session_id)
        try:
            app = await self._projects.with_files_of(session_id)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await store.release_lease(lease)
            if isinstance(error, WeftError | OSError):
                return self._cannot_go_on(session_id)
            raise
        try:
            return bool(await app.host.wake_taken(lease))
        except (WeftError, OSError):
            return self._cannot_go_on(session_id)

    @staticmethod
    def _cannot_go_on(session_id: SessionId) -> bool:
        about = {"session": session_id}
        logger.warning("a session that is due cannot go on here", exc_info=True, extra=about)
        return False

    async def _open(self, path: str) -> bool:
        try:
            app = await self._projects.at(path)
        except (WeftError, OSError):
            logger.warning("a project with a session that is due cannot be opened", exc_info=True)
            return False
        await app.host.wake_due()
        return True
