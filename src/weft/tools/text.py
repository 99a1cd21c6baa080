"""Text in files: encodings, byte-order marks and line ends, kept exactly as they are.

Models write `\\n`.  A file keeps what it has: text is matched against a view of the file in which
`\\r\\n` is `\\n`, and what changes is put back in the file's own form, byte for byte elsewhere.
"""

from __future__ import annotations

import codecs

import msgspec

from weft.errors import FinalToolError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16, whose little-endian mark they begin with.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PROBE = 8192
_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\b\x1b")


class DecodedText(msgspec.Struct, frozen=True):
    """A file as text, and what is needed to write it back as it was."""

    text: str
    """As in the file, but for the byte-order mark: `\\r\\n` is still `\\r\\n`."""
    encoding: str = "utf-8"
    bom: bytes = b""

    def encode(self, text: str, shown: str) -> bytes:
        """Bytes for `text` in this file's own form.

        Raises:
            FinalToolError: the file's encoding has no such character.
        """
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            raise FinalToolError(
                f"{shown!r} is written in {self.encoding}, which has no {letter!r}; use "
                "other characters"
            ) from error


def is_pdf(data: bytes) -> bool:
    """Whether these bytes begin a PDF; a name is only a claim."""
    return data.startswith(b"%PDF-")


def is_binary(data: bytes) -> bool:
    """True when the bytes are no text that a model could read."""
    if any(data.startswith(bom) for bom, _ in _BOMS):
        return False
    probe = data[:_PROBE]
    # Git's test for binary files. UTF-16 holds NUL bytes too, but has its byte-order mark above.
    if b"\0" in probe:
        return True
    odd = len(probe) - len(probe.translate(None, _CONTROL))
    return odd * 10 > len(probe)


def decode(data: bytes) -> DecodedText | None:
    """The text of a file, None when it is binary or in no encoding that can be written back
    exactly.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _attempt(data, encoding, bom)
    if is_binary(data):
        return None
    # In this order: UTF-8 hardly ever fits by chance, cp1252 leaves five bytes undefined, and
    # latin-1 fits everything; each gives back the same bytes when it is written.
    return _attempt(data, "utf-8") or _attempt(data, "cp1252") or _attempt(data, "latin-1")


def _attempt(data: bytes, encoding: str, bom: bytes = b"") -> DecodedText | None:
    try:
        return DecodedText(data[len(bom) :].decode(encoding), encoding, bom)
    except UnicodeDecodeError:
        return None


def in_lf(text: str) -> str:
    """The text as models see and write it."""
    return text.replace("\r\n", "\n")


def line_end(text: str) -> str:
    """The line end that a file mostly uses."""
    windows = text.count("\r\n")
    return "\r\n" if windows and windows * 2 >= text.count("\n") else "\n"
