"""The language servers of one project, and the files that they are shown.

All sessions on the project share them.  A file is shown to a server as it lies on disk: what has
changed there is shown again before the next question.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Final, TypeAlias

import anyio.to_thread

from weft.clock import Clock
from weft.errors import ToolError
from weft.jsonrpc import PeerClosed
from weft.lsp.client import LanguageClient, OpenDocument
from weft.lsp.import_index import ImportIndex
from weft.lsp.server import LanguageServer, ServerLimits
from weft.lsp.server_specs import ServerSpec, chosen, suffix_of
from weft.lsp.wire import CHANGED, DELETED
from weft.workspace import PipedProgram, Workspace

MayShow: TypeAlias = Callable[[str], bool]
"""Whether a session may be shown what stands in a file, by its absolute path."""

FileVersion: TypeAlias = tuple[int, int, int]

MOST_BYTES: Final = 1024 * 1024
"""Larger files are not shown to a server."""
MOST_IMPORTERS: Final = 5


class ServerPool:
    """What serves one project."""

    def __init__(
        self,
        files: Workspace,
        specs: Sequence[ServerSpec],
        find: Callable[[str], str | None],
        launch: Callable[[ServerSpec], Awaitable[tuple[PipedProgram, ServerSpec]]],
        start_task: Callable[[Callable[[], Awaitable[None]], str], None],
        *,
        limits: ServerLimits,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
        must_leave: Callable[[LanguageServer], bool] = lambda server: False,
    ) -> None:
        """`find` says where a program is that may be started; None where there is none.

        `changed` is called when a server starts, is ready, or ends; `must_leave` says of one
        whether it has to make room for others.
        """
        self._changed = changed
        self._must_leave = must_leave
        self.root = files.root
        self._files = files
        self._specs = specs
        self._find = find
        self._launch = launch
        self._start_task = start_task
        self._limits = limits
        self._clock = clock
        self._imports = ImportIndex(self.root)
        self.servers: dict[str, LanguageServer] = {}
        """Those that were started, by name."""

    def servers_for(self, path: str) -> list[LanguageServer]:
        """The servers of a file's language, started or not."""
        return [self._server(spec) for spec in chosen(suffix_of(path), self._specs, self._find)]

    def _server(self, spec: ServerSpec) -> LanguageServer:
        if spec.name not in self.servers:
            self.servers[spec.name] = LanguageServer(
                spec,
                self.root,
                self._launch,
                self._start_task,
                limits=self._limits,
                clock=self._clock,
                changed=self._changed,
                must_leave=self._must_leave,
            )
        return self.servers[spec.name]

    async def restart(self) -> None:
        """Stop all servers; the next use starts them again, those that had failed too."""
        for server in self.servers.values():
            await server.stop("restarted")

    # -- files

    def place_of(self, path: str) -> str:
        """The absolute path of one that the workspace names."""
        return path if path.startswith("/") else f"{self.root.rstrip('/')}/{path}"

    async def text_of(self, path: str) -> str | None:
        """What a file holds; None for one that is gone, too large, or no UTF-8."""
        try:
            found = await self._files.peek(self._files.relative(path), limit=MOST_BYTES)
        except ToolError:
            return None
        return None if found is None or found.truncated else decoded(found.data)

    async def show(
        self, server: LanguageServer, path: str, *, is_asked: bool = True
    ) -> OpenDocument | None:
        """Have a server look at a file as it is now; None when it cannot be shown, and then it is
        closed: the server would go on with the text that it had before.

        Raises:
            PeerClosed: the server has ended.
        """
        client, stamp = server.use(), (await stamps_of([path]))[path]
        text = await self.text_of(path)
        if client is None:
            # Not None: the file is not to blame.
            raise PeerClosed(f"{server.spec.name} has ended: {server.why}")
        if text is None:
            client.close(path)
            return None
        language = server.spec.languages.get(suffix_of(path), "plaintext")
        document = client.sync(path, language, text, is_asked=is_asked)
        # Taken before the text was read: a change in between makes it old, and is shown next time.
        document.stamp = stamp
        return document

    async def show_changed(
        self,
        client: LanguageClient,
        server: LanguageServer,
        may_show: MayShow,
        but: Collection[str] = (),
    ) -> None:
        """Show the open files, `but` these, that were changed on disk; those that are gone, or may
        not be shown any more, are closed."""
        documents = list(client.documents.values())
        shown = [each.path for each in documents if may_show(each.path)]
        stamps = await stamps_of(shown)
        for document in documents:
            stamp = stamps.get(document.path)
            if stamp is not None and (stamp == document.stamp or document.path in but):
                continue
            if stamp is None:
                client.close(document.path)
            else:
                await self.show(server, document.path)

    @property
    def running(self) -> list[LanguageServer]:
        """The servers that run, or start."""
        return [server for server in self.servers.values() if server.client is not None]

    async def importers(
        self, paths: Iterable[str], may_show: MayShow, *, are_edited: bool = False
    ) -> list[str]:
        """Files that import one of these, as few as one can look at; the running servers are told
        what has changed on disk since the last time, and of these if they are edited."""
        edited = list(paths)

        def look() -> tuple[list[tuple[str, int]], list[str]]:
            changed = self._imports.update(edited)
            if are_edited:
                # Also of a language whose imports we do not know.
                known = {path for path, _ in changed}
                changed += [(path, _kind_of(path)) for path in edited if path not in known]
            found: dict[str, None] = {}
            for path in edited:
                found |= dict.fromkeys(self._imports.importers(path))
            return changed, [path for path in found if path not in edited]

        # Left to itself when the caller is stopped: a disk may take its time.
        changed, found = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
        self._tell_changed(changed)
        return list(islice(filter(may_show, found), MOST_IMPORTERS))

    async def tell_changed(self, paths: Iterable[str]) -> None:
        """Tell the running servers that these files have changed."""
        stamps = await stamps_of(paths)
        self._tell_changed(
            [(path, CHANGED if stamp else DELETED) for path, stamp in stamps.items()]
        )

    def _tell_changed(self, changed: Sequence[tuple[str, int]]) -> None:
        for server in self.servers.values():
            if server.client is not None:
                try:
                    server.client.files_changed(changed)
                except PeerClosed:
                    continue  # it has ended; its next start reads the disk anyway

    async def mentions(self, path: str, name: str, may_show: MayShow) -> tuple[list[str], bool]:
        """Files of the same language in which a name stands, the nearest first; and whether all
        that there are have been looked at."""

        def look() -> list[str]:
            return self._imports.mentions(path, name)

        found = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
        return list(filter(may_show, found)), self._imports.is_whole(path)


async def stamps_of(paths: Iterable[str]) -> dict[str, FileVersion | None]:
    """The stamps of files, without blocking: a disk may take its time."""
    wanted = [*paths]

    def look() -> dict[str, FileVersion | None]:
        return {path: stamp_of(path) for path in wanted}

    return await anyio.to_thread.run_sync(look, abandon_on_cancel=True) if wanted else {}


def stamp_of(path: str) -> FileVersion | None:
    """What tells one version of a file on disk from another; None without a file.  Blocks."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino


def _kind_of(path: str) -> int:
    return DELETED if stamp_of(path) is None else CHANGED


def decoded(data: bytes) -> str | None:
    """The text of a file as servers take it; None when it is no UTF-8."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
