"""Jupyter notebooks as text: the cells with their sources, and what is text in their outputs.

Pure.  The file itself is JSON in which every line of source is a string of its own, and half of it
pictures in base64: as it is, it would fill a model's window with nothing to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

MAX_OUTPUT: Final = 4_000
"""Characters of the outputs of one cell that are shown."""


class NotebookCell(msgspec.Struct, frozen=True):
    """A cell, of which only what is read is named; the rest of the format may be anything."""

    cell_type: str
    source: str | list[str] = ""
    outputs: list[dict[str, Any]] = []


class NotebookFile(msgspec.Struct, frozen=True):
    """A notebook of format 4, which has been the format since 2014."""

    cells: list[NotebookCell]
    nbformat: int = 4


def notebook_text(data: bytes) -> str | None:
    """A notebook as text; None when the bytes are none."""
    try:
        notebook = msgspec.json.decode(data, type=NotebookFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    pieces = [_cell(number, cell) for number, cell in enumerate(notebook.cells, 1)]
    return "\n".join(pieces) or "(a notebook without cells)\n"


def _cell(number: int, cell: NotebookCell) -> str:
    shown = f"# --- cell {number} ({cell.cell_type})\n{_joined(cell.source).rstrip()}\n"
    outputs = "".join(_outputs(cell)).rstrip()
    if not outputs:
        return shown
    if len(outputs) > MAX_OUTPUT:
        outputs = f"{outputs[:MAX_OUTPUT]}\n(… {len(outputs) - MAX_OUTPUT} more characters)"
    return f"{shown}# --- output of cell {number}\n{outputs}\n"


def _outputs(cell: NotebookCell) -> Iterator[str]:
    for output in cell.outputs:
        match output:
            case {"output_type": "stream", "text": text}:
                yield _joined(text)
            case {"output_type": "error", "ename": name, "evalue": value}:
                yield f"{name}: {value}\n"
            case {"data": dict() as data}:
                yield _shown_data(data)
            case _:
                continue


def _shown_data(data: dict[str, Any]) -> str:
    """What a cell showed: its text, or the kinds of what is no text."""
    if "text/plain" in data and not any(kind.startswith("image/") for kind in data):
        return f"{_joined(data['text/plain'])}\n"
    return f"[{', '.join(data)}]\n"


def _joined(text: object) -> str:
    """Sources and outputs are a text, or a list of lines with their ends."""
    if isinstance(text, list):
        return "".join(map(str, text))
    return text if isinstance(text, str) else ""
