"""The index of a project: listing, symbols, maps and the finder, against what they are made of.

The ranking itself is measured by `python -m bench.ranking_table DATA TREES`, on cases that are not
part of this repository.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from tree_sitter import QueryCursor

from bench.table import Row
from weft.config.paths import places
from weft.project.path_finder import PathFinder
from weft.repo.definition_reader import definition_reader
from weft.repo.index_cache import IndexCache
from weft.repo.index_update import update_index
from weft.repo.indexer import ParentLink, index_project
from weft.repo.indexer_order import CACHE, FileChanges, IndexOrder
from weft.repo.project_files import list_project
from weft.repo.project_index import ProjectIndex
from weft.runtime.index_access import IndexAccess
from weft.workspace import LocalRunner

LISTED = 100_000
SOURCES = 5_000
FLOOD = 200
PROBE_SECONDS = 0.002
IDLE_SECONDS = 3.0
REPEATS = 5
FRESH_REPEATS = 9
REQUEST = "the total of an order is wrong when the tax of a region changes"
TYPED = "p3md12fl9"
WORDS = "order total tax region item price cart stock mail invoice user rate"


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        (base / "scratch").mkdir()
        return [*_listing(base), *_symbols(), *_maps(base), *_watched(base)]


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least CPU time of a few tries, in milliseconds."""
    spent = []
    for _ in range(repeats):
        before = _cpu()
        work()
        spent.append(_cpu() - before)
    return min(spent) * 1e3


