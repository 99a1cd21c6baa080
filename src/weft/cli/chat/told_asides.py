"""Side questions of before, at their place in a conversation that is shown again."""

from __future__ import annotations

from collections.abc import Iterable

from weft.api import HistoryMessage, SideQuestion
from weft.view import aside_words


def with_asides(
    items: Iterable[tuple[str, HistoryMessage]], asides: Iterable[SideQuestion]
) -> list[HistoryMessage]:
    """The messages of a page, with side questions behind those that they were asked at."""
    by_node: dict[str, list[HistoryMessage]] = {}
    for each in asides:
        said = aside_words(each.question, each.answer)
        told = HistoryMessage(role="system", content=said, at=each.at)
        by_node.setdefault(each.node or "", []).append(told)
    found: list[HistoryMessage] = []
    waiting: list[HistoryMessage] = []
    for row, message in items:
        if message.role in ("user", "assistant"):
            # Behind the results of an answer, not between it and them.
            found += waiting
            waiting = by_node.get(row, [])
        found.append(message)
    return found + waiting
