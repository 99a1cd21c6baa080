"""A store whose connection fails as a script says; what it holds is another store's."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal, TypeAlias, cast

from weft.errors import OutcomeUnknown, StoreOutage
from weft.store import Append, Record, Store

AppendFault: TypeAlias = Literal["", "stored", "unstored", "late", "down", "outage"]
"""How one append goes: well; stored or not with its answer lost; lost too, and stored just before
the next one; answered, and then the connection goes down; refused, out of reach."""


class ScriptedStore:
    """A wrapped store, with faults in its appends and a switch for the whole connection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.faults: deque[AppendFault] = deque()
        """How the next appends go; when it is empty, well."""
        self.is_down = False
        """Neither appends nor reads get through."""
        self.goes_down_with: AppendFault = ""
        """The fault of an append to come, at which the connection goes down for good."""
        self.after_appends = 0
        """Appends that go well before that one."""
        self._late: tuple[Append, ...] = ()
        """What is still under way."""

    async def append(self, *appends: Append) -> None:
        """Append, or fail as planned."""
        fault = "outage" if self.is_down else self._next_fault()
        if fault == "outage":
            raise StoreOutage("the store cannot be reached, nothing was written")
        await self.land()
        self.is_down = self.is_down or fault == "down"
        if fault == "late":
            self._late = appends
        elif fault != "unstored":
            await self._store.append(*appends)
        if fault and fault != "down":
            raise OutcomeUnknown("the connection to the store broke in the middle of an append")

    async def land(self) -> None:
        """Store what is still under way."""
        late, self._late = self._late, ()
        if late:
            await self._store.append(*late)

    def _next_fault(self) -> AppendFault:
        if self.goes_down_with and self.after_appends:
            self.after_appends -= 1
        elif self.goes_down_with:
            fault, self.goes_down_with = self.goes_down_with, ""
            self.is_down = True
            return fault
        return self.faults.popleft() if self.faults else ""

    async def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> list[Record]:
        """Read, unless it is down."""
        if self.is_down:
            raise StoreOutage("the store cannot be reached")
        return await self._store.read(stream, after=after, limit=limit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def scripted_store(store: Store) -> tuple[Store, ScriptedStore]:
    """A store to hand out, and the same one to plan its faults with."""
    scripted = ScriptedStore(store)
    # By delegation and not as a subclass: a protocol's own methods would hide the wrapped ones.
    return cast("Store", scripted), scripted
