"""The fold of events into blocks is the same on every screen: golden files hold it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.source_code import SRC, nodes
from tests.support.view_golden import FOLDER, folded, read
from weft.events import FACTS, SIGNALS

FILES = sorted(FOLDER.glob("*.json"))
KINDS = {cls.__name__: kind for kind, cls in {**FACTS, **SIGNALS}.items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_event_gives_the_blocks_that_the_golden_file_has(file: Path) -> None:
    golden = read(file)
    now = folded(golden)
    for step, kept in zip(now["steps"], golden["steps"], strict=True):
        assert step["blocks"] == kept["blocks"], step["event"]
    assert now["live"] == golden["live"]


def test_every_event_that_the_fold_looks_at_is_in_a_golden_file() -> None:
    """Read from the fold's own `match`: an event that it learns of needs a golden file as well."""
    matched = {
        node.cls.id
        for node in nodes(SRC / "view" / "session_view.py")
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name)
    }
    seen = {step["event"]["kind"] for file in FILES for step in read(file)["steps"]}
    assert {KINDS[name] for name in matched} - seen == set()


def test_every_block_that_the_fold_makes_is_in_a_golden_file() -> None:
    blocks = [
        block["block"] for file in FILES for step in read(file)["steps"] for block in step["blocks"]
    ]
    assert set(blocks) == {
        *("user", "answer", "thinking", "tool", "lookups", "agents", "todos", "turn_end"),
        *("question", "plan", "note"),
    }
