"""`docs/api.md` names every public name, and the examples work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.support.doc_examples import Example, examples, make_project, run_async_example
from tests.support.source_code import ROOT
from weft import api
from weft.api.decisions import ProjectDecisions
from weft.app import App
from weft.testing import MemoryStore, Script, ScriptedModel

DOCUMENT = (ROOT / "docs" / "api.md").read_text("utf-8")
NAMED = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", DOCUMENT))))
"""Every word that stands in code."""


@pytest.mark.parametrize("cls", [App, api.SessionManager, api.Session, ProjectDecisions])
def test_every_public_name_is_documented(cls: type) -> None:
    public = {name for name in dir(cls) if not name.startswith("_")}
    assert sorted(public - NAMED) == [], f"docs/api.md does not mention these of {cls.__name__}"


def test_the_manager_shows_programs_its_rows_and_nothing_of_the_runtime() -> None:
    rows = {
        *("start_session", "find_session", "read_session", "list_active", "list_saved"),
        *("stop_session", "delete_session", "rename_session", "archive_session"),
        *(
            "fork_session",
            "import_session",
            "export_session",
            "get",
            "resolve_id",
            "unload_idle",
            "aclose",
        ),
    }
    assert {name for name in dir(api.SessionManager) if not name.startswith("_")} == rows


def test_every_name_of_the_face_is_documented() -> None:
    missing = {name for name in weft.__all__ if not name.startswith("_")} - NAMED
    assert sorted(missing) == []


def test_every_error_is_documented() -> None:
    names = {
        name
        for name, value in vars(weft.errors).items()
        if isinstance(value, type) and issubclass(value, weft.WeftError)
    }
    assert sorted(names - NAMED) == []


def marked(example: Example) -> Any:
    """The example; one that runs a check starts a process."""
    starts = any(each in example.code for each in (".bisect(", "set_goal"))
    marks = [pytest.mark.process] if starts else []
    return pytest.param(example, marks=marks, id=str(example))


@pytest.mark.anyio
@pytest.mark.parametrize(
    "example", [*map(marked, examples("api.md")), *map(marked, examples("project.md"))]
)
async def test_the_examples_work(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    project = make_project(tmp_path)
    model = ScriptedModel(Script(answers=("Done.",), loop=True))
    environ = {"HOME": str(tmp_path)}
    async with weft.open(project, MemoryStore(), environ=environ) as app:
        await run_async_example(example, app=app, project=project, model=model)
