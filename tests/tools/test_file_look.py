"""A look at files that a wait makes."""

from __future__ import annotations

import threading

import anyio
import anyio.to_thread
import pytest

from weft.events import WaitSubject
from weft.tools.waits import file_look

pytestmark = pytest.mark.anyio

SUBJECT = WaitSubject(kind="file", place="far", seen="")


async def test_an_abort_does_not_wait_for_a_disk_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answers, over = (threading.Event() for _ in range(3))

    def stuck(place: str) -> str:
        asked.set()
        answers.wait(10)  # so that a failure is no hang
        over.set()
        return place

    async def look() -> None:
        await file_look.file_look("/far")(SUBJECT)

    monkeypatch.setattr(file_look, "digest_of", stuck)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(look)
            await anyio.to_thread.run_sync(asked.wait)
            group.cancel_scope.cancel()
        assert not over.is_set()
    finally:
        answers.set()
