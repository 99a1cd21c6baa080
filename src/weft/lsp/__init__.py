"""Language servers: started when they are needed, spoken to, and asked about files.

Their programs are started by the caller, in a sandbox; knows no tool, no session and no settings.
"""

from weft.lsp.client import KnownDiagnostics, LanguageClient, OpenDocument
from weft.lsp.server import LanguageServer, ServerLimits
from weft.lsp.server_specs import KNOWN, ServerSpec, chosen, programs_by_suffix, suffix_of

__all__ = [
    "KNOWN",
    "KnownDiagnostics",
    "LanguageClient",
    "LanguageServer",
    "OpenDocument",
    "ServerLimits",
    "ServerSpec",
    "chosen",
    "programs_by_suffix",
    "suffix_of",
]
