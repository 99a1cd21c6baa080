"""Source files, read for the index: the definitions and the words of their content."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from weft.repo.definitions import EMPTY, MOST_BYTES, FileReading
from weft.repo.parsers.extractors import extractor_of, reader_seed
from weft.repo.words import count_pieces

_LOOKED_AT: Final = 8192
_LONG_LINE: Final = 2_000
_CPP_WORDS: Final = (b"class ", b"namespace", b"template")
_CPP_LINE: Final = re.compile(
    rb"""
    ^[ \t]*(?:
        class[ \t]+(?:\w+[ \t]+){0,3}\w+\s*
            (?: \{ | :\s*(?: (?:public|protected|private|virtual)\b | [\w:<>]+\s*[{,] ) )
        | namespace\b[\w: \t]*\s\{
        | template[ \t]*<
    )""",
    re.MULTILINE | re.VERBOSE,
)


def content_digest(content: bytes, language: str) -> bytes:
    """The name under which a reading is cached."""
    seed = reader_seed(language_in(content, language))
    digest = hashlib.blake2b(seed, digest_size=16)
    digest.update(b"\0")
    digest.update(content)
    return digest.digest()


def read_content(content: bytes, language: str) -> FileReading:
    """Read a file of a language."""
    extractor = extractor_of(language_in(content, language))
    if extractor is None or not _is_source(content):
        return EMPTY
    return FileReading(list(extractor.read(content)), *count_pieces(content))


def language_in(content: bytes, language: str) -> str:
    """The language of a file whose name says `language`: a header of C may be one of C++, whose
    classes the grammar of C does not find.
    """
    if language != "c":
        return language
    # Most files have none of these words, and to look for lines takes longer.
    if b"std::" in content:
        return "cpp"
    has_words = any(word in content for word in _CPP_WORDS)
    return "cpp" if has_words and _CPP_LINE.search(content) else language


def _is_source(content: bytes) -> bool:
    if len(content) > MOST_BYTES or b"\0" in content[:_LOOKED_AT]:
        return False
    # Bundled scripts: their words are everybody's, and their names are one letter.
    lines = content.count(b"\n") + 1
    return len(content) / lines < _LONG_LINE
