"""What a session is told of its edits, by servers that are late, crash, or saw another text."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from tests.support.language_project import PATIENCE, scripted_pool
from weft.jsonrpc import PeerClosed
from weft.lsp import EditReports, ServerPool, edit_reports, server_pool
from weft.lsp.import_index import ImportIndex
from weft.lsp.server_pool import FileVersion, stamp_of

pytestmark = [pytest.mark.anyio, pytest.mark.process]

LATE = 0.05
"""Seconds of a wait that no server keeps."""


def write(root: Path, name: str, content: str | bytes) -> str:
    (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


async def late_of(reports: EditReports, word: str) -> list[str]:
    """All that comes later, up to the text that holds a word."""
    found: list[str] = []
    with anyio.fail_after(PATIENCE):
        while not any(word in each for each in found):
            if said := reports.late():
                found.append(said)
            await anyio.sleep(0.005)
    return found


# -- one look at the project


class CountedIndex(ImportIndex):
    """Knows how often the project was looked through."""

    looks = 0

    def update(self, paths: Iterable[str]) -> list[tuple[str, int]]:
        self.looks += 1
        return super().update(paths)


async def test_a_change_of_many_files_looks_through_the_project_once(tmp_path: Path) -> None:
    names = [write(tmp_path, f"f{number}.py", "def x\n") for number in range(40)]
    async with scripted_pool(tmp_path, suffix=".py") as pool:
        index = pool._imports = CountedIndex(str(tmp_path))
        reports = EditReports(pool, PATIENCE)
        await reports.after_change(names, waits=False)
        assert index.looks == 0, "no server runs that would want to know"
        await reports.after_change(names[:5], waits=True)
        assert index.looks == 1
        await reports.after_change(names, waits=False)
        assert index.looks == 1, "what a command has changed is known"


async def test_a_look_that_takes_long_does_not_hold_back_an_abort(tmp_path: Path) -> None:
    go = threading.Event()

    class SlowIndex(ImportIndex):
        def update(self, paths: Iterable[str]) -> list[tuple[str, int]]:
            go.wait(PATIENCE)
            return []

    write(tmp_path, "a.py", "def x\n")
    async with scripted_pool(tmp_path, suffix=".py") as pool:
        pool._imports = SlowIndex(str(tmp_path))
        with anyio.move_on_after(0.05) as scope:
            await EditReports(pool, PATIENCE).after_change(["a.py"], waits=True)
        assert scope.cancelled_caught
        assert not go.is_set()
        go.set()


# -- a server that crashes


async def test_a_crash_is_named_and_the_next_edit_is_looked_at_again(tmp_path: Path) -> None:
    async with scripted_pool(tmp_path, "crash") as pool:
        reports = EditReports(pool, PATIENCE)
        first = await reports.after_change([write(tmp_path, "a.scr", "CRASH\n")], waits=True)
        assert first == (
            "scripted: no answer for a.scr: ended with exit code 1: internal error: it met the word"
        )
        assert reports.late() == "", "it is said once"
        second = await reports.after_change([write(tmp_path, "a.scr", "BUG 1\n")], waits=True)
        assert second == "scripted: 1 problem\na.scr:1:1 error: BUG 1 [scripted]"


# -- what comes later


async def test_a_late_answer_about_an_importer_of_an_older_text_is_not_delivered(
    tmp_path: Path,
) -> None:
    """The importer is as it was, but the file that it imports is not."""
    write(tmp_path, "user.py", "import names\nuse old\n")
    async with scripted_pool(tmp_path, "hold", suffix=".py") as pool:
        reports = EditReports(pool, LATE)
        write(tmp_path, "names.py", "def new\n")
        await reports.after_change(["names.py"], waits=True)
        await ready(pool, "user.py")
        write(tmp_path, "names.py", "def old\ndef new\n")
        await reports.after_change(["names.py"], waits=False)
        write(tmp_path, "go", "")
        said = await late_of(reports, "no problems")
    assert "old is not defined" not in "\n".join(said)


async def ready(pool: ServerPool, name: str) -> None:
    """Wait until the server runs and was shown a file."""
    with anyio.fail_after(PATIENCE):
        while True:
            for server in pool.servers.values():
                client = server.client
                if server.state == "ready" and client is not None:
                    assert str(Path(pool.root) / name) in client.documents
                    return
            await anyio.sleep(0.005)


async def test_what_was_promised_comes_although_the_file_was_shown_again(tmp_path: Path) -> None:
    async with scripted_pool(tmp_path, "hold") as pool:
        reports = EditReports(pool, LATE)
        path = str(tmp_path / write(tmp_path, "a.scr", "BUG 1\n"))
        await reports.after_change(["a.scr"], waits=True)
        await ready(pool, "a.scr")
        (server,) = pool.servers_for(path)
        document = await pool.show(server, path)
        assert document is not None
        assert document.version == 1, "the same text, and nothing else has changed"
        write(tmp_path, "go", "")
        said = await late_of(reports, "BUG 1")
    assert len(said) == 1


async def test_what_was_promised_comes_although_another_file_has_changed_since(
    tmp_path: Path,
) -> None:
    async with scripted_pool(tmp_path, "hold") as pool:
        reports = EditReports(pool, LATE)
        write(tmp_path, "a.scr", "use x\nBUG 1\n")
        await reports.after_change(["a.scr"], waits=True)
        await ready(pool, "a.scr")
        await reports.after_change([write(tmp_path, "b.scr", "def x\n")], waits=True)
        write(tmp_path, "go", "")
        said = await late_of(reports, "BUG 1")
    assert "x is not defined" not in "\n".join(said)


async def test_a_promise_that_cannot_be_kept_is_taken_back(tmp_path: Path) -> None:
    async with scripted_pool(tmp_path, "hold") as pool:
        reports = EditReports(pool, LATE)
        await reports.after_change([write(tmp_path, "a.scr", "BUG 1\n")], waits=True)
        await ready(pool, "a.scr")
        await pool.servers["scripted"].stop("restarted")
        assert reports.late() == "scripted: no answer for a.scr: restarted"
        assert reports.late() == ""


async def test_files_that_are_changed_together_are_looked_at_together(tmp_path: Path) -> None:
    """The first one is not judged by what the second one held before."""
    write(tmp_path, "a.scr", "def a\n")
    write(tmp_path, "b.scr", "def b\n")
    async with scripted_pool(tmp_path) as pool:
        reports = EditReports(pool, PATIENCE)
        await reports.after_change(["a.scr", "b.scr"], waits=True)
        write(tmp_path, "a.scr", "use new\n")
        write(tmp_path, "b.scr", "def new\n")
        said = await reports.after_change(["a.scr", "b.scr"], waits=True)
    assert said == "scripted: no problems"


# -- files that cannot be shown any more


async def test_importers_of_a_file_that_is_gone_are_looked_at(tmp_path: Path) -> None:
    write(tmp_path, "names.py", "def old\n")
    write(tmp_path, "user.py", "import names\nuse old\n")
    async with scripted_pool(tmp_path, suffix=".py") as pool:
        reports = EditReports(pool, PATIENCE)
        await reports.after_change(["names.py"], waits=True)
        (tmp_path / "names.py").unlink()
        said = await reports.after_change(["names.py"], waits=True)
    assert said == (
        "scripted: 1 problem\nin files that import it:\n"
        "user.py:2:1 error: old is not defined [scripted]"
    )


@pytest.mark.parametrize("waits", [True, False])
async def test_a_file_that_is_no_text_any_more_is_closed(tmp_path: Path, waits: bool) -> None:
    """The server would go on with the text that it had before."""
    async with scripted_pool(tmp_path) as pool:
        reports = EditReports(pool, PATIENCE)
        await reports.after_change([write(tmp_path, "a.scr", "BUG 1\n")], waits=True)
        write(tmp_path, "a.scr", b"caf\xe9 BUG 2\n")
        said = await reports.after_change(["a.scr"], waits=waits)
        client = pool.servers["scripted"].client
        assert client is not None
        assert client.documents == {}
    assert said == ("scripted: a.scr is not looked at: it is no UTF-8, or too large" * waits)


# -- servers that never answer


async def test_a_server_that_says_nothing_twice_is_waited_for_less(tmp_path: Path) -> None:
    """Until it says something: one that hangs must not cost every edit the whole wait."""
    async with scripted_pool(tmp_path, "hold") as pool:
        (server,) = pool.servers_for(str(tmp_path / "a.scr"))
        server.use()
        assert await server.ready_within(PATIENCE)
        reports = EditReports(pool, 0.3)
        said = [
            await reports.after_change([write(tmp_path, "a.scr", f"BUG {number}\n")], waits=True)
            for number in range(4)
        ]
        assert ["within 0.3 s" in each for each in said] == [True, True, False, False]
        assert "within 0.05 s" in said[-1]
        write(tmp_path, "go", "")
        await late_of(reports, "BUG 3")
        assert server.silent_waits == 0


async def test_a_server_that_ended_meanwhile_says_nothing_about_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "def x\n")
    async with scripted_pool(tmp_path, suffix=".py") as pool:
        place = pool.place_of("a.py")
        (server,) = pool.servers_for(place)
        server.state, server.client, server.why = "failed", None, "ended again and again"
        with pytest.raises(PeerClosed, match="ended again and again"):
            await pool.show(server, place)


async def test_the_files_of_open_documents_are_looked_at_beside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def noted(path: str) -> FileVersion | None:
        threads.add(threading.get_ident())
        return stamp_of(path)

    for module in (server_pool, edit_reports):
        monkeypatch.setattr(module, "stamp_of", noted)
    names = [write(tmp_path, f"{name}.scr", "fine\n") for name in "abc"]
    async with scripted_pool(tmp_path) as pool:
        reports = EditReports(pool, PATIENCE)
        await reports.after_change(names, waits=True)
        # Nothing has come since: nothing is looked at.
        assert reports.late() == ""
        await reports.after_change(names[:1], waits=False)
    assert threads
    assert threading.get_ident() not in threads
