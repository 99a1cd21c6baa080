"""Questions about code: where a name is defined and used, what it is, what a file holds, and what a
rename would change.

A server is shown the files as they are on disk before it is asked, and is waited for while it
starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal, TypeAlias

import anyio
import msgspec

from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.jsonrpc import ErrorAnswer, PeerClosed
from weft.lsp.client import LanguageClient, OpenDocument
from weft.lsp.diagnostic_text import FileFindings, ShownProblems, said_by
from weft.lsp.positions import column, lines_of_text, path_of, units
from weft.lsp.server import LanguageServer
from weft.lsp.server_pool import MayShow, ServerPool
from weft.lsp.wire import (
    SYMBOL_KINDS,
    FileEdits,
    FileLocation,
    FileOperation,
    HoverAnswer,
    LocationAnswer,
    Locations,
    MarkedText,
    SymbolAnswer,
    TextEdit,
    WorkspaceEdit,
)

START_WAIT: Final = 25.0
"""Seconds that a question waits for a server that starts."""
ANSWER_WAIT: Final = 30.0
MOST_MENTIONS: Final = 48
"""Files in which a name stands that a server is shown: fewer than a client may have open, so that
none of them is closed by the last one."""
READ_WAIT: Final = 5.0
"""Seconds that a server may take to read the files in which a name stands."""

PlaceKind: TypeAlias = Literal["definition", "references"]


class CodePlace(msgspec.Struct, frozen=True, order=True):
    """A place in a file, counted from 1."""

    path: str
    """Absolute."""
    line: int
    column: int


class CodeSymbol(msgspec.Struct, frozen=True):
    """A name that is defined somewhere."""

    name: str
    kind: str
    place: CodePlace
    depth: int = 0
    container: str = ""


class OtherMentions(msgspec.Struct, frozen=True):
    """Files in which a name stands, by absolute path, and which an answer does not name."""

    shown: tuple[str, ...] = ()
    """The server knew of them."""
    unseen: tuple[str, ...] = ()
    """Too many for the server to be shown: it may not know of them."""
    is_whole: bool = True
    """False when the project is too large to be looked through for all."""


class FoundPlaces(msgspec.Struct, frozen=True):
    """Where a name stands, by what a server knows."""

    places: list[CodePlace]
    others: OtherMentions


class RenameEdits(msgspec.Struct, frozen=True):
    """What a rename would change, by absolute path."""

    edits: Mapping[str, list[TextEdit]]
    encoding: str
    others: OtherMentions


class CodeQueries:
    """Asks the servers of one project."""

    def __init__(self, pool: ServerPool, may_show: MayShow = lambda path: True) -> None:
        """`may_show` says of a file whether the session that asks may read it."""
        self._pool = pool
        self._may_show = may_show

    async def places(self, kind: PlaceKind, path: str, line: int, name: str) -> FoundPlaces:
        """Where the name that stands in this line is defined, or used."""
        asked = await self._asked(path, f"{kind}_provider")
        others = OtherMentions()
        if kind == "references":
            others = await self._show_mentions(asked, name)
        params: dict[str, Any] = asked.at(line, name)
        if kind == "references":
            params["context"] = {"includeDeclaration": True}
        answer = await asked.ask(f"textDocument/{kind}", params, Locations)
        places = {place for each in _listed(answer) for place in self._place(asked, each)}
        return FoundPlaces(sorted(places), _without({place.path for place in places}, others))

    async def hover(self, path: str, line: int, name: str) -> str:
        """What a name is: its type, its signature, its documentation."""
        asked = await self._asked(path, "hover_provider")
        answer = await asked.ask("textDocument/hover", asked.at(line, name), HoverAnswer | None)
        return "" if answer is None else _hover_text(answer)

    async def outline(self, path: str) -> list[CodeSymbol]:
        """The names that a file defines, in its order."""
        asked = await self._asked(path, "document_symbol_provider")
        params = {"textDocument": {"uri": asked.document.uri}}
        answer = await asked.ask("textDocument/documentSymbol", params, list[SymbolAnswer] | None)
        return [found for each in answer or () for found in self._symbols(asked, each, 0)]

    async def search(self, query: str, path: str) -> list[CodeSymbol]:
        """Names of the project that are like this; `path` names a file of the language."""
        asked = await self._asked(path, "workspace_symbol_provider")
        answer = await asked.ask("workspace/symbol", {"query": query}, list[SymbolAnswer] | None)
        return [found for each in answer or () for found in self._symbols(asked, each, 0)]

    async def diagnostics(self, path: str) -> list[str]:
        """What each server says of a file now."""
        self._refuse_hidden(path)
        lines: list[str] = []
        for server in self._pool.servers_for(path):
            try:
                asked = await self._shown(server, path)
            except ToolError as error:
                lines.append(f"{server.spec.name}: {error}")
                continue
            document, known = asked.document, None
            with anyio.move_on_after(ANSWER_WAIT):
                known = await asked.client.diagnostics(document, document.version)
            if known is None:
                lines.append(f"{server.spec.name}: nothing reported within {ANSWER_WAIT:g} s")
                continue
            findings = FileFindings(
                path=self.shown_path(path),
                text=document.text,
                encoding=asked.client.encoding,
                known=known,
                is_edited=True,
            )
            lines += said_by(server.spec.name, [findings], ShownProblems())
        return lines

    async def rename(self, path: str, line: int, name: str, new_name: str) -> RenameEdits:
        """The edits that give a name another one everywhere.

        Raises:
            ToolError: it cannot be renamed, or not by edits alone.
        """
        asked = await self._asked(path, "rename_provider")
        others = await self._show_mentions(asked, name)
        params = {**asked.at(line, name), "newName": new_name}
        answer = await asked.ask("textDocument/rename", params, WorkspaceEdit | None)
        edits = {} if answer is None else _edits_of(answer)
        if not edits:
            raise FinalToolError(f"{asked.server.spec.name} finds nothing to rename there")
        return RenameEdits(edits, asked.client.encoding, _without(edits.keys(), others))

    async def _show_mentions(self, asked: _AskedServer, name: str) -> OtherMentions:
        """Show the server the files in which a name stands: without a project file of their own
        kind, clangd and tsserver know of open files only.
        """
        every, is_whole = await self._pool.mentions(asked.document.path, name, self._may_show)
        found = every[:MOST_MENTIONS]
        opened = asked.client.documents
        try:
            shown = [
                await self._pool.show(asked.server, each) for each in found if each not in opened
            ]
        except PeerClosed as error:
            raise RetryableToolError(f"{error}; try again") from error
        # Their diagnostics are the sign that they have been read.
        with anyio.move_on_after(READ_WAIT):
            for document in shown:
                if document is not None:
                    await asked.client.diagnostics(document, document.version)
        return OtherMentions(tuple(found), tuple(every[MOST_MENTIONS:]), is_whole)

    def shown_path(self, path: str) -> str:
        """A path as it is shown: relative in the project."""
        return path.removeprefix(f"{self._pool.root.rstrip('/')}/")

    # -- servers

    async def _asked(self, path: str, capability: str) -> _AskedServer:
        self._refuse_hidden(path)
        servers = self._pool.servers_for(path)
        if not servers:
            raise FinalToolError(f"there is no language server for {self.shown_path(path)!r}")
        errors: list[str] = []
        for server in servers:
            try:
                asked = await self._shown(server, path)
            except ToolError as error:
                errors.append(f"{server.spec.name}: {error}")
                continue
            if asked.client.can(capability):
                return asked
            errors.append(f"{server.spec.name} does not answer such questions")
        raise FinalToolError("; ".join(errors))

    def _refuse_hidden(self, path: str) -> None:
        # Also where the user has just allowed the call: the sandbox of the servers hides the file.
        if not self._may_show(path):
            raise FinalToolError(
                f"a rule says that {self.shown_path(path)!r} may not be read, so language servers "
                "are not shown it"
            )

    async def _shown(self, server: LanguageServer, path: str) -> _AskedServer:
        client = server.use()
        if client is not None and not await server.ready_within(START_WAIT):
            if server.state == "starting":
                raise RetryableToolError("it is still starting; try again")
            client = None
        if client is None:
            raise FinalToolError(f"it is not available: {server.why}")
        try:
            await self._pool.importers([path], self._may_show)
            await self._pool.show_changed(client, server, self._may_show, [path])
            document = await self._pool.show(server, path)
        except PeerClosed as error:
            raise RetryableToolError(f"{error}; try again") from error
        if document is None:
            raise FinalToolError("the file is gone, too large, or no UTF-8")
        return _AskedServer(server, client, document)

    # -- answers

    def _place(self, asked: _AskedServer, answer: LocationAnswer) -> list[CodePlace]:
        found = answer.location()
        return [] if found is None else self._code_place(asked, found)

    def _code_place(self, asked: _AskedServer, found: FileLocation) -> list[CodePlace]:
        path = path_of(found.uri)
        if not path or not self._may_show(path):
            return []
        start = found.range.start
        document = asked.client.documents.get(path)
        counted = start.character
        if document is not None:
            lines = lines_of_text(document.text)
            line = lines[start.line] if start.line < len(lines) else ""
            counted = column(line, start.character, asked.client.encoding)
        return [CodePlace(path, start.line + 1, counted + 1)]

    def _symbols(self, asked: _AskedServer, answer: SymbolAnswer, depth: int) -> list[CodeSymbol]:
        uri, place = asked.document.uri, answer.selection_range
        if answer.location is not None:
            uri, place = answer.location.uri, answer.location.range or place
        if place is None:
            return []
        kind = SYMBOL_KINDS.get(answer.kind, "symbol")
        own = [
            CodeSymbol(answer.name, kind, found, depth, answer.container_name or "")
            for found in self._code_place(asked, FileLocation(uri=uri, range=place))
        ]
        for child in answer.children or ():
            own += self._symbols(asked, child, depth + 1)
        return own


class _AskedServer(msgspec.Struct, frozen=True):
    """A server that was shown a file, to be asked about it."""

    server: LanguageServer
    client: LanguageClient
    document: OpenDocument

    def at(self, line: int, name: str) -> dict[str, Any]:
        """The place of a name in a line, as parameters; a line of 0: the first in the file.

        Raises:
            FinalToolError: it does not stand there.
        """
        number, index = _find(lines_of_text(self.document.text), line, name)
        text = lines_of_text(self.document.text)[number]
        character = units(text[:index], self.client.encoding)
        place = {"line": number, "character": character}
        return {"textDocument": {"uri": self.document.uri}, "position": place}

    async def ask(self, method: str, params: Mapping[str, Any], kind: Any) -> Any:
        name = self.server.spec.name
        try:
            return await self.client.ask(method, params, kind, ANSWER_WAIT)
        except ErrorAnswer as error:
            raise FinalToolError(f"{name} says: {error}") from error
        except TimeoutError as error:
            raise RetryableToolError(f"{name} did not answer within {ANSWER_WAIT:g} s") from error
        except (PeerClosed, msgspec.ValidationError) as error:
            raise RetryableToolError(f"{name}: {error}") from error


def _find(lines: list[str], line: int, name: str) -> tuple[int, int]:
    """Line and character, from 0, at which a name stands as a word of its own."""
    if line > len(lines):
        raise FinalToolError(f"the file has {len(lines)} lines, not {line}")
    for number in [line - 1] if line else range(len(lines)):
        index = lines[number].find(name)
        while index >= 0:
            before, after = lines[number][:index][-1:], lines[number][index + len(name) :][:1]
            if not (_is_word(before) or _is_word(after)):
                return number, index
            index = lines[number].find(name, index + 1)
    where = f"line {line}" if line else "the file"
    raise FinalToolError(f"{name!r} does not stand in {where}")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _without(named: Collection[str], others: OtherMentions) -> OtherMentions:
    """The files that an answer does not name."""
    return OtherMentions(
        tuple(each for each in others.shown if each not in named),
        tuple(each for each in others.unseen if each not in named),
        others.is_whole,
    )


def _listed(answer: Any) -> list[LocationAnswer]:
    if answer is None:
        return []
    return answer if isinstance(answer, list) else [answer]


def _hover_text(answer: HoverAnswer) -> str:
    parts = answer.contents if isinstance(answer.contents, list) else [answer.contents]
    texts = [part.value if isinstance(part, MarkedText) else part for part in parts]
    return "\n".join(text.strip() for text in texts if text.strip())


def _edits_of(answer: WorkspaceEdit) -> dict[str, list[TextEdit]]:
    found: dict[str, list[TextEdit]] = {}
    decode: Callable[..., Any] = msgspec.json.decode
    for uri, edits in (answer.changes or {}).items():
        found.setdefault(_file(uri), []).extend(edits)
    for raw in answer.document_changes or ():
        if (kind := decode(raw, type=FileOperation).kind) is not None:
            raise FinalToolError(f"it would {kind} files, which a rename does not do here")
        change = decode(raw, type=FileEdits)
        found.setdefault(_file(change.text_document.uri), []).extend(change.edits)
    return {path: edits for path, edits in found.items() if edits}


def _file(uri: str) -> str:
    path = path_of(uri)
    if not path:
        raise FinalToolError(f"it would change {uri!r}, which is no file of this machine")
    return path
