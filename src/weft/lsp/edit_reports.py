"""What language servers say of a session's edits, in the results of its tool calls.

An edit waits a bounded time.  What has not come by then is named as missing, never as the absence
of problems, and is delivered with a later result, if it is still about the files as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import anyio
import msgspec

from weft.jsonrpc import PeerClosed
from weft.lsp.client import KnownDiagnostics, LanguageClient, OpenDocument
from weft.lsp.diagnostic_text import FileFindings, ShownProblems, said_by
from weft.lsp.server import LanguageServer
from weft.lsp.server_pool import MayShow, ServerPool, stamp_of, stamps_of

MOST_EDITED: Final = 8
"""Files of one change that are looked at; of the others servers are only told."""
MOST_AWAITED: Final = 32
MOST_SILENT_WAITS: Final = 2
"""After so many in vain, a server is waited for only a part of the time until it speaks again: one
that hangs, or never mentions clean files, would else cost every edit all of it."""
SHORT_PART: Final = 6


class _Awaited(msgspec.Struct, frozen=True):
    """A text whose diagnostics the model has not seen, or not in their last form."""

    server: LanguageServer
    client: LanguageClient
    document: OpenDocument
    version: int
    text: str
    is_edited: bool
    shown: KnownDiagnostics | None = None

    @property
    def is_open(self) -> bool:
        """False when the server has another document in its place, or, of what was shown already,
        another text.
        """
        document = self.document
        is_open = self.client.documents.get(document.path) is document and not self.client.is_lost
        return is_open and (self.shown is None or document.text == self.text)

    @property
    def is_current(self) -> bool:
        """False when the server has another text than the file: what comes now is about that.

        Blocks for a look at the file.
        """
        return self.is_open and stamp_of(self.document.path) == self.document.stamp

    @property
    def is_promised(self) -> bool:
        """Whether the model was told that an answer is still to come."""
        return self.is_edited and self.shown is None

    @property
    def is_behind(self) -> bool:
        """True when some other file was changed since: what comes now may be about that as it was
        before."""
        return self.document.change != self.client.change

    def ask_again(self) -> None:
        """Have the same text looked at in the light of what has changed since."""
        with suppress(PeerClosed):
            self.client.sync(self.document.path, self.document.language, self.document.text)


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
        if not known or not (waits or self.pool.running):
            return ""
        if not waits:
            # Without a look at the project, which may take a second: the next edit has one.
            await self.pool.tell_changed(known)
            await self._tell_running()
            return ""
        importers = await self.pool.importers(known, self._may_show, are_edited=True)
        lines: list[str] = []
        checks: list[_Awaited] = []
        for server in self._servers(known):
            shown, unseen = await self._shown_to(server, known[:MOST_EDITED], importers)
            checks += shown
            lines += unseen
            if (failed := self._failure(server)) is not None:
                lines.append(failed)
        await self._wait_for(checks)
        for name in dict.fromkeys(check.server.spec.name for check in checks):
            lines += self._said([each for each in checks if each.server.spec.name == name])
        if lines and len(known) > MOST_EDITED:
            lines.append(f"({len(known) - MOST_EDITED} more changed files were not looked at)")
        return "\n".join(lines)

    def _servers(self, paths: Iterable[str]) -> list[LanguageServer]:
        found = [server for path in paths for server in self.pool.servers_for(path)]
        return list(dict.fromkeys(found))

    async def _tell_running(self) -> None:
        for server in self.pool.running:
            if (client := server.client) is not None:
                try:
                    await self.pool.show_changed(client, server, self._may_show)
                except PeerClosed:
                    continue  # its end is told with the next edit

    async def _shown_to(
        self, server: LanguageServer, edited: Sequence[str], importers: Sequence[str]
    ) -> tuple[list[_Awaited], list[str]]:
        """What a server is to say something of, and lines about what it cannot be shown."""
        mine = [path for path in edited if server in self.pool.servers_for(path)]
        others = [path for path in importers if server in self.pool.servers_for(path)]
        there = [path for path, stamp in (await stamps_of(mine)).items() if stamp is not None]
        client = server.use() if there or others else server.client
        if client is None:
            return [], []
        try:
            await self.pool.show_changed(client, server, self._may_show, {*mine, *others})
            # All of them before the first is asked about: each is to be looked at in the light of
            # the others.
            for path in mine if len(mine) > 1 else ():
                await self.pool.show(server, path, is_asked=False)
            found = {path: await self.pool.show(server, path) for path in (*mine, *others)}
        except PeerClosed:
            return [], [self._silence(server, there)] if there else []
        checks = [
            _Awaited(
                server,
                # A server that was started anew meanwhile has the documents in another one.
                server.client or client,
                document,
                document.version,
                document.text,
                path in mine or self._is_promised(server, path),
            )
            for path, document in found.items()
            if document is not None
        ]
        hidden = await stamps_of(path for path in there if found[path] is None)
        unseen = [
            f"{server.spec.name}: {self._name(path)} is not looked at: it is no UTF-8, or too large"
            for path, stamp in hidden.items()
            if stamp is not None
        ]
        return checks, unseen

    async def _wait_for(self, checks: Sequence[_Awaited]) -> None:
        async def wait(check: _Awaited) -> None:
            with anyio.move_on_after(self._patience(check.server)):
                await check.client.diagnostics(check.document, check.version)

        async with anyio.create_task_group() as group:
            for check in checks:
                group.start_soon(wait, check)

    def _patience(self, server: LanguageServer) -> float:
        is_silent = server.silent_waits >= MOST_SILENT_WAITS
        return self._seconds / SHORT_PART if is_silent else self._seconds

    # -- text

    def _said(self, checks: Sequence[_Awaited]) -> list[str]:
        """The lines about one server."""
        server = checks[0].server
        answered = [each for each in checks if each.document.fresh is not None]
        missing = [each for each in checks if each.document.fresh is None]
        lines: list[str] = []
        # Importers alone are no answer about the file that was edited.
        is_about_edits = any(each.is_edited for each in checks)
        has_answer = any(each.is_edited or not is_about_edits for each in answered)
        if has_answer:
            lines += self._findings(server, answered)
        for each in checks:
            # Of one that has ended nothing more will come, and that is said now.
            if each.client.is_lost:
                self._awaited.pop((server.spec.name, each.document.path), None)
            else:
                self._remember(each, each.document.fresh if has_answer else None)
        silent = [each.document.path for each in missing if each.is_edited]
        if silent:
            lines.append(self._silence(server, silent))
        server.silent_waits = 0 if has_answer else server.silent_waits + 1
        return lines

    def _silence(self, server: LanguageServer, paths: Sequence[str]) -> str:
        name, files = server.spec.name, ", ".join(map(self._name, paths))
        if server.state == "starting":
            return f"{name}: no answer yet for {files} (starting); it follows with a later result"
        if server.state != "ready" or server.client is None or server.client.is_lost:
            self._failures.add(f"{name} {server.why}")
            return self._lost(server, paths)
        return (
            f"{name}: nothing reported for {files} within {self._patience(server):g} s; "
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
                path=self._name(each.document.path),
                text=each.document.text,
                encoding=each.client.encoding,
                known=known,
                is_edited=each.is_edited,
            )
            for each in checks
            if (known := each.document.fresh) is not None
        ]
        return said_by(server.spec.name, findings, self._shown)

    def _name(self, path: str) -> str:
        return path.removeprefix(f"{self.pool.root.rstrip('/')}/")

    # -- what comes later

    def _remember(self, check: _Awaited, shown: KnownDiagnostics | None) -> None:
        key = (check.server.spec.name, check.document.path)
        self._awaited.pop(key, None)
        self._awaited[key] = msgspec.structs.replace(check, shown=shown)
        while len(self._awaited) > MOST_AWAITED:
            del self._awaited[next(iter(self._awaited))]

    def _is_promised(self, server: LanguageServer, path: str) -> bool:
        """Whether the model was told that an answer about a file is still to come."""
        before = self._awaited.get((server.spec.name, path))
        return before is not None and before.is_promised

    def late(self) -> str:
        """What has come since, of files that are still as they were then, and what will not."""
        by_server: dict[str, list[_Awaited]] = {}
        lost: dict[LanguageServer, list[str]] = {}
        for key, each in list(self._awaited.items()):
            known = each.document.fresh
            has_come = known is not None and _is_news(each, known)
            if each.is_open and not each.is_behind and not has_come:
                continue  # without a look at the file, which may take its time
            if not (each.is_current and self._may_show(each.document.path)):
                del self._awaited[key]
                if each.is_promised and each.client.is_lost:
                    lost.setdefault(each.server, []).append(each.document.path)
            elif each.is_behind:
                self._ask_again(key, each)
            elif known is not None:
                self._remember(each, known)
                by_server.setdefault(each.server.spec.name, []).append(each)
        lines: list[str] = []
        for checks in by_server.values():
            checks[0].server.silent_waits = 0
            lines += self._findings(checks[0].server, checks)
        if lines:
            lines.insert(0, "Diagnostics that came later:")
        return "\n".join((*lines, *(self._lost(*each) for each in lost.items())))

    def _lost(self, server: LanguageServer, paths: Sequence[str]) -> str:
        files = ", ".join(map(self._name, paths))
        return f"{server.spec.name}: no answer for {files}: {server.why or 'it has ended'}"

    def _ask_again(self, key: tuple[str, str], check: _Awaited) -> None:
        # What was shown already is shown again, where that matters, with the edit that changed it.
        if check.shown is None:
            check.ask_again()
        else:
            del self._awaited[key]


def _is_news(check: _Awaited, known: KnownDiagnostics) -> bool:
    if check.shown is None:
        # That a file is clean which nobody edited was to be expected.
        return check.is_edited or bool(known.items)
    return check.shown.items != known.items
