"""Agents in the chat: seen at work, asked for, listed, stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.view import (
    AgentsCard,
    AnswerBlock,
    PermissionBlock,
    TableBlock,
)

pytestmark = pytest.mark.anyio


def define(app: App, name: str, *answers: Any) -> None:
    """A kind of agent with a model of its own."""
    script = Path(app.project_path).parent / f"{name}.json"
    script.write_text(json.dumps({"by": "content", "answers": answers}))
    folder = Path(app.project_path) / ".weft" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(
        f"---\nname: {name}\ndescription: Is {name}.\nmodel: scripted:{script}\n---\nYou work.\n"
    )


def hand(name: str, **more: Any) -> list[dict[str, Any]]:
    return [call("agent", prompt="do it", description="Do it all", agent=name, **more)]


@pytest.mark.process
async def test_an_agents_request_reaches_the_user_and_its_end_and_cost_are_reported(
    app: App,
) -> None:
    define(app, "doer", [call("shell", command="touch made")], "It is done.")
    async with driven_chat(app, hand("doer"), "They did it.") as talk:
        talk.screen.typed("have it done")
        await talk.screen.choice()
        (leave,) = talk.screen.of(PermissionBlock)
        assert (leave.tool, leave.preview) == ("agent ▸ shell", "touch made")
        (worker,) = talk.screen.live.tasks.values()
        assert (worker.name, worker.title) == ("doer", "Do it all")
        await talk.screen.until(lambda: worker.doing == "waiting for your approval")
        talk.screen.answer(0)
        await talk.screen.until(lambda: "They did it." in talk.screen.words())
        (card,) = talk.screen.of(AgentsCard)
        (end,) = card.agents
        assert (end.name, end.title, end.calls, end.text) == ("doer", "Do it all", 1, "It is done.")
        assert end.cost_usd
        assert talk.screen.live.tasks == {}
    assert (Path(app.project_path) / "made").exists()


@pytest.mark.process
async def test_agents_are_listed_and_one_in_the_background_is_stopped(app: App) -> None:
    define(app, "waiter", [call("shell", command="sleep 60")], "Waited.")
    async with driven_chat(
        app, hand("waiter", background=True), "It waits.", "x", flags=("--yolo",)
    ) as talk:
        await talk.say("have it wait")
        await talk.screen.until(
            lambda: any(
                worker.doing == "running sleep 60" and worker.background
                for worker in talk.screen.live.tasks.values()
            )
        )
        talk.screen.typed("/agents")
        await talk.screen.until(lambda: len(talk.screen.of(TableBlock)) == 2)
        kinds, at_work = talk.screen.of(TableBlock)
        assert [row[0] for row in kinds.rows] == ["general", "waiter"]
        assert at_work.rows[0][:2] == ("waiter", "Do it all")
        assert "in the background" in at_work.rows[0][2]
        talk.screen.typed("/tasks")
        await talk.screen.pick("waiter: Do it all")
        await talk.screen.pick("Stop it")
        await talk.screen.noted("stopped: waiter")
        await talk.screen.noted("⤷ waiter: Do it all · the turn was stopped")
        await talk.screen.until(lambda: not talk.screen.live.tasks)
        talk.screen.typed("/tasks")
        await talk.screen.noted("no background tasks")


@pytest.mark.process
async def test_a_task_is_stopped_by_its_number_and_looked_at(app: App) -> None:
    define(app, "waiter", [call("shell", command="sleep 60")], "Waited.")
    async with driven_chat(
        app, hand("waiter", background=True), "It waits.", "x", flags=("--yolo",)
    ) as talk:
        await talk.say("have it wait")
        await talk.screen.until(lambda: talk.screen.live.tasks)
        talk.screen.typed("/tasks")
        await talk.screen.pick("waiter")
        await talk.screen.pick("Show its messages")
        await talk.screen.until(lambda: any("do it" in str(block) for block in talk.screen.blocks))
        talk.screen.typed("/tasks 7")
        await talk.screen.noted("'7' is not a running task")
        talk.screen.typed("/tasks 1")
        await talk.screen.noted("stopped: waiter")


async def test_an_agents_conversation_is_seen_from_the_tree(app: App) -> None:
    define(app, "doer", "I looked at everything.")
    async with driven_chat(app, hand("doer"), "They did it.") as talk:
        await talk.say("have it done")
        talk.screen.typed("/tree")
        question = await talk.screen.pick("⤷ doer: Do it all")
        assert [row.label for row in question.rows] == ["have it done", "⤷ doer: Do it all"]
        await talk.screen.noted("resumes it")
        assert AnswerBlock(text="I looked at everything.") in talk.screen.blocks


@pytest.mark.process
async def test_who_works_when_a_session_is_resumed_is_shown(app: App) -> None:
    define(app, "waiter", [call("shell", command="sleep 60")], "Waited.")
    async with driven_chat(
        app, hand("waiter", background=True), "It waits.", "x", flags=("--yolo",)
    ) as talk:
        await talk.say("have it wait")
        session = talk.chat.conversation.session
        assert session is not None
    async with driven_chat(app, "unused") as talk:
        talk.screen.typed(f"/resume {session.id}")
        await talk.screen.until(lambda: talk.screen.live.tasks)
        (worker,) = talk.screen.live.tasks.values()
        assert (worker.name, worker.title, worker.background) == ("waiter", "Do it all", True)
        await talk.screen.until(lambda: worker.doing == "running sleep 60")


@pytest.mark.process
async def test_a_command_in_the_background_is_shown_and_stopped(app: App) -> None:
    serve = [call("shell", command="echo up; exec sleep 60", background=True)]
    async with driven_chat(app, serve, "It is up.", "I see.") as talk:
        talk.screen.typed("serve")
        await talk.screen.choice()
        (leave,) = talk.screen.of(PermissionBlock)
        assert leave.reason == "It goes on in the background."
        talk.screen.answer(0)
        await talk.screen.until(lambda: talk.screen.words() == "It is up.")
        (worker,) = talk.screen.live.tasks.values()
        assert (worker.name, worker.title) == ("bg_1", "echo up; exec sleep 60")
        session = talk.chat.conversation.session
        assert session is not None
        talk.screen.typed("/tasks")
        question = await talk.screen.pick("bg_1: echo up; exec sleep 60")
        assert question.rows[0].details == ("command, running",)
        await talk.screen.pick("Stop it")
        await talk.screen.noted("stopped: bg_1")
        await talk.screen.noted("The background command bg_1 (echo up; exec sleep 60) is over")
        await talk.screen.until(lambda: not talk.screen.live.tasks)
        [work] = await session.background_commands()
        assert work.status == "exited"
        talk.screen.typed("/tasks bg_1")
        await talk.screen.noted("no background tasks")
