"""The audit of a session, and the simulation of a rule: both read what its log tells."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.errors import SessionNotFound, UsageError
from weft.events import PermissionAction
from weft.providers import ScriptedModel
from weft.providers.script import CallTool

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def script() -> ScriptedModel:
    return ScriptedModel(
        [
            CallTool(name="write", args={"path": "a.txt", "content": "a\n"}),
            CallTool(name="shell", args={"command": "git diff src"}),
            CallTool(name="shell", args={"command": "git diff docs"}),
            CallTool(name="shell", args={"command": "touch made"}),
            "done",
        ]
    )


async def worked(world: World, *rules: str, answer: PermissionAction = "allow_once") -> str:
    """A session that has worked; returns its id."""
    config = {"permissions.allow": list(rules)}
    async with world.open(script(), config=config) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        async with await session.subscribe() as events:
            while await session.get_status() != "idle":
                if await session.get_status() == "awaiting_permission":
                    await session.respond_to_permission(answer)
                await anext(events)
        return session.id


@pytest.mark.requirement("app:permissions")
async def test_the_audit_says_who_allowed_each_effect_and_why(plain_world: World) -> None:
    session = await worked(plain_world, "write(*.txt)", "shell(git diff *)")
    async with plain_world.open(script()) as app:
        found = await app.permissions.audit(session)
    told = [(each.what, each.target, each.by, each.outcome) for each in found]
    assert told[0] == ("write", "a.txt", "rule", "done")
    assert found[0].files == ("a.txt",)
    assert found[0].why == "allow write(*.txt)"
    assert told[1][:3] == ("shell", "git diff src", "rule")
    assert told[-1] == ("shell", "touch made", "user", "done")


async def test_what_the_user_refused_is_in_it(plain_world: World) -> None:
    session = await worked(plain_world, "shell(git diff *)", answer="deny")
    async with plain_world.open(script()) as app:
        found = await app.permissions.audit(session)
        with pytest.raises(SessionNotFound):
            await app.permissions.audit("ses_nobody")
    refused = [(each.what, each.target, each.by) for each in found if each.outcome == "denied"]
    assert refused == [("write", "a.txt", "user"), ("shell", "touch made", "user")]
    assert not (plain_world.project / "made").exists()


async def test_a_rule_is_simulated_on_the_calls_of_the_past(plain_world: World) -> None:
    await worked(plain_world, "write(*.txt)")
    await worked(plain_world, "write(*.txt)")
    async with plain_world.open(script()) as app:
        allowed = await app.permissions.simulate("allow", "shell(touch *)")
        denied = await app.permissions.simulate("deny", "Bash(git diff:*)")
        nothing = await app.permissions.simulate("allow", "shell(make *)")
        with pytest.raises(UsageError):
            await app.permissions.simulate("allow", "shell(a | b *)")
        assert app.permissions.list() == []
    assert (allowed.sessions, allowed.calls, allowed.covered) == (2, 8, 2)
    [changed] = allowed.changed
    assert (changed.text, changed.times, changed.before, changed.after) == (
        *("touch made", 2),
        *("ask", "allow"),
    )
    assert denied.after.deny == 4
    assert nothing.covered == 0
    assert nothing.before == nothing.after
