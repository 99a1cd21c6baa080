"""Errors on the wire: the one place that says which status an error has."""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from starlette.responses import Response

from weft.errors import (
    AmbiguousId,
    AuthFailed,
    Conflict,
    HookRefused,
    NodeNotFound,
    NoPendingRequest,
    Owned,
    OwnerLost,
    ProviderError,
    RateLimited,
    SessionBusy,
    SessionError,
    SessionInterrupted,
    SessionNotFound,
    SessionStopped,
    StaleEdit,
    StaleInput,
    StoreError,
    UsageError,
    ViewerRefused,
    WeftError,
)
from weft.runtime import ErrorBody, error_body

logger = logging.getLogger(__name__)

STATUS: Final[dict[type[BaseException], int]] = {
    UsageError: 400,
    StaleInput: 409,
    HookRefused: 403,
    ViewerRefused: 403,
    SessionNotFound: 404,
    NodeNotFound: 404,
    SessionBusy: 409,
    StaleEdit: 409,
    NoPendingRequest: 409,
    AmbiguousId: 409,
    SessionStopped: 409,
    SessionInterrupted: 409,
    SessionError: 409,
    Conflict: 409,
    Owned: 423,
    OwnerLost: 503,
    StoreError: 503,
    RateLimited: 429,
    AuthFailed: 502,
    ProviderError: 502,
    WeftError: 500,
}
"""The status of each kind of error; one that is not here has that of the nearest kind above it."""


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer that is no success."""

    error: ErrorBody


class RequestRefusal(Exception):
    """A request that is answered with an error before it reaches the API."""

    def __init__(self, status: int, kind: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def status_of(error: BaseException) -> int:
    """The status that an error is answered with."""
    for kind in type(error).__mro__:
        if kind in STATUS:
            return STATUS[kind]
    return 500


def answer_of(error: BaseException) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, RequestRefusal):
        return error_response(error.status, error.kind, str(error), headers=error.headers)
    if isinstance(error, WeftError):
        return _response(status_of(error), error_body(error))
    logger.error("a request failed", exc_info=error)
    return error_response(500, "internal", "something went wrong inside Weft; the log has it")


def error_response(
    status: int, kind: str, message: str, headers: dict[str, str] | None = None
) -> Response:
    """An error as JSON."""
    return _response(status, ErrorBody(kind=kind, message=message), headers)


def _response(status: int, body: ErrorBody, headers: dict[str, str] | None = None) -> Response:
    content = msgspec.json.encode(ErrorAnswer(error=body))
    return Response(content, status, media_type="application/json", headers=headers)
