"""An operation of the HTTP API, and one call of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from starlette.requests import Request

from weft.api import Session
from weft.app import App
from weft.errors import UsageError
from weft.server.errors import RequestRefusal

if TYPE_CHECKING:  # they import the operations
    from weft.server.server_parts import ServerParts

Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
CLIENT_HEADER = "weft-client"
"""The client that a call is made by, as `POST …/clients` named it."""
SMALL_BODY = 1024 * 1024
LARGE_BODY = 32 * 1024 * 1024
"""Of operations that take messages, whose pictures come along."""


class ChangeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the body of every changing call may have."""

    input_id: str | None = None
    """A call that comes again under the same id changes nothing and gets the first answer."""


class QueryFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands behind the `?` of a path."""


class ApiOperation(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table."""

    method: Method
    path: str
    """Below `/api`, with `{names}` in it."""
    name: str
    """Its `operationId`."""
    says: str
    """One sentence."""
    run: Callable[[ApiCall], Awaitable[Any]]
    body: type[ChangeBody] | None = None
    query: type[QueryFields] | None = None
    answer: Any = None
    """The type of the answer; None for an operation that answers with 204 and nothing."""
    status: int = 200
    calls: tuple[str, ...] = ()
    """The rows of the API that it stands for: `session.send_prompt`."""
    media_type: str = "application/json"
    """Of the answer; a `str` or `bytes` is sent as it is where it is another."""
    streams: bool = False
    """It answers with server-sent events, or can."""
    is_open: bool = False
    """It needs no token."""
    remembers: bool = True
    """What it calls knows input ids itself; the others' answers are kept by the server."""
    most_bytes: int = SMALL_BODY

    @property
    def changes(self) -> bool:
        """Whether it is more than reading."""
        return self.method != "GET"


def body_of(operation: ApiOperation) -> type[ChangeBody] | None:
    """What the body of an operation is; None where it takes none."""
    return operation.body or ChangeBody if operation.changes else None


class ApiCall:
    """One request, with all that its operation needs."""

    def __init__(
        self, operation: ApiOperation, request: Request, parts: ServerParts, raw: bytes
    ) -> None:
        self.operation = operation
        self.request = request
        self.parts = parts
        self.raw = raw
        """The body as it came."""
        self.path: Mapping[str, str] = request.path_params
        self.body: Any = None
        self.query: Any = None
        self._decode()

    def _decode(self) -> None:
        operation = self.operation
        given: dict[str, str] = {}
        for name, value in self.request.query_params.multi_items():
            if name in given:
                raise UsageError(f"{name} stands twice behind the ?")
            given[name] = value
        try:
            self.query = msgspec.convert(given, operation.query or QueryFields, strict=False)
            body = body_of(operation)
            if body is not None:
                self.body = msgspec.json.decode(self.raw or b"{}", type=body)
        except msgspec.MsgspecError as error:
            raise UsageError(f"the request does not fit: {error}") from error
        except (UnicodeDecodeError, RecursionError) as error:
            raise UsageError("the request is not JSON in UTF-8") from error

    @property
    def wants_events(self) -> bool:
        """Whether the caller asks for server-sent events."""
        return "text/event-stream" in self.request.headers.get("accept", "")

    async def app(self) -> App:
        """The application of the project that the path names, or the main one."""
        named = self.path.get("project")
        projects = self.parts.projects
        return projects.main if named is None else await projects.named(named)

    async def session(self) -> Session:
        """The session that the path names, as the client of the request holds it."""
        client = self.request.headers.get(CLIENT_HEADER)
        app, session = await self.parts.projects.session(self.path["id"])
        del app
        if client is None:
            return session
        if self.request.scope["weft.role"] == "viewer":
            # It has no client of its own; another's would be detached with its stream.
            raise RequestRefusal(403, "viewer", "this token only reads; it speaks for no client")
        held = self.parts.clients.get(client)
        if held is None or held.id != session.id:
            raise RequestRefusal(404, "client", f"no client {client!r:.80} is attached here")
        return held

    def fields(self, *left_out: str) -> dict[str, Any]:
        """What the body and the query have, by name; what was not given is left out."""
        return {**given(self.query, *left_out), **given(self.body, *left_out)}


def given(struct: Any, *left_out: str) -> dict[str, Any]:
    """The fields of a struct that were given."""
    if struct is None:
        return {}
    fields = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return {
        name: value for name, value in fields.items() if value is not None and name not in left_out
    }


def session_call(
    method: Method,
    path: str,
    name: str,
    says: str,
    *,
    body: type[ChangeBody] | None = None,
    query: type[QueryFields] | None = None,
    answer: Any = None,
    status: int = 200,
    also: tuple[str, ...] = (),
    path_as: Mapping[str, str] | None = None,
    takes_input_id: bool = True,
    most_bytes: int = SMALL_BODY,
) -> ApiOperation:
    """An operation that is one call of a `Session`: what the body, the query and the path have are
    its arguments.  `path_as` gives a part of the path another name.
    """
    renamed = dict(path_as or {})

    async def run(call: ApiCall) -> Any:
        session = await call.session()
        from_path = {renamed.get(part, part): call.path[part] for part in call.path if part != "id"}
        fields = call.fields(*(() if takes_input_id else ("input_id",)))
        return await getattr(session, name)(**from_path, **fields)

    return ApiOperation(
        method=method,
        path=f"/sessions/{{id}}{path}",
        name=name,
        says=says,
        run=run,
        body=body,
        query=query,
        answer=answer,
        status=status,
        calls=(f"session.{name}", *(f"session.{each}" for each in also)),
        remembers=takes_input_id,
        most_bytes=most_bytes,
    )
