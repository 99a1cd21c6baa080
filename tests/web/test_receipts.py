"""Receipts on the page: what an answer claims stands below it with what is on record."""

from __future__ import annotations

import stat

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_claim_is_shown_with_its_run_and_out_of_date_after_an_edit(
    plain_world: World,
) -> None:
    plain_world.write("pytest", "#!/bin/sh\necho 3 passed\n")
    (plain_world.project / "pytest").chmod(stat.S_IRWXU)
    run = CallTool(name="shell", args={"command": "./pytest"})
    model = ScriptedModel([run, "Fixed. All 3 tests pass, and the build succeeds."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        started = {"title": "T", "permission_mode": "bypass"}
        session = str((await served.good("POST", "/sessions", started))["id"])
        await served.good("POST", f"/sessions/{session}/message", {"content": "Fix it."})
        await view.open(session)
        lines = view.page.get_by_role("list", name="What is on record").get_by_role("listitem")
        await expect(lines).to_have_count(2)
        await expect(lines.first).to_contain_text("Shown")
        await expect(lines.first).to_contain_text("`./pytest` ended with 0")
        await expect(lines.last).to_contain_text("Not shown")
        await expect(lines.last).to_contain_text("no known build command was run")
        plain_world.write("a.py", "changed by hand\n")
        await view.page.reload()
        await expect(lines.first).to_contain_text("Out of date")
        assert view.errors == []
