"""An application in a server, as far as a chat uses one.

What needs the server's own machine (its keys, its memory files, a shell of the user's) is refused
with a sentence.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

from weft.app import App
from weft.clock import SystemClock
from weft.errors import UsageError, WeftError
from weft.messages import File, Image, Text
from weft.project.markdown_commands import MarkdownCommandSet
from weft.server import RemoteApp, RemoteSession, RemoteSessions

NOT_HERE: Final = "not in an attached chat; `weft` on the server's own machine has it"
MAIN: Final = {"project": "main"}
"""The project that the server was started in."""


def refuse(what: str) -> NoReturn:
    """Say that something needs the server's machine.

    Raises:
        UsageError: always.
    """
    raise UsageError(f"{what} is {NOT_HERE}")


class AttachedSessions:
    """`app.sessions` of the server, for the calls that a chat makes."""

    def __init__(self, remote: RemoteSessions) -> None:
        self._remote = remote

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    async def start_session(self, *, asking: Any = None, **settings: Any) -> RemoteSession:
        """As the server's own; who asks and is asked is this chat anyway."""
        del asking
        return await self._remote.start_session(**settings)


class AttachedStore:
    """The store of the server: long texts, by their blobs."""

    def __init__(self, remote: RemoteApp) -> None:
        self._remote = remote

    async def blob(self, blob_id: str) -> bytes | None:
        """The content; None when it is gone."""
        try:
            data: bytes = await self._remote.call("read_blob", {**MAIN, "blob": blob_id})
        except WeftError:
            return None
        return data


class AttachedHost:
    """The running sessions of the server, for what a chat asks about models and commands."""

    def __init__(self) -> None:
        self.session: RemoteSession | None = None
        """The one that the chat shows: the server is asked about models and commands by it."""
        self.on_woken: Any = None
        self._clock = SystemClock()
        self.known_model = ""
        self._providers: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse("that")

    def now(self) -> float:
        """The wall-clock time."""
        return self._clock.now()

    @asynccontextmanager
    async def waiting(self, session_id: str) -> AsyncGenerator[None]:
        """Nothing: the server wakes its sessions itself."""
        del session_id
        yield

    def running(self, session_id: str) -> None:
        """None: what its sessions wait for is looked after by the server."""
        del session_id

    def normal_model(self, model: str) -> str:
        """As it is written: the server knows its own models."""
        return model

    def default_model(self) -> str:
        """The model that the server starts sessions with."""
        return self.known_model

    def has_default_model(self) -> bool:
        """Always: whether it has a key is the server's to say."""
        return True

    def default_effort(self, model: str | None) -> str:
        """The vendor's own."""
        del model
        return "default"

    def levels_of(self, model: str) -> None:
        """Not known here: all levels are offered."""
        del model

    def missing_key(self, model: str) -> bool:
        """False: the server says so itself."""
        del model
        return False

    def key_before_saved(self, provider: str) -> str:
        """None: keys are saved on the server's own machine."""
        del provider
        return ""

    async def available_models(self, *providers: Any) -> Any:
        """The models of the server."""
        del providers
        if self.session is None:
            raise UsageError("the models of the server are known with the first message")
        found = await self.session.get_available_models()
        self._providers = frozenset(each.provider for each in found)
        return found

    def usable_providers(self) -> frozenset[str]:
        """The providers of the models that were listed last: which of them have a key, the server
        says when one is used.
        """
        return self._providers

    def short_names(self) -> dict[str, tuple[str, ...]]:
        """None: the server knows them."""
        return {}

    async def commands(self, project: str) -> MarkdownCommandSet:
        """The commands from Markdown files, once there is a session."""
        del project
        found = [] if self.session is None else await self.session.list_commands()
        return MarkdownCommandSet(found={each.name: each for each in found})


class AttachedApp:
    """What the chat uses of an `App`: sessions are the server's, settings of the screen are those
    of this machine.
    """

    def __init__(self, remote: RemoteApp, local: App, project_path: str) -> None:
        """`local` is not opened; its files are attached where the server is on this machine."""
        self.remote = remote
        self._local = local
        self.project_path = project_path
        self.sessions = AttachedSessions(remote.sessions)
        self.host = AttachedHost()
        self.store = AttachedStore(remote)
        self.config = local.config
        self.places = local.places
        self.is_sandboxed = True

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"{name.replace('_', ' ')}")

    @property
    def mcp_servers(self) -> None:
        """Those of the server's machine are asked about there."""
        return

    async def project_problems(self) -> tuple[str, ...]:
        """What is wrong with the project's own files."""
        found: tuple[str, ...] = await self.remote.call("project_problems", MAIN)
        return found

    async def trust_question(self, path: str | None = None) -> None:
        """None: the user is asked where the project is."""
        del path

    async def attach_files(self, words: Sequence[str], **options: Any) -> tuple[Text | File, ...]:
        """The files that a message names with `@`.

        Raises:
            UsageError: the server's files are not on this machine.
        """
        if self._local.project_path != self.project_path:
            if any(word.strip().startswith("@") for text in words for word in text.split()):
                refuse("a file of the server's project, named with @,")
            return ()
        found: Any = await self._local.attach_files(words, **options)
        return tuple(found)

    async def read_images(self, paths: Sequence[str]) -> tuple[Image | File, ...]:
        """Pictures of this machine."""
        return await self._local.read_images(paths)
