"""`!command`: a command line that the user runs; `!!command`: one that the model is not shown."""

from __future__ import annotations

from typing import Protocol

import anyio

from weft.api.session import Session
from weft.cli.chat.conversation import ChatConversation
from weft.cli.chat.screens.screen import ChatScreen
from weft.errors import UsageError, WeftError


class ShellChat(Protocol):
    """What a command line needs of the chat."""

    screen: ChatScreen
    conversation: ChatConversation

    async def begin_session(self) -> Session:
        """The session; a new one where there is none yet."""
        ...

    async def forget_if_empty(self) -> None:
        """Drop a session that was begun for what then could not be done."""
        ...


class ShellLine:
    """Runs the user's command lines, one at a time."""

    def __init__(self, chat: ShellChat) -> None:
        self._chat = chat
        self._running: anyio.CancelScope | None = None

    def stop(self) -> None:
        """End the one that runs; what it did and printed stays."""
        if self._running is not None:
            self._running.cancel()

    async def run(self, text: str) -> None:
        """Run `!command`; its card comes as an event of the session.

        Raises:
            UsageError: it may not be run, or one still runs.
        """
        command = text.removeprefix("!").removeprefix("!").strip()
        if not command:
            raise UsageError("write a command behind the !, such as !git status")
        if self._running is not None:
            # Nothing typed is lost: it goes back where it was typed.
            self._chat.screen.put_back(text)
            raise UsageError("your last command still runs; Esc stops it")
        with anyio.CancelScope() as self._running:
            try:
                await self._run(command, to_model=not text.startswith("!!"))
            finally:
                self._running = None

    async def _run(self, command: str, *, to_model: bool) -> None:
        conversation = self._chat.conversation
        session = await self._chat.begin_session()
        before, conversation.ran_in = conversation.ran_in, session.id
        try:
            await conversation.app.host.run_as_user(session.id, command, to_model=to_model)
        except WeftError:
            conversation.ran_in = before
            await self._chat.forget_if_empty()
            raise
