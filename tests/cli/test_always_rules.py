""" "Always" proposes a rule, says what it would have covered, and asks where to keep it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.cli.chat.rule_keeper import RuleKeeper
from weft.events import PermissionRequest
from weft.ids import CallUid, NodeId, RequestId
from weft.view import TableBlock

pytestmark = [pytest.mark.anyio, pytest.mark.process]

FIRST = call("shell", command="git init -q made")
SECOND = call("shell", command="git init -q more")


async def test_a_rule_that_is_kept_for_the_session_covers_the_next_command(app: App) -> None:
    async with driven_chat(app, [FIRST], [SECOND], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.pick("Yes, and again in this session:")
        question = await talk.screen.choice()
        assert question.title == "What may run again without asking?"
        assert question.rule == "A rule ─ git init *: 1 of 1 past call"
        assert [row.detail for row in question.rows] == [
            "git init -q made",
            "git init *",
            "git init *",
        ]
        await talk.screen.pick("In this session:")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
    assert (Path(app.project_path) / "more").exists(), "it was not asked about"
    assert app.permissions.list() == []


async def test_a_rule_that_is_kept_for_every_session_stands_in_the_settings(app: App) -> None:
    async with driven_chat(app, [FIRST], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.pick("Yes, and again in this session:")
        await talk.screen.pick("In every session of yours (your settings):")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
    settings = (Path(app.places.config) / "config.toml").read_text()
    assert 'allow = ["shell(git init *)"]' in settings


async def test_rules_are_proposed_for_the_hosts_that_are_asked_about_alone(app: App) -> None:
    line = "# may reach example.org, localhost:8080, pypi.org\npip download x"
    request = PermissionRequest(
        request_id=RequestId("r"),
        call_uid=CallUid("c"),
        node=NodeId("n"),
        tool_name="shell",
        preview=line,
        reason="it would reach localhost:8080, pypi.org",
    )
    hosts = ["pypi.org", "example.org", "localhost:8080"]
    for folder in ({}, {"cwd": "."}, {"cwd": "src"}):
        args = {"command": "pip download x", "hosts": hosts, **folder}
        rules = RuleKeeper(app).proposed(request, args)
        assert [f"{rule.tool}({rule.pattern})" for rule in rules] == [
            "fetch(domain:localhost:8080)",
            "fetch(domain:pypi.org)",
        ]


@pytest.mark.parametrize("remark", ["", "# goes on in the background\n"])
async def test_no_rule_is_proposed_for_what_leaves_the_sandbox(app: App, remark: str) -> None:
    def proposed(preview: str) -> list[str]:
        request = PermissionRequest(
            request_id=RequestId("r"),
            call_uid=CallUid("c"),
            node=NodeId("n"),
            tool_name="shell",
            preview=f"{remark}{preview}",
        )
        rules = RuleKeeper(app).proposed(request, {"command": "git init x; git diff x"})
        return [rule.pattern for rule in rules]

    assert proposed("# outside the sandbox\ngit init x; git diff x") == []
    bare = proposed("# without a sandbox: it is switched off\ngit init x; git diff x")
    assert bare == ["git init *", "git diff *"]
    assert proposed("git init x; git diff x") == ["git init *"]


async def test_the_very_command_can_be_meant_and_escape_goes_back(app: App) -> None:
    async with driven_chat(app, [FIRST], [SECOND], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.pick("Yes, and again in this session:")
        await talk.screen.choice()
        talk.screen.answer(None)
        question = await talk.screen.choice()
        assert question.title == "Allow this command?"
        await talk.screen.pick("Yes, and again in this session:")
        await talk.screen.pick("Only this command, in this session:")
        again = await talk.screen.choice()
        assert again.title == "Allow this command?", "the other command asks"
        await talk.screen.pick("Yes")
        await talk.screen.until(lambda: "Done." in talk.screen.words())


async def test_no_rule_is_proposed_where_a_star_would_mean_too_much(app: App) -> None:
    first, again = call("shell", command="touch made"), call("shell", command="touch made")
    async with driven_chat(app, [first], [again], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.pick("Yes, and again in this session:")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
    assert (Path(app.project_path) / "made").exists()


async def test_rules_are_added_tried_and_removed_in_the_chat_and_count_at_once(app: App) -> None:
    async with driven_chat(app, [FIRST], [SECOND], "Done.", "Again.") as talk:
        talk.screen.typed("/permissions")
        await talk.screen.noted("there are no rules")
        talk.screen.typed("go")
        await talk.screen.choice()
        await app.permissions.add("allow", "shell(git init -q more)")
        await talk.screen.pick("Yes")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        assert (Path(app.project_path) / "more").exists(), "it was not asked about"
        talk.screen.typed("/permissions add deny shell(git push *)")
        await talk.screen.noted("from now on: deny shell(git push *)")
        talk.screen.typed("/permissions explain git push x")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
        [told] = talk.screen.of(TableBlock)
        assert told.title.startswith("deny: the rule")
        talk.screen.typed("/permissions simulate deny shell(git init *)")
        await talk.screen.noted("it means 2 of 2 past calls")
        talk.screen.typed("/permissions remove deny shell(git push *)")
        await talk.screen.noted("removed: deny")
        talk.screen.typed("/permissions bogus")
        await talk.screen.noted("not 'bogus'")
    assert [each.rule for each in app.permissions.list()] == ["shell(git init -q more)"]
