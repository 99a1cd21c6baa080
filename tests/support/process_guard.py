"""The `process` mark: which tests start processes, and a guard that fails one without the mark."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

FIXTURES = {"weft"}
"""Fixtures that run a program."""
HELPERS = {
    f"tests.support.{name}"
    for name in (
        "hostile_git",
        "sandbox_cell",
        "sandboxed_project",
        "sandboxed_session",
        "stream_json_driver",
        "tmux_terminal",
    )
}
"""Helpers that are of no use without a process: a module that imports one is marked as a whole."""
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
"""The audit events by which CPython reports the start of a process."""


def mark_processes(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that start processes through a fixture or a helper."""
    for item in items:
        if _uses_a_fixture(item) or _uses_a_helper(item):
            item.add_marker(pytest.mark.process)


def _uses_a_fixture(item: pytest.Item) -> bool:
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _uses_a_helper(item: pytest.Item) -> bool:
    return _imports_a_helper(getattr(item, "module", None))


@cache
def _imports_a_helper(module: object) -> bool:
    return any(getattr(each, "__module__", "") in HELPERS for each in vars(module).values())


class ProcessGuard:
    """Records which programs a test starts.

    It only records: an error raised in an audit hook reaches the code under test, which may handle
    it as the failure of a program and let the test pass.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._started: list[str] = []

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook; it cannot be removed again, and forked children inherit it."""
        if event in STARTS and os.getpid() == self._pid:
            self._started.append(str(arguments[0]) if arguments else event)

    def begin(self) -> None:
        """Forget what was started before this test."""
        self._started.clear()

    def check(self, item: pytest.Item) -> None:
        """Fail a test that started a process and is not marked."""
        if self._started and item.get_closest_marker("process") is None:
            pytest.fail(
                f"the test started a process ({self._started[0]}): mark it with "
                "@pytest.mark.process",
                pytrace=False,
            )
