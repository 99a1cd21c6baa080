"""Our end of the protocol with one language server: its documents and what it says of them.

Freshness is the whole problem.  A result counts only for the text it was computed for: an answer
to a question that was asked after the text was sent, or a push that names the version.  A push
without a version may have been computed for the text before; it is taken after a moment of quiet,
and marked (`is_sure`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import anyio
import msgspec

from weft.jsonrpc import ErrorAnswer, JsonRpcPeer, PeerClosed
from weft.lsp.positions import UTF_16, path_of, uri_of
from weft.lsp.wire import (
    CLIENT_CAPABILITIES,
    CONTENT_MODIFIED,
    SERVER_CANCELLED,
    CapabilityRegistrations,
    CodeDiagnostic,
    ConfigurationItems,
    DiagnosticReport,
    InitializeResult,
    PublishedDiagnostics,
    ServerCapabilities,
    TextPosition,
    TextRange,
)

T = TypeVar("T")

SETTLE_SECONDS: Final = 0.8
"""How long a server that names no version must be quiet before what it said last is taken."""
MOST_OPEN: Final = 64
"""Documents of one server; of more, those that were used longest ago are closed."""
MOST_PROBLEMS: Final = 1_000
"""Diagnostics of a document that are kept, the worst of them: the model reads ten, and a server
may name hundreds of thousands, which are compared with one another."""
MOST_REFRESHED: Final = 16
"""Documents that are asked for again when the server says that its answers have changed."""
PULL_SECONDS: Final = 120.0
"""How long a question for diagnostics may stay open; who waits for it waits much shorter."""
_RETRIES: Final = 20
_RETRY_SECONDS: Final = 0.1
_TSSERVER: Final = "typescript.tsserverRequest"
"""A command by which tsserver can be asked: its pushes name no version, and the first one after a
change mixes new syntax errors with the old type errors."""
_TSSERVER_KINDS: Final = ("syntacticDiagnosticsSync", "semanticDiagnosticsSync")

Spawn = Callable[[Callable[[], Awaitable[None]]], None]


class KnownDiagnostics(msgspec.Struct, frozen=True, kw_only=True):
    """What a server last said of a document."""

    version: int
    """Of the document when it was taken."""
    items: tuple[CodeDiagnostic, ...]
    is_sure: bool = True
    """False when it may be about the text before: the server names no version."""


class OpenDocument:
    """A file as the server has it."""

    def __init__(self, path: str, language: str, text: str) -> None:
        self.path = path
        self.uri = uri_of(path)
        self.language = language
        self.text = text
        self.version = 1
        self.change = 0
        """The client's `change` when this version was sent."""
        self.asked_version = 0
        self.known: KnownDiagnostics | None = None
        self.pushed: KnownDiagnostics | None = None
        """What was pushed beside what is asked for."""
        self.stamp: object = None
        """What the file's metadata was when it was read; for who keeps documents current."""

    @property
    def fresh(self) -> KnownDiagnostics | None:
        """What is known of this very version."""
        known = self.known
        return known if known is not None and known.version == self.version else None


