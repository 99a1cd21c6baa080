"""Requests for leave: they may expire, the first valid answer counts, and those who only watch give
none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.support.hook_project import HookProject, facts, results, shell
from weft.api.session import Session
from weft.app import App
from weft.errors import NoPendingRequest, UsageError
from weft.events import PermissionRequest, PermissionResolved
from weft.providers import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


class Patience:
    """A sleep that ends when the test says so."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.asked: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.over.wait()


async def until(session: Session, status: str) -> None:
    """Wait until the session has this status."""
    with anyio.fail_after(5):
        async with await session.subscribe() as events:
            while await session.get_status() != status:
                await anext(events)


async def asked(session: Session) -> PermissionRequest:
    """The request that waits."""
    await until(session, "awaiting_permission")
    [request] = await facts(session, PermissionRequest)
    assert isinstance(request, PermissionRequest)
    return request


async def idle(session: Session) -> None:
    """Wait until no turn runs."""
    await until(session, "idle")


def opened(place: HookProject, patience: Patience, **config: Any) -> App:
    return place.open({"permissions.ask_timeout": 30.0, **config}, sleep=patience)


async def test_a_request_that_no_one_answers_expires_as_a_denial_with_its_reason(
    place: HookProject,
) -> None:
    model, patience = ScriptedModel([shell("touch made"), "ok"]), Patience()
    async with opened(place, patience) as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        request = await asked(session)
        patience.over.set()
        await idle(session)
        [resolved] = await facts(session, PermissionResolved)
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once", request_id=request.request_id)
    assert patience.asked == [30.0]
    assert (resolved.action, resolved.by) == ("deny", "weft")
    assert resolved.reason == "it was not answered within 30 seconds"
    assert results(model) == ["Denied: it was not answered within 30 seconds."]
    assert not (place.project / "made").exists()


async def test_an_answer_in_time_counts_and_nothing_expires(place: HookProject) -> None:
    model, patience = ScriptedModel([shell("touch made"), "ok"]), Patience()
    async with opened(place, patience) as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_permission("allow_once")
        await idle(session)
        patience.over.set()
        await anyio.lowlevel.checkpoint()
        assert [each.action for each in await facts(session, PermissionResolved)] == ["allow_once"]
    assert (place.project / "made").exists()


async def test_of_an_answer_and_the_end_of_patience_only_the_first_counts(
    place: HookProject,
) -> None:
    """Both are in flight at once, in both orders; whatever is on record first is what happens."""
    for first in ("answer", "expiry"):
        model, patience = ScriptedModel([shell("touch made"), "ok"]), Patience()
        async with opened(place, patience) as app:
            session = await app.sessions.start_session(model=model)
            await session.send_prompt("go")
            request = await asked(session)
            refused: list[str] = []

            async def answer(session: Session, request_id: str, refused: list[str]) -> None:
                try:
                    await session.respond_to_permission("allow_once", request_id=request_id)
                except NoPendingRequest:
                    refused.append(request_id)

            async with anyio.create_task_group() as group:
                if first == "expiry":
                    patience.over.set()
                group.start_soon(answer, session, request.request_id, refused)
                patience.over.set()
            await idle(session)
            [resolved] = await facts(session, PermissionResolved)
        assert (resolved.action == "allow_once") is (not refused)
        assert (place.project / "made").exists() is (not refused)
        (place.project / "made").unlink(missing_ok=True)


async def test_without_a_time_a_request_waits_for_ever(place: HookProject) -> None:
    model, patience = ScriptedModel([shell("touch made"), "ok"]), Patience()
    async with opened(place, patience, **{"permissions.ask_timeout": 0}) as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await asked(session)
        await anyio.lowlevel.checkpoint()
        assert patience.asked == []
        assert await session.get_status() == "awaiting_permission"


async def test_one_who_watches_answers_once_and_changes_nothing_else(place: HookProject) -> None:
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        driver = await app.sessions.get(session.id)
        viewer = await app.sessions.get(session.id)
        await driver.attach("driver")
        name = await viewer.attach("viewer")
        await driver.send_prompt("go")
        request = await asked(session)
        with pytest.raises(UsageError, match="only watches"):
            await viewer.set_permission_mode("bypass")
        assert await session.get_status() == "awaiting_permission"
        assert (await viewer.editor_snapshot()).pending_approval == request
        await viewer.respond_to_permission("allow_once", request_id=request.request_id)
        with pytest.raises(NoPendingRequest):
            await driver.respond_to_permission("deny", request_id=request.request_id)
        await idle(session)
        [resolved] = await facts(session, PermissionResolved)
    assert resolved.by == name
    assert (place.project / "made").exists()


async def test_without_a_user_to_ask_the_answer_is_no_at_once(place: HookProject) -> None:
    model, patience = ScriptedModel([shell("touch made"), "ok"]), Patience()
    async with opened(place, patience) as app:
        session = await app.sessions.start_session(model=model, asking="no")
        await session.send_message("go")
        assert await facts(session, PermissionRequest) == []
    assert patience.asked == []
    assert "there is no one to ask" in results(model)[0]
