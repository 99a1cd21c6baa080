"""The index of a project: listing, symbols, maps and the finder, against what they are made of.

The ranking itself is measured by `python -m bench.ranking_table DATA TREES`, on cases that are not
part of this repository.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from tree_sitter import Query, QueryCursor

from bench.table import Row
from weft.config.paths import places
from weft.project.path_finder import PathFinder
from weft.repo.definition_reader import _grammar, definition_reader, own_query
from weft.repo.definitions import MOST_BYTES
from weft.repo.index_cache import IndexCache
from weft.repo.index_update import update_index
from weft.repo.indexer import ParentLink, index_project
from weft.repo.indexer_order import CACHE, IndexOrder
from weft.repo.parsers.source_reader import read_content
from weft.repo.parsers.worker_pool import WorkerPool
from weft.repo.project_files import list_project
from weft.repo.project_index import ProjectIndex
from weft.workspace import LocalRunner, read_beneath

LISTED = 100_000
SOURCES = 5_000
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
        return [*_listing(base), *_symbols(), *_maps(base)]


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


def _in_turns(works: Sequence[Callable[[], object]], repeats: int = REPEATS) -> list[float]:
    """The least CPU time of each, in milliseconds; in turns, so that all meet the same machine."""
    spent = [math.inf] * len(works)
    for _ in range(repeats):
        for number, work in enumerate(works):
            spent[number] = min(spent[number], _best(work, 1))
    return spent


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
    git = partial(subprocess.run, bare, cwd=project, check=True, capture_output=True)
    listed = partial(anyio.run, list_project, runner, str(project), base / "scratch")
    floor, ours = _in_turns([git, listed], FRESH_REPEATS)
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
    """Definitions of this repository's own source, against the bare parser and query: in this
    process, and in as many workers as there are cores.
    """
    root = Path(__file__).parents[1]
    paths = [str(file.relative_to(root)) for file in sorted((root / "src").rglob("*.py"))]
    sources = [(root / path).read_bytes() for path in paths]
    reader = definition_reader("python")
    query = Query(_grammar("python"), own_query("python"))

    def bare(source: bytes) -> bytes:
        tree = reader._parser.parse(source)
        QueryCursor(query).matches(tree.root_node)
        return b""

    def symbols(source: bytes) -> bytes:
        return msgspec.msgpack.encode(reader.read(source))

    def whole(source: bytes) -> bytes:
        return msgspec.msgpack.encode(read_content(source, "python"))

    # The best of each file, not of all together: other work on the machine hits some of each round.
    megabytes = sum(map(len, sources)) / 1e6
    both = [_in_turns([partial(bare, each), partial(reader.read, each)]) for each in sources]
    floor, ours = (megabytes / sum(times) * 1e3 for times in zip(*both, strict=True))
    pools = [_PoolTask(root, paths, work).run for work in (bare, symbols, whole)]
    spent = _in_turns([*pools, partial(_first_update, root, paths)])
    bare_pool, symbol_pool, whole_pool, first = (megabytes / each * 1e3 for each in spent)
    cores = f"{os.cpu_count()} workers"
    return [
        Row("index: definitions, one core", ours, "MB/s", floor, 0.85, "ratio", "more"),
        Row(
            f"index: definitions, {cores}, a second of CPU",
            symbol_pool,
            "MB",
            bare_pool,
            0.85,
            "ratio",
            "more",
        ),
        Row(
            f"index: definitions and words, {cores}",
            whole_pool,
            "MB",
            bare_pool,
            0.85,
            "ratio",
            "more",
        ),
        Row(f"index: a first update with its posting lists, {cores}", first, "MB", bare_pool),
    ]


def _first_update(root: Path, paths: Sequence[str]) -> None:
    """All that an index of these files takes, the process that writes it counted too."""
    with tempfile.TemporaryDirectory() as folder:
        cache = IndexCache(Path(folder) / CACHE, writes=True)
        update_index(cache, str(root), paths, cores=os.cpu_count() or 1)
        cache.close()


class _PoolTask(NamedTuple):
    """Work on files, shared by workers as the indexer shares it."""

    root: Path
    paths: Sequence[str]
    work: Callable[[bytes], bytes]

    def run(self) -> None:
        """Until every file is done."""

        def done(number: int) -> bytes:
            source = read_beneath(str(self.root), self.paths[number], MOST_BYTES)
            return self.work(source or b"")

        for _, outcome in WorkerPool(done, os.cpu_count() or 1).run(len(self.paths)):
            assert outcome is not None


def write_sources(project: Path) -> None:
    """Five thousand files with a dozen functions each."""
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
    write_sources(project)
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
