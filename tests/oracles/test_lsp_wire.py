"""Our types of the Language Server Protocol beside those of lsprotocol.

They run where it is installed: `make oracles`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
import pytest

from weft.jsonrpc import FrameDecoder, framed
from weft.lsp.client import LanguageClient
from weft.lsp.wire import (
    CHANGED,
    CodeDiagnostic,
    DiagnosticReport,
    HoverAnswer,
    InitializeResult,
    LocationAnswer,
    PublishedDiagnostics,
    SymbolAnswer,
    WorkspaceEdit,
)

pytestmark = [pytest.mark.anyio, pytest.mark.oracle]
types = pytest.importorskip("lsprotocol.types")
converters = pytest.importorskip("lsprotocol.converters")

PLACE: dict[str, Any] = {
    "textDocument": {"uri": "file:///p/a.py"},
    "position": {"line": 0, "character": 1},
}
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("textDocument/definition", PLACE),
    ("textDocument/references", {**PLACE, "context": {"includeDeclaration": True}}),
    ("textDocument/hover", PLACE),
    ("textDocument/documentSymbol", {"textDocument": PLACE["textDocument"]}),
    ("workspace/symbol", {"query": "x"}),
    ("textDocument/rename", {**PLACE, "newName": "y"}),
]


async def sent_by_us() -> list[dict[str, Any]]:
    """Everything that a client sends in its life."""
    sent: list[dict[str, Any]] = []
    decoder = FrameDecoder()
    capabilities = {"textDocumentSync": {"save": True}, "diagnosticProvider": {}}

    async with anyio.create_task_group() as group:

        def spawn(work: Callable[[], Awaitable[None]]) -> None:
            async def run() -> None:
                await work()

            group.start_soon(run)

        client = LanguageClient("/p", spawn)
        client.configure({"a": 1}, {"b": 2})

        async def send(data: bytes) -> None:
            for each in decoder.feed(data):
                message = msgspec.json.decode(each)
                sent.append(message)
                if "id" in message:
                    result: Any = None
                    if message["method"] == "initialize":
                        result = {"capabilities": capabilities}
                    elif message["method"] == "textDocument/diagnostic":
                        result = {"kind": "full", "items": []}
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                    client.peer.feed(framed(msgspec.json.encode(answer)))

        group.start_soon(client.peer.write, send)
        await client.initialize(5.0)
        document = client.sync("/p/a.py", "python", "x = 1\n")
        client.sync("/p/a.py", "python", "x = 2\n")
        await client.diagnostics(document, document.version)
        client.files_changed([("/p/b.py", CHANGED)])
        for method, params in QUESTIONS:
            await client.ask(method, params, Any)
        client.close("/p/a.py")
        await client.shutdown(5.0)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    return sent


async def test_what_we_send_is_what_the_protocol_says() -> None:
    converter = converters.get_converter()
    sent = await sent_by_us()
    methods = {message["method"] for message in sent}
    assert methods >= {
        *("initialize", "initialized", "workspace/didChangeConfiguration", "shutdown"),
        *("textDocument/didOpen", "textDocument/didChange", "textDocument/didSave"),
        *("textDocument/didClose", "workspace/didChangeWatchedFiles", "textDocument/diagnostic"),
        *(method for method, _ in QUESTIONS),
    }
    for message in sent:
        kind = types.METHOD_TO_TYPES[message["method"]][0]
        understood = converter.unstructure(converter.structure(message, kind), kind)
        assert _covers(understood, message), message["method"]


def _covers(understood: Any, sent: Any) -> bool:
    """Everything that was sent is in what was understood; null counts as left out."""
    if isinstance(sent, dict):
        return all(
            value is None or (name in understood and _covers(understood[name], value))
            for name, value in sent.items()
        )
    if isinstance(sent, list):
        return len(sent) == len(understood) and all(map(_covers, understood, sent))
    return bool(understood == sent)


def as_json(value: Any) -> bytes:
    return msgspec.json.encode(converters.get_converter().unstructure(value))


def place(line: int) -> Any:
    start = types.Position(line=line, character=1)
    return types.Range(start=start, end=types.Position(line=line, character=4))


def test_what_servers_say_of_a_file_is_understood() -> None:
    diagnostic = types.Diagnostic(
        range=place(3),
        message="wrong",
        severity=types.DiagnosticSeverity.Warning,
        code="E1",
        source="x",
        tags=[types.DiagnosticTag.Unnecessary],
        code_description=types.CodeDescription(href="https://example.org"),
    )
    params = types.PublishDiagnosticsParams(uri="file:///a", diagnostics=[diagnostic], version=7)
    found = msgspec.json.decode(as_json(params), type=PublishedDiagnostics)
    assert (found.uri, found.version) == ("file:///a", 7)
    report = types.RelatedFullDocumentDiagnosticReport(items=[diagnostic], result_id="r")
    items = msgspec.json.decode(as_json(report), type=DiagnosticReport).items
    assert items == found.diagnostics
    assert isinstance(items[0], CodeDiagnostic)
    assert (items[0].severity, items[0].code, items[0].range.start.line) == (2, "E1", 3)


def test_places_are_understood_in_both_forms() -> None:
    location = types.Location(uri="file:///a", range=place(1))
    link = types.LocationLink(
        target_uri="file:///a", target_range=place(0), target_selection_range=place(1)
    )
    one, other = (
        msgspec.json.decode(as_json(each), type=LocationAnswer).location()
        for each in (location, link)
    )
    assert one == other


@pytest.mark.parametrize("form", ["markup", "text", "marked", "list"])
def test_hovers_are_understood_in_all_their_forms(form: str) -> None:
    forms = {
        "markup": types.MarkupContent(kind=types.MarkupKind.Markdown, value="x"),
        "text": "x",
        "marked": types.MarkedStringWithLanguage(language="py", value="x"),
        "list": ["x", types.MarkedStringWithLanguage(language="py", value="x")],
    }
    hover = types.Hover(contents=forms[form], range=place(0))
    assert msgspec.json.decode(as_json(hover), type=HoverAnswer).contents


def test_symbols_are_understood_in_both_forms() -> None:
    child = types.DocumentSymbol(
        name="b", kind=types.SymbolKind.Method, range=place(1), selection_range=place(2)
    )
    symbol = types.DocumentSymbol(
        name="a",
        kind=types.SymbolKind.Class,
        range=place(0),
        selection_range=place(1),
        children=[child],
    )
    found = msgspec.json.decode(as_json(symbol), type=SymbolAnswer)
    assert found.children is not None
    assert (found.name, found.kind, found.children[0].name) == ("a", 5, "b")
    information = types.SymbolInformation(
        name="a",
        kind=types.SymbolKind.Class,
        location=types.Location(uri="file:///a", range=place(1)),
        container_name="m",
    )
    flat = msgspec.json.decode(as_json(information), type=SymbolAnswer)
    assert flat.location is not None
    assert (flat.location.uri, flat.container_name) == ("file:///a", "m")


def test_edits_are_understood_in_both_forms() -> None:
    edit = types.TextEdit(range=place(0), new_text="new")
    document = types.OptionalVersionedTextDocumentIdentifier(uri="file:///a", version=None)
    changes = types.WorkspaceEdit(changes={"file:///a": [edit]})
    versioned = types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(text_document=document, edits=[edit])]
    )
    from weft.lsp.code_queries import _edits_of

    one, other = (
        _edits_of(msgspec.json.decode(as_json(each), type=WorkspaceEdit))
        for each in (changes, versioned)
    )
    assert one == other
    assert one["/a"][0].new_text == "new"


def test_an_answer_to_initialize_is_understood_with_all_that_servers_may_say() -> None:
    capabilities = types.ServerCapabilities(
        position_encoding=types.PositionEncodingKind.Utf8,
        text_document_sync=types.TextDocumentSyncKind.Full,
        hover_provider=types.HoverOptions(work_done_progress=True),
        rename_provider=types.RenameOptions(prepare_provider=True),
        definition_provider=True,
        diagnostic_provider=types.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=False
        ),
        execute_command_provider=types.ExecuteCommandOptions(commands=["a"]),
    )
    result = types.InitializeResult(
        capabilities=capabilities, server_info=types.ServerInfo(name="x")
    )
    found = msgspec.json.decode(as_json(result), type=InitializeResult).capabilities
    assert found.position_encoding == "utf-8"
    assert found.diagnostic_provider
    assert found.execute_command_provider is not None
    assert not found.references_provider
