"""MCP servers over the lines of the program that drives us: those inside it, and what it asks of
all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from weft.app import App
from weft.cli.agent_sdk.control_channel import ControlChannel, NoAnswer
from weft.errors import UsageError

if TYPE_CHECKING:  # loaded where there are servers
    from weft.api.mcp.program_access import ProgramMcp

TAKES: Final[Mapping[str, tuple[str, ...]]] = {
    "mcp_status": (),
    "mcp_reconnect": ("serverName",),
    "mcp_toggle": ("serverName", "enabled"),
    "mcp_set_servers": ("servers",),
    "mcp_message": ("server_name", "message"),
}
"""Every request about servers, and the fields that count."""
SLOW: Final = frozenset({"mcp_reconnect", "mcp_set_servers"})
"""Those that ask the program something before they are answered."""


_HARMLESS: Final = frozenset({"type", "name", "alwaysLoad", "timeout"})
"""What may be said of a server inside the program without restricting its tools."""


def check_configs(configs: Any) -> None:
    """Refuse what is said of servers inside the program, where it restricts their tools.

    Raises:
        UsageError: it does.
    """
    if configs is None:
        return
    if not isinstance(configs, Mapping) or not all(
        isinstance(e, Mapping) for e in configs.values()
    ):
        raise UsageError("initialize: sdkMcpServerConfigs is an object, from names to objects")
    for name, config in configs.items():
        for key, value in config.items():
            if value and key not in _HARMLESS:
                raise UsageError(
                    f"initialize: {key!r} of the MCP server {name!r} is not supported here; "
                    "leave it out"
                )


class ServerRequests:
    """Carries out what a program asks of MCP servers."""

    def __init__(self, app: App, channel: ControlChannel, *, answers: bool) -> None:
        """`answers`: the program may be asked what servers want to know of the user."""
        self._app = app
        self._channel = channel
        self._answers = answers
        self._known: ProgramMcp | None = None

    @property
    def _servers(self) -> ProgramMcp:
        if self._known is None:
            self._known = self._app.program_mcp
            self._known.use(self._send)
            if self._answers:
                self._known.answer_servers(self._ask)
        return self._known

    async def _ask(self, request: dict[str, Any]) -> Any:
        """What the program answers a server; what it fails to answer is a no."""
        try:
            return await self._channel.ask(subtype="elicitation", **request)
        except NoAnswer:
            return None

    async def _send(self, server: str, message: dict[str, Any]) -> Any:
        answer = await self._channel.ask(subtype="mcp_message", server_name=server, message=message)
        if not isinstance(answer, Mapping) or not isinstance(answer.get("mcp_response"), Mapping):
            raise NoAnswer("the program has no answer to a message for its MCP server")
        return dict(answer["mcp_response"])

    def name_own(self, names: Any) -> None:
        """Take in the names of servers inside the program.

        Raises:
            UsageError: they are no names.
        """
        if not names:
            return
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise UsageError("initialize: sdkMcpServers is a list of names")
        self._servers.name_own(names)

    async def ready(self) -> None:
        """Wait until the servers inside the program are listed; nothing where there is none."""
        if self._app.mcp_servers is not None:
            await self._servers.ready()

    async def carry_out(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what is asked; returns the answer.

        Raises:
            WeftError: it is refused, with this sentence.
        """
        name = str(request.get("serverName", ""))
        match request["subtype"]:
            case "mcp_status":
                return {"mcpServers": self._servers.status()}
            case "mcp_reconnect":
                await self._servers.reconnect(name)
            case "mcp_toggle":
                await self._servers.switch(name, on=request.get("enabled") is True)
            case "mcp_set_servers":
                servers = request.get("servers")
                if not isinstance(servers, Mapping):
                    raise UsageError("mcp_set_servers: servers is an object, from names to entries")
                return await self._servers.set_servers(servers)
            case "mcp_message":
                message = request.get("message")
                if not isinstance(message, dict):
                    raise UsageError("mcp_message: message is an object")
                self._servers.take(str(request.get("server_name", "")), message)
        return {}
