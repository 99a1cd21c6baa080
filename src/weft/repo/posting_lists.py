"""Posting lists: which files a word is in, and how often it is in each.

A word is kept with a letter before it that says what kind of word it is.  A list is packed, for
each file four bytes of its number and one of the count: lists of a batch grow by one such mark for
each word of each file, and a word of few files, as most are, takes few bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from weft.repo.definitions import FileReading
from weft.repo.words import IDENTIFIER, parts_in, parts_of

PART, WHOLE, PATH, NAME_PART, NAME, SUBJECT = "swpdxh"
"""Kinds of words: what the first letter of a list's key says."""
_MOST_COUNT: Final = 255
_COUNT_BYTES: Final = [bytes([count]) for count in range(_MOST_COUNT + 1)]
_COMMON_COUNTS: Final = 12
"""Up to here a count is common enough to make its mark before it is asked for."""
_MARK_BYTES: Final = 5
_ID_BYTES: Final = 4

WordCounts: TypeAlias = dict[str, int]
"""Words, each with the letter of its kind, and how often each occurs."""
_Identifiers: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Words as they are counted, each with its parts."""
_MOST_KNOWN: Final = 50_000
_LONGEST_KNOWN: Final = 64
_known_pieces: dict[bytes, _Identifiers] = {}
"""What pieces of files hold: most stand in many files."""


class PostingList(NamedTuple):
    """The files that a word is in, and how often it is in each."""

    ids: array[int]
    """In their order: a number is given once, and each segment has higher ones."""
    counts: bytes


NOWHERE: Final = PostingList(array("I"), b"")


class FileWords(NamedTuple):
    """What leads to a file."""

    parts: WordCounts
    whole: WordCounts
    path: WordCounts
    name_parts: WordCounts
    names: WordCounts

    @classmethod
    def of(cls, path: str, reading: FileReading) -> FileWords:
        """The words of a file and of its path."""
        whole, parts = content_words(reading.pieces, reading.counts)
        names = [each.name for each in reading.definitions]
        return cls(
            parts,
            whole,
            path_words(path),
            marked(NAME_PART, parts_in(names)),
            {NAME + name.lower(): 1 for name in names},
        )

    def lengths(self) -> list[int]:
        """How many words there are of the kinds that scores are damped by."""
        return [sum(each.values()) for each in (self.parts, self.whole, self.name_parts, self.path)]


class SegmentBuilder:
    """The posting lists of a batch, while its files come one after the other."""

    def __init__(self) -> None:
        self._lists: defaultdict[str, bytearray] = defaultdict(bytearray)

    def add(self, number: int, *words: WordCounts) -> None:
        """Note in which file words are; numbers come in their order."""
        head = number.to_bytes(_ID_BYTES, sys.byteorder)
        marks = [head + each for each in _COUNT_BYTES[:_COMMON_COUNTS]]
        lists = self._lists
        for counts in words:
            for word, count in counts.items():
                if count < _COMMON_COUNTS:
                    lists[word] += marks[count]
                else:
                    lists[word] += head + _COUNT_BYTES[min(count, _MOST_COUNT)]

    def rows(self) -> Iterable[tuple[str, bytearray]]:
        """Each word with its packed list."""
        return self._lists.items()


def packed(listed: PostingList) -> bytes:
    """A list as it is stored."""
    data = bytearray(len(listed.counts) * _MARK_BYTES)
    ids = listed.ids.tobytes()
    for place in range(_ID_BYTES):
        data[place::_MARK_BYTES] = ids[place::_ID_BYTES]
    data[_ID_BYTES::_MARK_BYTES] = listed.counts
    return bytes(data)


def unpacked(stored: Sequence[bytes]) -> PostingList:
    """A list of what is stored of it, in its segments.

    Raises:
        ValueError: something of it is missing.
    """
    data = stored[0] if len(stored) == 1 else b"".join(stored)
    count, rest = divmod(len(data), _MARK_BYTES)
    if rest:
        raise ValueError("a posting list was cut short")
    raw = bytearray(count * _ID_BYTES)
    for place in range(_ID_BYTES):
        raw[place::_ID_BYTES] = data[place::_MARK_BYTES]
    ids = array("I")
    ids.frombytes(raw)
    return PostingList(ids, data[_ID_BYTES::_MARK_BYTES])


def content_words(pieces: bytes, counts: Sequence[int]) -> tuple[WordCounts, WordCounts]:
    """The identifiers in pieces of a file, in lower case, and the parts that they are made of."""
    whole: WordCounts = {}
    parts: WordCounts = {}
    # No `Counter`: of each new word it asks a method of its own, which takes twice as long.
    whole_count, part_count, known = whole.get, parts.get, _known_pieces.get
    for piece, count in zip(pieces.split(), counts, strict=True):
        identifiers = known(piece)
        if identifiers is None:
            identifiers = _identifiers_in(piece)
        for word, split in identifiers:
            whole[word] = whole_count(word, 0) + count
            for part in split:
                parts[part] = part_count(part, 0) + count
    return whole, parts


def _identifiers_in(piece: bytes) -> _Identifiers:
    found = IDENTIFIER.findall(piece.decode("utf-8", "replace"))
    identifiers = tuple(
        (WHOLE + each.lower(), tuple(PART + part for part in parts_of(each))) for each in found
    )
    if len(piece) <= _LONGEST_KNOWN:  # what is longer hardly ever comes again
        if len(_known_pieces) >= _MOST_KNOWN:
            _known_pieces.clear()
        _known_pieces[piece] = identifiers
    return identifiers


def path_words(path: str) -> WordCounts:
    """The words of a path; those of the file's own name count twice."""
    stem = path.rpartition(".")[0] or path
    name = stem.rpartition("/")[2]
    return marked(PATH, parts_in([*IDENTIFIER.findall(stem), *IDENTIFIER.findall(name)]))


def marked(kind: str, counts: Mapping[str, int]) -> WordCounts:
    """Words with the letter of their kind."""
    return {kind + word: count for word, count in counts.items()}
