"""Notebooks as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.tool_bench import ToolBench
from weft.tools.notebook import MAX_OUTPUT, notebook_text

CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "words"]},
    {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "source": "print(1)\n1 / 0",
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
            {"output_type": "display_data", "data": {"image/png": "A" * 9_000, "text/plain": "x"}},
            {"output_type": "execute_result", "data": {"text/plain": ["42"]}},
            {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero"},
        ],
    },
]
TEXT = """\
# --- cell 1 (markdown)
# Title
words

# --- cell 2 (code)
print(1)
1 / 0
# --- output of cell 2
1
[image/png, text/plain]
42
ZeroDivisionError: division by zero
"""


def notebook(cells: object) -> bytes:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def test_sources_and_outputs_are_shown_and_pictures_are_named() -> None:
    assert notebook_text(notebook(CELLS)) == TEXT


def test_a_long_output_is_cut() -> None:
    output = {"output_type": "stream", "text": "x" * (MAX_OUTPUT + 7)}
    text = notebook_text(notebook([{"cell_type": "code", "source": "", "outputs": [output]}]))
    assert text is not None
    assert text.endswith("x\n(… 7 more characters)\n")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"text", b"\xff", b'{"cells": 3}', b"[" * 100_000]
)
def test_what_is_no_notebook_is_none(data: bytes) -> None:
    assert notebook_text(data) is None


@pytest.mark.anyio
async def test_read_shows_the_cells_with_line_numbers(bench: ToolBench) -> None:
    (bench.root / "a.ipynb").write_bytes(notebook(CELLS))
    text = await bench.text("read", path="a.ipynb", offset=5, limit=2)
    assert text.startswith("     5\t# --- cell 2 (code)\n     6\tprint(1)\n")
    assert "its file is JSON" in text


@pytest.mark.anyio
async def test_a_broken_notebook_is_read_as_the_text_that_it_is(bench: ToolBench) -> None:
    bench.write("a.ipynb", '{"cells": 3}\n')
    assert await bench.text("read", path="a.ipynb") == '     1\t{"cells": 3}'
