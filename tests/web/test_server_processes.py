"""The page with a server of its own process: a first run, and one that is killed in mid-stream."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.free_port import free_port
from tests.support.loopback_server import LoopbackConnection
from tests.support.loopback_server import serving as listening_at
from tests.support.page_browser import browser, new_window
from tests.support.web_program import web
from tests.support.weft_program import WeftProgram

pytestmark = [pytest.mark.anyio, pytest.mark.process]

SLOWLY = 0.05
"""Seconds between two pieces, so that an answer is in flight for as long as the test needs."""


@pytest.fixture
def weft(tmp_path: Path) -> WeftProgram:
    """The program in a home that no one has used."""
    return WeftProgram(tmp_path)


async def test_a_first_run_in_a_fresh_home_leads_to_an_answer(weft: WeftProgram) -> None:
    assert (ROOT / "src" / "weft" / "web" / "page" / "index.html").exists()
    with web(weft, free_port(), weft.script("Hello, from the page.")) as (_, link):
        async with browser() as program:
            view = await new_window(program, lambda: link)
            await expect(view.page.get_by_text("No sessions yet")).to_be_visible()
            await view.page.get_by_role("main").get_by_role("button", name="New session").click()
            await view.page.locator("#message").wait_for()
            assert "code=" not in view.page.url
            await view.say("Hello.")
            answer = view.page.locator(".turn .weft .prose")
            await expect(answer).to_have_text("Hello, from the page.")
            await expect(view.page.locator(".side .session")).to_have_count(1)
            await expect(view.page.locator(".track .ring-here")).to_be_visible()
            assert view.errors == []


async def test_a_newcomer_without_a_key_adds_one_on_the_page_and_is_asked_to_trust_the_folder(
    weft: WeftProgram,
) -> None:
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text('[permissions]\nallow = ["shell(make)"]\n')
    good = "sk-ant-api03-" + "x" * 40

    async def vendor(line: LoopbackConnection) -> None:
        while (asked := await line.request()) is not None:
            await line.reply(b"{}", status=200 if asked.headers["x-api-key"] == good else 401)

    async with listening_at(vendor) as server:
        weft.config.mkdir(parents=True)
        settings = f'[providers.anthropic]\nbase_url = "{server.url}"\n'
        (weft.config / "config.toml").write_text(settings)
        with web(weft, free_port()) as (_, link):
            await _add_a_key(weft, link, good)
        assert {each.path for each in server.asked} == {"/v1/models?limit=1"}


async def _add_a_key(weft: WeftProgram, link: str, good: str) -> None:
    async with browser() as program:
        view = await new_window(program, lambda: link)
        ways = view.page.locator(".first-run .ways")
        await expect(ways).to_contain_text("no key found")
        named = f"Start a session in {weft.project.name}"
        await expect(view.page.get_by_role("heading", name=named)).to_be_visible()
        await view.page.get_by_role("button", name="Add a key").click()
        await view.page.get_by_label("Key", exact=True).fill("no key at all")
        await view.page.get_by_role("button", name="Save").click()
        trouble = view.page.locator(".key-form").get_by_role("alert")
        await expect(trouble).to_contain_text("invalid key")
        await view.page.get_by_label("Key", exact=True).fill(good.replace("x", "y"))
        await view.page.get_by_role("button", name="Save").click()
        await expect(trouble).to_contain_text("refuses this key (401). It is not saved.")
        assert not [each for each in weft.config.iterdir() if "sk-ant" in each.read_text()]
        await view.page.get_by_label("Key", exact=True).fill(good)
        await view.page.get_by_role("button", name="Save").click()
        await expect(ways).to_contain_text("anthropic:")
        [kept] = [each for each in weft.config.iterdir() if "sk-ant" in each.read_text()]
        assert kept.stat().st_mode & 0o077 == 0
        await view.page.get_by_role("button", name="Start").click()
        await view.page.locator("#message").wait_for()
        await expect(view.page.get_by_role("region", name="Trust")).to_contain_text("1 setting")
        shown = await view.page.content()
        assert "x" * 40 not in shown
        await view.page.evaluate("() => { location.hash = '#/settings?show=Models and keys' }")
        row = view.page.locator(".key-table tr", has_text="Anthropic")
        await expect(row).to_contain_text("sk-ant…xxxx")
        await expect(row).to_contain_text("your file")
        await row.get_by_role("button", name="Test the key of Anthropic").click()
        await expect(row).to_contain_text("works")


async def test_a_page_goes_on_with_a_server_that_was_killed_in_mid_stream(
    weft: WeftProgram,
) -> None:
    port = free_port()
    words = [{"do": "text", "text": "one " * 2_000, "chunk": 4}]
    model = weft.script(words, "And on.", pace_seconds=SLOWLY)
    async with browser() as program:
        with web(weft, port, model) as (process, link):
            view = await new_window(program, lambda: link)
            await view.page.get_by_role("main").get_by_role("button", name="New session").click()
            await view.page.locator("#message").wait_for()
            await view.say("Count.")
            await expect(view.page.locator(".streaming")).to_contain_text("one one one")
            # However long the model's name is, its buttons stay inside.
            frame = await view.page.locator(".composer").bounding_box()
            button = await view.page.locator(".composer .send").bounding_box()
            assert frame is not None
            assert button is not None
            assert button["x"] + button["width"] <= frame["x"] + frame["width"]
            await view.page.locator("#message").fill("half a thought")
            process.send_signal(signal.SIGKILL)
            lost = view.page.locator(".notice", has_text="Connection lost")
            await expect(lost).to_be_visible()
        with web(weft, port, model):
            await expect(lost).to_have_count(0)
            card = view.page.locator(".request", has_text="Resume this session?")
            await expect(card).to_be_visible()
            await expect(view.page.locator(".column")).to_contain_text("one one one")
            await expect(view.page.locator("#message")).to_have_value("half a thought")
            await card.get_by_role("button", name="Go on from here").click()
            await expect(card).to_have_count(0)
