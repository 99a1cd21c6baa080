"""Runs of the program on a project with code: an index is made, and used by the next one."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_tree import files_holding
from tests.support.patient_hints import wait_for_hints
from tests.support.weft_program import WeftProgram
from weft.config.paths import places
from weft.repo.project_index import ProjectIndex


def test_the_second_run_on_a_project_has_its_hint(
    weft: WeftProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_hints(monkeypatch)
    (weft.project / "cart.py").write_text("class Cart:\n    def total(self): ...\n")
    script, on = weft.script("Hello."), {"WEFT_REPO_INDEX": "on"}
    prompt = ("-p", "-m", script, "the total of a cart")
    assert weft.run(*prompt, env=on).stdout == "Hello.\n"
    [folder] = (weft.data / "index").iterdir()
    _wait_for_indexer(folder)
    assert files_holding(weft.data, "may be about") == []
    assert weft.call(*prompt, env=on).stdout == "Hello.\n"
    assert files_holding(weft.data, "may be about") != []


def test_the_index_ranks_for_the_prompt_of_a_run_while_its_session_is_stored(
    weft: WeftProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_hints(monkeypatch)
    (weft.project / "cart.py").write_text("class Cart:\n    def total(self): ...\n")
    script, on = weft.script("Hello."), {"WEFT_REPO_INDEX": "on"}
    prompt = ("-p", "-m", script, "the total of a cart")
    weft.run(*prompt, env=on)
    [folder] = (weft.data / "index").iterdir()
    _wait_for_indexer(folder)
    ranked: list[tuple[str, str]] = []
    for name in ("prepare", "hint"):
        monkeypatch.setattr(ProjectIndex, name, _noted(name, getattr(ProjectIndex, name), ranked))
    weft.call(*prompt, env=on)
    # The same words, so that what was found before is what is taken.
    assert sorted(ranked) == [("hint", "the total of a cart"), ("prepare", "the total of a cart")]


def _noted(
    name: str, question: Callable[..., Any], asked: list[tuple[str, str]]
) -> Callable[..., Any]:
    def ask(index: ProjectIndex, request: str, *rest: Any) -> Any:
        asked.append((name, request))
        return question(index, request, *rest)

    return ask


def test_a_run_does_not_wait_for_an_indexer_that_does_not_get_on(weft: WeftProgram) -> None:
    """An indexer of another process has the lock for as long as this test likes."""
    (weft.project / "cart.py").write_text("class Cart:\n    def total(self): ...\n")
    on = {"WEFT_REPO_INDEX": "on"}
    folder = places({"HOME": str(weft.home)}).index_of(str(weft.project))
    folder.mkdir(parents=True)
    prompt = ("-p", "-m", weft.script("Hello."), "the total of a cart")
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert weft.run(*prompt, env=on).stdout == "Hello.\n"
    assert not (folder / "cache.db").exists()


def _wait_for_indexer(folder: Path) -> None:
    """The lock is held as long as it works."""
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
