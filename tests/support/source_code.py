"""The source as data: what the tests about the code itself share."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "weft"


class Import(NamedTuple):
    """One import of ours: `weft.store.base` on line 12 of a file."""

    file: Path
    line: int
    target: str
    """Dotted, with the imported name where that is a module or a folder itself."""

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.target}"

    @property
    def folder(self) -> str:
        """The folder (or root module) of ours that it reaches; "" for the package itself."""
        return [*self.target.split("."), ""][1]

    @property
    def reaches_into_a_file(self) -> bool:
        """True when it names something behind the folder's face."""
        return self.target.count(".") > 1


def python_files(below: Path = SRC) -> list[Path]:
    """Every Python file below a folder, in order."""
    return sorted(below.rglob("*.py"))


@cache
def text_of(file: Path) -> str:
    """What a file of the source says."""
    return file.read_text(encoding="utf-8")


def files_with(*words: str, below: Path = SRC) -> list[Path]:
    """The Python files below a folder that contain one of these words at all.

    To parse and walk every file for each question would cost the suite seconds.
    """
    return [file for file in python_files(below) if any(word in text_of(file) for word in words)]


@cache
def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    # The trees of the whole source are half a million objects that live to the end of the run.
    # Unless they are frozen, every full garbage collection in the tests that follow visits them.
    gc.disable()
    tree = ast.parse(text_of(file), str(file))
    gc.freeze()
    gc.enable()
    return tree


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree, in the order of `ast.walk`, which is slow."""
    return tuple(ast.walk(parsed(file)))


@cache
def imported_modules(file: Path) -> tuple[tuple[int, str], ...]:
    """Line and dotted name of every import in a file, wherever it hides: top, function,
    `TYPE_CHECKING` or `import_module`.
    """
    return tuple(_imports_in(file))


def _imports_in(file: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(file):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, _module_of(base, alias.name)
        elif isinstance(node, ast.Call) and _name_of(node.func) in ("import_module", "__import__"):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def our_imports(file: Path) -> list[Import]:
    """The imports of `weft` in a file."""
    return [
        Import(file, line, target)
        for line, target in imported_modules(file)
        if target.split(".")[0] == "weft"
    ]


def uses(file: Path, *names: str) -> list[str]:
    """Where a file uses one of these names, as `path:line name`, be it bare or an attribute of
    anything.
    """
    if not any(name in text_of(file) for name in names):
        return []
    return [
        f"{file.relative_to(ROOT)}:{node.lineno} {_name_of(node)}"
        for node in nodes(file)
        if isinstance(node, ast.Name | ast.Attribute) and _name_of(node) in names
    ]


def _module_of(base: str, name: str) -> str:
    """`from weft import faults` reaches `weft.faults`.

    `from weft.store import Store` reaches `weft.store`.
    """
    path = SRC.parent.joinpath(*base.split("."), name)
    is_module = base.startswith("weft") and (path.is_dir() or path.with_suffix(".py").is_file())
    return f"{base}.{name}" if is_module else base


def _name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
