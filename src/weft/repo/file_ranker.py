"""Which files a request is about, best first.

A sum of scores, each scaled to its highest: the words of a file's content, of its path, of what it
defines, and of the subjects of past commits that changed it.  Content by split words says most; a
commit's subject says in the words of users what a file is for.  Measured on the cases of
`bench/ranking`: links between files add nothing to this, and the weights lie on a plateau.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from itertools import compress
from typing import Final

import msgspec

from weft.repo.index_cache import (
    EMPTY_TABLE,
    NAME,
    NAME_PART,
    NOWHERE,
    PART,
    PATH,
    SUBJECT,
    WHOLE,
    IndexCache,
    PostingList,
)
from weft.repo.words import RequestWords, request_words

_SATURATION: Final = 1.2
"""How soon one more occurrence of a word stops to count (BM25's k1)."""
_WEIGHTS: Final = {PART: 2.0, PATH: 1.8, WHOLE: 0.9, NAME_PART: 0.4}
_BY_SUBJECT: Final = 1.0
_BY_NAME: Final = 0.5
_BY_NEIGHBOUR: Final = 1.2
_ASIDE: Final = 3.5
"""So much lower are tests, documents and examples: they share all words with what they are about.
"""
_LENGTH_SHARE: Final = {PART: 0.75, WHOLE: 0.75, PATH: 0.3, NAME_PART: 0.75, SUBJECT: 0.5}
"""How much a long file is held to account for its length (BM25's b)."""
_WIDE_COMMIT: Final = 20
"""A commit that changed more files says nothing about any of them."""
_MOST_COMMITS: Final = 400
_SHORT_NAME: Final = 3
_MOST_POSTINGS: Final = 100_000
"""Files that are scored for the words of one kind, rarest words first: in a large project the most
common words would take all of the time, and tell the least.
"""

Scores = dict[int, float]
IsLate = Callable[[], bool]
"""Says whether nobody waits for an answer any more: it is asked now and then."""


def never_late() -> bool:
    """For an answer that is waited for as long as it takes."""
    return False


class FileRanker:
    """Ranks the files of an index; holds what it has read of it while nobody writes."""

    def __init__(self, cache: IndexCache) -> None:
        self._cache = cache
        self._state: int | None = None
        self._table = EMPTY_TABLE
        self._lengths: dict[str, dict[int, int]] = {}
        self._aside: frozenset[int] = frozenset()
        """Tests, documents and examples."""
        self._ids: dict[str, int] | None = None

    def rank(self, request: str, focus: Sequence[str] = ()) -> list[str]:
        """The paths of all files, best first; those of `focus` are in the conversation already:
        they are left out, and their neighbours come up.  A request without words is for the
        important ones.
        """
        scores = self._scores(request, focus) or self._importance()
        aside = self._aside
        # Plain pairs, the lowest first: of thousands, a key for each would take longer to make
        # than to compare them.
        ranked = sorted(
            (_ASIDE * (id in aside) - scores.get(id, 0.0), path)
            for path, id in self._paths().items()
        )
        return [path for _, path in ranked if path not in focus]

    def likely(
        self,
        request: str,
        focus: Sequence[str] = (),
        most: int = 40,
        is_late: IsLate = never_late,
    ) -> list[str]:
        """The best of the files that share words with a request, or were changed with those of
        `focus`; in the order of `rank`, without looking at the others.

        Raises:
            TimeoutError: `is_late` says so.
        """
        scores = self._scores(request, focus, is_late)
        aside = self._aside
        values = [(score - _ASIDE * (id in aside), id) for id, score in scores.items()]
        best = nlargest(most + len(focus), values)
        paths = dict(self._cache.paths_by_id([id for _, id in best]))
        return [paths[id] for _, id in best if paths[id] not in focus][:most]

    def important(self, most: int = 100, is_late: IsLate = never_late) -> list[str]:
        """The files that matter most whatever is asked, best first: those that are changed often
        and define much.

        Measured as the ranking is: how often other files use what a file defines adds nothing to
        these two, and costs ten times as much to know.

        Raises:
            TimeoutError: `is_late` says so.
        """
        check_time(is_late)
        self._refresh()
        total = self._importance(is_late)
        # Of equal ones the first that was read.
        table = zip(self._table.ids, self._table.aside, strict=True)
        values = ((total[id] - _ASIDE * is_aside, -id) for id, is_aside in table)
        best = [-id for _, id in nlargest(most, values)]
        paths = dict(self._cache.paths_by_id(best))
        return [paths[id] for id in best]

    def _importance(self, is_late: IsLate = never_late) -> Scores:
        changed: Scores = {}
        commits = int(str(self._cache.note("past commits") or 0))
        for _, files in self._cache.past(range(commits)):
            check_time(is_late)
            self._share(changed, files, 1.0)
        total: Scores = dict.fromkeys(self._table.ids, 0.0)
        _add(total, {id: math.log1p(score) for id, score in changed.items()}, 1.0)
        names = zip(self._table.ids, self._table.names, strict=True)
        _add(total, {id: math.log1p(count) for id, count in names}, 1.0)
        check_time(is_late)
        return total

    def _scores(self, request: str, focus: Sequence[str], is_late: IsLate = never_late) -> Scores:
        check_time(is_late)
        self._refresh()
        words = request_words(request)
        total: Scores = {}
        for kind, weight in _WEIGHTS.items():
            _add(total, self._by_words(kind, words), weight)
            check_time(is_late)
        _add(total, self._by_names(words), _BY_NAME)
        _add(total, self._by_subjects(words), _BY_SUBJECT)
        if focus:
            _add(total, self._neighbours(focus), _BY_NEIGHBOUR)
        return total

    def word_weights(self, request: str) -> dict[str, float]:
        """The words of a request, each with how much it tells in this project."""
        self._refresh()
        words = request_words(request).parts
        lists = self._cache.lists(PART, words)
        return {
            word: weight * self._rarity(len(lists.get(word, NOWHERE).counts))
            for word, weight in words.items()
        }

    def _refresh(self) -> None:
        state = self._cache.state
        if state == self._state:
            return
        self._state = state
        self._table = table = self._cache.table()
        self._ids = None
        self._aside = frozenset(compress(table.ids, table.aside))
        columns = (table.parts, table.whole, table.names, table.steps)
        self._lengths = {
            kind: dict(zip(table.ids, column, strict=True))
            for kind, column in zip((PART, WHOLE, NAME_PART, PATH), columns, strict=True)
        }

    def _paths(self) -> dict[str, int]:
        """All paths with their numbers; not read for a request that needs none of them."""
        if self._ids is None:
            self._ids = self._cache.ids()
        return self._ids

    def _rarity(self, files: int, among: int | None = None) -> float:
        count = len(self._table.ids) if among is None else among
        return math.log(1 + max(0.0, count - files + 0.5) / (files + 0.5))

    def _by_words(self, kind: str, words: RequestWords) -> Scores:
        asked = words.whole if kind == WHOLE else words.parts
        lists = self._cache.lists(kind, asked)
        lengths = self._lengths[kind]
        average = max(1.0, sum(lengths.values()) / max(1, len(lengths)))
        damping = _Damping(lengths, 1 - _LENGTH_SHARE[kind], _LENGTH_SHARE[kind] / average)
        found: Scores = {}
        left = _MOST_POSTINGS
        for word, listed in sorted(lists.items(), key=lambda pair: len(pair[1].counts)):
            _score(found, listed, asked[word] * self._rarity(len(listed.counts)), damping)
            left -= len(listed.counts)
            if left < 0:
                break
        return found

    def _by_names(self, words: RequestWords) -> Scores:
        """Files that define something by a name of the request."""
        found: Scores = {}
        for word, (ids, _) in self._cache.lists(NAME, words.whole).items():
            if len(word) >= _SHORT_NAME:
                for id in ids:
                    if id in self._lengths[PART]:
                        found[id] = found.get(id, 0.0) + words.whole[word] / len(ids)
        return found

    def _by_subjects(self, words: RequestWords) -> Scores:
        """Files that commits with such subjects have changed."""
        lists = self._cache.lists(SUBJECT, words.parts)
        count = int(str(self._cache.note("past commits") or 0))
        commits: Scores = {}
        for word, listed in lists.items():
            rarity = words.parts[word] * self._rarity(len(listed.counts), count)
            for id, times in zip(*listed, strict=True):
                commits[id] = commits.get(id, 0.0) + rarity * times / (times + _SATURATION)
        found: Scores = {}
        # Of the last commits in this order each adds next to nothing.
        best = nlargest(_MOST_COMMITS, commits, key=commits.__getitem__)
        for id, files in self._cache.past(best):
            self._share(found, files, commits[id])
        return found

    def _neighbours(self, focus: Sequence[str]) -> Scores:
        """Files that were changed together with those of the conversation, or lie beside them."""
        found: Scores = {}
        for files in self._cache.past_of(focus):
            self._share(found, [file for file in files if file not in focus], 1.0)
        return found

    def _share(self, found: Scores, files: Sequence[str], score: float) -> None:
        ids = self._paths()
        known = [id for file in files if (id := ids.get(file)) is not None]
        if 0 < len(known) <= _WIDE_COMMIT:
            for id in known:
                found[id] = found.get(id, 0.0) + score / math.sqrt(len(known))


def check_time(is_late: IsLate) -> None:
    """Raises TimeoutError when it is too late."""
    if is_late():
        raise TimeoutError


class _Damping(msgspec.Struct, frozen=True):
    """How much a word's count is held back in a file, by the file's length."""

    lengths: Mapping[int, int]
    base: float
    share: float


def _score(found: Scores, listed: PostingList, rarity: float, damping: _Damping) -> None:
    # The loop that a map takes longest for: all that is the same for each file is done before it.
    length_of, score_of = damping.lengths.get, found.get
    base, share = _SATURATION * damping.base, _SATURATION * damping.share
    highest = rarity * (1 + _SATURATION)
    for id, count in zip(listed.ids, listed.counts, strict=True):
        length = length_of(id)
        if length is not None:  # a number without a row is an older state of a file
            found[id] = score_of(id, 0.0) + highest * count / (count + base + share * length)


def _add(total: Scores, scores: Scores, weight: float) -> None:
    highest = max(scores.values(), default=0.0)
    if highest <= 0:
        return
    for id, score in scores.items():
        total[id] = total.get(id, 0.0) + weight * score / highest
