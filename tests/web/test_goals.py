"""A goal on the page: one row above the composer, with what is done about it."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_goal_is_shown_edited_paused_and_cleared(plain_world: World) -> None:
    model = ScriptedModel([(Stall(gate="works"), SayText(text="Half of it."))])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        started = {"title": "T", "permission_mode": "accept_edits"}
        session = str((await served.good("POST", "/sessions", started))["id"])
        goal = {"text": "make it pass", "check": "test -f done.txt", "outside_sandbox": True}
        await served.good("PUT", f"/sessions/{session}/goal", goal)
        await view.open(session)
        row = view.page.get_by_role("region", name="Goal")
        await expect(row).to_contain_text("make it pass")
        await expect(row).to_contain_text("round 1 of 25")
        await row.get_by_role("button", name="Edit the goal").click()
        await row.get_by_role("textbox", name="What is to be reached").fill("make all pass")
        await row.get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("make all pass")
        await row.get_by_role("button", name="Pause").click()
        await expect(row).to_contain_text("Paused")
        await expect(row).to_contain_text("you paused it")
        await row.get_by_role("button", name="Clear the goal").click()
        await expect(row).to_have_count(0)
        model.gate("works").opened.set()
        assert view.errors == []


async def test_a_limit_that_is_written_behind_a_goal_is_its_limit(plain_world: World) -> None:
    model = ScriptedModel([(Stall(gate="works"), SayText(text="Half of it."))])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = str((await served.good("POST", "/sessions", {"title": "T"}))["id"])
        await view.open(session)
        await view.say("/goal make it pass --max-rounds many --check 'test -f done.txt'")
        await expect(view.page.get_by_text("--max-rounds takes a number")).to_be_visible()
        limits = "--max-budget-usd 5 --max-rounds 3"
        await view.say(f"/goal make it pass {limits} --check 'test -f x' --outside-sandbox")
        row = view.page.get_by_role("region", name="Goal")
        await expect(row).to_contain_text("round 1 of 3")
        found = await served.good("GET", f"/sessions/{session}/goal")
        assert found["text"] == "make it pass"
        assert (found["check"], found["max_budget_usd"]) == ("test -f x", 5)
        await view.say("/goal edit make all pass --max-rounds 4")
        await expect(row).to_contain_text("make all pass")
        await expect(row).to_contain_text("round 1 of 4")
        model.gate("works").opened.set()
        assert view.errors == []
