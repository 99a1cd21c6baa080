"""Several clients on one session of a server that is a process of its own: two browsers and a chat,
and what stands open when the server is killed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import anyio.to_thread
import pytest
from playwright.async_api import expect

from tests.support.free_port import free_port
from tests.support.page_browser import PageView, browser, new_window
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux, wait_until
from tests.support.web_program import web
from tests.support.weft_program import WeftProgram

pytestmark = [pytest.mark.anyio, pytest.mark.process]

WRITE = {"do": "call", "name": "write", "args": {"path": "new.txt", "content": "two\n"}}


@pytest.fixture
def weft(tmp_path: Path) -> WeftProgram:
    """The program in a home that no one has used."""
    return WeftProgram(tmp_path)


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    """A terminal in the project."""
    made = TmuxTerminal(weft, tmp_path, width=100, height=30)
    yield made
    made.close()


def answer_first(terminal: TmuxTerminal) -> None:
    """Press the key of the first answer; a question takes none before it has been seen a while."""

    def is_answered() -> bool:
        is_open = "1 Yes" in terminal.screen()
        if is_open:
            terminal.keys("1")
        return not is_open

    wait_until(is_answered)


async def begun(view: PageView) -> str:
    """A new session in this window; returns its id."""
    await view.page.get_by_role("main").get_by_role("button", name="New session").click()
    await view.page.locator("#message").wait_for()
    return view.page.url.split("/s/")[1].split("/")[0]


async def test_an_approval_that_was_open_when_the_server_was_killed_comes_back_and_counts(
    weft: WeftProgram,
) -> None:
    port = free_port()
    model = weft.script([WRITE], "It is written.")
    async with browser() as program:
        with web(weft, port, model) as (process, link):
            view = await new_window(program, lambda: link)
            await begun(view)
            await view.say("Write it.")
            card = view.page.locator(".request", has_text="Write this file?")
            await expect(card).to_be_visible()
            await view.page.locator("#message").fill("half a thought")
            process.send_signal(signal.SIGKILL)
            lost = view.page.locator(".notice", has_text="Connection lost")
            await expect(lost).to_be_visible()
        with web(weft, port, model):
            await expect(view.page.locator(".status")).to_contain_text("Waiting for you")
            await expect(lost).to_have_count(0)
            await expect(card).to_have_attribute("data-ready", "true")
            assert not (weft.project / "new.txt").exists()
            await card.get_by_role("button", name="Once").click()
            await expect(view.page.locator(".turn .weft .prose").last).to_have_text(
                "It is written."
            )
            assert (weft.project / "new.txt").read_text() == "two\n"
            await expect(view.page.locator("#message")).to_have_value("half a thought")


@needs_tmux
async def test_two_browsers_and_a_chat_are_on_one_session_and_each_answers_once(
    weft: WeftProgram, terminal: TmuxTerminal
) -> None:
    port = free_port()
    model = weft.script([WRITE], "It is written.", "And on.", "The end.")
    async with browser() as program:
        with web(weft, port, model) as (_, link):
            first = await new_window(program, lambda: link)
            session = await begun(first)
            code = await first.page.evaluate(
                """() => fetch('/api/pair/codes', {method: 'POST', body: '{}', headers: {
                    'Content-Type': 'application/json',
                    Authorization: `Bearer ${localStorage.getItem('weft.token')}`,
                }}).then(answer => answer.json()).then(answer => answer.code)"""
            )
            where = f"http://127.0.0.1:{port}"
            second = await new_window(program, lambda: f"{where}/#code={code}")
            await second.page.evaluate("hash => { location.hash = hash }", f"#/s/{session}/chat")
            await expect(second.page.locator(".composer-wrap.viewer")).to_be_visible()
            terminal.start("attach", where, session)
            await first.say("Write it.")
            await expect(second.page.locator(".request")).to_be_visible()
            # Asked in all three; the chat answers.
            await anyio.to_thread.run_sync(terminal.wait_for, "new.txt")
            await expect(first.page.locator(".request")).to_have_attribute("data-ready", "true")
            await anyio.to_thread.run_sync(answer_first, terminal)
            for view in (first, second):
                await expect(view.page.locator(".request")).to_have_count(0)
                await expect(view.page.locator(".turn .weft .prose").last).to_have_text(
                    "It is written."
                )
            await anyio.to_thread.run_sync(terminal.wait_for, "It is written.")
            assert (weft.project / "new.txt").read_text() == "two\n"
            # The second window takes over, and everyone reads what it is answered.
            await second.page.get_by_role("button", name="Take over").click()
            await second.say("Go on.")
            await expect(first.page.locator(".turn .weft .prose").last).to_have_text("And on.")
            await anyio.to_thread.run_sync(terminal.wait_for, "And on.")
            await expect(first.page.locator(".composer-wrap.viewer")).to_be_visible()
