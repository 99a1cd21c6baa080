"""PDF files, read by a child process within limits: their text, how many pages, whether they can be
shown to models as they are.

The one place for what `-i`, `@file`, a program and `read` bring.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import msgspec

from weft.errors import FinalToolError
from weft.messages import PDF_TYPE, File, Image
from weft.workspace import ProcessCommand, Runner

MAX_PDF_FILE: Final = 32 * 1024 * 1024
MAX_SHOWN_FILE: Final = 30 * 1024 * 1024
"""Bytes of a document that any vendor takes as it is."""
MAX_PAGES: Final = 200
"""Pages whose text is read; a book is better searched with other tools."""
MAX_TEXT: Final = 1024 * 1024
"""Characters of a document that is attached: as much as of a text file."""
SECONDS: Final = 25.0
_WORKER: Final = os.path.join(os.path.dirname(__file__), "builtin", "pdf_worker.py")


class PdfContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a PDF file holds."""

    data: bytes
    text: str
    """Page by page, each under a line with its number; empty where there is none, as in a scan."""
    pages: int
    is_locked: bool
    """It is encrypted, if only against printing: vendors refuse it."""

    @property
    def can_be_shown(self) -> bool:
        """Some vendor takes it as it is."""
        return not self.is_locked and len(self.data) <= MAX_SHOWN_FILE

    def shown_as(self, name: str) -> Image:
        """The document itself, for models that can look at it."""
        from base64 import b64encode  # only where there is a document

        data = b64encode(self.data).decode()
        has_text = bool(self.text)
        return Image(
            media_type=PDF_TYPE, data=data, name=name, pages=self.pages, text_beside=has_text
        )


async def read_pdf(data: bytes, name: str, *, runner: Runner, cwd: str) -> PdfContent:
    """What a PDF file holds.

    Raises:
        FinalToolError: it is damaged, needs a password, or takes too long.
    """
    result = await runner.run(
        ProcessCommand(
            # Isolated: neither PYTHONPATH nor a module of the project is loaded.
            argv=(sys.executable, "-I", _WORKER, "1", str(MAX_PAGES)),
            cwd=cwd,
            timeout_seconds=SECONDS,
            stdin=data,
            only_reads=True,
            errors_apart=True,
        )
    )
    # Head and tail of a long text would be a document with a hole in it.
    output = result.output
    if result.full_output is not None:
        # One that was stopped may end inside a character.
        output = result.full_output.decode(errors="replace")
    first, _, text = output.partition("\n")
    count, _, lock = first.partition(" ")
    if result.exit_code or result.timed_out or not count.isdigit():
        why = output.strip().splitlines()[-1:] or ["the reader was stopped"]
        raise FinalToolError(f"{name!r} cannot be read as a PDF ({why[0]})")
    said = _with_numbers(text, int(count)) if text.strip() else ""
    return PdfContent(data=data, text=said, pages=int(count), is_locked=bool(lock))


async def document_parts(
    data: bytes, name: str, *, runner: Runner, cwd: str = "/"
) -> tuple[Image | File, ...]:
    """A PDF as parts of a message: as itself, where any vendor takes it, and as its text, where it
    has one.

    Raises:
        FinalToolError: it is damaged, or neither can be had.
    """
    found = await read_pdf(data, name, runner=runner, cwd=cwd)
    parts: list[Image | File] = [found.shown_as(name)] if found.can_be_shown else []
    if found.text:
        parts.append(File(name=name, media_type=PDF_TYPE, text=found.text[:MAX_TEXT]))
    if not parts:
        raise FinalToolError(f"{without_text(name, found.pages)}, and it is locked or too large")
    return tuple(parts)


def without_text(name: str, pages: int) -> str:
    """The sentence about a PDF that holds only pictures of its pages."""
    return f"{name!r} is a PDF of {pages} pages without text; it may be a scan"


def _with_numbers(text: str, count: int) -> str:
    pages = text.split("\f")[:-1] if text.endswith("\f") else text.split("\f")
    shown = [f"--- page {at} of {count}\n{page.strip()}" for at, page in enumerate(pages, 1)]
    if len(pages) < count:
        shown.append(f"--- pages {len(pages) + 1} to {count} are not shown")
    return "\n".join(shown) + "\n"
