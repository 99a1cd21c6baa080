"""Where sessions are kept: in the application's own store, and in others that sessions were started
in.

All sessions live side by side, whatever store they are kept in.  Another store comes into use with
the first session that names it, and goes out of use with the last one that is stopped: then it is
closed if we opened it, and given back if it was handed in.  What is in memory is kept until the
application closes, because closing it would lose it.  Children and forks are kept where the session
is that they come from.

An id is looked for in the store that its session was started in; if it was started in none, in the
application's own, and then in the others that are in use.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio

from weft.config.paths import WeftPaths
from weft.config.project_ids import KnownProject
from weft.errors import UsageError
from weft.ids import SessionId
from weft.store import RowPlace, SessionRow, Store
from weft.store.location import (
    StoreArgument,
    StoreLocation,
    given_store,
    location_of,
    open_location,
)


class AsyncCloseable(Protocol):
    """Something to close at the end."""

    async def aclose(self) -> None: ...


class OpenStore:
    """A store in use, and who needs it."""

    def __init__(self, store: Store, place: StoreLocation | None) -> None:
        self.store = store
        self.place = place
        """None when the store was handed in: then it is not ours to close."""
        self.needed_by: set[object] = set()
        self.socket: AsyncCloseable | None = None

    @property
    def is_done(self) -> bool:
        """No session needs it, and nothing is lost by closing it."""
        is_lost_when_closed = self.place is not None and self.place.kind == "memory"
        return not self.needed_by and not is_lost_when_closed

    async def aclose(self) -> None:
        """Stop taking commands for its sessions, and close what is ours."""
        if self.socket is not None:
            await self.socket.aclose()
        if self.place is not None:
            await self.store.aclose()
        elif self.socket is not None:
            await self.store.register_address("")


class StoreRegistry:
    """The stores of one application."""

    def __init__(
        self,
        own: Store,
        place: StoreLocation | None,
        *,
        places: WeftPaths,
        listen: Callable[[Store], Awaitable[AsyncCloseable | None]],
        hide: Callable[[list[Path]], None],
    ) -> None:
        """`own` is the application's, and stays its to close.

        `listen` lets other processes drive the sessions of a store; `hide` keeps its files from
        commands.
        """
        self.own = own
        self._own_place = place
        self._places = places
        self._listen = listen
        self._hide = hide
        self._others: list[OpenStore] = []
        self._ending: set[OpenStore] = set()
        """Taken out of use, and perhaps not closed yet."""
        self._store_of_session: dict[SessionId, OpenStore] = {}
        self._changing = anyio.Lock()

    # -- looking

    def of(self, session_id: SessionId) -> Store:
        """The store that a session was started in; the application's own for all others."""
        opened = self._store_of_session.get(session_id)
        return self.own if opened is None else opened.store

    async def find(self, session_id: SessionId) -> Store | None:
        """The store that has a session which can be opened; None when none has."""
        opened = self._store_of_session.get(session_id)
        for store in self.in_use if opened is None else (opened.store,):
            if await store.row(session_id) is not None:
                return store
        return None

    @property
    def in_use(self) -> list[Store]:
        """The application's own first."""
        return [self.own, *(opened.store for opened in self._others)]

    async def rows(
        self,
        *,
        project_path: str | None,
        query: str | None,
        limit: int,
        archived: bool,
        after: RowPlace | None = None,
        moved: KnownProject | None = None,
    ) -> list[SessionRow]:
        """Sessions of all stores in use, last active first, each once; those behind a place.

        `moved` is the project at the path, where it had other paths before.
        """
        found: dict[SessionId, SessionRow] = {}
        stores = self.in_use
        for store in stores:
            rows = await store.rows(
                project_path=project_path,
                query=query,
                limit=limit,
                archived=archived,
                after=after,
            )
            if len(stores) == 1 and moved is None:
                return rows
            if moved is not None:
                read = partial(store.rows, query=query, archived=archived)
                for path in moved.former:
                    at_path = partial(read, project_path=path)
                    rows += await _of_project(at_path, moved.id, limit, after)
            for row in rows:
                # A copied store has the same ids; the one that the session was started from wins.
                if row.id not in found or self.of(row.id) is store:
                    found[row.id] = row
        order = sorted(found.values(), key=lambda row: (row.last_active, row.id), reverse=True)
        return order[:limit]

    async def ids_with_prefix(self, prefix: str) -> list[SessionId]:
        """Ids of all stores in use that begin with `prefix`, taken literally."""
        stores = self.in_use
        found = [each for store in stores for each in await store.ids_with_prefix(prefix)]
        return list(dict.fromkeys(found))

    # -- coming into use, and going out of it

    @asynccontextmanager
    async def entered(
        self, wanted: StoreArgument | None, session_id: SessionId, *, is_open: bool
    ) -> AsyncGenerator[Store]:
        """The store that a session is to be started in, opened if need be; unless the body fails,
        it stays in use for the session.

        Raises:
            UsageError: it is no store, or the session is open from another one.
        """
        if wanted is None:
            yield self.of(session_id)
            return
        # Opening takes a while: without the lock two sessions that name one path would open it
        # twice.
        async with self._changing:
            opened = await self._opened(wanted)
            known = self._store_of_session.get(session_id)
            if opened is not known and (known is not None or is_open):
                raise UsageError(
                    f"session {session_id!r} is open from another store; stop it, then "
                    "start the one of this id that is kept here"
                )
            self._assign(session_id, opened)
        try:
            yield self.of(session_id)
        except BaseException:
            if known is None:
                await self.release(session_id)
            raise

    @asynccontextmanager
    async def joined(self, session_id: SessionId, store: Store) -> AsyncGenerator[None]:
        """A session is kept in this store, which is in use.

        Unless the body fails, it stays so for the session.
        """
        is_new = session_id not in self._store_of_session
        self._assign(session_id, self._open_store_of(store))
        try:
            yield
        except BaseException:
            if is_new:
                await self.release(session_id)
            raise

    async def release(self, session_id: SessionId) -> None:
        """A session needs its store no longer."""
        opened = self._store_of_session.pop(session_id, None)
        if opened is not None:
            await self._let_go(opened, session_id)

    @asynccontextmanager
    async def kept(self, store: Store) -> AsyncGenerator[None]:
        """A store that is in use stays so meanwhile."""
        opened = self._open_store_of(store)
        if opened is None:
            yield
            return
        token = object()
        opened.needed_by.add(token)
        try:
            yield
        finally:
            await self._let_go(opened, token)

    async def aclose(self) -> None:
        """Close all but the application's own."""
        for opened in (*self._others, *self._ending):
            await opened.aclose()
        self._others, self._store_of_session = [], {}

    def _open_store_of(self, store: Store) -> OpenStore | None:
        return next((opened for opened in self._others if opened.store is store), None)

    def _assign(self, session_id: SessionId, opened: OpenStore | None) -> None:
        if opened is not None:
            self._store_of_session[session_id] = opened
            opened.needed_by.add(session_id)

    async def _let_go(self, opened: OpenStore, who: object) -> None:
        opened.needed_by.discard(who)
        async with self._changing:
            # Looked at under the lock: a session may have come in while this one waited.
            if not opened.is_done or opened not in self._others:
                return
            self._others.remove(opened)
            # Remembered until it is closed: should closing be cancelled, `aclose` of the
            # application does it.
            self._ending.add(opened)
            await opened.aclose()
            self._ending.discard(opened)

    async def _opened(self, wanted: StoreArgument) -> OpenStore | None:
        """The open store for this one, new if it is not in use; None for the application's own."""
        place = location_of(wanted, self._places)
        if wanted is self.own or (place is not None and place == self._own_place):
            return None
        for opened in self._others:
            if opened.store is wanted or (place is not None and place == opened.place):
                return opened
        if place is not None:
            self._hide(place.files)
        store = given_store(wanted) if place is None else await open_location(place)
        made = OpenStore(store, place)
        try:
            if made.store.meeting_folder is not None:
                self._hide([made.store.meeting_folder])
            if not made.store.owner.address:
                made.socket = await self._listen(made.store)
        except BaseException:
            await made.aclose()
            raise
        self._others.append(made)
        return made


async def _of_project(
    read: Callable[..., Awaitable[list[SessionRow]]],
    project_id: str,
    limit: int,
    after: RowPlace | None,
) -> list[SessionRow]:
    """The sessions of a project at a path that it had before: another one may be there now."""
    found: list[SessionRow] = []
    while len(found) < limit and (page := await read(limit=limit, after=after)):
        found += [row for row in page if row.project_id == project_id]
        after = page[-1].last_active, page[-1].id
    return found[:limit]
