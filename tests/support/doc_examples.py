"""The Python examples of a document, and a way to run them.

A block that begins with ```` ```python ```` is run; one marked ```` ```python norun ```` is only
parsed.  An example may `await` at the top, as in a notebook.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.source_code import ROOT

_BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    """One block of a document."""

    document: str
    line: int
    is_run: bool
    code: str
    kind: str = ""
    """What stands behind the language: `test` and `conftest` are files of a test suite."""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def examples(document: str) -> list[Example]:
    """All Python blocks of a document below `docs/`."""
    text = (ROOT / "docs" / document).read_text("utf-8")
    return [
        Example(
            document=document,
            line=text.count("\n", 0, found.start()) + 2,
            is_run="norun" not in found.group(1),
            code=found.group(2),
            kind=found.group(1).strip(),
        )
        for found in _BLOCK.finditer(text)
    ]


def _code(example: Example) -> Any:
    blank = "\n" * (example.line - 1)
    return compile(
        blank + example.code,
        str(example),
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        dont_inherit=True,
    )


def run_example(example: Example, **names: Any) -> dict[str, Any]:
    """Run an example as a module of its own; returns its names."""
    space = {"__name__": "example", **names}
    code = _code(example)
    if example.is_run:
        exec(code, space)  # noqa: S102 - our own documents
    return space


async def run_async_example(example: Example, **names: Any) -> None:
    """Run an example that may await."""
    space = {"__name__": "example", **names}
    running = eval(_code(example), space) if example.is_run else None  # noqa: S307 - as above
    if inspect.isawaitable(running):
        await running


def make_project(folder: Path) -> Path:
    """An empty project for an example."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return project
