"""`weft attach`: the chat on a running server."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import anyio

from weft.app import App
from weft.cli.attach.attached_app import MAIN, AttachedApp
from weft.cli.attach.attached_chat import AttachedChat
from weft.cli.chat.chat import Chat
from weft.cli.chat.start import ChatStart, keep_terminal
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import find_id, make_app
from weft.cli.signals import StopSignal
from weft.errors import UsageError
from weft.ids import SessionId
from weft.server import RemoteApp, connect, running_servers

ADDRESSES = ("http://", "https://", "unix:")


def run(arguments: ParsedArguments) -> int:
    """Attach to a session of a server, and talk until the user leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("a chat needs a terminal; a program uses `weft.connect`, or HTTP")
    url, session = split_words(arguments.words)
    local = make_app(arguments)
    url = url or own_server(local)
    remote = connect(url)
    restore = keep_terminal()
    stop = StopSignal()
    stop.at_the_end(restore)

    async def main() -> int:
        folder = await _project_of(remote)
        here = make_app(arguments, folder=folder) if _is_here(url, folder) else local
        app = AttachedApp(remote, here, folder)
        app.host.known_model = await _default_model(remote)
        return await AttachStart(arguments, here, stop, app, url, session).main()

    try:
        return anyio.run(main)
    finally:
        restore()


def split_words(words: tuple[str, ...] | list[str]) -> tuple[str, str]:
    """The address of a server and what names a session; either may be left out.

    Raises:
        UsageError: there is more.
    """
    urls = [word for word in words if word.startswith(ADDRESSES)]
    others = [word for word in words if not word.startswith(ADDRESSES)]
    if len(urls) > 1 or (urls and words[0] != urls[0]):
        raise UsageError("weft attach takes one address, and it comes first")
    return (urls[0] if urls else ""), " ".join(others)


def own_server(app: App) -> str:
    """The server that runs on this machine; of several the one of this folder.

    Raises:
        UsageError: none runs, or it is not clear which is meant.
    """
    found = running_servers(app.places.servers)
    here = [each for each in found if each.project_path == app.project_path]
    if not found:
        raise UsageError("no server runs; `weft serve --detach` starts one")
    if len(found) > 1 and len(here) != 1:
        urls = ", ".join(each.url for each in found)
        raise UsageError(f"several servers run: {urls}; name one of them")
    return (here or found)[0].url


def _is_here(url: str, folder: str) -> bool:
    """Whether the files of the server's project are those of this machine."""
    host = url.partition("://")[2].partition("/")[0].rpartition(":")[0]
    is_local = url.startswith("unix:") or host in ("127.0.0.1", "localhost", "[::1]")
    return is_local and os.path.isdir(folder)


async def _project_of(remote: RemoteApp) -> str:
    known = await remote.call("projects")
    return str(next((each.path for each in known if each.is_main), known[0].path))


async def _default_model(remote: RemoteApp) -> str:
    settings = await remote.call("settings", MAIN)
    return str(settings.get("model.default", {}).get("value") or "")


class AttachStart(ChatStart):
    """One attached chat from beginning to end."""

    def __init__(
        self,
        arguments: ParsedArguments,
        local: App,
        stop: StopSignal,
        app: AttachedApp,
        url: str,
        session: str,
    ) -> None:
        super().__init__(arguments, local, (), stop)
        self._attached = app
        self._url = url
        self._session = session

    def _opened(self) -> AbstractAsyncContextManager[Any]:
        return self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[None]:
        async with self._attached.remote:
            try:
                yield
            finally:
                with anyio.move_on_after(2, shield=True):
                    if self._chat is not None:
                        await self._chat.leave()

    _chat: AttachedChat | None = None

    def _make_chat(self) -> Chat:
        self._chat = AttachedChat(self._attached, self._screen, self._options)
        return self._chat

    async def _talk(self, chat: Chat) -> None:
        resume = await self._which()
        running = [] if resume else await self._attached.remote.sessions.list_active()
        if len(running) == 1:
            resume = running[0].id
        self._greet(chat, begins=False)
        await chat.run(resume=resume, picks=len(running) > 1)

    async def _which(self) -> SessionId | None:
        # What looks a session up asks `sessions` and the project's folder only.
        return await find_id(cast("App", self._attached), self._session) if self._session else None

    def _hint(self, chat: Chat) -> str:
        session = chat.conversation.session
        if session is None:
            return ""
        return (
            f"\nIt goes on in the server. Attach again with: weft attach {self._url} {session.id}"
        )
