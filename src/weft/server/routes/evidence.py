"""Operations on what the log of a session shows."""

from __future__ import annotations

from typing import Final

from weft.evidence import Receipt
from weft.server.operation import ApiOperation, QueryFields, session_call


class TurnQuery(QueryFields, frozen=True, kw_only=True):
    """A turn, by one of its messages; without it, the last."""

    turn: str | None = None


EVIDENCE: Final[tuple[ApiOperation, ...]] = (
    session_call(
        "GET",
        "/receipts",
        "receipts",
        "What the answer of a turn claims, beside what is on record.",
        query=TurnQuery,
        answer=tuple[Receipt, ...],
    ),
)
