"""What all tests share."""

from __future__ import annotations

import gc
import ipaddress
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.example_count import is_whole_suite
from tests.support.postgres_server import PostgresServer
from tests.support.process_guard import ProcessGuard, mark_processes
from tests.support.source_code import ROOT
from tests.support.world import POSTGRES_ADDRESS, World

# One seed for everybody: a property that fails here fails everywhere, and a run that passed passes
# again.  `make prove CLAIMS=properties` tries ten times as many, and others.
settings.register_profile(
    "sample",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# The inner loop (`-m "not process"`) tries a tenth of them, so that it stays short.
settings.register_profile("quick", parent=settings.get_profile("sample"), max_examples=10)
settings.load_profile("sample")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples are tried, before the modules of the tests ask for it."""
    # A shell's background job ignores SIGINT, and every program that it starts inherits that:
    # the tests that interrupt one would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "not process" in config.getoption("markexpr"):
        settings.load_profile("quick")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """We run on asyncio; trio is not supported."""
    return "asyncio"


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[PostgresServer]:
    """A real Postgres server, for all tests of a module: they are marked as starting processes."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that is not in `/tmp`, which commands do not see anyway."""
    places = [place for place in ("/opt", "/srv", str(ROOT)) if os.access(place, os.W_OK)]
    with tempfile.TemporaryDirectory(dir=places[0], prefix=".weft-test-") as folder:
        yield Path(folder)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of a `world` on every kind of store; in the inner loop in memory only.

    The contract that both stores keep is tested on both there too (`tests/contracts`).
    """
    if "world" in metafunc.fixturenames:
        kinds = ["memory", "sqlite"] if is_whole_suite() else ["memory"]
        kinds = ["postgres"] if POSTGRES_ADDRESS else kinds
        metafunc.parametrize("world", kinds, indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and a store of each kind; the path is short, because sockets lie below it."""
    return World(request.param, tmp_path_factory.mktemp("w"))


@pytest.fixture
def plain_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and a memory store, where the store can make no difference."""
    return World("memory", tmp_path_factory.mktemp("w"))


@pytest.fixture
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and an SQLite file, which several applications can open at once."""
    return World("sqlite", tmp_path_factory.mktemp("w"))


def _is_here(address: Any) -> bool:
    """True for unix sockets and loopback.

    Names are refused, because looking one up asks the network.
    """
    if not isinstance(address, tuple):
        return True
    host = str(address[0])
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse to leave the machine.

    An audit hook sees every socket of the process, whoever opens it.
    """
    if event in ("socket.connect", "socket.sendto") and not _is_here(arguments[1]):
        raise RuntimeError(f"a test tried to reach {arguments[1]!r}; tests cannot use the network")
    if event == "socket.getaddrinfo" and not _is_here((arguments[0] or "", 0)):
        raise RuntimeError(
            f"a test tried to look up {arguments[0]!r}; tests cannot use the network"
        )


sys.addaudithook(_stay_here)

_PROCESSES = ProcessGuard()
sys.addaudithook(_PROCESSES.audit)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what collecting makes out of every later search for garbage."""
    # Modules, tests and their parameters live to the end of the run; half a million objects that
    # each full collection would visit again.
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


# First, because pytest's own hook deselects by mark.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts processes by way of a fixture or a helper."""
    mark_processes(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Attribute every process to the test that starts it, fixtures of its module included."""
    _PROCESSES.begin()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that started a process without the mark."""
    yield
    _PROCESSES.check(item)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the home folders of the tests lie."""
    return tmp_path_factory.mktemp("homes")


_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, homes: Path) -> None:
    """No test reads or writes the settings, keys and sessions of the user who runs it."""
    # `mktemp` looks through all folders that were made before, which is quadratic over the suite.
    home = homes / str(next(_NUMBERS))
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("WEFT_", "XDG_")) or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    # An indexer would be started for every project with code; those who test it switch it on.
    monkeypatch.setenv("WEFT_REPO_INDEX", "off")
