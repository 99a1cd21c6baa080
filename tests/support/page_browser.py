"""A browser that shows Weft's page, as a user would open it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.support.served_world import ServedWorld

# The first ones are for a machine without a screen; the rest keep it from looking for the network.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT_MS: Final = 20_000
FORBIDDEN: Final = (
    "script:not([src]),iframe,object,embed,base,form form,img[src^=http],style,meta[http-equiv]"
)
"""Elements that the page never has, whatever others write."""
expect.set_options(timeout=WAIT_MS)


class PageView:
    """A page in a browser, and what went wrong in it; `link` opens it with a code, as often as it
    is asked for one.
    """

    def __init__(self, page: Page, link: Callable[[], str]) -> None:
        self.page = page
        self.link = link
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )

    async def pair(self) -> None:
        """Open the page as `weft web` does: with a code that works once."""
        await self.page.goto(self.link())
        await self.page.locator(".shell").wait_for()

    async def open(self, session: str, screen: str = "chat") -> None:
        """Show a screen of a session."""
        await self.page.evaluate("hash => { location.hash = hash }", f"#/s/{session}/{screen}")
        await self.page.locator(".top-bar h1").wait_for()
        if screen == "chat":
            await self.page.locator("#message").wait_for()

    async def say(self, words: str) -> None:
        """Write a message and send it."""
        await self.page.locator("#message").fill(words)
        await self.page.locator("#message").press("Enter")


@asynccontextmanager
async def browser() -> AsyncGenerator[Browser]:
    """The machine's Chromium, without a window."""
    program = shutil.which("chromium")
    assert program is not None, "chromium is missing: .ci/system installs it"
    async with async_playwright() as tool:
        found = await tool.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield found
        finally:
            await found.close()


def link_of(served: ServedWorld) -> str:
    """The address of a server's page with a code that works once."""
    return f"{served.origin}/#code={served.server.tokens.new_code()}"


async def new_window(
    program: Browser, link: Callable[[], str], *, phone: bool = False, dark: bool = False
) -> PageView:
    """A window of a user of its own, with a page that is paired with a server."""
    context = await program.new_context(
        viewport={"width": 390, "height": 844} if phone else {"width": 1440, "height": 900},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    view = PageView(await context.new_page(), link)
    await view.pair()
    return view


@asynccontextmanager
async def browsing(
    served: ServedWorld, *, phone: bool = False, dark: bool = False
) -> AsyncGenerator[PageView]:
    """A page that is paired with a server."""
    async with browser() as program:
        yield await new_window(program, lambda: link_of(served), phone=phone, dark=dark)
