"""What a project holds: its files, the symbols in them, and which of them a request is about.

Reads and writes the index of a project.  Knows no session and no tool.  Everything is loaded when
it is first used: a session's process takes what reads the index, an indexer's what makes it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.repo.definition_reader import DefinitionReader
    from weft.repo.definitions import (
        Definition,
        FoundReference,
        ReferenceOrder,
        plain_line,
        plain_path,
    )
    from weft.repo.indexer_process import reference_argv
    from weft.repo.parsers.extractors import DefinitionExtractor
    from weft.repo.project_index import ProjectIndex

__all__ = [
    "Definition",
    "DefinitionExtractor",
    "DefinitionReader",
    "FoundReference",
    "ProjectIndex",
    "ReferenceOrder",
    "plain_line",
    "plain_path",
    "reference_argv",
]

_HOMES = {
    "Definition": "definitions",
    "DefinitionExtractor": "parsers.extractors",
    "DefinitionReader": "definition_reader",
    "FoundReference": "definitions",
    "ProjectIndex": "project_index",
    "ReferenceOrder": "definitions",
    "plain_line": "definitions",
    "plain_path": "definitions",
    "reference_argv": "indexer_process",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
