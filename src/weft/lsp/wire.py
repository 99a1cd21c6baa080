"""Types of the Language Server Protocol, as far as we speak it.

Servers add fields as they like and leave optional ones out or null, so everything that we can do
without has a default.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec


class WireStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The protocol's names are written in camel case."""


class TextPosition(WireStruct, frozen=True, order=True):
    """A place in a text, from 0; `character` counts units of the encoding that was agreed on."""

    line: int
    character: int


class TextRange(WireStruct, frozen=True, order=True):
    """From a place up to, and without, another."""

    start: TextPosition
    end: TextPosition


class FileLocation(WireStruct, frozen=True, order=True):
    """A range in a file."""

    uri: str
    range: TextRange


class LocationAnswer(WireStruct, frozen=True):
    """A place in an answer: a `FileLocation`, or a link, which has the names with `target`."""

    uri: str = ""
    range: TextRange | None = None
    target_uri: str = ""
    target_selection_range: TextRange | None = None

    def location(self) -> FileLocation | None:
        """The place, whichever way it was given."""
        place = self.range or self.target_selection_range
        if place is None:
            return None
        return FileLocation(uri=self.uri or self.target_uri, range=place)


class MarkedText(WireStruct, frozen=True):
    """Markdown or plain text, or a piece of code in the older form."""

    value: str = ""
    language: str | None = None


class CodeLink(WireStruct, frozen=True):
    """The code of a problem together with a page about it, in an older form."""

    value: int | str | None = None


class CodeDiagnostic(WireStruct, frozen=True):
    """One problem in a file."""

    range: TextRange
    message: str | MarkedText
    severity: int | None = None
    """1 error, 2 warning, 3 information, 4 hint; without one it counts as an error."""
    code: int | str | CodeLink | None = None
    source: Any = None

    @property
    def text(self) -> str:
        """What it says."""
        return self.message if isinstance(self.message, str) else self.message.value

    @property
    def label(self) -> str:
        """Its code as it is shown; empty without one."""
        code = self.code.value if isinstance(self.code, CodeLink) else self.code
        return "" if code is None else str(code)


class PublishedDiagnostics(WireStruct, frozen=True):
    """`textDocument/publishDiagnostics`: all that a server has to say about a file."""

    uri: str
    diagnostics: list[CodeDiagnostic]
    version: int | None = None
    """Of the text that they are about; some servers leave it out."""


class DiagnosticReport(WireStruct, frozen=True):
    """The answer to `textDocument/diagnostic`."""

    # It must have them: an answer without is not the absence of problems.
    items: list[CodeDiagnostic]
    # Never `unchanged`: we name no earlier report that it could mean.
    kind: Literal["full"] = "full"


class HoverAnswer(WireStruct, frozen=True):
    """The answer to `textDocument/hover`."""

    contents: MarkedText | str | list[MarkedText | str]


class SymbolAnswer(WireStruct, frozen=True):
    """A name that is defined: in a file, with those inside it, or anywhere, with its location."""

    name: str
    kind: int
    selection_range: TextRange | None = None
    location: LocationAnswer | None = None
    """Of a symbol that has no `selection_range`; its range may be left out."""
    container_name: str | None = None
    children: list[SymbolAnswer] | None = None


class TextEdit(WireStruct, frozen=True):
    """Another text for a range."""

    range: TextRange
    new_text: str


class VersionedFile(WireStruct, frozen=True):
    """A file in one of its versions; None: as it lies on disk."""

    uri: str
    version: int | None = None


class FileEdits(WireStruct, frozen=True):
    """Edits of one file, all meant for the same text."""

    text_document: VersionedFile
    edits: list[TextEdit]


class WorkspaceEdit(WireStruct, frozen=True):
    """Edits of several files, in one of two forms."""

    changes: dict[str, list[TextEdit]] | None = None
    document_changes: list[msgspec.Raw] | None = None
    """`FileEdits`, or files that are to be made, renamed or removed: those have a `kind`."""


class FileOperation(WireStruct, frozen=True):
    """What tells an operation on a file from edits in it."""

    kind: str | None = None


class CommandOptions(WireStruct, frozen=True):
    """Commands that a server can be asked for by name."""

    commands: list[str] = []


class SyncOptions(WireStruct, frozen=True):
    """What a server wants to be told of documents."""

    save: Any = None


class ServerCapabilities(WireStruct, frozen=True):
    """What a server can do.  A feature is off where it is false or left out; else `true`, or
    a table of options.
    """

    position_encoding: str | None = None
    text_document_sync: SyncOptions | int | None = None
    diagnostic_provider: Any = None
    definition_provider: Any = None
    references_provider: Any = None
    hover_provider: Any = None
    document_symbol_provider: Any = None
    workspace_symbol_provider: Any = None
    rename_provider: Any = None
    execute_command_provider: CommandOptions | None = None


class InitializeResult(WireStruct, frozen=True):
    """The answer to `initialize`."""

    capabilities: ServerCapabilities


class CapabilityRegistration(WireStruct, frozen=True):
    """A feature that a server switches on after its start."""

    method: str


class CapabilityRegistrations(WireStruct, frozen=True):
    """Parameters of `client/registerCapability`."""

    registrations: list[CapabilityRegistration]


class ConfigurationItem(WireStruct, frozen=True):
    """A setting that a server asks for."""

    section: str | None = None


class ConfigurationItems(WireStruct, frozen=True):
    """Parameters of `workspace/configuration`."""

    items: list[ConfigurationItem]


class ApplyEdit(WireStruct, frozen=True):
    """Parameters of `workspace/applyEdit`."""

    edit: WorkspaceEdit


Locations: TypeAlias = LocationAnswer | list[LocationAnswer] | None

CREATED: Final = 1
CHANGED: Final = 2
DELETED: Final = 3
"""Kinds of `workspace/didChangeWatchedFiles`."""
SERVER_CANCELLED: Final = -32802
CONTENT_MODIFIED: Final = -32801
"""Errors by which a server asks to be asked again."""
SEVERITIES: Final = {1: "error", 2: "warning", 3: "info", 4: "hint"}
SYMBOL_KINDS: Final = dict(
    enumerate(
        (
            *("file", "module", "namespace", "package", "class", "method", "property", "field"),
            *("constructor", "enum", "interface", "function", "variable", "constant", "string"),
            *("number", "boolean", "array", "object", "key", "null", "enum member", "struct"),
            *("event", "operator", "type parameter"),
        ),
        1,
    )
)

CLIENT_CAPABILITIES: Final[dict[str, Any]] = {
    # A server that supports neither of the first two must count in UTF-16.
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        # With this key pyright, ty and ruff push nothing and wait to be asked; we ask.  An answer
        # belongs to the text that was sent before the question, which a push need not.
        "diagnostic": {"dynamicRegistration": True},
        "definition": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": False},
    },
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "diagnostics": {"refreshSupport": True},
        "symbol": {},
        "workspaceEdit": {"documentChanges": True},
    },
    "window": {"workDoneProgress": True},
}
"""What `initialize` says of us."""
