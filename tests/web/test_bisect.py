"""Bisect on the page: its verdicts beside the turns, and the way to before the break."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.rewind_project import turns, write
from tests.support.served_world import serving
from tests.support.world import World

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_break_is_found_in_the_tree_and_its_turn_looked_at(plain_world: World) -> None:
    plan = [write(f"f{number}.txt", "fine\n") for number in range(1, 6)]
    plan[3] = write("f4.txt", "broken\n")
    async with (
        serving(plain_world, turns(*plan), page=PAGE, config={"sandbox.mode": "auto"}) as served,
        browsing(served) as view,
    ):
        started = {"title": "T", "permission_mode": "bypass"}
        session = str((await served.good("POST", "/sessions", started))["id"])
        for number in range(1, 6):
            said = {"content": f"turn {number}"}
            await served.good("POST", f"/sessions/{session}/message", said)
        await view.open(session, "tree")
        page = view.page
        await page.get_by_role("button", name="Bisect…").click()
        await page.get_by_label("Check", exact=True).fill(
            "! cat *.txt 2>/dev/null | grep -q broken"
        )
        await page.get_by_label("Check", exact=True).press("Enter")
        found = page.get_by_text("turn 4 broke it: `write f4.txt:1`; it passes up to turn 3")
        await expect(found).to_be_visible(timeout=30_000)
        rows = page.get_by_role("tree", name="Turns, newest first").get_by_role("treeitem")
        await expect(rows.filter(has_text="turn 4")).to_contain_text("fails")
        await expect(rows.filter(has_text="turn 3")).to_contain_text("passes")
        await page.get_by_role("button", name="Look at the turn before").click()
        await expect(page.get_by_role("complementary", name="Turn 3")).to_contain_text("Rewind to")
        assert view.errors == []
