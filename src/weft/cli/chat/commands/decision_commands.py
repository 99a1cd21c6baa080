"""`/keep`, and its key: a correction that was noted counts as a decision from now on."""

from __future__ import annotations

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.decisions import DecisionNode
from weft.decisions.graph import CORRECTION
from weft.errors import SessionNotFound, UsageError

NOTHING = "nothing was noted that could be kept"


class DecisionCommands(CommandGroup):
    """Carries out the commands on decisions."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/keep": self._keep}

    async def _keep(self, words: str) -> None:
        if words:
            raise UsageError(
                "/keep takes no words: it keeps what was noted last; "
                f"`weft decisions accept {words}` accepts any other"
            )
        node = await self._last_noted()
        if node is None:
            self._chat.screen.notify(NOTHING)
            return
        await self._accept(node)
        self._say(f"Kept as a decision: {node.title}")

    async def _last_noted(self) -> DecisionNode | None:
        """The newest correction of this conversation that is only proposed so far."""
        session = self._chat.conversation.session
        if session is None:
            return None
        graph = await self._chat.conversation.app.decisions.graph()
        noted = [
            node
            for node in graph.of_session(session.id)
            if node.status == "proposed" and CORRECTION in node.tags
        ]
        return max(noted, key=lambda node: node.at, default=None)

    async def _accept(self, node: DecisionNode) -> None:
        session = self._session("keep")
        decisions = self._chat.conversation.app.decisions
        try:
            await decisions.accept(node.id, session=session.id)
        except SessionNotFound:  # another process has it; the decision is the project's
            await decisions.accept(node.id)
