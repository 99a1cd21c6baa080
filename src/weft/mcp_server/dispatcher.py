"""MCP server: requests of two eras in, results out.

A client before 2026-07-28 begins with `initialize` and can then be asked questions of ours.  A
newer one says with every request who it is, and is asked by a result that lets it make the call
again.  Which one a request is of is told by the request itself, so that both can use one server.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

import msgspec

from weft.errors import UsageError, WeftError
from weft.mcp_server.catalogue import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    CallClient,
    ElicitationReply,
    InputNeeded,
    OfferChange,
    RequestProblem,
    ResourceMissing,
    ServedOffer,
    ServedPrompt,
    ServedResource,
    ServedTool,
)
from weft.version import __version__

logger = logging.getLogger(__name__)

MODERN: Final = "2026-07-28"
HANDSHAKES: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_VERSION: Final = -32022
MOST_FOLLOWED: Final = 1_000
META: Final = "io.modelcontextprotocol/"
_INFO: Final = {"name": "weft", "title": "Weft", "version": __version__}
_QUESTION: Final = "question"
_CACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
"""Sessions come and go: nothing of a list is good for longer than the moment."""

AskOlder = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""A request of ours to an older client: method and parameters in, its result out."""
Notify = Callable[[str, dict[str, Any]], None]


class ClientConnection(msgspec.Struct):
    """What is known of a client on one connection."""

    ask: AskOlder
    notify: Notify
    version: str = ""
    """What an older client and we agreed on."""
    capabilities: dict[str, Any] = {}
    """What an older client said that it can."""
    followed: set[str] = msgspec.field(default_factory=set)
    """Resources that an older client wants to be told of."""


class _Call(CallClient):
    """The client of one request."""

    def __init__(self, connection: ClientConnection, params: dict[str, Any], era: str) -> None:
        meta = _dict(params.get("_meta"))
        self._connection = connection
        self._token = meta.get("progressToken")
        self._progress = 0.0
        self.is_modern = era == MODERN
        self._wants_log = f"{META}logLevel" in meta or not self.is_modern
        self.capabilities = (
            _dict(meta.get(f"{META}clientCapabilities"))
            if self.is_modern
            else connection.capabilities
        )
        self.can_be_asked = _takes_forms(self.capabilities)
        state = params.get("requestState")
        self.state = state if isinstance(state, str) else ""
        self.replies = _dict(params.get("inputResponses"))

    @property
    def reply(self) -> ElicitationReply | None:
        return _reply_in(self.replies[_QUESTION]) if _QUESTION in self.replies else None

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        if isinstance(self._token, (int, str)):
            self._progress = self._progress + 1 if done is None else done
            told = {"progressToken": self._token, "progress": self._progress, "message": message}
            more = {} if total is None else {"total": total}
            self._connection.notify("notifications/progress", {**told, **more})

    def log(self, text: str) -> None:
        if self._wants_log:
            self._connection.notify("notifications/message", {"level": "info", "data": text})

    async def need(self, requests: dict[str, Any], state: str) -> dict[str, Any]:
        if self.is_modern:
            raise InputNeeded(requests, state)
        return {
            name: await self._connection.ask(request["method"], request["params"])
            for name, request in requests.items()
        }

    async def ask(self, message: str, schema: dict[str, Any], state: str) -> ElicitationReply:
        params = {"message": message, "requestedSchema": schema}
        if self.is_modern or self._connection.version == "2025-11-25":
            params["mode"] = "form"
        asked = {_QUESTION: {"method": "elicitation/create", "params": params}}
        return _reply_in((await self.need(asked, state))[_QUESTION])


