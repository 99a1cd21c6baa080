"""What dead servers left is taken over, and nothing of it takes this server with it."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from weft.errors import SessionNotFound
from weft.ids import SessionId
from weft.server.cluster.takeover import SessionTakeover
from weft.server.projects import ServedProjects
from weft.store import Lease, Owner, SessionRow

pytestmark = pytest.mark.anyio

OWNER = Owner(process_id="prc_here", pid=1, started=0)


class LeftSessions:
    """A store in which a dead server has left sessions at work."""

    def __init__(self, rows: list[SessionRow]) -> None:
        self._rows = {row.id: row for row in rows}
        self.released: list[str] = []

    async def adopt(self, limit: int, *, only: str | None = None) -> list[Lease]:
        del limit, only
        return [Lease(each, 2, OWNER) for each in self._rows]

    async def row(self, session_id: SessionId) -> SessionRow | None:
        return self._rows.get(session_id)

    async def release_leases(self, leases: list[Lease]) -> None:
        self.released += [each.stream for each in leases]


async def test_a_folder_that_cannot_be_looked_at_costs_no_more_than_its_session() -> None:
    # As one that this server's user may not look into; to root all of those are open.
    unseen = "/" + "a" * 300
    row = SessionRow(id=SessionId("ses_left"), project_path=unseen, turn_open=True)
    store = LeftSessions([row])
    projects: Any = SimpleNamespace(main=SimpleNamespace(store=store), _host="")
    projects.can_have = partial(ServedProjects.can_have, projects)
    await SessionTakeover(projects, SimpleNamespace(accepting=True)).take_left()  # type: ignore[arg-type]
    assert store.released == ["ses_left"]


async def test_a_session_that_cannot_be_read_is_given_back_and_keeps_no_other_one() -> None:
    first, second = (SessionRow(id=SessionId(f"ses_{at}"), turn_open=True) for at in "ab")
    store = LeftSessions([first, second])
    asked: list[str] = []

    async def can_have(row: SessionRow) -> bool:
        asked.append(row.id)
        if row.id == first.id:
            raise SessionNotFound(row.id)  # deleted meanwhile; a log may be damaged, too
        return False

    projects: Any = SimpleNamespace(main=SimpleNamespace(store=store), can_have=can_have)
    await SessionTakeover(projects, SimpleNamespace(accepting=True)).take_left()  # type: ignore[arg-type]
    assert asked == [first.id, second.id]
    assert store.released == [first.id, second.id]
