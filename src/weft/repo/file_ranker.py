"""Which files a request is about, best first.

A sum of scores, each scaled to its highest: the words of a file's content, of its path, of what it
defines, and of the subjects of past commits that changed it.  Content by split words says most; a
commit's subject says in the words of users what a file is for.  Measured on the cases of
`bench/ranking`: links between files add nothing to this, and the weights lie on a plateau.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import compress
from typing import Final

from weft.repo.index_cache import EMPTY_TABLE, IndexCache
from weft.repo.posting_lists import NAME, NAME_PART, PART, PATH, SUBJECT, WHOLE, PostingList
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

_SPARSE: Final = 4
"""Where fewer than one in so many numbers is a file's, columns have no room for the others."""
_NEVER: Final = math.inf
"""The damping of a number that is no file's any more: whatever is counted, its score is 0."""

Scores = dict[int, float]
"""By the numbers of files."""
Column = list[float]
"""A value for each file, by its place in the columns."""
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
        self._numbers: Sequence[int] = ()
        """The number at each place of a column."""
        self._places: dict[int, int] | None = None
        """The place of each number; None where every number is its own place."""
        self._dampings: dict[str, Column] = {}
        self._spread: dict[str, int] = {}
        """Words, and how many files each is in, as far as they were asked for."""
        self._ids: dict[str, int] | None = None
        self._asked: tuple[str, tuple[str, ...], int] | None = None
        """The last question for likely files, and what was found."""
        self._found: list[str] = []

    def prepare(self, request: str, most: int) -> None:
        """Rank for a request that will be asked for soon."""
        self.likely(request, (), most)
        self.word_weights(request)

    def rank(self, request: str, focus: Sequence[str] = ()) -> list[str]:
        """The paths of all files, best first; those of `focus` are in the conversation already:
        they are left out, and their neighbours come up.  A request without words is for the
        important ones.
        """
        column = self._scores(request, focus)
        scores = dict(zip(self._numbers, column, strict=True)) if any(column) else None
        if scores is None:
            scores = self._importance()
        aside = frozenset(compress(self._table.ids, self._table.aside))
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
        check_time(is_late)
        self._refresh()
        asked = request, (*focus,), most
        if asked != self._asked:
            self._found = self._likely(request, focus, most, is_late)
            self._asked = asked
        return self._found

    def _likely(self, request: str, focus: Sequence[str], most: int, is_late: IsLate) -> list[str]:
        scores = self._scores(request, focus, is_late)
        lowered = self._column((-_ASIDE * each for each in self._table.aside), 0.0)
        values = [
            (score + low, id)
            for score, low, id in zip(scores, lowered, self._numbers, strict=True)
            if score
        ]
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
        total = [0.0] * len(self._numbers)
        self._add(total, {id: math.log1p(score) for id, score in changed.items()}, 1.0)
        names = zip(self._table.ids, self._table.names, strict=True)
        self._add(total, {id: math.log1p(count) for id, count in names}, 1.0)
        check_time(is_late)
        return dict(zip(self._numbers, total, strict=True))

    def _scores(self, request: str, focus: Sequence[str], is_late: IsLate = never_late) -> Column:
        """0 for files that share no word with the request, and that nothing else speaks for."""
        check_time(is_late)
        self._refresh()
        words = request_words(request)
        total = [0.0] * len(self._numbers)
        for kind, weight in _WEIGHTS.items():
            found = self._by_words(kind, words)
            if (highest := max(found, default=0.0)) > 0:
                pairs = zip(total, found, strict=True)
                total = [one + weight * more / highest for one, more in pairs]
            check_time(is_late)
        self._add(total, self._by_names(words), _BY_NAME)
        self._add(total, self._by_subjects(words), _BY_SUBJECT)
        if focus:
            self._add(total, self._neighbours(focus), _BY_NEIGHBOUR)
        return total

    def _add(self, total: Column, scores: Scores, weight: float) -> None:
        highest = max(scores.values(), default=0.0)
        if highest <= 0:
            return
        places = self._places
        for id, score in scores.items():
            total[id if places is None else places[id]] += weight * score / highest

    def word_weights(self, request: str) -> dict[str, float]:
        """The words of a request, each with how much it tells in this project."""
        self._refresh()
        words = request_words(request).parts
        self._lists(PART, [word for word in words if word not in self._spread])
        return {
            word: weight * self._rarity(self._spread.get(word, 0)) for word, weight in words.items()
        }

    def _refresh(self) -> None:
        state = self._cache.state
        if state == self._state:
            return
        self._state = state
        self._table = table = self._cache.table()
        self._ids = None
        self._spread.clear()
        self._asked = None
        count = len(table.ids)
        if count and table.ids[-1] > _SPARSE * count:
            self._numbers, self._places = table.ids, {id: at for at, id in enumerate(table.ids)}
        else:
            self._numbers, self._places = range(table.ids[-1] + 1 if count else 0), None
        columns = (table.parts, table.whole, table.names, table.steps)
        self._dampings = {
            kind: self._column(_damped(kind, column), _NEVER)
            for kind, column in zip((PART, WHOLE, NAME_PART, PATH), columns, strict=True)
        }

    def _column(self, values: Iterable[float], missing: float) -> Column:
        """What the files have, and what stands at the places that are no file's."""
        if self._places is not None:
            return [*values]
        column = [missing] * len(self._numbers)
        for id, value in zip(self._table.ids, values, strict=True):
            column[id] = value
        return column

    def _paths(self) -> dict[str, int]:
        """All paths with their numbers; not read for a request that needs none of them."""
        if self._ids is None:
            self._ids = self._cache.ids()
        return self._ids

    def _rarity(self, files: int, among: int | None = None) -> float:
        count = len(self._table.ids) if among is None else among
        return math.log(1 + max(0.0, count - files + 0.5) / (files + 0.5))

    def _lists(self, kind: str, words: Iterable[str]) -> dict[str, PostingList]:
        lists = self._cache.lists(kind, words)
        if kind == PART:
            self._spread.update((word, len(listed.counts)) for word, listed in lists.items())
        return lists

    def _by_words(self, kind: str, words: RequestWords) -> Column:
        asked = words.whole if kind == WHOLE else words.parts
        lists = self._lists(kind, asked)
        base, damping = _SATURATION * (1 - _LENGTH_SHARE[kind]), self._dampings[kind]
        found = [0.0] * len(self._numbers)
        left = _MOST_POSTINGS
        for word, listed in sorted(lists.items(), key=lambda pair: len(pair[1].counts)):
            rarity = asked[word] * self._rarity(len(listed.counts))
            _score(found, self._placed(listed), rarity * (1 + _SATURATION), base, damping)
            left -= len(listed.counts)
            if left < 0:
                break
        return found

    def _placed(self, listed: PostingList) -> PostingList:
        """A list with places in the columns in place of numbers; a number that is no file's any
        more may have none.
        """
        ids, counts = listed
        if self._places is not None:
            place_of = self._places.get
            pairs = [
                (place, count)
                for id, count in zip(ids, counts, strict=True)
                if (place := place_of(id)) is not None
            ]
            placed = array("I", [place for place, _ in pairs])
            return PostingList(placed, bytes(count for _, count in pairs))
        end = bisect_left(ids, len(self._numbers))
        return listed if end == len(ids) else PostingList(ids[:end], counts[:end])

    def _by_names(self, words: RequestWords) -> Scores:
        """Files that define something by a name of the request."""
        found: Scores = {}
        for word, (ids, _) in self._cache.lists(NAME, words.whole).items():
            if len(word) >= _SHORT_NAME:
                for id in ids:
                    if self._is_file(id):
                        found[id] = found.get(id, 0.0) + words.whole[word] / len(ids)
        return found

    def _is_file(self, id: int) -> bool:
        if self._places is not None:
            return id in self._places
        return id < len(self._numbers) and self._dampings[PART][id] is not _NEVER

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


def _damped(kind: str, lengths: Sequence[int]) -> Iterator[float]:
    """How much the count of a word is held back in each file, by the file's length."""
    average = max(1.0, sum(lengths) / max(1, len(lengths)))
    share = _SATURATION * (_LENGTH_SHARE[kind] / average)
    return (share * length for length in lengths)


def _score(
    found: Column, listed: PostingList, highest: float, base: float, damping: Column
) -> None:
    # The loop that a map takes longest for: all that is the same for each file is done before it.
    for place, count in zip(listed.ids, listed.counts, strict=True):
        found[place] += highest * count / (count + base + damping[place])
