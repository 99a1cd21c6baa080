"""Source files, read for the index: the definitions and the words of their content."""

from __future__ import annotations

import hashlib
from typing import Final

from weft.repo.definitions import EMPTY, MOST_BYTES, FileReading
from weft.repo.parsers.extractors import extractor_of, reader_seed
from weft.repo.words import count_pieces

_LOOKED_AT: Final = 8192
_LONG_LINE: Final = 2_000


def content_digest(content: bytes, language: str) -> bytes:
    """The name under which a reading is cached."""
    digest = hashlib.blake2b(reader_seed(language), digest_size=16)
    digest.update(b"\0")
    digest.update(content)
    return digest.digest()


def read_content(content: bytes, language: str) -> FileReading:
    """Read a file of a language."""
    extractor = extractor_of(language)
    if extractor is None or not _is_source(content):
        return EMPTY
    return FileReading(list(extractor.read(content)), *count_pieces(content))


def _is_source(content: bytes) -> bool:
    if len(content) > MOST_BYTES or b"\0" in content[:_LOOKED_AT]:
        return False
    # Bundled scripts: their words are everybody's, and their names are one letter.
    lines = content.count(b"\n") + 1
    return len(content) / lines < _LONG_LINE