def _listing(base: Path) -> list[Row]:
    project = base / "listed"
    for folder in range(LISTED // 100):
        place = project / f"pkg{folder // 25:02}" / f"module{folder % 25:02}"
        place.mkdir(parents=True)
        for number in range(100):
            (place / f"file_{number:03}.py").touch()
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    bare = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    runner = LocalRunner({"PATH": os.environ["PATH"], "HOME": str(base)})
    floor = _best(lambda: subprocess.run(bare, cwd=project, check=True, capture_output=True))
    ours = _best(lambda: anyio.run(list_project, runner, str(project), base / "scratch"))
    listing = anyio.run(list_project, runner, str(project), base / "scratch")
    finder = PathFinder(listing.text)
    keys = [_timed(partial(finder.find, TYPED[:end])) for end in range(1, len(TYPED) + 1)]
    return [
        Row("index: list 100,000 files, CPU", ours, "ms", floor, 1.3, "ratio"),
        Row("finder: worst key of nine, 100,000 files", max(keys), "ms", None, 20.0),
    ]


def _timed(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return (time.process_time() - before) * 1e3


def _symbols() -> list[Row]:
    """Definitions of this repository's own source, against the bare parser and query."""
    sources = [file.read_bytes() for file in (Path(__file__).parents[1] / "src").rglob("*.py")]
    reader = definition_reader("python")

    def bare(source: bytes) -> None:
        tree = reader._parser.parse(source)
        QueryCursor(reader._query).matches(tree.root_node)

    # The best of each file, not of all together: other work on the machine hits some of each round.
    megabytes = sum(map(len, sources)) / 1e6
    floor = megabytes / sum(_best(partial(bare, each)) for each in sources) * 1e3
    ours = megabytes / sum(_best(partial(reader.read, each)) for each in sources) * 1e3
    return [Row("index: definitions, one core", ours, "MB/s", floor, 0.85, "ratio", "more")]


def _write_sources(project: Path) -> None:
    words = WORDS.split()
    for number in range(SOURCES):
        names = [f"{words[number % 12]}_{words[(number * 7 + n) % 12]}_{n}" for n in range(12)]
        text = "".join(f"def {name}(value):\n    return value + {number}\n\n" for name in names)
        place = project / f"pkg{number % 50}"
        place.mkdir(exist_ok=True)
        (place / f"{words[number % 12]}_{number}.py").write_text(text)


def _maps(base: Path) -> list[Row]:
    project = base / "sources"
    project.mkdir()
    _write_sources(project)
    environ = {**os.environ, "HOME": str(base / "home"), "WEFT_HOME": str(base / "home")}
    folder = places(environ).index_of(str(project))
    order = IndexOrder(project=str(project), folder=str(folder))
    cache = IndexCache(folder / CACHE, writes=True)
    index_project(cache, order, ParentLink(None))
    index = ProjectIndex(str(project), folder)
    index.map(REQUEST)
    edited = sorted(project.rglob("*.py"))[7]

    def edit() -> None:
        edited.write_text(f"def changed_{time.perf_counter_ns()}(): ...\n")
        path = str(edited.relative_to(project))
        update_index(cache, str(project), [path], is_whole=False)

    fresh = partial(_fresh_map, project, environ)
    fresh()  # what has no bytecode yet gets it, as an installation has it
    return [
        Row("index: warm map of 5,000 files", _best(lambda: index.map(REQUEST)), "ms", None, 50.0),
        Row("index: hint, 5,000 files", _best(lambda: index.hint(REQUEST, (), 470)), "ms"),
        Row(
            "index: `weft map` in a fresh process, CPU",
            _best(fresh, FRESH_REPEATS),
            "ms",
            None,
            150.0,
        ),
        Row("index: one edit of 5,000 files", _best(edit), "ms", None, 50.0),
    ]


def _fresh_map(project: Path, environ: Mapping[str, str]) -> None:
    """`weft map`, as users start it; its children, had it any, are counted too."""
    words = [sys.executable, "-m", "weft", "map", "--request", REQUEST]
    given = {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(words, cwd=project, env=given, check=True, capture_output=True)
    assert done.stdout
    assert b"_tax_" in done.stdout


# --- watching --------------------------------------------------------------------------------


def _watched(base: Path) -> list[Row]:
    """A project that an indexer keeps current, while floods of changes come."""
    project = base / "watched"
    (project / "start").mkdir(parents=True)
    (project / "start" / "first.py").write_text("def first(): ...\n")
    git = partial(subprocess.run, cwd=project, check=True, capture_output=True)
    user = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    git(["git", "init", "-q", "-b", "small"])
    git(["git", "add", "-A"])
    git(["git", *user, "commit", "-qm", "x"])
    git(["git", "checkout", "-qb", "large"])
    _write_sources(project)
    git(["git", "add", "-A"])
    git(["git", *user, "commit", "-qm", "y"])
    git(["git", "checkout", "-q", "small"])
    return anyio.run(_WatchedProject(project, base / "watched-home").rows)


class _WatchedProject:
    def __init__(self, project: Path, home: Path) -> None:
        self._project = project
        environ = {**os.environ, "HOME": str(home), "WEFT_HOME": str(home)}
        self._access = IndexAccess(places(environ), environ)
        self._index = self._access.reader(str(project))
        self._worst_lag = 0.0
        self._longest_work = 0.0
        self._news = anyio.Event()
        self._changer = subprocess.Popen(
            [sys.executable, "-c", _CHANGES],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def rows(self) -> list[Row]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._access.watch, str(self._project), self._told)
            await self._news.wait()
            group.start_soon(self._probe)
            # The machine's own lag, with nothing to do: on a busy one it is all that is measured.
            await anyio.sleep(IDLE_SECONDS)
            idle, self._worst_lag = self._worst_lag, 0.0
            there = await self._timed(partial(self._change, "checkout", "large"), SOURCES + 1)
            back = await self._timed(partial(self._change, "checkout", "small"), 1)
            flooded = await self._timed(self._overflow, 1 + FLOOD)
            group.cancel_scope.cancel()
        self._access.close()
        self._changer.communicate()
        return [
            Row("watch: after a checkout of 5,000 new files", there, "s", None, 5.0),
            Row("watch: after a checkout that removes them", back, "s", None, 5.0),
            Row("watch: after more changes than the queue holds", flooded, "s", None, 10.0),
            Row("watch: worst lag of the loop", self._worst_lag * 1e3, "ms", idle * 1e3, 20.0),
            Row("watch: longest work on the loop, CPU", self._longest_work * 1e3, "ms", None, 20.0),
        ]

    def _told(self, changes: FileChanges) -> None:
        self._news.set()

    async def _probe(self) -> None:
        while True:
            before, spent = time.perf_counter(), time.thread_time()
            await anyio.sleep(PROBE_SECONDS)
            late = time.perf_counter() - before - PROBE_SECONDS
            self._worst_lag = max(self._worst_lag, late)
            self._longest_work = max(self._longest_work, time.thread_time() - spent)

    async def _timed(self, change: Callable[[], None], sources: int) -> float:
        """How long after a change it takes until an index of so many files is current again."""
        await anyio.to_thread.run_sync(change)
        before = time.perf_counter()
        while not await anyio.to_thread.run_sync(self._is_current, sources):
            self._news = anyio.Event()
            with anyio.move_on_after(0.1):  # what was told while the index was asked
                await self._news.wait()
        return time.perf_counter() - before

    def _is_current(self, sources: int) -> bool:
        return self._index.status().sources == sources and not self._index.is_stale()

    def _change(self, *words: str) -> None:
        """Have the other process change files, and wait for it."""
        assert self._changer.stdin is not None
        assert self._changer.stdout is not None
        self._changer.stdin.write(" ".join(words) + "\n")
        self._changer.stdin.flush()
        self._changer.stdout.readline()

    def _overflow(self) -> None:
        """Twice as many events as are kept, while no one takes them."""
        watcher = self._access._watcher
        assert watcher is not None
        os.kill(watcher.pid, signal.SIGSTOP)
        try:
            self._change("flood", str(FLOOD))
        finally:
            os.kill(watcher.pid, signal.SIGCONT)


_CHANGES = """
import os, subprocess, sys
limit = int(open("/proc/sys/fs/inotify/max_queued_events").read())
for line in sys.stdin:
    what, word = line.split()
    if what == "checkout":
        subprocess.run(["git", "checkout", "-q", word], check=True)
    else:
        open("start/a.py", "w").close()
        # Two names in turn: the kernel joins events that are the same.
        for _ in range(limit // 2):
            os.rename("start/a.py", "start/b.py")
            os.rename("start/b.py", "start/a.py")
        os.unlink("start/a.py")
        for number in range(int(word)):
            with open(f"start/flood_{number}.py", "w") as file:
                file.write(f"def flood_{number}(): ...\\n")
    print(flush=True)
"""
"""Changes files, in a process of its own: starting one would hold up the loop that is measured."""