class LanguageClient:
    """Speaks with one server.  Who starts it feeds `peer` and runs what `spawn` is given."""

    def __init__(self, root: str, spawn: Spawn) -> None:
        self._root = root
        self._spawn = spawn
        self._settings: Mapping[str, Any] = {}
        self._options: Mapping[str, Any] = {}
        self._pulls = False
        self._news = anyio.Event()
        self.is_lost = False
        self.is_ready = False
        self.capabilities = ServerCapabilities()
        self.documents: dict[str, OpenDocument] = {}
        """By absolute path, the one used longest ago first."""
        self.change = 0
        """Counts the changes of files that the server was told of."""
        self.peer = JsonRpcPeer(
            {
                "textDocument/publishDiagnostics": self._on_published,
                # These are requests: pyright, gopls and others wait for the answers.
                "workspace/configuration": self._on_configuration,
                "client/registerCapability": self._on_register,
                "client/unregisterCapability": lambda params: None,
                "window/workDoneProgress/create": lambda params: None,
                "window/showMessageRequest": lambda params: None,
                "window/showDocument": lambda params: {"success": False},
                "workspace/workspaceFolders": lambda params: [self._folder],
                "workspace/diagnostic/refresh": self._on_refresh,
                "workspace/semanticTokens/refresh": lambda params: None,
                "workspace/inlayHint/refresh": lambda params: None,
                "workspace/codeLens/refresh": lambda params: None,
                # What a server wants changed by itself passes no permission gate.
                "workspace/applyEdit": lambda params: {"applied": False},
            }
        )

    @property
    def encoding(self) -> str:
        """The units that places are counted in."""
        return self.capabilities.position_encoding or UTF_16

    @property
    def _folder(self) -> dict[str, str]:
        return {"uri": uri_of(self._root), "name": self._root.rpartition("/")[2]}

    # -- start and end

    def configure(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """`settings` are what the server may ask for, `options` go with its start."""
        self._settings = settings
        self._options = options

    async def initialize(self, seconds: float, parent: int | None = None) -> None:
        """The handshake; documents that were noted meanwhile are opened.  `parent` is the process
        with which the server ends.

        Raises:
            TimeoutError, PeerClosed, ErrorAnswer, msgspec.ValidationError: it is none.
        """
        params = {
            "processId": parent,
            "clientInfo": {"name": "weft"},
            "rootUri": uri_of(self._root),
            "rootPath": self._root,
            "workspaceFolders": [self._folder],
            "capabilities": CLIENT_CAPABILITIES,
            "initializationOptions": self._options,
        }
        answer = await self.peer.request("initialize", params, _as(InitializeResult), seconds)
        self.capabilities = answer.capabilities
        self._pulls = self.can("diagnostic_provider")
        self.peer.notify("initialized", {})
        if self._settings:
            settings = {"settings": self._settings}
            self.peer.notify("workspace/didChangeConfiguration", settings)
        self.is_ready = True
        for document in self.documents.values():
            self._open(document)
        for document in self.documents.values():
            self._ask_once(document)
        self._tell()

    async def shutdown(self, seconds: float) -> None:
        """Ask the server to end by itself."""
        await self.peer.request("shutdown", None, lambda raw: None, seconds)
        self.peer.notify("exit", None)

    def lost(self, why: str) -> None:
        """The server is gone: what waits for it, and what is asked from now on, fails."""
        self.is_lost = True
        self.peer.close(why)
        self._tell()

    # -- documents

    def sync(self, path: str, language: str, text: str, *, is_asked: bool = True) -> OpenDocument:
        """Have the server look at this text of a file.

        A text that it has is a new version if something else has changed since: then what it said
        before does not count any more.  `is_asked`: for its diagnostics too; of files that change
        together, only when all have been sent.
        """
        document = self.documents.pop(path, None)
        is_new = document is None
        document = document or OpenDocument(path, language, text)
        self.documents[path] = document
        if document.text != text:
            self.change += 1
        is_old = document.text != text or document.change != self.change
        document.change = self.change
        if is_old and not is_new:
            document.text = text
            document.version += 1
        if self.is_ready:
            if is_new:
                self._open(document)
            elif is_old:
                self._change(document)
            if is_asked:
                self._ask_once(document)
        while len(self.documents) > MOST_OPEN:
            self.close(next(iter(self.documents)))
        return document

    def close(self, path: str) -> None:
        """The server need not look at a file any more."""
        document = self.documents.pop(path, None)
        if document is not None and self.is_ready:
            self.peer.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})

    def files_changed(self, changes: Sequence[tuple[str, int]]) -> None:
        """Files on disk have changed; each with its kind."""
        if changes:
            self.change += 1
        if changes and self.is_ready:
            told = [{"uri": uri_of(path), "type": kind} for path, kind in changes]
            self.peer.notify("workspace/didChangeWatchedFiles", {"changes": told})

    def _open(self, document: OpenDocument) -> None:
        item = {
            "uri": document.uri,
            "languageId": document.language,
            "version": document.version,
            "text": document.text,
        }
        self.peer.notify("textDocument/didOpen", {"textDocument": item})

    def _change(self, document: OpenDocument) -> None:
        named = {"uri": document.uri, "version": document.version}
        changes = [{"text": document.text}]
        self.peer.notify(
            "textDocument/didChange", {"textDocument": named, "contentChanges": changes}
        )
        sync = self.capabilities.text_document_sync
        if not isinstance(sync, int | None) and sync.save not in (None, False):
            saved = {"textDocument": {"uri": document.uri}, "text": document.text}
            self.peer.notify("textDocument/didSave", saved)

    # -- diagnostics

    async def diagnostics(self, document: OpenDocument, version: int) -> KnownDiagnostics | None:
        """What the server says of this version, as soon as it does; None when the document has
        another one by then, or the server is gone.  Put a time limit around it.
        """
        while document.version == version and not self.is_lost:
            news = self._news
            known = document.fresh
            if known is not None and known.is_sure:
                return known
            if known is not None:
                return await self._settled(document)
            await news.wait()
        return None

    async def news(self) -> None:
        """Wait until something is said of any document."""
        await self._news.wait()

    async def _settled(self, document: OpenDocument) -> KnownDiagnostics | None:
        """What it said last, when it says no more for a moment."""
        while True:
            before = document.fresh
            if before is None or before.is_sure:
                return before
            with anyio.move_on_after(SETTLE_SECONDS):
                while document.fresh is before:
                    await self._news.wait()
            if document.fresh is before:
                return before

    def _ask_once(self, document: OpenDocument) -> None:
        if document.asked_version != document.version:
            self._ask_for(document)

    def _ask_for(self, document: OpenDocument) -> None:
        """Have the diagnostics of a document's version asked for, where they are not pushed."""
        version = document.asked_version = document.version
        if self._pulls:
            self._spawn(lambda: self._pull(document, version))
        elif self._asks_tsserver:
            self._spawn(lambda: self._ask_tsserver(document, version))

    @property
    def _asks_tsserver(self) -> bool:
        commands = self.capabilities.execute_command_provider
        return commands is not None and _TSSERVER in commands.commands

    async def _pull(self, document: OpenDocument, version: int) -> None:
        params = {"textDocument": {"uri": document.uri}}
        ask = self._asked(document, version, "textDocument/diagnostic", params)
        report = await ask(_as(DiagnosticReport))
        if report is not None:
            self._take(document, version, report.items)

    async def _ask_tsserver(self, document: OpenDocument, version: int) -> None:
        items: list[CodeDiagnostic] = []
        for kind in _TSSERVER_KINDS:
            arguments = [kind, {"file": document.path}]
            params = {"command": _TSSERVER, "arguments": arguments}
            ask = self._asked(document, version, "workspace/executeCommand", params)
            answer = await ask(_as(_TsAnswer))
            if answer is None or not answer.success:
                return
            items += [found.as_diagnostic() for found in answer.body]
        self._take(document, version, items)

    def _asked(
        self, document: OpenDocument, version: int, method: str, params: Any
    ) -> Callable[[Callable[[msgspec.Raw], T]], Awaitable[T | None]]:
        """A question about one version; without an answer when the document has another one."""

        async def ask(kind: Callable[[msgspec.Raw], T]) -> T | None:
            for _ in range(_RETRIES):
                if document.version != version:
                    return None
                try:
                    return await self.peer.request(method, params, kind, PULL_SECONDS)
                except ErrorAnswer as error:
                    if error.code not in (SERVER_CANCELLED, CONTENT_MODIFIED):
                        return None
                    await anyio.sleep(_RETRY_SECONDS)
                except (TimeoutError, PeerClosed, msgspec.ValidationError):
                    return None
            return None

        return ask

    def _take(
        self,
        document: OpenDocument,
        version: int,
        items: Sequence[CodeDiagnostic],
        *,
        is_sure: bool = True,
    ) -> None:
        if document.version == version:
            items = _worst(items)
            items = _worst((*items, *_only_in(document.pushed, version, items)))
            document.known = KnownDiagnostics(version=version, items=items, is_sure=is_sure)
            self._tell()

    def _take_beside(self, document: OpenDocument, items: Sequence[CodeDiagnostic]) -> None:
        """What is pushed of this version by a server that is asked: some push what a compiler
        finds, and answer with the rest."""
        before, version = document.pushed, document.version
        document.pushed = KnownDiagnostics(version=version, items=_worst(items))
        if (known := document.fresh) is not None:
            old = _only_in(before, version, ())
            answered = [each for each in known.items if each not in old]
            self._take(document, version, answered, is_sure=known.is_sure)

    def _tell(self) -> None:
        """Wake whoever waits for something new."""
        news, self._news = self._news, anyio.Event()
        news.set()

    # -- questions

    def can(self, capability: str) -> bool:
        """Whether the server has a capability; an empty table of options is one too."""
        return getattr(self.capabilities, capability) not in (None, False)

    async def ask(
        self, method: str, params: Mapping[str, Any], kind: Any, seconds: float = 30.0
    ) -> Any:
        """The answer to a question about the project, in the type `kind`."""
        return await self.peer.request(method, params, _as(kind), seconds)

    # -- what the server says

    def _on_published(self, params: msgspec.Raw) -> None:
        published = msgspec.json.decode(params, type=PublishedDiagnostics)
        document = self.documents.get(path_of(published.uri))
        # What tsserver pushes beside our questions mixes new problems with old ones.
        if document is None or self._asks_tsserver:
            return
        if self._pulls:
            if published.version == document.version:
                self._take_beside(document, published.diagnostics)
        elif published.version is None:
            self._take(document, document.version, published.diagnostics, is_sure=False)
        # Equal, and not just as new: a version that we have not sent is none of ours.
        elif published.version == document.version:
            self._take(document, document.version, published.diagnostics)

    def _on_configuration(self, params: msgspec.Raw) -> list[Any]:
        asked = msgspec.json.decode(params, type=ConfigurationItems)
        return [self._setting(item.section or "") for item in asked.items]

    def _setting(self, section: str) -> Any:
        found: Any = self._settings
        for part in section.split(".") if section else ():
            found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def _on_register(self, params: msgspec.Raw) -> None:
        asked = msgspec.json.decode(params, type=CapabilityRegistrations)
        if any(each.method == "textDocument/diagnostic" for each in asked.registrations):
            if self._pulls:
                return
            # Pyright does so after its start: by then a document may be open, and wait for a push
            # that never comes.
            self._pulls = True
            for document in self.documents.values():
                self._ask_for(document)

    def _on_refresh(self, params: msgspec.Raw) -> None:
        """What was answered before has changed: a server that is still reading the project answers
        with what it knows so far.
        """
        for document in list(self.documents.values())[-MOST_REFRESHED:]:
            if self._pulls:
                self._ask_for(document)


