"""Two runs that say the same have the same digest, whenever and wherever they ran."""

from __future__ import annotations

import pytest

from weft.evidence import verdict_digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 failed in 0.31s", "2 failed in 1.02s"),
        ("\x1b[31m2 failed\x1b[0m", "2 failed"),
        ("at 2026-11-19T21:00:03.2Z: no", "at 2026-11-20 08:00:00: no"),
        ("<object at 0x7f01>", "<object at 0xdead>"),
        ("/tmp/pytest-1/a: no", "/tmp/pytest-2/a: no"),
        ("no  \n", "no"),
    ],
)
def test_what_differs_by_time_and_place_alone_is_the_same(one: str, other: str) -> None:
    assert verdict_digest(1, one) == verdict_digest(1, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("2 failed", "3 failed"), ("a.py:3: no", "a.py:4: no"), ("", "no")],
)
def test_another_output_is_another_verdict(one: str, other: str) -> None:
    assert verdict_digest(1, one) != verdict_digest(1, other)


def test_another_exit_code_is_another_verdict() -> None:
    assert verdict_digest(1, "no") != verdict_digest(2, "no")
