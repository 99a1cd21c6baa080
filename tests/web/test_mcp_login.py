"""The whole login to an MCP server: a chat that needs it, the command in a terminal, the issuer's
page in a real browser, and the chat that goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
import pytest
from playwright.async_api import expect

from tests.support.loopback_server import serving
from tests.support.mcp_issuer import LoginServer
from tests.support.page_browser import browser
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux, wait_until
from tests.support.weft_program import WeftProgram, call

pytestmark = [pytest.mark.anyio, pytest.mark.process, needs_tmux]
pytest.importorskip("mcp", reason="the MCP SDK is an extra")
T = TypeVar("T")
PICTURES = os.environ.get("WEFT_PICTURES", "")


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


@pytest.fixture
def windows(weft: WeftProgram, tmp_path: Path) -> Iterator[Callable[[int], TmuxTerminal]]:
    made: list[TmuxTerminal] = []

    def open_window(width: int) -> TmuxTerminal:
        folder = tmp_path / f"window{len(made)}"
        folder.mkdir()
        made.append(TmuxTerminal(weft, folder, width=width, height=30))
        return made[-1]

    yield open_window
    for each in made:
        each.close()


async def beside(work: Callable[[], T]) -> T:
    """What waits for a terminal, while the servers of the test answer."""
    return await anyio.to_thread.run_sync(work)


async def shown(window: TmuxTerminal, *texts: str) -> str:
    screen: str = await beside(partial(window.wait_for, *texts, history=True))
    return screen


async def test_a_user_logs_in_with_terminal_and_browser_and_the_chat_goes_on(
    weft: WeftProgram, windows: Callable[[int], TmuxTerminal]
) -> None:
    issuer = LoginServer("asks_user")
    async with serving(issuer.handle) as listening:
        issuer.url = listening.url
        await beside(lambda: weft.run("mcp", "add", "docs", f"{issuer.url}/mcp"))
        search = call("tool_search", query="echo")
        args = {"name": "mcp__docs__echo", "arguments": {"text": "here I am"}}
        use = {"do": "call", "name": "tool_call", "args": args}
        model = weft.script([search], "It wants a login.", [search], [use], "It works.")
        chat = windows(100)
        chat.start("-m", model, "--permission-mode", "bypass")
        await shown(chat, "asks nothing")
        chat.type("look for it")
        chat.keys("Enter")
        await shown(chat, "It wants a login.")
        await listed(chat, "needs_login")
        await shown(chat, "`weft mcp login docs` logs in")
        keep(chat, "chat-needs-login")

        await log_in(windows(72), issuer)

        chat.type("look again")
        chat.keys("Enter")
        await shown(chat, "It works.")
        await listed(chat, "ready, 2 tools")
        keep(chat, "chat-logged-in")
    assert [form["grant_type"] for form in issuer.forms] == ["authorization_code"]
    assert b"here I am" in issuer.scripted.calls[0].body


async def listed(chat: TmuxTerminal, state: str) -> None:
    """Have the servers listed until one is in this state: it may still start at the first list."""

    def lists() -> int:
        return chat.screen(history=True).count("MCP servers")

    def ask() -> bool:
        before = lists()
        chat.type("/mcp")
        chat.keys("Enter")
        wait_until(lambda: lists() > before)
        return state in chat.screen(history=True)

    await beside(lambda: wait_until(ask))


async def log_in(window: TmuxTerminal, issuer: LoginServer) -> None:
    """What a user does with the terminal and the browser; the address is longer than the window."""
    window.start("mcp", "login", "docs")
    screen = await shown(window, "open this address in your browser:", "state=")
    keep(window, "login-waits")
    found = re.search(r"http://\S+(\n\S+)*?(?=\nif the browser|\n\n|\Z)", screen)
    assert found is not None, screen
    async with browser() as program:
        page = await program.new_page()
        await page.goto(found[0].replace("\n", ""))
        await expect(page.get_by_role("heading")).to_have_text("Let Weft use this server?")
        await picture(page.screenshot, "browser-consent")
        await page.get_by_role("button", name="Allow").click()
        await expect(page.locator("p")).to_contain_text("go back to the terminal")
        assert page.url.startswith("http://127.0.0.1:")
        await picture(page.screenshot, "browser-done")
    assert await beside(window.exit_code) == 0
    screen = await shown(window, "logged in to docs by")
    assert issuer.url in screen
    keep(window, "login-done")


def keep(window: TmuxTerminal, name: str) -> None:
    if PICTURES:
        (Path(PICTURES) / f"{name}.txt").write_text(window.screen())


async def picture(take: Callable[..., Awaitable[bytes]], name: str) -> None:
    if PICTURES:
        await take(path=f"{PICTURES}/{name}.png")
