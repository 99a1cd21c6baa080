"""How many changes of files came after messages: counted for all of them in one go."""

from __future__ import annotations

from functools import partial

from tests.support.call_count import calls_made
from weft.ids import SessionId
from weft.state.files import TouchedFiles
from weft.tree import LogPosition

OLD, NEW = SessionId("ses_old"), SessionId("ses_new")


def changed(count: int) -> TouchedFiles:
    """A session with a change at every second place of its log."""
    return TouchedFiles(logs=[OLD], places=[LogPosition(OLD, 2 * each) for each in range(count)])


def test_changes_are_counted_across_the_logs_of_a_fork() -> None:
    files = TouchedFiles(
        logs=[OLD, NEW],
        places=[LogPosition(OLD, 3), LogPosition(OLD, 9), LogPosition(NEW, 2), LogPosition(NEW, 5)],
    )
    places = [
        *(LogPosition(OLD, seq) for seq in (1, 3, 4, 20)),
        *(LogPosition(NEW, seq) for seq in (1, 2, 5)),
        LogPosition(SessionId("ses_unknown"), 7),
    ]
    assert files.counts_after(places) == [4, 3, 3, 2, 2, 1, 0, 4]
    assert files.counts_after(places) == [len(files.places_after(each)) for each in places]


def test_ten_times_the_turns_and_changes_cost_about_ten_times_as_much() -> None:
    cost = {}
    for turns in (100, 1000):
        files = changed(turns)
        asked = [LogPosition(OLD, 2 * each + 1) for each in range(turns)]
        cost[turns] = calls_made(partial(files.counts_after, asked))
    assert cost[1000] < 12 * cost[100]
