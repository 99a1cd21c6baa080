"""What the page draws while it works: no more than has changed."""

from __future__ import annotations

from typing import Final

import anyio
import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browser, browsing, link_of, new_window
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.script import CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE: Final = ROOT / "src" / "weft" / "web" / "page"
ARCS: Final = """() => [...document.querySelectorAll('.m-running')].map(each => {
    const [turning] = each.getAnimations();
    return [turning.startTime, getComputedStyle(each).animationTimingFunction];
})"""


async def test_an_answer_that_is_finished_keeps_its_elements(plain_world: World) -> None:
    """A long one took 52 ms of a frame to be made a second time, and lost what was selected."""
    gate, next_gate = anyio.Event(), anyio.Event()
    read = CallTool(name="read", args={"path": "a.py"})
    answer = (Think(text="Hm."), SayText(text="One.\n\n- two\n"), Stall(gate="on"), read)
    more = (SayText(text="Three."), Stall(gate="more"), SayText(text=" Four."))
    model = ScriptedModel([answer, more], gates={"on": gate, "more": next_gate})
    plain_world.write("a.py", "x = 1\n")
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        await view.open((await served.good("POST", "/sessions", {"title": "T"}))["id"])
        await view.say("Go.")
        item = await view.page.locator(".streaming li").element_handle()
        gate.set()
        await expect(view.page.locator(".streaming")).to_have_text("Three.")
        last = await view.page.locator(".streaming p").element_handle()
        assert item is not None
        assert last is not None
        assert await item.evaluate("each => each.isConnected && !each.closest('.streaming')")
        next_gate.set()
        await expect(view.page.locator(".streaming")).to_have_count(0)
        await expect(view.page.locator(".turn .prose").last).to_have_text("Three. Four.")
        # What has scrolled out stays out: laid out all at once it took 30 ms of a frame.
        shown = "each => getComputedStyle(each.closest('.part')).contentVisibility"
        assert await last.evaluate(shown) == "auto"
        assert await last.evaluate("each => each.isConnected")
        assert await view.page.locator(".turn .weft .thought").count() == 1
        assert await view.page.locator(".turn .said").count() == 2
        assert view.errors == []


async def test_arcs_turn_in_steps_and_all_in_the_same_frames(plain_world: World) -> None:
    """Each smooth one had the window drawn sixty times a second, for as long as a turn ran."""
    gate = anyio.Event()
    model = ScriptedModel([(SayText(text="One "), Stall(gate="on"))], gates={"on": gate})
    async with (
        serving(plain_world, model, page=PAGE) as served,
        browser() as program,
    ):
        view = await new_window(program, lambda: link_of(served))
        await view.page.emulate_media(reduced_motion="no-preference")
        made = await served.good("POST", "/sessions", {"title": "T"})
        await view.open(made["id"])
        await view.say("Go.")
        await expect(view.page.locator(".m-running")).not_to_have_count(0)
        await expect(view.page.locator(".streaming")).to_have_text("One")
        arcs = await view.page.evaluate(ARCS)
        gate.set()
        assert len(arcs) >= 2
        assert {each[0] for each in arcs} == {0}
        assert {each[1] for each in arcs} == {"steps(12)"}
