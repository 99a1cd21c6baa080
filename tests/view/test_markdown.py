"""Markdown that is still being written is cut only where nothing can be added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.view import finished_length

BLOCKS = [
    "A paragraph\nof two lines.\n\n",
    "# A heading\n\n",
    "- one\n- two\n\n  still two\n\n- three\n\n",
    "1. one\n\n2. two\n\n",
    "```python\ndef f():\n\n    return 1\n```\n",
    "~~~\n```\n~~~\n\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "> a quote\n\n",
]


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("", ""),
        ("Some words", ""),
        ("Some words\n", ""),
        ("Some words\n\n", ""),
        ("Some words\n\nmore", "Some words\n\n"),
        ("Some words\n\n1", ""),
        ("- one\n\n- two", ""),
        ("- one\n\n  more of one", ""),
        ("- one\n\nAfter the list", "- one\n\n"),
        ("```\ncode\n\nmore", ""),
        ("```\ncode\n```", ""),
        ("```\ncode\n```\n", "```\ncode\n```\n"),
        ("````\n```\n````\n", "````\n```\n````\n"),
        ("text\n\n```\ncode", "text\n\n"),
    ],
)
def test_only_finished_blocks_are_settled(text: str, done: str) -> None:
    assert text[: finished_length(text)] == done


@given(st.lists(st.sampled_from(BLOCKS), max_size=8), st.integers(1, 7))
def test_pieces_of_any_size_settle_the_same_text_in_order(blocks: list[str], size: int) -> None:
    """Whatever the pieces, what is handed out is the text itself, cut at the ends of lines and
    never inside a fence.
    """
    text = "".join(blocks)
    tail, out = "", []
    for start in range(0, len(text), size):
        tail += text[start : start + size]
        cut = finished_length(tail)
        if cut:
            out.append(tail[:cut])
            tail = tail[cut:]
    assert "".join(out) + tail == text
    assert all(piece.endswith("\n") for piece in out)
    assert all(piece.count("```python") == piece.count("    return 1\n```\n") for piece in out)