def _worst(items: Sequence[CodeDiagnostic]) -> tuple[CodeDiagnostic, ...]:
    if len(items) > MOST_PROBLEMS:
        items = sorted(items, key=lambda item: item.severity or 1)[:MOST_PROBLEMS]
    return tuple(items)


def _only_in(
    pushed: KnownDiagnostics | None, version: int, items: Sequence[CodeDiagnostic]
) -> tuple[CodeDiagnostic, ...]:
    """What was pushed of this version and is not among these."""
    if pushed is None or pushed.version != version:
        return ()
    return tuple(each for each in pushed.items if each not in items)


class _TsPlace(msgspec.Struct):
    line: int
    offset: int

    def as_position(self) -> TextPosition:
        return TextPosition(line=self.line - 1, character=self.offset - 1)


class _TsDiagnostic(msgspec.Struct):
    """A problem as tsserver describes it: counted from 1."""

    start: _TsPlace
    end: _TsPlace
    text: str
    code: int | None = None
    category: str = "error"

    def as_diagnostic(self) -> CodeDiagnostic:
        severity = {"error": 1, "warning": 2, "message": 3, "suggestion": 4}.get(self.category, 1)
        place = TextRange(start=self.start.as_position(), end=self.end.as_position())
        return CodeDiagnostic(range=place, message=self.text, severity=severity, code=self.code)


class _TsAnswer(msgspec.Struct):
    success: bool = False
    body: list[_TsDiagnostic] = []


def _as(kind: Any) -> Callable[[msgspec.Raw], Any]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
    return decoder.decode
