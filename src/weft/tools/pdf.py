"""The text of PDF files, for `read`: a child process parses them, within limits."""

from __future__ import annotations

import os
import sys
from typing import Final

from weft.errors import FinalToolError
from weft.tools.base import ToolContext
from weft.workspace import FileState, ProcessCommand

MAX_PDF_FILE: Final = 32 * 1024 * 1024
MAX_PAGES: Final = 200
"""Pages whose text is read; a book is better searched with other tools."""
SECONDS: Final = 25.0
_WORKER: Final = os.path.join(os.path.dirname(__file__), "builtin", "pdf_worker.py")


async def pdf_text(state: FileState, context: ToolContext) -> str:
    """The text of a PDF file, page by page.

    Raises:
        FinalToolError: it cannot be read, or holds no text.
    """
    if state.truncated:
        state = await context.workspace.read(state.path, limit=MAX_PDF_FILE)
    if state.truncated:
        raise FinalToolError(f"{state.path!r} is too large: {state.size:,} bytes of PDF")
    result = await context.runner.run(
        ProcessCommand(
            # Isolated: neither PYTHONPATH nor a module of the project is loaded.
            argv=(sys.executable, "-I", _WORKER, "1", str(MAX_PAGES)),
            cwd=context.workspace.root,
            timeout_seconds=SECONDS,
            stdin=state.data,
            only_reads=True,
            errors_apart=True,
        )
    )
    count, _, text = result.output.partition("\n")
    if result.exit_code or result.timed_out or not count.isdigit():
        why = result.output.strip().splitlines()[-1:] or ["the reader was stopped"]
        raise FinalToolError(f"{state.path!r} cannot be read as a PDF ({why[0]})")
    if not text.strip():
        raise FinalToolError(
            f"{state.path!r} is a PDF of {count} pages without text; it may be a scan"
        )
    return _with_numbers(text, int(count))


def _with_numbers(text: str, count: int) -> str:
    pages = text.split("\f")[:-1] if text.endswith("\f") else text.split("\f")
    shown = [f"--- page {at} of {count}\n{page.strip()}" for at, page in enumerate(pages, 1)]
    if len(pages) < count:
        shown.append(f"--- pages {len(pages) + 1} to {count} are not shown")
    return "\n".join(shown) + "\n"
