"""Which tests carry the mark of which requirement."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.support import requirements
from tests.support.source_code import ROOT


def names_in(call: ast.Call) -> list[str]:
    """The rows that a mark names: strings, or a tuple of the manifest's."""
    found: list[str] = []
    for argument in call.args:
        match argument:
            case ast.Constant(value=str(name)):
                found.append(name)
            case ast.Starred(value=ast.Name(id=variable)):
                found += getattr(requirements, variable)
            case _:
                raise AssertionError(f"line {call.lineno}: a mark names its rows")
    return found


@cache
def marked_tests() -> dict[str, list[str]]:
    """For each row, the tests that show it."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text("utf-8")
        if ".requirement(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith(".requirement"):
                    assert node.name.startswith("test_")
                    for name in names_in(mark):
                        found.setdefault(name, []).append(f"{shown(file)}::{node.name}")
    return found


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))
