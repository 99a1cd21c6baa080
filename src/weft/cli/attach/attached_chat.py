"""The chat on a session of a server: one of several clients, of which one drives."""

from __future__ import annotations

import getpass
import os
import socket
from contextlib import suppress
from typing import Any, Literal, cast

from weft.api.inspection import LineTurn
from weft.api.session import Session
from weft.app import App
from weft.cli.attach.attached_app import AttachedApp
from weft.cli.chat.chat import Chat
from weft.cli.chat.conversation import ChatConversation
from weft.cli.chat.foreign_turns import ANY_TURN, ForeignTurns
from weft.cli.chat.screens.screen import ChatScreen
from weft.errors import WeftError
from weft.events import DriverChanged, Event, SessionStatus
from weft.ids import NodeId, SessionId, client_name
from weft.protocol.session_options import SessionOptions
from weft.server import RemoteSession
from weft.view import EditorSnapshot, NoteBlock

INTERRUPTED = "the server was gone, and the turn was interrupted; Enter continues it"
AT_WORK = ("thinking", "executing_tool", "awaiting_permission", "waiting")


def own_name() -> str:
    """What others see this chat as: the user, the machine and the terminal."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "user"
    try:
        terminal = os.ttyname(0).removeprefix("/dev/")
    except OSError:
        terminal = str(os.getpid())
    return f"{user}@{socket.gethostname()}-{terminal}"


class AttachedConversation(ChatConversation):
    """The session that is shown; leaving it leaves it running in the server."""

    def __init__(self, app: AttachedApp, options: SessionOptions) -> None:
        # What the chat uses of an application is there, and the rest refuses with a sentence.
        super().__init__(cast("App", app), options)
        self._attached = app

    @property
    def remote(self) -> RemoteSession:
        """The session, as the client of a server has it."""
        return cast("RemoteSession", self.session)

    async def begin(self) -> tuple[Session, EditorSnapshot]:
        is_new = self.session is None
        session, snapshot = await super().begin()
        if is_new:
            await self._come()
        return session, snapshot

    async def resume(
        self, session_id: SessionId, *, fork: bool = False
    ) -> tuple[Session, EditorSnapshot]:
        session, snapshot = await super().resume(session_id, fork=fork)
        await self._come()
        return session, snapshot

    async def _come(self) -> None:
        """Attach: as the driver where there is none."""
        self._attached.host.session = self.remote
        await self.remote.attach("viewer", own_name())
        if not self.remote.driver:
            await self.remote.claim_driver()

    async def _let_go(self, session: Session) -> None:
        with suppress(WeftError):  # it ends with the connection anyway
            await cast("RemoteSession", session).detach()

    async def stored_answer(self) -> str:
        return ""

    async def drop_if_empty(self) -> None:
        """It stays: another client may be about to write."""

    async def follow_foreign(self, after: int) -> None:
        snapshot = await self.remote.editor_snapshot()
        running = ANY_TURN if snapshot.status in AT_WORK else None
        self.foreign = ForeignTurns(after, running, [each.entry_id for each in snapshot.queue])

    async def whose_turn(self) -> Literal["none", "own", "foreign"]:
        snapshot = await self.remote.editor_snapshot()
        if snapshot.status not in (*AT_WORK, "interrupted"):
            return "none"
        await self.foreign.caught_up(snapshot.seq)
        return "foreign" if self.foreign.has_foreign else "own"

    async def line_turns(self) -> list[LineTurn]:
        """The present line by the user's messages; what each changed is told by its preview."""
        found: list[LineTurn] = []
        before: str | None = None
        for node, message in await self.remote.messages_with_ids():
            if message.role == "user":
                parent = None if before is None else NodeId(before)
                found.append(
                    LineTurn(
                        node=NodeId(node), parent=parent, text=message.content, calls=(), changes=0
                    )
                )
            if message.role in ("user", "assistant"):
                before = node
        return found


class AttachedChat(Chat):
    """Shows who drives, and goes on when the server was started again."""

    def __init__(self, app: AttachedApp, screen: ChatScreen, options: SessionOptions) -> None:
        self._served = app
        self._is_lost = False
        self._is_back = False
        """The connection is back, and what the session does now was not told yet."""
        super().__init__(cast("App", app), screen, options)

    def _make_keeper(self, app: Any) -> None:
        """None: the rules, and the sessions that they would have covered, are the server's."""

    def _make_conversation(
        self, app: App, options: SessionOptions, new_id: str | None
    ) -> ChatConversation:
        del app, new_id
        return AttachedConversation(self._served, options)

    async def _events_of(self, session: Session, after: int) -> Any:
        remote = cast("RemoteSession", session)
        if remote.driver and remote.driver != remote.client:
            name = client_name(remote.driver) or "another client"
            self._note(f"{name} drives this session; you watch. /drive takes over")
        return await remote.subscribe(after=after, lost=self._tell_lost)

    def _tell_lost(self, what: str) -> None:
        if what:
            self._is_lost = True
            self.screen.notify(what)
        elif self._is_lost:
            self._is_lost = False
            self._is_back = True
            self.screen.notify("")

    def _tell_clients(self, event: Event) -> None:
        super()._tell_clients(event)
        remote = cast("RemoteSession", self.conversation.session)
        if isinstance(event, DriverChanged) and remote is not None:
            remote.driver = event.client
        if isinstance(event, SessionStatus) and self._is_back:
            self._is_back = False
            # An answer that was given meanwhile has reached nobody.
            self._start(self._ask_again, cast("Session", remote))
            if event.status == "interrupted":
                self._note(INTERRUPTED)

    def _own_client(self) -> str:
        session = cast("RemoteSession | None", self.conversation.session)
        return "" if session is None else session.client

    @property
    def drives(self) -> bool | None:
        """Whether this chat drives; None before it has come to a session."""
        session = cast("RemoteSession | None", self.conversation.session)
        if session is None or not session.client or not session.driver:
            return None
        return session.driver == session.client

    def left_at_work(self) -> list[str]:
        return []

    async def leave(self) -> None:
        """Detach, so that others see that this chat has gone."""
        session = cast("RemoteSession | None", self.conversation.session)
        if session is not None:
            with suppress(WeftError):
                await session.detach()

    def show_warning(self, text: str) -> None:
        """Show a line that is no part of the conversation."""
        self.screen.show(NoteBlock(text=text, level="warning"))
