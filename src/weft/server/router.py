"""From a request to an operation and back: routing, bodies, answers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send

from weft.errors import WeftError
from weft.server.errors import RequestRefusal, answer_of, error_response
from weft.server.operation import ApiCall, ApiOperation

if TYPE_CHECKING:
    from weft.server.server_parts import ServerParts

logger = logging.getLogger(__name__)

BODY_SECONDS: Final = 30.0
"""How long a body may take to arrive."""
_encoder = msgspec.json.Encoder(enc_hook=str)


def api_router(
    operations: Iterable[ApiOperation], parts: ServerParts, others: Iterable[BaseRoute] = ()
) -> Router:
    """The routes of all operations; a path with several methods is one route."""
    by_path: dict[str, dict[str, ApiOperation]] = defaultdict(dict)
    for operation in operations:
        by_path[operation.path][operation.method] = operation
    # Names before places: `/sessions/active` is no session.
    ordered = sorted(by_path, key=lambda path: [part.startswith("{") for part in path.split("/")])
    routes = [Route(f"/api{path}", _OperationEndpoint(by_path[path], parts)) for path in ordered]
    return Router([*routes, *others], redirect_slashes=False, default=_nothing_there)


class _OperationEndpoint:
    """The operations of one path."""

    def __init__(self, operations: dict[str, ApiOperation], parts: ServerParts) -> None:
        self._operations = operations
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get(method)
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            answer = error_response(
                405, "method", f"this path takes {allowed}", headers={"allow": allowed}
            )
            await answer(scope, receive, send)
            return
        began = self._parts.meter.clock.monotonic()
        answer = await self._answer(operation, Request(scope, receive))
        self._note(operation, scope, answer.status_code, began)
        await answer(scope, receive, send)

    def _note(self, operation: ApiOperation, scope: Scope, status: int, began: float) -> None:
        seconds = self._parts.meter.clock.monotonic() - began
        self._parts.meter.add(operation.name, status, seconds)
        if logger.isEnabledFor(logging.INFO):
            # Neither the query nor a body: they have what users wrote.
            fields = {
                "operation": operation.name,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "session": scope.get("path_params", {}).get("id", ""),
            }
            logger.info("%s answered with %d", operation.name, status, extra=fields)

    async def _answer(self, operation: ApiOperation, request: Request) -> Response:
        try:
            raw = await _body(request, operation.most_bytes) if operation.changes else b""
            call = ApiCall(operation, request, self._parts, raw)
            answer = await self._once(call)
            return answer if isinstance(answer, Response) else _encoded(operation, answer)
        except HTTPException as error:
            return error_response(error.status_code, "request", error.detail)
        except (RequestRefusal, WeftError) as error:
            return answer_of(error)
        except ClientDisconnect:
            return Response(status_code=499)  # to nobody
        except Exception as error:  # a request that fails takes no other along
            return answer_of(error)

    async def _once(self, call: ApiCall) -> Any:
        operation = call.operation
        input_id = call.body.input_id if call.body is not None else None
        if operation.remembers or not input_id or call.wants_events:
            return await operation.run(call)
        target = f"{operation.method} {call.request.url.path}"
        run: Callable[[], Awaitable[Any]] = lambda: operation.run(call)  # noqa: E731 (one line)
        return await self._parts.repeats.once(target, input_id, call.raw, run)


async def _body(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        RequestRefusal: it is too large, or does not come.
    """
    length = request.headers.get("content-length", "0")
    too_large = RequestRefusal(413, "too_large", f"this takes at most {most:,} bytes")
    if int(length) > most:
        raise too_large
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_SECONDS):
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise too_large
            parts.append(part)
        return b"".join(parts)
    raise RequestRefusal(408, "slow", f"the body did not come within {BODY_SECONDS:.0f} s")


def _encoded(operation: ApiOperation, answer: Any) -> Response:
    if operation.answer is None:
        return Response(status_code=204)
    if isinstance(answer, str | bytes) and operation.media_type != "application/json":
        headers = {"content-disposition": "attachment"}
        return Response(answer, operation.status, headers, operation.media_type)
    return Response(
        _encoder.encode(answer),
        operation.status,
        {"cache-control": "no-store"},
        "application/json",
    )


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await Response(status_code=403)(scope, receive, send)
        return
    answer = error_response(404, "path", "there is nothing at this path")
    await answer(scope, receive, send)