class McpDispatcher:
    """Answers the requests of all clients of one server."""

    def __init__(self, offer: ServedOffer) -> None:
        self._offer = offer
        self._tools = {tool.name: tool for tool in offer.tools}

    @property
    def tells_changes(self) -> bool:
        """Whether there is anything to tell unasked."""
        return self._offer.changes is not None

    async def tell_changes(self, connection: ClientConnection) -> None:
        """Tell an older client what changes, as long as it is there."""
        if self._offer.changes is None:
            return
        try:
            async with aclosing(self._offer.changes()) as changes:
                async for change in changes:
                    if connection.version:
                        _tell(connection, change, connection.followed, is_list=True, more={})
        except (WeftError, OSError) as error:
            # It is still answered; only what changes is not told any more.
            logger.warning("clients are not told of changes: %s", error)

    async def answer(
        self,
        method: str,
        params: dict[str, Any],
        connection: ClientConnection,
        number: int | str | None = None,
    ) -> dict[str, Any]:
        """The result of a request; `number` is the id that it has on the wire.

        Raises:
            RequestProblem: it is answered with an error.
        """
        era = _dict(params.get("_meta")).get(f"{META}protocolVersion")
        if era is None:
            return await self._answer_older(method, params, connection)
        if era != MODERN:
            known = {"supported": [MODERN], "requested": str(era)[:80]}
            raise RequestProblem(UNSUPPORTED_VERSION, "Unsupported protocol version", known)
        if not isinstance(params["_meta"].get(f"{META}clientCapabilities"), dict):
            raise RequestProblem(INVALID_PARAMS, "_meta does not say what the client can")
        if method == "subscriptions/listen" and self._offer.changes is not None:
            return await self._listen(params, connection, number)
        try:
            result = await self._answer_newer(method, params, _Call(connection, params, MODERN))
        except InputNeeded as needed:
            more = {"requestState": needed.state} if needed.state else {}
            return {"resultType": "input_required", "inputRequests": needed.requests, **more}
        about = {f"{META}serverInfo": _INFO}
        return {"resultType": "complete", **result, "_meta": about}

    # -- eras

    async def _answer_older(
        self, method: str, params: dict[str, Any], connection: ClientConnection
    ) -> dict[str, Any]:
        match method:
            case "initialize":
                return self._initialized(params, connection)
            case "ping":
                return {}
            case "resources/subscribe" | "resources/unsubscribe" if (
                self._offer.changes is not None and method not in self._offer.older_methods
            ):
                return await self._follow(_text(params, "uri"), connection, method)
            case more if more in self._offer.older_methods:
                return await self._offer.older_methods[more](params)
        return await self._answered(method, params, _Call(connection, params, ""))

    async def _follow(self, uri: str, connection: ClientConnection, method: str) -> dict[str, Any]:
        if method == "resources/unsubscribe":
            connection.followed.discard(uri)
            return {}
        try:
            await self._offer.read(uri)
        except ResourceMissing as error:
            raise RequestProblem(RESOURCE_NOT_FOUND, str(error), {"uri": uri}) from error
        if len(connection.followed) >= MOST_FOLLOWED:
            raise RequestProblem(INVALID_PARAMS, f"no more than {MOST_FOLLOWED} can be followed")
        connection.followed.add(uri)
        return {}

    async def _listen(
        self, params: dict[str, Any], connection: ClientConnection, number: int | str | None
    ) -> dict[str, Any]:
        """Tell a newer client what it wants to know, until it does not any more."""
        assert self._offer.changes is not None
        wanted = _dict(params.get("notifications"))
        uris = wanted.get("resourceSubscriptions")
        named = [each for each in uris if isinstance(each, str)] if isinstance(uris, list) else []
        is_list = wanted.get("resourcesListChanged") is True
        agreed = {
            **({"resourcesListChanged": True} if is_list else {}),
            **({"resourceSubscriptions": named[:MOST_FOLLOWED]} if named else {}),
        }
        about = {"_meta": {f"{META}subscriptionId": number}}
        async with aclosing(self._offer.changes()) as changes:
            said = {**about, "notifications": agreed}
            connection.notify("notifications/subscriptions/acknowledged", said)
            async for change in changes:
                _tell(connection, change, set(named[:MOST_FOLLOWED]), is_list=is_list, more=about)
        return {"resultType": "complete", **about}

    def _initialized(self, params: dict[str, Any], connection: ClientConnection) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        # One that we do not know may still speak the newest that we do.
        connection.version = wanted if wanted in HANDSHAKES else HANDSHAKES[0]
        connection.capabilities = _dict(params.get("capabilities"))
        return {
            "protocolVersion": connection.version,
            "capabilities": {**self._capabilities(), **self._offer.older_capabilities},
            "serverInfo": _INFO,
            "instructions": self._offer.instructions,
        }

    async def _answer_newer(
        self, method: str, params: dict[str, Any], call: _Call
    ) -> dict[str, Any]:
        if method == "server/discover":
            return {
                "supportedVersions": [MODERN],
                "capabilities": self._capabilities(),
                "instructions": self._offer.instructions,
                **_CACHED,
            }
        result = await self._answered(method, params, call)
        is_cacheable = method.endswith("/list") or method == "resources/read"
        return {**result, **_CACHED} if is_cacheable else result

    def _capabilities(self) -> dict[str, Any]:
        completes: dict[str, Any] = {} if self._offer.complete is None else {"completions": {}}
        tells = {} if self._offer.changes is None else {"listChanged": True, "subscribe": True}
        return {"tools": {}, "resources": tells, "prompts": {}, **completes}

    # -- what both have

    async def _answered(self, method: str, params: dict[str, Any], call: _Call) -> dict[str, Any]:
        offer = self._offer
        match method:
            case "tools/list":
                return {"tools": [_tool(tool) for tool in offer.tools]}
            case "tools/call":
                return await self._called(params, call)
            case "resources/list":
                return {"resources": [_resource(each) for each in await offer.resources()]}
            case "resources/templates/list":
                made = [_resource(each, "uriTemplate") for each in offer.templates]
                return {"resourceTemplates": made}
            case "resources/read":
                return await self._read(_text(params, "uri"), call)
            case "prompts/list":
                return {"prompts": [_prompt(each) for each in await offer.prompts()]}
            case "prompts/get":
                return await self._prompted(params, call)
            case "completion/complete" if offer.complete is not None:
                ref, argument = _dict(params.get("ref")), _dict(params.get("argument"))
                found = await offer.complete(ref, argument)
                return {"completion": {"values": found[:100], "hasMore": len(found) > 100}}
        raise RequestProblem(METHOD_NOT_FOUND, f"Method not found: {method[:80]}")

    async def _called(self, params: dict[str, Any], call: _Call) -> dict[str, Any]:
        name = _text(params, "name")
        tool = self._tools.get(name)
        if tool is None:
            raise RequestProblem(INVALID_PARAMS, f"Unknown tool: {name[:80]}")
        args = params.get("arguments") or {}
        if not isinstance(args, dict):
            raise RequestProblem(INVALID_PARAMS, "the arguments are no object")
        try:
            _check(tool, args)
            found = await tool.run(args, call)
        except RequestProblem:
            raise
        except WeftError as error:
            # For the model of the other side, which can do something about it.
            return {"content": [_said(str(error) or type(error).__name__)], "isError": True}
        content = [_said(found)] if isinstance(found, str) else found.content
        return {"content": content, "isError": False}

    async def _read(self, uri: str, call: _Call) -> dict[str, Any]:
        try:
            contents = await self._offer.read(uri)
        except ResourceMissing as error:
            code = INVALID_PARAMS if call.is_modern else RESOURCE_NOT_FOUND
            raise RequestProblem(code, str(error), {"uri": uri}) from error
        return {"contents": contents}

    async def _prompted(self, params: dict[str, Any], call: _Call) -> dict[str, Any]:
        given = _dict(params.get("arguments"))
        try:
            messages = await self._offer.prompt(_text(params, "name"), given, call)
        except UsageError as error:
            raise RequestProblem(INVALID_PARAMS, str(error)) from error
        return {"messages": messages}


