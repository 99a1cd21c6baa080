"""Extractors: what finds the definitions in the files of a language.

Weft brings one for each of its grammars.  Installed packages can bring more, by the entry point
group `weft_extractors`; docs/extractors.md says how.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

from weft.repo.definition_reader import definition_reader, own_query
from weft.repo.definitions import READER_VERSION, Definition
from weft.repo.languages import GRAMMARS, language_of
from weft.sha256 import sha256

GROUP: Final = "weft_extractors"
"""The group of entry points; the name of each is the name of a language."""


class DefinitionExtractor(Protocol):
    """Finds the definitions in the files of one language."""

    suffixes: Sequence[str]
    """Endings of the names of such files, in lower case: `(".wren",)`."""
    version: str
    """Another one when the same file gives other definitions: then all are read again."""

    def read(self, source: bytes) -> Iterable[Definition]:
        """The definitions in a file, in the order of their places.

        Called in a process that may be ended at any time: what takes too long, too much memory, or
        raises, leaves the file without definitions.
        """


class _GrammarExtractor:
    """Reads with a grammar and a query that Weft brings."""

    suffixes: Sequence[str] = ()

    def __init__(self, language: str) -> None:
        self._language = language
        self.version = sha256(own_query(language).encode()).hexdigest()

    def read(self, source: bytes) -> Iterable[Definition]:
        return definition_reader(self._language).read(source)

    def load(self) -> None:
        """Load the grammar, before there is a file."""
        definition_reader(self._language)


@cache
def installed() -> Mapping[str, DefinitionExtractor]:
    """The extractors that installed packages bring, by language; what cannot be loaded is left
    out.
    """
    found: dict[str, DefinitionExtractor] = {}
    for entry in entry_points(group=GROUP):
        try:
            found[entry.name] = _checked(entry.load()())
        except Exception:  # code of others may raise anything
            continue
    return found


def _checked(made: Any) -> DefinitionExtractor:
    if isinstance(made.suffixes, str) or not all(isinstance(each, str) for each in made.suffixes):
        raise TypeError("suffixes are a sequence of texts")
    if not isinstance(made.version, str) or not callable(made.read):
        raise TypeError("the version is a text, and `read` is a method")
    extractor: DefinitionExtractor = made
    return extractor


@cache
def extractor_of(language: str) -> DefinitionExtractor | None:
    """What reads a language; None when it is not known here."""
    if language in installed():
        return installed()[language]
    return _GrammarExtractor(language) if language in GRAMMARS else None


def load_reader(language: str) -> None:
    """Load what reads a language, so that copies of this process have it."""
    # A header of C may be one of C++.
    for each in (language, "cpp") if language == "c" else (language,):
        extractor = extractor_of(each)
        if isinstance(extractor, _GrammarExtractor):
            extractor.load()


@cache
def _brought_suffixes() -> Mapping[str, str]:
    return {
        suffix.lower(): language
        for language, extractor in installed().items()
        for suffix in extractor.suffixes
    }


def source_language(path: str) -> str | None:
    """The language of a file, by its name; None for one that nothing reads.

    A name that is no UTF-8 is in the listing alone: no answer could name it.
    """
    brought = _brought_suffixes()
    found = brought.get(os.path.splitext(path)[1].lower()) if brought else None
    language = found or language_of(path)
    if language is None or path.isascii():
        return language
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return language


@cache
def reader_seed(language: str) -> bytes:
    """What the readings of a language are cached under, besides the content."""
    extractor = extractor_of(language)
    version = "" if extractor is None else extractor.version
    return f"{READER_VERSION}:{language}:{version}".encode("utf-8", "replace")


@cache
def readers_version() -> str:
    """By what it is known that files were read by these readers and no others."""
    languages = sorted({*GRAMMARS, *installed()})
    suffixes = repr(sorted(_brought_suffixes().items()))
    seeds = b"\0".join(reader_seed(language) for language in languages)
    return sha256(seeds + suffixes.encode("utf-8", "replace")).hexdigest()
