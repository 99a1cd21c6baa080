"""The page's screen of files, where answers come in another order than they were asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from playwright.async_api import Route, expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


def lists(paths: list[str]) -> Callable[[Route], Awaitable[None]]:
    """Answers a question for the files of a project, which needs an index."""

    async def answer(route: Route) -> None:
        await route.fulfill(json=paths)

    return answer


async def test_a_file_that_comes_late_is_not_shown_as_another(plain_world: World) -> None:
    (plain_world.project / "one.txt").write_text("the first\n")
    (plain_world.project / "two.txt").write_text("the second\n")
    late, told = anyio.Event(), anyio.Event()

    async def held(route: Route) -> None:
        await late.wait()
        await route.continue_()
        told.set()

    model = ScriptedModel([])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = str((await served.good("POST", "/sessions", {"title": "T"}))["id"])
        await view.page.route("**/projects/*/files", lists(["one.txt", "two.txt"]))
        await view.page.route("**/file?path=one.txt", held)
        await view.open(session, "files")
        await view.page.get_by_role("treeitem", name="one.txt").click()
        await view.page.get_by_role("treeitem", name="two.txt").click()
        shown = view.page.locator(".changes-main")
        await expect(shown).to_contain_text("the second")
        async with view.page.expect_response("**/file?path=one.txt"):
            late.set()
        # What it brought has been taken in when the next thing asked for is shown.
        await shown.locator(".line-number").first.click()
        await expect(shown).to_contain_text("Why line 1?")
        await expect(shown).to_contain_text("the second")
        assert told.is_set()
        assert view.errors == []
