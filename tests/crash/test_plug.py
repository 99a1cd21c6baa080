"""A few pulled plugs of each kind in every run of the suite, and that the proof can fail."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.crash import plug
from tests.support.world import World
from weft.api.session import Session
from weft.workspace.process.command_keeper import CommandKeeper

pytestmark = pytest.mark.process


@pytest.mark.parametrize("kind", plug.KINDS)
@pytest.mark.parametrize("number", [0, 6])
def test_after_a_kill_inside_a_command_the_workspace_equals_the_log(
    kind: plug.Kind, number: int
) -> None:
    assert plug.attempt(1, kind, number) == ""


@pytest.fixture
def plan() -> plug.RoundPlan:
    """A command with a process that neither its group nor its mark leads to."""
    found = plug.planned(1, "outside", 7)
    return msgspec.structs.replace(found, strays=("session+double+emptied",))


def test_the_proof_notices_a_process_that_runs_on(
    place: World, plan: plug.RoundPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommandKeeper, "_taken", lambda keeper, environ: None)
    monkeypatch.setattr(plug, "GONE_SECONDS", 0.5)
    # How many of them are still there when they are looked for is for the machine to say.
    [wrong] = plug.judged(place, plan)
    assert wrong.endswith("processes run on")


def test_the_proof_notices_a_difference_that_is_not_named(
    place: World, plan: plug.RoundPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(session: Session) -> list[str]:
        return []

    monkeypatch.setattr(plug, "named", nothing)
    [wrong] = plug.judged(place, plan)
    assert wrong.startswith("not named: ['")


@pytest.fixture
def place(tmp_path: Path) -> World:
    """With a store on disk: the process of the session is another one."""
    return plug.prepared(tmp_path)
