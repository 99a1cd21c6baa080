"""The write-ahead log has room before it is needed, and making room never touches a frame."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.file_size_limit import file_size_limit
from weft.store.sqlite.connect import BusyHandler
from weft.store.sqlite.query import fetch
from weft.store.sqlite.write_ahead_log import EMPTIED_PAGES, WriteAhead

FRAME = 4096 + 24


class Party:
    """One connection to the file, with its log tended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = apsw.Connection(str(path))
        fetch(self.db, "pragma journal_mode = wal")
        self.db.execute("create table if not exists t (x)")
        patience = BusyHandler(5)
        self.db.set_busy_handler(patience)
        patience.start()
        self.ahead = WriteAhead(path, patience)
        self.ahead.attach(self.db)

    def put(self, value: int, size: int = 10) -> None:
        self.db.execute("insert into t values (?)", (f"{value}:".ljust(size, "x"),))

    def tend(self, *, is_idle: bool = True) -> None:
        self.ahead.tend(self.db, is_idle=is_idle)

    @property
    def log_bytes(self) -> int:
        return Path(f"{self.path}-wal").stat().st_size

    @property
    def values(self) -> list[int]:
        return [int(x.partition(":")[0]) for (x,) in fetch(self.db, "select x from t")]


@pytest.fixture
def party(tmp_path: Path) -> Party:
    return Party(tmp_path / "db")


def test_commits_find_room_and_do_not_lengthen_the_file(party: Party) -> None:
    party.put(0)
    before = party.log_bytes
    party.tend()
    made = party.log_bytes
    assert made > before + 100 * FRAME
    for value in range(1, 50):
        party.put(value)
        party.tend()
    assert party.log_bytes == made
    assert party.values == list(range(50))


def test_room_is_made_again_before_it_is_used_up(party: Party) -> None:
    for value in range(300):
        used = party.log_bytes
        party.put(value)
        assert value == 0 or party.log_bytes == used
        party.tend()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 9000)), max_size=40))
def test_nothing_that_two_writers_wrote_is_touched(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, bool, int]]
) -> None:
    folder = tmp_path_factory.mktemp("two")
    parties = Party(folder / "db"), Party(folder / "db")
    for value, (who, tends, size) in enumerate(steps):
        parties[who].put(value, size)
        if tends:
            parties[not who].tend()
            parties[who].tend()
    expected = list(range(len(steps)))
    assert parties[0].values == parties[1].values == expected
    copy = folder / "copy"
    copy.mkdir()
    for file in ("db", "db-wal"):
        shutil.copy(folder / file, copy / file)
    after_a_crash = Party(copy / "db")
    assert after_a_crash.values == expected
    assert fetch(after_a_crash.db, "pragma integrity_check") == [("ok",)]


def test_no_one_is_waited_for(party: Party) -> None:
    party.put(0)
    other = apsw.Connection(str(party.path))
    other.execute("begin immediate")
    before = party.log_bytes
    party.tend()
    assert party.log_bytes == before
    other.execute("rollback")
    party.tend()
    assert party.log_bytes > before


def test_who_has_more_to_write_does_that_first(party: Party) -> None:
    party.put(0)
    before = party.log_bytes
    party.tend(is_idle=False)
    assert party.log_bytes == before


def test_a_long_log_is_emptied(party: Party) -> None:
    longest = 0
    for value in range(3 * EMPTIED_PAGES // 8):
        party.put(value, 8 * 4096)
        longest = max(longest, party.ahead._pages)
        party.tend(is_idle=False)
    assert EMPTIED_PAGES <= longest < EMPTIED_PAGES + 20
    assert party.log_bytes < (EMPTIED_PAGES + 20) * FRAME


def test_where_there_is_no_room_the_file_stays_as_it_is(party: Party) -> None:
    party.put(0)
    before = party.log_bytes
    with file_size_limit(before + FRAME):
        party.tend()
        assert party.log_bytes == before
        party.put(1, 10)
    assert party.values == [0, 1]
