"""MCP servers inside the program that drives us, spoken to over its own lines.

The program starts them, so they are its word and not a stranger's: what they list is known to the
user, and nothing of them is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.errors import FinalToolError

if TYPE_CHECKING:  # loaded when a server is spoken to
    from weft.mcp import ServerLink
    from weft.mcp.elicitation import AskProgram
    from weft.mcp.server import Handlers, StartTask
    from weft.runtime.mcp.program_connection import ProgramConnection, ProgramLine

NO_PROGRAM = "only a program that drives Weft has servers of the type sdk"


class ProgramServers:
    """The servers that a program names while it drives us; made before the program is heard."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        """What it has named since it was started, by name."""
        self.version = 0
        """Grows when it names others, or switches one: models are told of that at once."""
        self.ask: AskProgram | None = None
        """Puts what any server asks to the program; None where it is not asked."""
        self._line: ProgramLine | None = None
        self._open: dict[str, ProgramConnection] = {}

    def use(self, line: ProgramLine) -> None:
        """Speak to them over this."""
        self._line = line

    def connect(self, name: str, handlers: Handlers, start_task: StartTask) -> ServerLink:
        """A connection to one.

        Raises:
            FinalToolError: no program drives us.
        """
        if self._line is None:
            raise FinalToolError(NO_PROGRAM)
        from weft.mcp import ServerLink
        from weft.runtime.mcp.program_connection import ProgramConnection

        made = self._open[name] = ProgramConnection(name, self._line, handlers, start_task)
        return ServerLink(made)

    def take(self, name: str, message: dict[str, Any]) -> bool:
        """Take a message that one of them sends by itself; False when it is not connected."""
        connection = self._open.get(name)
        if connection is not None:
            connection.feed(message)
        return connection is not None
