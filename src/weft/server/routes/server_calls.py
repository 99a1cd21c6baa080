"""Operations of the server itself: is it there, numbers, usage by day, pairing."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.api import DailyUsage
from weft.server.errors import RequestRefusal
from weft.server.operation import ApiCall, ApiOperation, ChangeBody, QueryFields
from weft.server.page_tokens import TokenRole
from weft.server.telemetry.metrics import MEDIA_TYPE, metrics_text


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The server lives; it says nothing else to those without a token."""

    status: Literal["ok"] = "ok"


class PairBody(ChangeBody, frozen=True, kw_only=True):
    """The code from the address that `weft web` opens, or the password of a public server."""

    code: str


class PairAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The token of a page."""

    token: str


class CodeBody(ChangeBody, frozen=True, kw_only=True):
    """For what a code is made."""

    role: TokenRole = "driver"


class CodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A code for one pairing, good for a minute."""

    code: str


class UsageQuery(QueryFields, frozen=True, kw_only=True):
    """How many days, today included; and whether one project alone."""

    days: int = 30
    project: str | None = None
    """The name of a project in paths."""


async def _health(call: ApiCall) -> HealthAnswer:
    cluster = call.parts.cluster
    if cluster is not None and not cluster.accepting:
        raise RequestRefusal(503, "ending", "this server ends; ask another")
    return HealthAnswer()


async def _metrics(call: ApiCall) -> str:
    return await metrics_text(call.parts)


async def _usage_by_day(call: ApiCall) -> list[DailyUsage]:
    projects, named = call.parts.projects, call.query.project
    only = None if named is None else (await projects.named(named)).project_path
    rows = await projects.main.usage_by_day(call.query.days)
    return [row for row in rows if only in (None, row.project_path)]


async def _pair(call: ApiCall) -> PairAnswer:
    token = call.parts.tokens.pair(call.body.code)
    if token is None:
        raise RequestRefusal(401, "code", "this code is not known, was used, or is too old")
    return PairAnswer(token=token)


async def _new_code(call: ApiCall) -> CodeAnswer:
    return CodeAnswer(code=call.parts.tokens.new_code(call.body.role))


SERVER_CALLS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="GET",
        path="/health",
        name="health",
        says="Whether the server lives.",
        run=_health,
        answer=HealthAnswer,
        is_open=True,
    ),
    ApiOperation(
        method="GET",
        path="/metrics",
        name="metrics",
        says="Numbers of the server, in the text format of Prometheus.",
        run=_metrics,
        answer=str,
        media_type=MEDIA_TYPE,
    ),
    ApiOperation(
        method="GET",
        path="/usage",
        name="usage_by_day",
        says="Tokens and cost of all stored sessions by day, project and model, newest day first.",
        run=_usage_by_day,
        query=UsageQuery,
        answer=list[DailyUsage],
        calls=("app.usage_by_day",),
    ),
    ApiOperation(
        method="POST",
        path="/pair",
        name="pair",
        says="Exchange a code for a token.",
        run=_pair,
        body=PairBody,
        answer=PairAnswer,
        is_open=True,
    ),
    ApiOperation(
        method="POST",
        path="/pair/codes",
        name="new_code",
        says="Make a code for another page, which may drive or only read.",
        run=_new_code,
        body=CodeBody,
        answer=CodeAnswer,
        remembers=False,
    ),
)
