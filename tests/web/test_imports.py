"""What another agent has is shown on the page, taken over by a click, and opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.foreign_sessions import FILES, put_in_home
from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_session_of_another_agent_is_shown_then_taken_over(plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    put_in_home(FILES / "pi-0.73.1.jsonl", home, str(plain_world.project))
    async with (
        serving(plain_world, ScriptedModel(["Hello."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        started = (await served.good("POST", "/sessions", {}))["id"]
        await view.open(started)
        await view.page.evaluate("location.hash = '#/sessions'")
        await view.page.get_by_role("button", name="Import…").click()
        await view.page.get_by_role("button", name="pi", exact=True).click()
        panel = view.page.get_by_role("region", name="Import")
        await expect(panel).to_contain_text("4 messages, 1 branch · to take over")
        await panel.get_by_role("button", name="Take over what is new").click()
        await expect(panel).to_contain_text("4 messages, 1 branch · taken over")
        await panel.get_by_role("button", name="Open", exact=True).click()
        await expect(view.page.locator("body")).to_contain_text("Both were read.")
