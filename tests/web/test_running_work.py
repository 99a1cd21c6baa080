"""What runs, on the page: a turn that ends after its step, and commands beside the turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import expect

from tests.support.page_browser import browsing
from tests.support.role_models import RoleAnswers, role_model
from tests.support.served_world import serving
from tests.support.source_code import ROOT
from tests.support.world import World
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_turn_ends_after_its_step_and_can_go_on(plain_world: World) -> None:
    gate = anyio.Event()
    write = CallTool(name="write", args={"path": "a.txt", "content": "a"})
    model = ScriptedModel(
        [(SayText(text="I write it."), Stall(gate="on"), write), "Done."], gates={"on": gate}
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        start: dict[str, Any] = {"title": "Steps", "auto_approve": True}
        session = (await served.good("POST", "/sessions", start))["id"]
        await view.open(session)
        await view.say("Write it.")
        await view.page.get_by_role("button", name="When to end").click()
        await view.page.get_by_text("Stop after this step").click()
        await expect(view.page.locator(".ends")).to_have_text("after step")
        gate.set()
        await expect(view.page.locator(".line-end, .notice").last).to_contain_text(
            "stopped after a step"
        )
        assert plain_world.read("a.txt") == "a"
        assert model.request_count == 1
        assert view.errors == []


async def test_a_plan_ends_after_the_step_that_runs(plain_world: World) -> None:
    steps = [
        {"action": "create", "file": f"{n}.txt", "description": f"make file {n}", "details": "It."}
        for n in (1, 2)
    ]
    plan = CallTool(name="submit", args={"summary": "Two files.", "steps": steps})
    strong = role_model({"both": [plan]}, "script")
    made: RoleAnswers = {
        f"make file {n}": [
            (CallTool(name="write", args={"path": f"{n}.txt", "content": "x"}), Stall()),
            "Made.",
        ]
        for n in (1, 2)
    }
    fast = role_model(made, "fast")
    config = {"model.editor": "scripted:fast"}
    async with (
        serving(plain_world, strong, fast, page=PAGE, config=config) as served,
        browsing(served) as view,
    ):
        start: dict[str, Any] = {"title": "Plan", "auto_approve": True}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("PUT", f"/sessions/{session}/mode", {"mode": "architect"})
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "make both"})
        await fast.gate().reached.wait()
        await view.open(session, "plan")
        await view.page.get_by_role("button", name="Stop after step 1").click()
        await expect(view.page.get_by_role("button", name="Stops after step 1")).to_be_visible()
        fast.gate().opened.set()
        await expect(view.page.get_by_text("1 of 2 done")).to_be_visible()
        await expect(view.page.get_by_role("button", name="after step")).to_have_count(0)
        assert plain_world.read("1.txt") == "x"
        assert not (Path(plain_world.project) / "2.txt").exists()
        assert view.errors == []


async def test_a_background_command_prints_on_the_page_and_is_stopped_there(
    plain_world: World,
) -> None:
    serve = "echo up; read line < go; echo got $line; exec sleep 1000"
    call = CallTool(name="shell", args={"command": serve, "background": True})
    model = ScriptedModel([call, "It runs.", "It has ended."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        await anyio.run_process(["mkfifo", str(Path(plain_world.project) / "go")])
        start: dict[str, Any] = {"title": "Serve", "auto_approve": True}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Serve it."})
        await view.open(session)
        await view.page.get_by_role("tab", name="Todos").click()
        work = view.page.locator(".beside-work")
        await expect(work).to_contain_text("up")
        await work.get_by_role("button", name="Output of").click()
        output = work.locator(".beside-output")
        await expect(output).to_have_text("up\n")
        # What it prints while it is looked at comes by itself.
        async with await anyio.open_file(Path(plain_world.project) / "go", "w") as pipe:
            await pipe.write("<b>one</b>\n")
        await expect(output).to_have_text("up\ngot <b>one</b>\n")
        await view.page.reload()
        await view.page.get_by_role("tab", name="Todos").click()
        await work.get_by_role("button", name="Output of").click()
        await expect(output).to_have_text("up\ngot <b>one</b>\n")
        await work.get_by_role("button", name="End").click()
        await expect(work).to_contain_text("exited")
        await expect(work.get_by_role("button", name="End")).to_have_count(0)
        assert view.errors == []
