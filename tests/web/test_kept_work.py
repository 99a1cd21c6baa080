"""Work that waits to be kept, on the page: candidates, and isolated agents that conflict."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.support.fan_stage import (
    CONFIG,
    RIGHT,
    VERIFY,
    candidate_model,
    make_stage,
    shell_call,
)
from tests.support.page_browser import browsing
from tests.support.role_models import AnswerSteps, agent_call, first_prompt
from tests.support.served_world import serving
from tests.support.source_code import ROOT
from tests.support.world import World
from weft.providers.base import ModelRequest
from weft.providers.script import ScriptedAnswer, as_answer
from weft.providers.scripted import ScriptedModel, assistant_turns

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"
ALONE = "---\ndescription: alone\nisolation: worktree\n---\nWork alone."


def player() -> ScriptedModel:
    """A session that hires an isolated agent, and the agent."""

    def choose(request: ModelRequest) -> ScriptedAnswer:
        is_agent = "do the work" in first_prompt(request)
        work: list[AnswerSteps] = [
            shell_call('echo "the agent\'s" > README.md; echo n > new.txt'),
            "Worked.",
        ]
        ask: list[AnswerSteps] = [agent_call("do the work", agent="alone"), "It has worked."]
        return as_answer((work if is_agent else ask)[assistant_turns(request)])

    return ScriptedModel([], choose=choose)


@pytest.mark.parametrize("how", ["mine", "markers"])
async def test_what_an_isolated_agent_changed_is_kept_and_conflicts_are_resolved(
    shared_world: World, how: str
) -> None:
    shared_world.write(".weft/agents/alone.md", ALONE)
    make_stage(shared_world)
    async with serving(shared_world, player(), page=PAGE, config=dict(CONFIG)) as served:
        await served.app.trust()
        start = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Have it done."})
        shared_world.write("README.md", "yours\n")
        async with browsing(served) as view:
            await view.open(session)
            await view.page.get_by_role("button", name="Look at what it changed").click()
            panel = view.page.get_by_role("complementary", name="Keep preview")
            await expect(panel).to_contain_text("One file conflicts")
            line = panel.locator(".rewind-item", has_text="README.md")
            await expect(line).to_contain_text("stays yours")
            if how == "markers":
                await panel.get_by_role("button", name="Put both, marked").click()
                await expect(line).to_contain_text("conflict markers")
            await panel.get_by_role("button", name="Keep it").click()
            await expect(view.page.locator(".notice.float")).to_contain_text("Kept.")
            assert view.errors == []
        assert shared_world.read("new.txt") == "n\n"
        text = shared_world.read("README.md")
        assert "yours\n" in text
        assert ("<<<<<<<" in text) == ("the agent's" in text) == (how == "markers")


async def test_candidates_are_ranked_and_one_is_kept(shared_world: World) -> None:
    make_stage(shared_world)
    right = candidate_model("right", shell_call(f"printf '{RIGHT}' > src/add.py"), "Fixed.")
    wrong = candidate_model("wrong", "I changed nothing.")
    own = ScriptedModel(["Yes."])
    async with serving(shared_world, own, right, wrong, page=PAGE, config=dict(CONFIG)) as served:
        start = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", start))["id"]
        models = ["scripted:right", "scripted:wrong"]
        body = {"prompt": "Make add() add.", "n": 2, "models": models, "verify": VERIFY}
        await served.good("POST", f"/sessions/{session}/fan", body)
        async with browsing(served) as view:
            await view.open(session, "fan")
            first = view.page.locator(".fan-main tbody tr", has_text="right")
            await expect(first).to_contain_text("1 of 1")
            await expect(first.get_by_role("img", name="ranked first")).to_be_visible()
            panel = view.page.get_by_role("complementary", name="Keep preview")
            await expect(panel).to_contain_text("No conflicts")
            base = view.page.locator(".fan-main tr.base")
            await expect(base).to_contain_text("base, untouched")
            await expect(base).to_contain_text("fails before, so a pass says something")
            card = view.page.get_by_role("region", name="Candidate 1")
            await expect(card.locator(".diff")).to_contain_text("return a + b")
            await expect(card.locator(".candidate-log")).to_contain_text("1 of 1 run passed")
            await view.page.get_by_role("button", name="Diff 1 to 2").click()
            await expect(view.page.locator(".fan-main tr.del td.text")).to_contain_text(
                "return a + b"
            )
            await panel.get_by_role("button", name="Keep", exact=False).first.click()
            await expect(view.page.locator(".notice.float")).to_contain_text("Kept.")
            assert view.errors == []
        assert shared_world.read("src/add.py") == RIGHT