def _tell(
    connection: ClientConnection,
    change: OfferChange,
    followed: set[str],
    *,
    is_list: bool,
    more: dict[str, Any],
) -> None:
    for uri in sorted(change.uris & followed):
        connection.notify("notifications/resources/updated", {"uri": uri, **more})
    if change.is_list and is_list:
        connection.notify("notifications/resources/list_changed", dict(more))


def error_of(method: str, error: Exception) -> dict[str, Any]:
    """The error that a request is answered with."""
    if isinstance(error, RequestProblem):
        more = {} if error.data is None else {"data": error.data}
        return {"code": error.code, "message": str(error), **more}
    if isinstance(error, WeftError):
        return {"code": INTERNAL_ERROR, "message": str(error)}
    logger.error("%s could not be answered", method, exc_info=error)
    return {"code": INTERNAL_ERROR, "message": type(error).__name__}


# --- on the wire ---------------------------------------------------------------------------


def _tool(tool: ServedTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": {"readOnlyHint": tool.only_reads},
    }


def _resource(resource: ServedResource, key: str = "uri") -> dict[str, Any]:
    return {
        key: resource.uri,
        "name": resource.name,
        "description": resource.description,
        "mimeType": resource.mime_type,
    }


def _prompt(prompt: ServedPrompt) -> dict[str, Any]:
    arguments = [
        {"name": name, "description": about, "required": name in prompt.required}
        for name, about in prompt.arguments.items()
    ]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}


def _said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _text(params: dict[str, Any], key: str) -> str:
    found = params.get(key)
    if not isinstance(found, str) or not found:
        raise RequestProblem(INVALID_PARAMS, f"{key!r} is missing")
    return found


_KINDS: Final[dict[str, type]] = {"string": str, "integer": int, "boolean": bool}


def _check(tool: ServedTool, args: dict[str, Any]) -> None:
    """Refuse arguments that a tool does not have: one that is misspelled would do nothing."""
    for name in args:
        if name not in tool.properties:
            known = ", ".join(tool.properties) or "none"
            raise UsageError(f"{tool.name} has no argument {name[:80]!r}; it has {known}")
    for name, about in tool.properties.items():
        value = args.get(name)
        if value is None:
            if name in tool.required:
                raise UsageError(f"{tool.name} needs {name!r}")
            continue
        kind = _KINDS[about["type"]]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise UsageError(f"{name!r} is to be a {about['type']}")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _takes_forms(capabilities: dict[str, Any]) -> bool:
    told = capabilities.get("elicitation")
    # Before there were kinds of them, an empty object meant forms.
    return isinstance(told, dict) and (not told or "form" in told)


def _reply_in(value: Any) -> ElicitationReply:
    """An answer; what is none counts as no answer."""
    told = _dict(value)
    content = told.get("content")
    return ElicitationReply(
        str(told.get("action", "cancel")), content if isinstance(content, dict) else None
    )
