"""Language servers: started when they are needed, spoken to, and asked about files.

Their programs are started by the caller, in a sandbox; knows no tool, no session and no settings.
"""

from weft.lsp.client import KnownDiagnostics, LanguageClient, OpenDocument
from weft.lsp.code_queries import CodePlace, CodeQueries, CodeSymbol, OtherMentions, RenameEdits
from weft.lsp.edit_reports import EditReports
from weft.lsp.positions import TextPlaces, edited, lines_of_text
from weft.lsp.server import LanguageServer, ServerLimits, least_used
from weft.lsp.server_pool import ServerPool
from weft.lsp.server_specs import KNOWN, ServerSpec, chosen, programs_by_suffix, suffix_of
from weft.lsp.wire import TextEdit

__all__ = [
    "KNOWN",
    "CodePlace",
    "CodeQueries",
    "CodeSymbol",
    "EditReports",
    "KnownDiagnostics",
    "LanguageClient",
    "LanguageServer",
    "OpenDocument",
    "OtherMentions",
    "RenameEdits",
    "ServerLimits",
    "ServerPool",
    "ServerSpec",
    "TextEdit",
    "TextPlaces",
    "chosen",
    "edited",
    "least_used",
    "lines_of_text",
    "programs_by_suffix",
    "suffix_of",
]
