"""Commands of the user's whose changes are reviewed before they are the project's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from tests.support.sandboxed_session import skip_without_sandbox
from tests.support.world import World, facts
from weft.app import App
from weft.errors import UsageError
from weft.events import ToolComplete
from weft.ids import SessionId
from weft.providers.scripted import ScriptedModel
from weft.workspace import ReviewedChanges

pytestmark = [pytest.mark.anyio, pytest.mark.process]
SESSION = SessionId("s")
Review = Callable[[ReviewedChanges], Awaitable[bool]]


def answers(yes: bool, seen: list[ReviewedChanges]) -> Review:
    async def review(changes: ReviewedChanges) -> bool:
        seen.append(changes)
        return yes

    return review


def opened(world: World, **config: Any) -> App:
    named = {"sandbox.mode": "auto", **config}
    return world.open(ScriptedModel(["ok"]), config=named)


async def test_a_yes_carries_over_what_was_shown_and_a_rewind_takes_it_back(
    plain_world: World,
) -> None:
    world, seen = plain_world, list[ReviewedChanges]()
    world.write("notes", "remember\n")
    world.write("old", "old\n")
    printed: list[str] = []
    async with opened(world) as app:
        await skip_without_sandbox(app, world)
        session = await app.sessions.start_session(session_id="s")
        command = "echo out; echo err >&2; echo changed > notes; echo made > new; rm old; exit 3"
        result = await app.host.run_reviewed(SESSION, command, answers(True, seen), printed.append)
        assert (result.exit_code, "".join(printed)) == (3, "out\nerr\n")
        assert {(each.path, each.action) for each in seen[0].files} == {
            ("notes", "modified"),
            ("new", "created"),
            ("old", "deleted"),
        }
        [notes] = [each for each in seen[0].files if each.path == "notes"]
        assert (notes.data_before, notes.data_after) == (b"remember\n", b"changed\n")
        assert (world.read("notes"), world.read("new")) == ("changed\n", "made\n")
        assert not (world.project / "old").exists()
        await session.rewind(None)
        assert (world.read("notes"), world.read("old")) == ("remember\n", "old\n")
        assert not (world.project / "new").exists()


async def test_a_no_leaves_the_project_and_the_record_without_a_change(
    plain_world: World,
) -> None:
    world, seen = plain_world, list[ReviewedChanges]()
    world.write("notes", "remember\n")
    async with opened(world) as app:
        await skip_without_sandbox(app, world)
        session = await app.sessions.start_session(session_id="s")
        result = await app.host.run_reviewed(
            SESSION, "echo changed > notes", answers(False, seen), lambda text: None
        )
        assert result.is_declined
        assert [each.path for each in seen[0].files] == ["notes"]
        assert world.read("notes") == "remember\n"
        assert await session.touched_files() == []
        assert len(await facts(session, ToolComplete)) == 1


async def test_what_a_session_may_not_change_is_named_and_stays_out_whatever_the_answer(
    plain_world: World,
) -> None:
    world, seen = plain_world, list[ReviewedChanges]()
    rules = {"permissions.deny": ["write(secret/**)", "edit(secret/**)"]}
    async with opened(world, **rules) as app:
        await skip_without_sandbox(app, world)
        await app.sessions.start_session(session_id="s")
        # Behind a script: what stands in the line itself is refused before it runs.
        world.write("make.sh", "mkdir secret; echo x > secret/a; echo x > .envrc; echo x > fine")
        result = await app.host.run_reviewed(
            SESSION, "sh make.sh", answers(True, seen), lambda text: None
        )
    assert "fine" in [each.path for each in seen[0].files]
    assert not {".envrc", "secret/a"} & {each.path for each in seen[0].files}
    assert ".envrc" in seen[0].remarks[0]
    assert "secret/a" in seen[0].remarks[0]
    assert result.is_held_back
    assert (world.project / "fine").exists()
    assert not (world.project / ".envrc").exists()
    assert not (world.project / "secret/a").exists()


async def test_a_file_that_the_user_changes_before_the_answer_is_theirs(
    plain_world: World,
) -> None:
    world = plain_world
    world.write("notes", "remember\n")

    async def edits_and_allows(changes: ReviewedChanges) -> bool:
        world.write("notes", "mine, and longer\n")
        return True

    async with opened(world) as app:
        await skip_without_sandbox(app, world)
        await app.sessions.start_session(session_id="s")
        result = await app.host.run_reviewed(
            SESSION, "echo changed > notes", edits_and_allows, lambda text: None
        )
    assert world.read("notes") == "mine, and longer\n"
    assert result.is_held_back
    assert "notes" in "\n".join(result.remarks)


@pytest.mark.parametrize("amid", ["the command", "the question"])
async def test_a_cancel_ends_all_of_it_and_nothing_is_carried_over(
    plain_world: World, amid: str
) -> None:
    world = plain_world
    scope = anyio.CancelScope()

    async def review(changes: ReviewedChanges) -> bool:
        scope.cancel()
        await anyio.sleep_forever()
        return True

    def stops(text: str) -> None:
        if amid == "the command":
            scope.cancel()

    rest = "; sleep 1000 & sleep 1000" if amid == "the command" else ""
    async with opened(world) as app:
        await skip_without_sandbox(app, world)
        await app.sessions.start_session(session_id="s")
        with scope:
            await app.host.run_reviewed(SESSION, f"echo x > made; echo begun{rest}", review, stops)
    assert scope.cancelled_caught
    assert not (world.project / "made").exists()


async def test_all_of_a_long_output_is_shown(plain_world: World) -> None:
    shown = 0

    def count(text: str) -> None:
        nonlocal shown
        shown += len(text)

    async with opened(plain_world) as app:
        await skip_without_sandbox(app, plain_world)
        await app.sessions.start_session(session_id="s")
        command = "head -c 1000000 /dev/zero | tr '\\0' x; touch made"
        await app.host.run_reviewed(SESSION, command, answers(False, []), count)
    assert shown == 1_000_000


async def test_without_a_sandbox_nothing_runs_and_a_sentence_says_so(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel(["ok"])) as app:
        await app.sessions.start_session(session_id="s")
        with pytest.raises(UsageError, match="there is no sandbox to run it in: it is switched"):
            await app.host.run_reviewed(SESSION, "touch made", answers(True, []), lambda text: None)
    assert not (plain_world.project / "made").exists()


async def test_a_rule_that_denies_the_command_is_obeyed(plain_world: World) -> None:
    async with opened(plain_world, **{"permissions.deny": ["shell(touch made)"]}) as app:
        await skip_without_sandbox(app, plain_world)
        await app.sessions.start_session(session_id="s")
        with pytest.raises(UsageError, match=r"was not run\. Denied: the rule"):
            await app.host.run_reviewed(SESSION, "touch made", answers(True, []), lambda text: None)
    assert not (plain_world.project / "made").exists()
