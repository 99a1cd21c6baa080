"""Lists and search for stores that look through everything they have.

A database has indexes for this; a store in memory or in plain files goes through its rows and its
texts, and shares how here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import msgspec

from weft.ids import SessionId
from weft.store import search_text as words
from weft.store.base import RowPlace, SearchHit, SearchText, SessionRow

Said = Callable[[SessionId], Iterable[str]]
"""The texts that were said in a session, each `indexed`."""


class RowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What a list asks for; the arguments of `Store.rows`."""

    project_path: str | None
    query: str | None
    limit: int
    archived: bool
    children: bool
    after: RowPlace | None

    def page(self, rows: Iterable[SessionRow], said: Said) -> list[SessionRow]:
        """The rows that it asks for, last active first.

        Texts are asked for one session after the other, until there are enough: reading them may
        be dear.
        """
        found = sorted(filter(self._takes, rows), key=_place, reverse=True)
        phrases = words.phrases(self.query or "")
        mentioning = (row for row in found if _mentions(row, phrases, said))
        return list(itertools.islice(mentioning, self.limit))

    def _takes(self, row: SessionRow) -> bool:
        return (
            self.project_path in (None, row.project_path)
            and (self.archived or not row.archived)
            and (self.children or not row.is_child)
            and (self.after is None or _place(row) < self.after)
        )


def _place(row: SessionRow) -> RowPlace:
    return row.last_active, row.id


def _mentions(row: SessionRow, phrases: list[str], said: Said) -> bool:
    """True when each phrase stands in the title or was said."""
    title = words.indexed(row.title) if phrases else ""
    missing = [phrase for phrase in phrases if not words.holds(title, phrase)]
    if not missing:
        return True
    texts = list(said(row.id))
    return all(any(words.holds(text, phrase) for text in texts) for phrase in missing)


def found_ids(rows: Iterable[SessionRow], prefix: str, limit: int) -> list[SessionId]:
    """Ids that begin with `prefix`."""
    return sorted(row.id for row in rows if row.id.startswith(prefix))[:limit]


def hits(
    query: str, limit: int, said: Iterable[tuple[SessionId, SearchText, str]]
) -> list[SearchHit]:
    """Where all words of a query were said; each text comes with its session, and `indexed`."""
    phrases = words.phrases(query)
    return list(itertools.islice(_hits(phrases, said), limit if phrases else 0))


def _hits(
    phrases: list[str], said: Iterable[tuple[SessionId, SearchText, str]]
) -> Iterator[SearchHit]:
    for session_id, each, index in said:
        if all(words.holds(index, phrase) for phrase in phrases):
            excerpt = words.excerpt(each.text, phrases)
            yield SearchHit(session_id=session_id, node=each.node, excerpt=excerpt)
