"""Sessions to and from files: json, jsonl, Markdown and HTML.

Owns the export format (`docs/formats/export.md`) and both ways through it.  Reads a store and makes
facts; touches no file, starts no session and trusts no document.
"""

from weft.export.codec import LARGEST, ParsedDocument, parse, to_json, to_jsonl, too_large
from weft.export.collect import gather
from weft.export.document import FORMAT, VERSION, ExportDocument
from weft.export.html import to_html
from weft.export.markdown import to_md
from weft.export.restore import RestoredFacts, restore

__all__ = [
    "FORMAT",
    "LARGEST",
    "VERSION",
    "ExportDocument",
    "ParsedDocument",
    "RestoredFacts",
    "gather",
    "parse",
    "restore",
    "to_html",
    "to_json",
    "to_jsonl",
    "to_md",
    "too_large",
]
