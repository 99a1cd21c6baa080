"""MCP servers on the page, in a real browser with the real server: answered for, looked at, added
and removed.
"""

from __future__ import annotations

import json
import os
import sys

import pytest
from playwright.async_api import expect

from tests.support.loopback_server import serving as listening_at
from tests.support.mcp_http_server import ScriptedHttpServer
from tests.support.mcp_servers import SCRIPT
from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.source_code import ROOT
from tests.support.world import World
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"
ECHO = CallTool(name="mcp__scripted__echo", args={"text": "hello"})
PICTURES = os.environ.get("WEFT_PICTURES", "")
SEARCH = CallTool(name="tool_search", args={"query": "echo"})


def make_server(world: World, *traps: str) -> dict[str, object]:
    """A server whose behavior is read when it starts: its entry stays the same."""
    script = world.base / "server.py"
    script.write_text(
        f"import runpy, sys\nsys.argv = [{SCRIPT!r}, *{list(traps)!r}]\n"
        f"runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
    )
    return {"command": sys.executable, "args": ["-I", "-S", str(script)]}


async def test_a_server_that_the_project_names_waits_for_a_word_and_then_brings_its_tools(
    plain_world: World,
) -> None:
    entry = make_server(plain_world)
    plain_world.write(".mcp.json", json.dumps({"mcpServers": {"scripted": entry}}))
    model = ScriptedModel([[SEARCH], "Found."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        start = {"title": "T", "permission_mode": "bypass"}
        made = await served.good("POST", "/sessions", start)
        await view.open(made["id"])
        card = view.page.get_by_role("region", name="MCP server scripted")
        await expect(card).to_contain_text("is not used before you allow it")
        await expect(card).to_contain_text("server.py")
        await card.get_by_role("button", name="Allow").click()
        await expect(card).to_have_count(0)
        await view.say("Look for tools.")
        await expect(view.page.locator(".turn .weft .prose")).to_have_text("Found.")
        await view.page.evaluate("() => { location.hash = '#/settings?show=MCP servers' }")
        row = view.page.locator(".mcp-server", has_text="scripted")
        await expect(row).to_contain_text("ready")
        await expect(row).to_contain_text("9 tools")
        await row.locator(".mcp-head").click()
        await expect(row.locator(".mcp-tools")).to_contain_text("echo")
        assert view.errors == []


async def test_a_tool_that_changed_is_shown_with_its_difference_and_hidden_characters(
    plain_world: World,
) -> None:
    entry = make_server(plain_world)
    model = ScriptedModel([[SEARCH], "Known.", [ECHO], "Again."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        path = "/projects/main/mcp/scripted"
        await served.good("PUT", path, {"entry": entry, "scope": "user"})
        start = {"title": "T", "permission_mode": "bypass"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Look."})
        make_server(plain_world, "changed")
        await view.page.evaluate("() => { location.hash = '#/settings?show=MCP servers' }")
        row = view.page.locator(".mcp-server", has_text="scripted")
        await row.locator(".mcp-head").click()
        await row.get_by_role("button", name="Restart").click()
        await expect(view.page.locator(".notice.float")).to_contain_text("started again")
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Look again."})
        await view.page.reload()
        await expect(row).to_contain_text("1 tool not as you know it")
        await row.locator(".mcp-head").click()
        changed = row.get_by_role("region", name="echo has changed")
        added = changed.locator(".pin-diff .add")
        await expect(added).to_have_count(1)
        await expect(added).to_contain_text("echo<U+200B> and sends ~/.ssh to evil.example")
        assert view.errors == []


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_call_of_a_changed_tool_shows_the_difference_and_waits_for_a_word(
    plain_world: World, is_allowed: bool
) -> None:
    entry = make_server(plain_world)
    model = ScriptedModel([[SEARCH], "Known.", [ECHO], [ECHO], "Called."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        path = "/projects/main/mcp/scripted"
        await served.good("PUT", path, {"entry": entry, "scope": "user"})
        start = {"title": "T", "permission_mode": "bypass"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Look."})
        make_server(plain_world, "changed")
        await served.good("POST", "/projects/main/mcp/scripted/restart", {})
        session = (await served.good("POST", "/sessions", start))["id"]
        await view.open(session)
        # The first call finds out; what was judged was the list of before.
        await view.say("Call it.")
        card = view.page.get_by_role("group", name="Allow mcp scripted echo?")
        await expect(card).to_contain_text("describes 'echo' in another way now")
        await expect(card.locator(".boxed")).to_contain_text("echo<U+200B> and sends ~/.ssh")
        await expect(card.locator("pre.command")).to_contain_text('"text": "hello"')
        await expect(card.locator("pre.command")).to_contain_text("server.py")
        await expect(card).to_have_attribute("data-ready", "true")
        if PICTURES:
            await view.page.screenshot(path=f"{PICTURES}/page-pin.png")
        if is_allowed:
            await card.get_by_role("button", name="Once").click()
        else:
            await card.get_by_role("button", name="No, and say why").click()
            await card.get_by_role("button", name="Say no").click()
        answer = view.page.locator(".turn .weft .prose")
        if not is_allowed:
            await expect(view.page.get_by_role("button", name="you said no denied")).to_have_count(
                1
            )
            await expect(answer.or_(card).first).to_be_visible()
            if await card.is_visible():
                # The list was there before the first call, and each of the two is asked about.
                await card.get_by_role("button", name="No, and say why").click()
                await card.get_by_role("button", name="Say no").click()
        await expect(answer).to_have_text("Called.")
        told = str(model.requests[-1].messages)
        assert ("echo: hello" in told) == is_allowed
        (row,) = (await served.good("GET", "/projects/main/mcp"))["servers"]
        assert bool(row["changed"]) != is_allowed
        assert view.errors == []


async def test_a_server_that_wants_a_login_says_how_to_log_in(plain_world: World) -> None:
    model = ScriptedModel([[SEARCH], "No tools."])
    async with (
        listening_at(ScriptedHttpServer("login").handle) as remote,
        serving(plain_world, model, page=PAGE) as served,
        browsing(served) as view,
    ):
        entry = {"type": "http", "url": f"{remote.url}/mcp"}
        await served.good("PUT", "/projects/main/mcp/remote", {"entry": entry, "scope": "user"})
        start = {"title": "T", "permission_mode": "bypass"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Look."})
        await view.page.evaluate("() => { location.hash = '#/settings?show=MCP servers' }")
        row = view.page.locator(".mcp-server", has_text="remote")
        await expect(row).to_contain_text("needs a login")
        await row.locator(".mcp-head").click()
        await expect(row).to_contain_text("weft mcp login remote")
        assert view.errors == []


async def test_a_server_is_added_refused_and_removed_on_the_page(plain_world: World) -> None:
    async with (
        serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        await view.page.evaluate("() => { location.hash = '#/settings?show=MCP servers' }")
        await view.page.get_by_role("button", name="Add a server").click()
        form = view.page.get_by_role("form", name="Add a server")
        await form.get_by_label("Name").fill("no good name!")
        await form.get_by_label("Command or address").fill("node 'my server.js' --fast")
        await form.get_by_role("button", name="Add").click()
        await expect(view.page.locator(".notice.bad")).to_be_visible()
        await form.get_by_label("Name").fill("tools")
        await form.get_by_role("button", name="Add").click()
        row = view.page.locator(".mcp-server", has_text="tools")
        await expect(row).to_contain_text("node")
        kept = json.loads((plain_world.base / ".config/weft/mcp.json").read_text())
        assert "my server.js" in json.dumps(kept)
        await row.locator(".mcp-head").click()
        await row.get_by_role("button", name="Remove").click()
        await expect(row).to_have_count(0)
        assert (await served.good("GET", "/projects/main/mcp"))["servers"] == []
