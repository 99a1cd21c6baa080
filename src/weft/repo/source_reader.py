"""Source files, read for the index: the definitions and the words of their content."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Final

from weft.repo.definition_reader import definition_reader
from weft.repo.definitions import EMPTY, FileReading
from weft.repo.words import IDENTIFIER, count_parts

VERSION: Final = 1
"""Raised when the same bytes give another reading: what is cached under an older one is read anew.
"""
MOST_BYTES: Final = 512 * 1024
"""A larger file is generated or data: it would cost more to read than it tells."""
_LOOKED_AT: Final = 8192
_LONG_LINE: Final = 2_000


def content_digest(content: bytes, language: str) -> bytes:
    """The name under which a reading is cached."""
    seed = f"{VERSION}:{language}:".encode()
    return hashlib.blake2b(content, digest_size=16, key=seed).digest()


def read_content(content: bytes, language: str) -> FileReading:
    """Read a file of a language."""
    if not _is_source(content):
        return EMPTY
    identifiers = Counter(IDENTIFIER.findall(content.decode("utf-8", "replace")))
    whole: Counter[str] = Counter()
    for identifier, count in identifiers.items():
        whole[identifier.lower()] += count
    return FileReading(
        definition_reader(language).read(content), dict(whole), dict(count_parts(identifiers))
    )


def _is_source(content: bytes) -> bool:
    if len(content) > MOST_BYTES or b"\0" in content[:_LOOKED_AT]:
        return False
    # Bundled scripts: their words are everybody's, and their names are one letter.
    lines = content.count(b"\n") + 1
    return len(content) / lines < _LONG_LINE
