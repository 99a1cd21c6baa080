"""The page that says which test holds which promise: every test that it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.support.source_code import ROOT

_PAGE = (ROOT / "docs" / "promises.md").read_text("utf-8")
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
_ROW = re.compile(r"^\| (?!promise |-)(.+?) \| (.+) \|$", re.MULTILINE)


@cache
def _tests_of(file: str) -> frozenset[str]:
    path = ROOT / "tests" / file
    if not path.is_file():
        return frozenset()
    found = ast.walk(ast.parse(path.read_text("utf-8")))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in found if isinstance(node, kinds))


@pytest.mark.parametrize(("file", "name"), sorted(set(_NAMED.findall(_PAGE))))
def test_a_test_that_holds_a_promise_is_there(file: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in _tests_of(file)


def test_every_promise_names_what_holds_it() -> None:
    rows = _ROW.findall(_PAGE)
    assert len(rows) > 60
    assert [said for said, held in rows if not _NAMED.search(held) and "bench" not in held] == []


def test_a_test_that_is_gone_is_noticed() -> None:
    assert "test_of_nothing" not in _tests_of("test_promises.py")
    assert _tests_of("no_such_file.py") == frozenset()
