"""The Python examples of a document, and a way to run them.

A block that begins with ```` ```python ```` is run; one marked ```` ```python norun ```` is only parsed.  Examples see `project` (an empty folder),
and must not reach the network; `model` is a scripted one under the name that the documents use.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

from tests.source import ROOT

_BLOCK = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    """One block of a document."""

    document: str
    line: int
    is_run: bool
    code: str

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
        )
        for found in _BLOCK.finditer(text)
    ]


def play(example: Example, **names: Any) -> dict[str, Any]:
    """Run an example as a module of its own; returns its names."""
    blank = "\n" * (example.line - 1)
    tree = ast.parse(blank + example.code, str(example))
    space = {"__name__": "example", **names}
    if example.is_run:
        exec(compile(tree, str(example), "exec", dont_inherit=True), space)  # noqa: S102 - our own documents
    return space


def project_in(folder: Path) -> Path:
    """An empty project for an example."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    return project
