"""What an MCP server offers, as data: tools, resources and prompts, and how a call is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from weft.errors import WeftError

INVALID_PARAMS = -32602
MISSING_CAPABILITY = -32021
RESOURCE_NOT_FOUND = -32002
"""Of servers before 2026-07-28, which has `INVALID_PARAMS` for it."""


class RequestProblem(WeftError):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ResourceMissing(WeftError):
    """There is nothing at this address."""


class ElicitationReply(msgspec.Struct, frozen=True):
    """What the user of a client answers."""

    action: str = "cancel"
    content: dict[str, Any] | None = None


class InputNeeded(Exception):
    """Ends a request of a newer client with requests of ours, by name; the client makes it again,
    with the answers and `state`."""

    def __init__(self, requests: dict[str, Any], state: str) -> None:
        super().__init__("input is needed")
        self.requests = requests
        self.state = state


class CallClient(Protocol):
    """The client of one request."""

    capabilities: dict[str, Any]
    """What it says that it can."""
    can_be_asked: bool
    """Whether its user can be asked at all."""
    state: str
    """What `InputNeeded` ended the request with, when it is made again; empty the first time."""
    replies: dict[str, Any]
    """The answers by name, when it is made again; none was looked at."""

    @property
    def reply(self) -> ElicitationReply | None:
        """The answer to what `ask` asked, when it is made again."""
        ...

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Tell how far it is, where the client wants to know."""
        ...

    def log(self, text: str) -> None:
        """Tell something for the client's log, where it wants one."""
        ...

    async def need(self, requests: dict[str, Any], state: str) -> dict[str, Any]:
        """The answers to requests of ours, by name.

        Raises:
            InputNeeded: a newer client is asked by the end of the request.
        """
        ...

    async def ask(self, message: str, schema: dict[str, Any], state: str) -> ElicitationReply:
        """Ask the user of the client, as `need` does."""
        ...


class ToolReply(msgspec.Struct, frozen=True):
    """What a tool brings that is more than a text: parts, as they are on the wire."""

    content: list[dict[str, Any]]


RunTool: TypeAlias = Callable[[dict[str, Any], CallClient], Awaitable[str | ToolReply]]


class ServedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool."""

    name: str
    description: str
    properties: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    only_reads: bool = False
    run: RunTool

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


class ServedResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource in a list."""

    uri: str
    name: str
    description: str = ""
    mime_type: str = "text/markdown"


class ServedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt in a list."""

    name: str
    description: str = ""
    arguments: dict[str, str] = {}
    """What each is for, by name."""
    required: tuple[str, ...] = ()


GetPrompt: TypeAlias = Callable[[str, dict[str, Any], CallClient], Awaitable[list[dict[str, Any]]]]
Complete: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], Awaitable[list[str]]]


class OfferChange(msgspec.Struct, frozen=True):
    """What is another now."""

    is_list: bool = False
    """The list of resources is."""
    uris: frozenset[str] = frozenset()
    """These resources are."""


class ServedOffer(msgspec.Struct, frozen=True, kw_only=True):
    """All that a server offers."""

    instructions: str
    tools: tuple[ServedTool, ...]
    resources: Callable[[], Awaitable[list[ServedResource]]]
    templates: tuple[ServedResource, ...]
    read: Callable[[str], Awaitable[list[dict[str, Any]]]]
    """The contents of a resource, as they are on the wire; raises `ResourceMissing`."""
    prompts: Callable[[], Awaitable[list[ServedPrompt]]]
    prompt: GetPrompt
    """The messages of a prompt, by its name and arguments; raises `UsageError`."""
    complete: Complete | None = None
    """Values for an argument of a prompt or a resource that is being typed."""
    changes: Callable[[], AsyncGenerator[OfferChange]] | None = None
    """What changes from now on; None: nothing is told of that."""
    older_methods: dict[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {}
    """Further requests that clients before 2026-07-28 may make, by method."""
    older_capabilities: dict[str, Any] = {}
    """What such a client is told because of them."""
