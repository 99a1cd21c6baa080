"""What was sent, on the page: part by part in the tree's panel, and a message that is taken out."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_request_is_shown_and_a_message_is_taken_out_and_put_back(
    plain_world: World,
) -> None:
    model = ScriptedModel(["First answer.", "Second answer."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = str((await served.good("POST", "/sessions", {"title": "T"}))["id"])
        for words in ("One", "Two"):
            await served.good("POST", f"/sessions/{session}/message", {"content": words})
        await view.open(session, "tree")
        panel = view.page.get_by_role("complementary", name="Turn 2")
        await panel.get_by_role("button", name="What was sent").click()
        sent = panel.get_by_role("region", name="What was sent")
        await expect(sent.get_by_role("row", name="system prompt")).to_be_visible()
        await expect(sent).to_contain_text("the words that were sent")
        await sent.get_by_role("button", name="What changed").click()
        await expect(sent.locator("pre")).to_contain_text("First answer")
        await sent.get_by_role("button", name="Take out: Two").click()
        await expect(sent.get_by_role("button", name="Put back: Two")).to_be_visible()
        await view.open(session)
        await expect(view.page.locator(".you.excluded")).to_have_count(1)
        assert view.errors == []
