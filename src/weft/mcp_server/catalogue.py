"""What an MCP server offers, as data: tools, resources and prompts, and how a call is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from weft.errors import WeftError

INVALID_PARAMS = -32602
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
    """Ends a call of a newer client with a question; the client makes the call again, with the
    answer and `state`."""

    def __init__(self, message: str, schema: dict[str, Any], state: str) -> None:
        super().__init__(message)
        self.message = message
        self.schema = schema
        self.state = state


class CallClient(Protocol):
    """The client of one call."""

    can_be_asked: bool
    """Whether its user can be asked at all."""
    state: str
    """What `InputNeeded` ended the call with, when it is made again; empty the first time."""
    reply: ElicitationReply | None
    """The answer, when it is made again."""

    def progress(self, message: str) -> None:
        """Tell how far the call is, where the client wants to know."""
        ...

    async def ask(self, message: str, schema: dict[str, Any], state: str) -> ElicitationReply:
        """Ask the user of the client.

        Raises:
            InputNeeded: a newer client is asked by the end of the call.
        """
        ...


RunTool: TypeAlias = Callable[[dict[str, Any], CallClient], Awaitable[str]]


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
    """One prompt in a list; each takes its arguments as one text."""

    name: str
    description: str = ""
    hint: str = ""


class ServedOffer(msgspec.Struct, frozen=True, kw_only=True):
    """All that a server offers."""

    title: str
    instructions: str
    tools: tuple[ServedTool, ...]
    resources: Callable[[], Awaitable[list[ServedResource]]]
    templates: tuple[ServedResource, ...]
    read: Callable[[str], Awaitable[str]]
    """The text of a resource; raises `ResourceMissing`."""
    prompts: Callable[[], Awaitable[list[ServedPrompt]]]
    prompt: Callable[[str, str], Awaitable[str]]
    """The text of a prompt, by its name and arguments; raises `UsageError`."""
