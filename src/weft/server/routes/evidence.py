"""Operations on what the log of a session shows."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio
import msgspec

from weft.api import MessageExclusion, SentRequest
from weft.errors import WeftError
from weft.evidence import BisectCheck, Bisection, Blame, Receipt
from weft.server.operation import (
    ApiCall,
    ApiOperation,
    ChangeBody,
    QueryFields,
    given,
    session_call,
)
from weft.server.routes.queries import failed
from weft.server.sse import EventResponse, piece_of

_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


class TurnQuery(QueryFields, frozen=True, kw_only=True):
    """A turn, by one of its messages; without it, the last."""

    turn: str | None = None


class BisectBody(ChangeBody, frozen=True, kw_only=True):
    """A check, and the turns between which it began to fail."""

    check: str
    good: str | int | None = None
    bad: str | int | None = None
    jobs: int = 1
    timeout_seconds: float = 600.0
    in_copies: bool = False
    """Run it in copies, outside the sandbox, where there are no overlays."""


class PastQuery(QueryFields, frozen=True, kw_only=True):
    """A message, by its id."""

    at: str


class PastFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the project as they were at a message."""

    paths: list[str]
    """Files and links, in order."""
    tree: str
    """The tree hash of the snapshot that they come from."""
    is_exact: bool
    why: str = ""
    """Why they are not exactly what was there."""


async def _files_at(call: ApiCall) -> PastFiles:
    found = await (await call.session()).files_at(call.query.at)
    paths = sorted(path for path, each in found.files.items() if not each.is_folder)
    return PastFiles(paths=paths, tree=found.tree, is_exact=found.is_exact, why=found.why)


class BlameQuery(QueryFields, frozen=True, kw_only=True):
    """A file, and a line of it, counted from 1."""

    path: str
    line: int


async def _blame(call: ApiCall) -> Blame:
    return await (await call.app()).blame(call.query.path, call.query.line)


async def _bisect(call: ApiCall) -> Bisection | EventResponse:
    session, fields = await call.session(), given(call.body, "input_id")
    if not call.wants_events:
        return await session.bisect(**fields)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        del lost  # there is an event for each check, and they wait
        send, receive = anyio.create_memory_object_stream[bytes](math.inf)

        def told(check: BisectCheck) -> None:
            send.send_nowait(piece_of(check, event="check"))

        async def run() -> None:
            with send:
                try:
                    found = await session.bisect(**fields, on_check=told)
                    send.send_nowait(piece_of(found, event="bisection"))
                except WeftError as error:
                    send.send_nowait(failed(error))

        # Read and closed by one task: a reader that goes takes the checks along.
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            with receive:
                async for piece in receive:
                    yield piece

    return EventResponse(pieces, call.parts.relays.is_closing)


class SentQuery(QueryFields, frozen=True, kw_only=True):
    """A call of a turn; without a turn, the last one of the line."""

    turn: str | None = None
    call: int = -1
    diff: bool = False
    """With what changed since the request before, line by line."""


async def _sent(call: ApiCall) -> SentRequest:
    query, session = call.query, await call.session()
    number = _NUMBER.fullmatch(query.turn or "")
    turn = int(query.turn) if number else query.turn
    return await session.request(turn, query.call, diff=query.diff)


EVIDENCE: Final[tuple[ApiOperation, ...]] = (
    ApiOperation(
        method="GET",
        path="/sessions/{id}/sent",
        name="sent",
        says="What the model was sent in a turn, its cost by part, and why the cache was missed.",
        run=_sent,
        query=SentQuery,
        answer=SentRequest,
        calls=("session.request",),
    ),
    session_call(
        "PUT",
        "/nodes/{node}/excluded",
        "exclude",
        "Send a message to no model any more, with the results of its calls.",
        path_as={"node": "message_id"},
        answer=MessageExclusion,
    ),
    session_call(
        "DELETE",
        "/nodes/{node}/excluded",
        "include",
        "Send a message again that was excluded.",
        path_as={"node": "message_id"},
    ),
    session_call(
        "GET",
        "/receipts",
        "receipts",
        "What the answer of a turn claims, beside what is on record.",
        query=TurnQuery,
        answer=tuple[Receipt, ...],
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/files",
        name="files_at",
        says="The files of the session's project as they were at a message.",
        run=_files_at,
        query=PastQuery,
        answer=PastFiles,
    ),
    ApiOperation(
        method="GET",
        path="/projects/{project}/blame",
        name="blame",
        says="What wrote a line of a file, and why.",
        run=_blame,
        query=BlameQuery,
        answer=Blame,
        calls=("app.blame", "app.decisions.blame"),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/bisect",
        name="bisect",
        says="The turn at which a check began to fail; as events where those are accepted.",
        run=_bisect,
        body=BisectBody,
        answer=Bisection,
        streams=True,
        calls=("session.bisect",),
        remembers=False,
    ),
)
