"""Modules of others that the program loads when they are first used."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from tests.support.http_exchange import CertificateAuthority, reply_ok
from tests.support.loopback_server import serving
from weft.deferred_modules import DEFERRED, defer_modules

RUNS: list[str] = []
STARTED = threading.Event()
GO_ON = threading.Event()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    RUNS.clear()
    STARTED.clear()
    GO_ON.clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _written(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(
        f"from tests import test_deferred_modules as test\ntest.RUNS.append({name!r})\n{text}"
    )


def test_a_deferred_module_runs_when_a_name_is_first_read(folder: Path) -> None:
    _written(folder, "late_one", "value = 7\n")
    defer_modules(("late_one",))
    import late_one  # type: ignore[import-not-found]

    assert late_one.__name__ == "late_one"
    assert late_one.__spec__ is not None
    assert RUNS == []
    assert late_one.value == 7
    assert late_one.value == 7
    assert type(late_one) is type(sys)
    assert RUNS == ["late_one"]


def test_a_module_of_a_package_is_deferred_without_loading_the_package(folder: Path) -> None:
    (folder / "late_package").mkdir()
    (folder / "late_package" / "__init__.py").write_text("from . import inner\n")
    _written(folder / "late_package", "inner", "from . import other\n")
    (folder / "late_package" / "other.py").write_text("")
    defer_modules(("late_package.inner",))
    assert "late_package" not in sys.modules
    import late_package  # type: ignore[import-not-found]

    assert RUNS == []
    assert late_package.inner.other.__name__ == "late_package.other"
    assert RUNS == ["inner"]


def test_a_second_thread_waits_until_all_names_are_there(folder: Path) -> None:
    _written(folder, "late_slow", "test.STARTED.set()\ntest.GO_ON.wait(60)\nvalue = 7\n")
    defer_modules(("late_slow",))
    import late_slow  # type: ignore[import-not-found]

    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(late_slow.value)) for _ in range(2)]
    threads[0].start()
    assert STARTED.wait(60)
    threads[1].start()
    GO_ON.set()
    for thread in threads:
        thread.join(60)
    assert seen == [7, 7]
    assert RUNS == ["late_slow"]


def _ended(*targets: Callable[[], object]) -> bool:
    """Whether these end that run at once; the second starts when the first has got somewhere."""
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    threads[0].start()
    assert STARTED.wait(60)
    threads[1].start()
    for thread in threads:
        thread.join(20)
    return not any(thread.is_alive() for thread in threads)


def test_a_module_that_imports_what_another_thread_imports_holds_up_no_other_module(
    folder: Path,
) -> None:
    text = "test.STARTED.set()\ntest.GO_ON.wait(60)\nimport late_inner\nvalue = late_inner.value\n"
    _written(folder, "plain_outer", text)
    _written(folder, "late_inner", "value = 7\n")
    _written(
        folder, "late_outer", "test.GO_ON.set()\nimport plain_outer\nvalue = plain_outer.value"
    )
    defer_modules(("late_inner", "late_outer"))
    seen: list[int] = []
    assert _ended(
        lambda: seen.append(importlib.import_module("plain_outer").value),
        lambda: seen.append(sys.modules["late_outer"].value),
    )
    assert seen == [7, 7]
    assert sorted(RUNS) == ["late_inner", "late_outer", "plain_outer"]


def test_modules_that_need_each_other_in_two_threads_see_each_other_half_done(
    folder: Path,
) -> None:
    text = "test.STARTED.set()\ntest.GO_ON.wait(60)\nimport late_ring\nvalue = late_ring.value\n"
    _written(folder, "plain_ring", text)
    _written(folder, "late_ring", "value = 7\ntest.GO_ON.set()\nimport plain_ring\nlast = 8\n")
    defer_modules(("late_ring",))
    seen: list[int] = []
    assert _ended(
        lambda: seen.append(importlib.import_module("plain_ring").value),
        lambda: seen.append(sys.modules["late_ring"].last),
    )
    assert sorted(seen) == [7, 8]
    assert RUNS == ["plain_ring", "late_ring"]


def test_a_module_may_read_itself_while_it_runs(folder: Path) -> None:
    _written(folder, "late_self", "import late_self\nvalue = 7\nagain = late_self.value\n")
    defer_modules(("late_self",))
    import late_self  # type: ignore[import-not-found]

    assert late_self.again == 7
    assert RUNS == ["late_self"]


def test_a_module_that_fails_fails_for_everyone_who_reads_it(folder: Path) -> None:
    _written(folder, "late_broken", "raise ImportError('no such library')\n")
    defer_modules(("late_broken",))
    import late_broken  # type: ignore[import-not-found]

    for _ in range(2):
        with pytest.raises(ImportError, match="no such library"):
            late_broken.value  # noqa: B018


def test_what_is_loaded_or_unknown_is_left_alone(folder: Path) -> None:
    defer_modules(("threading", "no_such_module_anywhere", "no_such_package.inner"))
    assert sys.modules["threading"] is threading
    assert not {"no_such_module_anywhere", "no_such_package.inner"} & set(sys.modules)


def test_a_function_that_another_module_imports_by_name_runs_it_when_called(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written(folder, "late_function", "def twice(number, plus=0):\n    return 2 * number + plus\n")
    monkeypatch.setattr("weft.deferred_modules.FORWARDED", {("late_function", "twice")})
    defer_modules(("late_function",))
    from late_function import twice  # type: ignore[import-not-found]

    assert RUNS == []
    assert twice(3, plus=1) == 7
    assert RUNS == ["late_function"]
    assert sys.modules["late_function"].twice(4) == 8


FETCH = """
import sys
from weft.deferred_modules import defer_modules
defer_modules()
import anyio
from weft.transport import HttpClient, HttpRequest
async def main(url):
    before = "_ssl" in sys.modules
    async with HttpClient().send(HttpRequest(url=url, body=b"{}")) as reply:
        print((await reply.read()).decode(), before, "_ssl" in sys.modules, flush=True)
anyio.run(main, sys.argv[1])
"""


@pytest.mark.anyio
@pytest.mark.process
async def test_tls_is_loaded_for_the_first_server_that_speaks_it(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    authority.write_certificate(tmp_path / "ca.pem")
    environment = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    for tls, said in (
        (None, "ok False False\n"),
        (authority.server("localhost"), "ok False True\n"),
    ):
        async with serving(reply_ok, tls=tls) as server:
            url = server.url.replace("127.0.0.1", "localhost")
            words = [sys.executable, "-c", FETCH, url]
            done = await anyio.run_process(words, env=environment)
        assert done.stdout.decode() == said


@pytest.mark.process
def test_none_of_them_runs_for_what_we_load() -> None:
    program = (
        "import sys; from weft.deferred_modules import DeferredModule, defer_modules;"
        "defer_modules();"
        "import weft.cli.headless.run, weft.app, weft.tools.builtin.write;"
        "print(*(n for n, m in sys.modules.items() if type(m) is DeferredModule))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert sorted(run.stdout.split()) == sorted(DEFERRED), run.stderr
