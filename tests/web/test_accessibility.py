"""The page for everyone: no violation that axe finds, on any screen, light, dark and on a phone."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from scripts.build_page import ROOT

from tests.support.page_browser import PageView, browsing
from tests.support.page_stage import PageStage, PastClock, stage_model
from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = ("chat", "tree", "changes", "files", "plan", "decisions", "loom", "fan")
MARKDOWN = """# A head

Words with `code`, a [link](https://example.org) and:

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```python
x = 1
```
"""


async def violations(view: PageView) -> list[str]:
    found: Any = await view.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{view.page.url.rpartition('/')[2]}: {each['id']}: {node['html'][:160]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


async def with_data(view: PageView, served: ServedWorld, made: dict[str, Any]) -> list[str]:
    """What is found on screens that show something only when there is something to show."""
    stage = PageStage(served, PastClock(0))
    await stage.decisions(made["project"])
    loom = await stage.loom()
    await stage.mcp_servers("main")
    rule = {"verdict": "deny", "rule": "shell(rm *)"}
    await served.good("POST", "/projects/main/permissions", rule)
    page, at = view.page, f"#/s/{made['id']}"
    found: list[str] = []
    for address, ready in (
        (f"{at}/decisions", ".box, .decisions tr"),
        (f"{at}/loom?loom={loom}", ".loom-read"),
        (f"{at}/chat", ".mcp-asked"),
        ("#/settings?show=Costs", ".cost-screen"),
        ("#/settings?show=MCP servers", ".mcp-server"),
        ("#/settings?show=Permissions", ".rules > .rule-table"),
    ):
        await page.evaluate("hash => { location.hash = hash }", address)
        await page.locator(ready).first.wait_for()
        found += await violations(view)
    await page.get_by_label("Command", exact=True).fill("ls; rm x")
    await page.get_by_label("Command", exact=True).press("Enter")
    await page.get_by_label("Rule", exact=True).fill("shell(make *)")
    await page.get_by_role("button", name="Try on past sessions").click()
    await page.locator(".explained").wait_for()
    await page.locator(".tried").wait_for()
    found += await violations(view)
    await page.evaluate("hash => { location.hash = hash }", f"{at}/decisions")
    await page.get_by_role("button", name="New…").click()
    found += await violations(view)
    await page.evaluate("hash => { location.hash = hash }", "#/settings?show=MCP servers")
    await page.locator(".mcp-head", has_text="packages").click()
    await page.locator(".mcp-body").wait_for()
    await page.get_by_role("button", name="Add a server").click()
    found += await violations(view)
    await page.evaluate("() => { location.hash = '#/start' }")
    await page.get_by_role("button", name="Add a key").click()
    await page.get_by_label("Key", exact=True).wait_for()
    found += await violations(view)
    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog", name="Find and do").wait_for()
    found += await violations(view)
    await page.keyboard.press("Escape")
    return found


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
async def test_axe_finds_nothing_on_any_screen(plain_world: World, look: str) -> None:
    write = CallTool(name="write", args={"path": "new.py", "content": "x = 1\n"})
    push = CallTool(name="shell", args={"command": "git push origin x"})
    model = ScriptedModel([MARKDOWN, write, "Written.", push])
    async with (
        serving(plain_world, model, page=PAGE) as served,
        browsing(served, phone=look == "phone", dark=look == "dark") as view,
    ):
        made = await served.good("POST", "/sessions", {"title": "T", "permission_mode": "default"})
        path = f"/sessions/{made['id']}"
        await served.good("POST", f"{path}/message", {"content": "Say it."})
        await view.open(made["id"])
        await served.good("POST", f"{path}/prompt", {"content": "Write it."})
        await view.page.locator(".request").wait_for()
        await view.page.evaluate(await anyio.Path(AXE).read_text(encoding="utf-8"))
        found = await violations(view)
        request = (await served.good("GET", path))["snapshot"]["requests"][0]["request_id"]
        await served.good("POST", f"{path}/requests/{request}", {"action": "allow_once"})
        await view.page.locator(".request").wait_for(state="detached")
        for screen in SCREENS:
            await view.open(made["id"], screen)
            await view.page.locator("main > :not(.loading, h2)").first.wait_for()
            found += await violations(view)
        await served.good("POST", f"{path}/abort", {})
        ends = [each["id"] for each in (await served.good("GET", f"{path}/messages"))["messages"]]
        compared = f"#/s/{made['id']}/compare?a={ends[-1]}&b={ends[1]}"
        for address in (compared, "#/sessions", "#/settings", "#/start"):
            await view.page.evaluate("hash => { location.hash = hash }", address)
            await view.page.locator("main > :not(.loading, h2)").first.wait_for()
            found += await violations(view)
        found += await with_data(view, served, made)
        # Another client drives: the page views.
        await served.good("POST", f"{path}/clients", {"role": "driver", "name": "chat"})
        await view.page.evaluate("hash => { location.hash = hash }", f"#/s/{made['id']}/chat")
        await view.page.locator(".composer-wrap.viewer").wait_for()
        found += await violations(view)
        assert found == [], "\n".join(found)
        wide = await view.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
async def test_axe_finds_nothing_on_a_plan_that_waits_and_is_edited(
    plain_world: World, look: str
) -> None:
    async with (
        serving(plain_world, stage_model(), page=PAGE) as served,
        browsing(served, phone=look == "phone", dark=look == "dark") as view,
    ):
        session = await PageStage(served, PastClock(0)).plan()
        await view.open(session, "plan")
        await view.page.get_by_role("button", name="Edit: File of step 1").click()
        await view.page.get_by_role("textbox", name="File of step 1").fill("src/other.py")
        await view.page.keyboard.press("Enter")
        await view.page.locator(".step", has_text="src/other.py").wait_for()
        await view.page.get_by_role("button", name="Edit: Check of step 2").click()
        await view.page.evaluate(await anyio.Path(AXE).read_text(encoding="utf-8"))
        assert await violations(view) == []
