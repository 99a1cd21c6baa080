"""Permission rules on the page, in a real browser with the real server: listed, added, tried,
explained and removed.
"""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.support.page_browser import PageView, browsing
from tests.support.served_world import serving
from tests.support.source_code import ROOT
from tests.support.world import World
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"
MAKE = CallTool(name="shell", args={"command": "make lint"})


async def _shown(view: PageView) -> Page:
    await view.page.evaluate("() => { location.hash = '#/settings?show=Permissions' }")
    await view.page.get_by_role("form", name="Add a rule").wait_for()
    return view.page


async def test_a_rule_is_added_tried_heeded_and_taken_out_again(plain_world: World) -> None:
    async with serving(plain_world, page=PAGE) as served, browsing(served) as view:
        page = await _shown(view)
        await expect(page.get_by_text("No rules yet")).to_be_visible()
        form = page.get_by_role("form", name="Add a rule")
        await form.get_by_role("button", name="Deny").click()
        await form.get_by_label("Rule", exact=True).fill("shell(git push *)")
        await form.get_by_role("button", name="Add").click()
        row = page.locator(".rules > .rule-table tr", has_text="shell(git push *)")
        await expect(row).to_contain_text("denied")
        [main] = [each["id"] for each in await served.good("GET", "/projects")]
        kept = await served.good("GET", f"/projects/{main}/permissions")
        assert [(each["verdict"], each["rule"]) for each in kept["rules"]] == [
            ("deny", "shell(git push *)")
        ]
        asked = page.get_by_role("form", name="Explain a command")
        await asked.get_by_label("Command").fill("ls; git push origin x")
        await asked.get_by_label("Command").press("Enter")
        told = page.get_by_role("status", name="Decision")
        await expect(told).to_contain_text("denied")
        await expect(told.locator("tbody tr")).to_have_count(2)
        await expect(told.locator("tbody tr").last).to_contain_text("shell(git push *)")
        await row.get_by_role("button", name="Remove").click()
        await expect(row).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(row).to_contain_text("denied")
        assert view.errors == []


async def test_a_rule_is_tried_on_past_calls_and_a_bad_one_says_why_below_its_field(
    plain_world: World,
) -> None:
    model = ScriptedModel([[MAKE], "Linted."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        made = await served.good("POST", "/sessions", {"title": "T", "permission_mode": "bypass"})
        await served.good("POST", f"/sessions/{made['id']}/message", {"content": "Lint."})
        page = await _shown(view)
        form = page.get_by_role("form", name="Add a rule")
        await form.get_by_label("Rule", exact=True).fill("shell(make *)")
        await form.get_by_role("button", name="Try on past sessions").click()
        tried = page.get_by_role("status", name="On past sessions")
        await expect(tried).to_contain_text("1 call of 1 session: it covers 1")
        await expect(tried).to_contain_text("make lint")
        await form.get_by_label("Rule", exact=True).fill("shell(a | b *)")
        await form.get_by_role("button", name="Add").click()
        await expect(form.get_by_role("alert")).not_to_be_empty()
        await expect(page.get_by_text("No rules yet")).to_be_visible()
