"""What language servers say of a session's edits, in the results of its tool calls.

An edit waits a bounded time.  What has not come by then is named as missing, never as the absence
of problems, and is delivered with a later result, if it is still about the files as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import anyio
import msgspec

from weft.jsonrpc import PeerClosed
from weft.lsp.client import KnownDiagnostics, LanguageClient, OpenDocument
from weft.lsp.diagnostic_text import FileFindings, ShownProblems, said_by
from weft.lsp.server import LanguageServer
from weft.lsp.server_pool import MayShow, ServerPool, stamp_of

MOST_EDITED: Final = 8
"""Files of one change that are looked at; after a change of more, servers are only told."""
MOST_AWAITED: Final = 32


class _Awaited(msgspec.Struct, frozen=True):
    """A version of a file whose diagnostics the model has not seen, or not in their last form."""

    server: LanguageServer
    client: LanguageClient
    document: OpenDocument
    version: int
    is_edited: bool
    shown: KnownDiagnostics | None = None

    @property
    def is_current(self) -> bool:
        """False when the file was changed since: what comes now is about another text."""
        document = self.document
        return document.version == self.version and stamp_of(document.path) == document.stamp


class EditReports:
    """The reports of one session."""

    def __init__(
        self, pool: ServerPool, wait_seconds: float, may_show: MayShow = lambda path: True
    ) -> None:
        """`may_show` says of a file whether this session may read it."""
        self.pool = pool
        self._may_show = may_show
        self._seconds = wait_seconds
        self._shown = ShownProblems()
        self._awaited: dict[tuple[str, str], _Awaited] = {}
        self._failures: set[str] = set()

    async def after_change(self, paths: Sequence[str], *, waits: bool) -> str:
        """What servers say after these files have changed; `waits`: a tool edited them, and the
        model wants to know.  Without that only what runs is told of it.
        """
        places = [self.pool.place_of(path) for path in paths]
        known = [path for path in places if self._may_show(path) and self.pool.servers_for(path)]
        if not known:
            return ""
        importers = await self.pool.importers(known, self._may_show)
        if not waits or len(known) > MOST_EDITED:
            await self._tell_running()
            return ""
        lines: list[str] = []
        checks: list[_Awaited] = []
        for server in self._servers(known):
            checks += await self._shown_to(server, known, importers)
            if (failed := self._failure(server)) is not None:
                lines.append(failed)
        await self._wait_for(checks)
        for name in dict.fromkeys(check.server.spec.name for check in checks):
            lines += self._said([each for each in checks if each.server.spec.name == name])
        return "\n".join(lines)

    def _servers(self, paths: Iterable[str]) -> list[LanguageServer]:
        found = [server for path in paths for server in self.pool.servers_for(path)]
        return list(dict.fromkeys(found))

    async def _tell_running(self) -> None:
        for server in self.pool.servers.values():
            if (client := server.client) is not None:
                try:
                    await self.pool.show_changed(client, server, self._may_show)
                except PeerClosed:
                    continue  # its end is told with the next edit

    async def _shown_to(
        self, server: LanguageServer, edited: Sequence[str], importers: Sequence[str]
    ) -> list[_Awaited]:
        client = server.use()
        if client is None:
            return []
        checks: list[_Awaited] = []
        try:
            await self.pool.show_changed(client, server, self._may_show, {*edited, *importers})
            # The edited ones first: the others are to be looked at in their light.
            mine = [path for path in edited if server in self.pool.servers_for(path)]
            for path in (*mine, *importers):
                if server not in self.pool.servers_for(path):
                    continue
                document = await self.pool.show(server, path)
                if document is not None:
                    checks.append(
                        _Awaited(server, client, document, document.version, path in mine)
                    )
        except PeerClosed:
            return []
        return checks

    async def _wait_for(self, checks: Sequence[_Awaited]) -> None:
        async def wait(check: _Awaited) -> None:
            await check.client.diagnostics(check.document, check.version)

        with anyio.move_on_after(self._seconds):
            async with anyio.create_task_group() as group:
                for check in checks:
                    group.start_soon(wait, check)

    # -- text

    def _said(self, checks: Sequence[_Awaited]) -> list[str]:
        """The lines about one server."""
        server = checks[0].server
        answered = [each for each in checks if each.document.fresh is not None]
        missing = [each for each in checks if each.document.fresh is None]
        lines: list[str] = []
        has_answer = any(each.is_edited for each in answered)
        if has_answer:
            lines += self._findings(server, answered)
        for each in checks:
            self._remember(each, each.document.fresh if has_answer else None)
        silent = [self._name(each) for each in missing if each.is_edited]
        if silent:
            lines.append(self._silence(server, silent))
        return lines

    def _silence(self, server: LanguageServer, paths: Sequence[str]) -> str:
        name, files = server.spec.name, ", ".join(paths)
        if server.state == "starting":
            return f"{name}: no answer yet for {files} (starting); it follows with a later result"
        if server.state != "ready":
            self._failures.add(f"{name} {server.why}")
            return f"{name}: no answer for {files}: {server.why}"
        return (
            f"{name}: nothing reported for {files} within {self._seconds:g} s; "
            "what comes later follows with a later result"
        )

    def _failure(self, server: LanguageServer) -> str | None:
        """A server that has failed is named once."""
        if server.state != "failed" or f"{server.spec.name} {server.why}" in self._failures:
            return None
        self._failures.add(f"{server.spec.name} {server.why}")
        return f"{server.spec.name}: not available ({server.why})"

    def _findings(self, server: LanguageServer, checks: Sequence[_Awaited]) -> list[str]:
        findings = [
            FileFindings(
                path=self._name(each),
                text=each.document.text,
                encoding=each.client.encoding,
                known=known,
                is_edited=each.is_edited,
            )
            for each in checks
            if (known := each.document.fresh) is not None
        ]
        return said_by(server.spec.name, findings, self._shown)

    def _name(self, check: _Awaited) -> str:
        return check.document.path.removeprefix(f"{self.pool.root.rstrip('/')}/")

    # -- what comes later

    def _remember(self, check: _Awaited, shown: KnownDiagnostics | None) -> None:
        key = (check.server.spec.name, check.document.path)
        self._awaited.pop(key, None)
        self._awaited[key] = msgspec.structs.replace(check, shown=shown)
        while len(self._awaited) > MOST_AWAITED:
            del self._awaited[next(iter(self._awaited))]

    def late(self) -> str:
        """What has come since, of files that are still as they were then."""
        by_server: dict[str, list[_Awaited]] = {}
        for key, each in list(self._awaited.items()):
            if not (each.is_current and self._may_show(each.document.path)):
                del self._awaited[key]
            elif (known := each.document.fresh) is not None and _is_news(each, known):
                self._remember(each, known)
                by_server.setdefault(each.server.spec.name, []).append(each)
        lines: list[str] = []
        for checks in by_server.values():
            lines += self._findings(checks[0].server, checks)
        return "\n".join(("Diagnostics that came later:", *lines)) if lines else ""


def _is_news(check: _Awaited, known: KnownDiagnostics) -> bool:
    if check.shown is None:
        # That a file is clean which nobody edited was to be expected.
        return check.is_edited or bool(known.items)
    return check.shown.items != known.items
