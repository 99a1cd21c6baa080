"""The pace of small reads: how many a command gets before it has to wait."""

from __future__ import annotations

from collections.abc import Coroutine

import pytest

from weft.workspace.egress.read_pace import MOST, SMALL, ReadPace

pytestmark = pytest.mark.anyio


def has_to_wait(step: Coroutine[object, None, None]) -> bool:
    try:
        step.send(None)
    except StopIteration:
        return False
    step.close()
    return True


async def test_small_reads_wait_once_there_were_too_many_and_large_ones_never() -> None:
    pace = ReadPace()
    assert not any(has_to_wait(pace.read(1)) for _ in range(MOST))
    await pace.read(1)  # the first span was over before it began
    assert not any(has_to_wait(pace.read(1)) for _ in range(MOST - 1))
    assert has_to_wait(pace.read(1))
    assert not has_to_wait(pace.read(SMALL))
    await pace.read(1)
    assert not has_to_wait(pace.read(1))
