"""Control requests in one process: what the command line cannot show by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.hook_project import HookProject
from weft.api.session import Session
from weft.app import App
from weft.cli.agent_sdk.control import IGNORED, TAKES, ControlRequests
from weft.cli.agent_sdk.control_channel import ControlChannel, NoAnswer
from weft.cli.agent_sdk.hook_channel import HookChannel
from weft.cli.agent_sdk.server_requests import ServerRequests
from weft.errors import UsageError
from weft.hooks.config import HookTable
from weft.protocol.agent_sdk_dialect import ToolDialect
from weft.providers import ScriptedModel

pytestmark = pytest.mark.anyio

HOOKS = {"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}


def requests_of(app: App, session: Session, hooks: HookTable) -> ControlRequests:
    async def set_mode(mode: str) -> None:
        raise AssertionError(mode)

    return ControlRequests(
        app,
        session,
        {},
        hooks=hooks,
        channel=HookChannel(ControlChannel(), ToolDialect(), session.id),
        servers=ServerRequests(app, ControlChannel(), answers=False),
        dialect=ToolDialect(),
        set_mode=set_mode,
        drop_waiting=lambda: None,
        named=lambda given: "",
    )


async def test_hooks_for_a_session_of_another_process_are_refused(tmp_path: Path) -> None:
    place, store, hooks = HookProject(tmp_path), tmp_path / "weft.db", HookTable()
    async with place.open(store=store) as owner, place.open(store=store, hooks=hooks) as other:
        session = await owner.sessions.start_session(model=ScriptedModel(["ok"]))
        away = await other.sessions.get(session.id)
        requests = requests_of(other, away, hooks)
        with pytest.raises(UsageError, match="another process has this session"):
            await requests.carry_out({"subtype": "initialize", "hooks": HOOKS})
        assert not hooks
        assert requests.refusal


async def test_a_refused_initialize_leaves_nothing_behind(tmp_path: Path) -> None:
    hooks = HookTable()
    async with HookProject(tmp_path).open(hooks=hooks) as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        requests = requests_of(app, session, hooks)
        with pytest.raises(UsageError, match="jsonSchema"):
            await requests.carry_out(
                {"subtype": "initialize", "hooks": HOOKS, "jsonSchema": 3, "title": "Mine"}
            )
        assert not hooks
        assert (await session.metadata()).title != "Mine"


@pytest.mark.parametrize("subtype", sorted(TAKES))
async def test_every_request_refuses_a_field_that_it_does_not_know(
    tmp_path: Path, subtype: str
) -> None:
    async with HookProject(tmp_path).open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        requests = requests_of(app, session, HookTable())
        with pytest.raises(UsageError, match="'unheard' is not supported here"):
            await requests.carry_out({"subtype": subtype, "unheard": ["of"]})


def test_every_field_that_is_taken_is_documented() -> None:
    document = Path(__file__).parents[2].joinpath("docs", "agent-sdk.md").read_text("utf-8")
    fields: list[Any] = [*TAKES["initialize"], *IGNORED["initialize"], *TAKES]
    assert [name for name in fields if f"`{name}`" not in document] == []


async def test_a_request_that_no_one_can_answer_fails_at_once() -> None:
    channel = ControlChannel()
    channel.hang_up()
    with anyio.fail_after(5), pytest.raises(NoAnswer, match="hung up"):
        await channel.ask(subtype="hook_callback")


def test_an_answer_that_no_one_waits_for_is_left_to_others() -> None:
    assert not ControlChannel().take({"request_id": "x", "subtype": "success", "response": {}})
