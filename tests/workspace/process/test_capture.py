"""Keeping what a program prints."""

from __future__ import annotations

import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.workspace.process.capture import HEAD_BYTES, TAIL_BYTES, OutputCapture

WHOLE = HEAD_BYTES + TAIL_BYTES


def captured(data: bytes, chunk: int) -> OutputCapture:
    capture = OutputCapture()
    for start in range(0, len(data), chunk):
        capture.feed(data[start : start + chunk])
    return capture


@pytest.mark.parametrize("size", [0, 1, HEAD_BYTES, WHOLE - 1, WHOLE])
def test_what_fits_is_kept_whole_and_nothing_is_spilled(size: int) -> None:
    capture = captured(b"x" * size, 1000)
    assert (capture.text(), capture.is_cut, capture.whole()) == ("x" * size, False, None)


@pytest.mark.parametrize("chunk", [1 + 7919, 65536, 10**7])
@pytest.mark.parametrize("size", [WHOLE + 1, WHOLE * 3 + 17])
def test_what_does_not_fit_is_cut_in_the_middle_and_kept_beside(size: int, chunk: int) -> None:
    data = bytes(ord("a") + number * 7 % 26 for number in range(size))
    capture = captured(data, chunk)
    text = capture.text()
    assert text.startswith(data[:HEAD_BYTES].decode() + "\n[…")
    assert text.endswith("…]\n" + data[-TAIL_BYTES:].decode())
    assert capture.whole() == data
    capture.close()


def test_a_character_torn_by_the_cut_is_left_out_and_not_shown_broken() -> None:
    capture = captured(("é€𝄞" * 60_000).encode(), 4096)
    assert "\ufffd" not in capture.text()
    capture.close()


def test_without_a_disk_head_and_tail_are_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    capture = captured(b"x" * WHOLE * 2, 65536)
    assert capture.whole() is None
    assert capture.is_cut
    assert capture.text().startswith("xxx")


@given(st.text(max_size=200), st.integers(1, 7))
def test_watchers_get_the_same_text_however_it_is_cut(text: str, chunk: int) -> None:
    live: list[str] = []
    capture = OutputCapture(live.append)
    data = text.encode()
    for start in range(0, len(data), chunk):
        capture.feed(data[start : start + chunk])
    assert "".join(live) == text == capture.text()
