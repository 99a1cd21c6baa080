"""The kernel's queue as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.workspace.history.inotify import (
    CREATE,
    IS_FOLDER,
    MOVED_TO,
    InotifyEvent,
    InotifyWatcher,
    events,
)


@pytest.fixture
def watcher() -> Iterator[InotifyWatcher]:
    found = InotifyWatcher()
    yield found
    found.close()


def queued(watcher: InotifyWatcher) -> list[InotifyEvent]:
    found: list[InotifyEvent] = []
    while raw := watcher.read():
        found += events(raw)
    return found


def test_an_event_is_there_when_the_call_that_caused_it_has_returned(
    watcher: InotifyWatcher, tmp_path: Path
) -> None:
    watch = watcher.add(str(tmp_path))
    assert queued(watcher) == []
    for number in range(200):
        (tmp_path / f"é{number}").mkdir()
        assert queued(watcher) == [InotifyEvent(watch, CREATE | IS_FOLDER, f"é{number}")]


def test_a_folder_that_is_moved_keeps_its_watch_and_gets_it_again(
    watcher: InotifyWatcher, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    outer, watch = watcher.add(str(tmp_path)), watcher.add(str(tmp_path / "a"))
    (tmp_path / "a").rename(tmp_path / "b")
    assert InotifyEvent(outer, MOVED_TO | IS_FOLDER, "b") in queued(watcher)
    assert watcher.add(str(tmp_path / "b")) == watch
    (tmp_path / "b" / "x").touch()
    assert {event.watch for event in queued(watcher)} == {watch}
    watcher.remove(watch)
    (tmp_path / "b" / "y").touch()
    assert "y" not in {event.name for event in queued(watcher)}


def test_a_link_or_a_file_is_no_folder_to_watch(watcher: InotifyWatcher, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(NotADirectoryError):
            watcher.add(str(tmp_path / name))
    with pytest.raises(FileNotFoundError):
        watcher.add(str(tmp_path / "none"))
