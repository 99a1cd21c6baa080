"""Takes the pictures of the web page that the docs show, of sessions that scripted models play:

    python -m scripts.page_pictures                  # those in docs/images/page
    python -m scripts.page_pictures --all FOLDER     # every screen: light, dark and on a phone

The server, the sessions and the browser are real.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
from playwright.async_api import Browser, Page
from tests.support.free_port import free_port
from tests.support.page_browser import browser, link_of, new_window
from tests.support.page_stage import PageStage, PastClock, make_project, stage_model
from tests.support.served_world import ServedWorld
from tests.support.world import World

from scripts.build_page import ROOT
from weft.server import ServerAddress, WeftServer

PAGE: Final = ROOT / "src" / "weft" / "web" / "page"
DOCS: Final = ROOT / "docs" / "images" / "page"
MINUTES: Final = 90
IN_DOCS: Final = ("chat", "tree", "changes", "compare", "decisions", "mcp")


class Shots:
    """A window for each look, and where their pictures go."""

    def __init__(self, folder: Path, only: Sequence[str]) -> None:
        self.folder = folder
        self.only = only
        self.windows: dict[str, Page] = {}

    async def open(self, program: Browser, served: ServedWorld, looks: Sequence[str]) -> None:
        """Open the windows."""
        for look in looks:
            view = await new_window(
                program, lambda: link_of(served), phone=look == "phone", dark=look == "dark"
            )
            self.windows[look] = view.page

    async def take(self, name: str, address: str, *steps: Any, ready: str = "main > *") -> None:
        """A picture of an address in every window, after these steps in it."""
        for look, page in self.windows.items():
            if look == "light" and self.only and name not in self.only:
                continue
            await page.evaluate("hash => { location.hash = hash }", address)
            await page.locator(ready).first.wait_for()
            await page.wait_for_timeout(500)
            for step in steps:
                await step(page)
            await page.wait_for_timeout(250)
            kind = "" if look == "light" else f"-{look}"
            await page.screenshot(path=self.folder / f"{name}{kind}.png")


@asynccontextmanager
async def _served(folder: Path, clock: PastClock) -> AsyncIterator[tuple[ServedWorld, Any]]:
    world = World("sqlite", folder)
    make_project(world)
    model = stage_model()
    app = world.open(model, stage_model("quick"), clock=clock, config={"sandbox.mode": "on"})
    async with anyio.create_task_group() as group:
        await app.__aenter__()
        address = ServerAddress(port=free_port())
        server = WeftServer(app, lambda path: world.open(model, folder=path), address, page=PAGE)
        served = ServedWorld(world, server, app)
        await group.start(_run, served)
        try:
            yield served, model
        finally:
            server.stop()


async def _run(served: ServedWorld, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    await served.server.run(task_status=task_status)


async def take_pictures(folder: Path, looks: Sequence[str], only: Sequence[str]) -> None:
    """Play the sessions and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        clock = PastClock(MINUTES)
        async with _served(Path(name), clock) as (served, model), browser() as program:
            stage = PageStage(served, clock)
            shots = Shots(folder, only)
            await shots.open(program, served, looks)
            await _play(stage, shots, model)


async def _play(stage: PageStage, shots: Shots, model: Any) -> None:
    served = stage.served
    await shots.take("first-run", "#/start")
    await stage.others()
    session = await stage.retry_session()
    key = (await served.good("GET", f"/sessions/{session}"))["project"]
    await stage.decisions(key)
    loom = await stage.loom()
    at = f"#/s/{session}"
    path = f"/sessions/{session}"
    await served.good("PUT", f"{path}/permission-mode", {"mode": "accept_edits"})
    await stage.wait_for_push(session)
    await shots.take("chat", f"{at}/chat", ready=".request")
    tree = (await served.good("GET", f"{path}/tree"))["messages"]
    ninth = next(each["id"] for each in tree if "HTTP-date" in each.get("text", ""))
    await shots.take("tree", f"{at}/tree?at={ninth}", ready="[role=treeitem]")
    await shots.take("past", f"{at}/chat", _look_back, ready=".track")
    await shots.take("changes", f"{at}/changes", ready=".diff")
    await shots.take("files", f"{at}/files?path=src/larder/retry.py")
    await shots.take("decisions", f"{at}/decisions", _choose_decision)
    await shots.take("loom", f"{at}/loom?loom={loom}", ready=".loom-read")
    second = next(each["id"] for each in tree if "`Policy` holds" in each.get("text", ""))
    first = next(each["id"] for each in tree if "Both forms are read" in each.get("text", ""))
    await shots.take("compare", f"{at}/compare?a={first}&b={second}", ready=".compare-side")
    await shots.take("palette", f"{at}/chat", _palette)
    await shots.take("sessions", "#/sessions", _search)
    await shots.take("settings", "#/settings", ready=".setting")
    await shots.take("costs", "#/settings?show=Costs", ready=".costs")
    await stage.mcp_servers(key)
    await shots.take("mcp", "#/settings?show=MCP%20servers", _open_server, ready=".mcp-server")
    await stage.allow(session)
    await stage.stream(session, model)
    await shots.take("streaming", f"{at}/chat", _todos, ready=".streaming")
    await shots.take("plan-approve", f"#/s/{await stage.plan()}/plan", ready=".step")


async def _look_back(page: Page) -> None:
    await page.locator(".track").press("Home")
    for _ in range(4):
        await page.locator(".track").press("ArrowRight")


async def _choose_decision(page: Page) -> None:
    if await page.locator(".box").count():
        await page.locator(".box", has_text="Retry-After").first.click()


async def _palette(page: Page) -> None:
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("retry")


async def _search(page: Page) -> None:
    await page.get_by_label("Search sessions", exact=True).last.fill("wait")


async def _open_server(page: Page) -> None:
    await page.locator(".mcp-head", has_text="packages").click()


async def _todos(page: Page) -> None:
    if await page.get_by_role("tab", name="Todos").count():
        await page.get_by_role("tab", name="Todos").click()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Take pictures of the web page.")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every screen and look")
    given = parser.parse_args()
    folder = given.all or DOCS
    folder.mkdir(parents=True, exist_ok=True)
    if given.all:
        anyio.run(take_pictures, folder, ("light", "dark", "phone"), ())
    else:
        anyio.run(take_pictures, folder, ("light",), IN_DOCS)


if __name__ == "__main__":
    main()
