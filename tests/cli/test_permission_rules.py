"""`weft permissions`, and the same for programs."""

from __future__ import annotations

import json

import pytest

from tests.support.weft_program import WeftProgram
from tests.support.world import World
from weft.errors import UsageError
from weft.testing import ScriptedModel


@pytest.mark.process
def test_rules_are_added_listed_explained_and_removed(weft: WeftProgram) -> None:
    rule = "shell(git push *)"
    assert weft.call("permissions", "add", "deny", rule).returncode == 0
    [listed] = json.loads(weft.call("permissions", "--json").stdout)
    assert (listed["verdict"], listed["rule"]) == ("deny", rule)
    told = json.loads(
        weft.call("permissions", "explain", "--json", "--", "ls; git push origin").stdout
    )
    assert told["decision"] == "deny"
    assert [part["decision"] for part in told["parts"]][-1] == "deny"
    assert told["rule"] == f"deny {rule}"
    assert weft.call("permissions", "remove", "deny", rule).returncode == 0
    assert json.loads(weft.call("permissions", "--json").stdout) == []


@pytest.mark.process
def test_what_could_do_nothing_is_refused_with_the_right_spelling(weft: WeftProgram) -> None:
    wrong = weft.call("permissions", "add", "allow", "shell(git log * | head *)")
    assert wrong.returncode == 2
    assert "shell(git log *), shell(head *)" in wrong.stderr
    assert weft.call("permissions", "add", "maybe", "shell").returncode == 2
    assert weft.call("permissions", "explain").returncode == 2
    assert weft.call("permissions", "explain", "--mode", "x", "--", "ls").returncode == 2


@pytest.mark.process
def test_what_bash_refuses_is_denied_with_its_reason(weft: WeftProgram) -> None:
    told = json.loads(weft.call("permissions", "explain", "--json", "--", "if true").stdout)
    assert told["decision"] == "deny"
    assert "syntax error" in told["why"]


@pytest.mark.anyio
@pytest.mark.process
@pytest.mark.requirement("app:permissions")
async def test_a_program_lists_adds_removes_and_explains(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        await app.permissions.add("allow", "shell(make *)")
    async with plain_world.open(ScriptedModel([])) as app:
        assert [each.rule for each in app.permissions.list()] == ["shell(make *)"]
        told = await app.permissions.explain("make lint")
        assert (told.decision, told.rule) == ("allow", "allow shell(make *)")
        assert (await app.permissions.explain("make lint; rm x")).decision == "ask"
        edit = await app.permissions.explain(".git/hooks/x", tool="Edit", mode="accept_edits")
        assert edit.decision == "ask"
        with pytest.raises(UsageError, match="no rule"):
            await app.permissions.remove("deny", "shell(make *)")
        await app.permissions.remove("allow", "shell(make *)")
