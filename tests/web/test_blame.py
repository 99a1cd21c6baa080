"""Blame in the page's file view: what wrote a line, why, and the files as they were then."""

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


async def test_a_line_of_a_file_leads_to_its_turn_and_the_files_of_then(plain_world: World) -> None:
    plan = [write("a.txt", "one\ntwo\n"), write("later.txt", "x\n")]
    plain_world.write("mine.txt", "mine\n")
    async with (
        serving(plain_world, turns(*plan), page=PAGE) as served,
        browsing(served) as view,
    ):
        started = {"title": "T", "permission_mode": "bypass"}
        session = str((await served.good("POST", "/sessions", started))["id"])
        for said in ("write two lines", "another file"):
            await served.good("POST", f"/sessions/{session}/message", {"content": said})
        await view.open(session, "files?path=a.txt&line=2")
        page = view.page
        blame = page.get_by_role("region", name="Blame of line 2")
        await expect(blame).to_contain_text("turn 1: `write a.txt` wrote it", timeout=30_000)
        await expect(blame).to_contain_text("asked for with “write two lines”")
        await expect(blame).to_contain_text("none was run after it")
        await blame.get_by_role("button", name="Files as they were").click()
        names = blame.get_by_label("File as it was").locator("option")
        await expect(names).to_have_text(["a.txt", "mine.txt"])
        await expect(blame.get_by_label("a.txt as it was")).to_have_text("one\ntwo")
        await blame.get_by_role("button", name="Go to the turn").click()
        await expect(page.get_by_role("complementary", name="Turn 1")).to_be_visible()
        await view.open(session, "files?path=mine.txt&line=1")
        blame = page.get_by_role("region", name="Blame of line 1")
        await expect(blame).to_contain_text("no session has ever changed this file")
        # A project without a repository is not listed: what was changed stands there.
        assert [each for each in view.errors if "status of 400" not in each] == []
