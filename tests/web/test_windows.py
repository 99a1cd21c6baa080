"""Several windows on one session, and what a message, a command and a setting may be, in a real
browser with the real server.
"""

from __future__ import annotations

import anyio
import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.image_samples import PIXEL_DATA
from tests.support.page_browser import browser, browsing, link_of, new_window
from tests.support.served_world import serving
from tests.support.world import World
from weft.messages import Image
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_one_window_drives_others_view_and_a_request_is_answered_once(
    plain_world: World,
) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    model = ScriptedModel([write, "It is written.", "And this."])
    async with serving(plain_world, model, page=PAGE) as served, browser() as program:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        first = await new_window(program, lambda: link_of(served))
        await first.open(session)
        second = await new_window(program, lambda: link_of(served))
        await second.page.evaluate("hash => { location.hash = hash }", f"#/s/{session}/chat")
        viewer = second.page.locator(".composer-wrap.viewer")
        await expect(viewer).to_contain_text("Another window drives this session")
        await first.say("Write it.")
        card = second.page.locator(".request")
        await expect(first.page.locator(".request")).to_have_attribute("data-ready", "true")
        await expect(card).to_have_attribute("data-ready", "true")
        # Anyone may answer, once; everyone sees who did.
        await card.get_by_role("button", name="Once").click()
        await expect(first.page.locator(".request")).to_have_count(0)
        await expect(first.page.locator(".notice", has_text="another window")).to_be_visible()
        line = first.page.locator(".tool", has_text="new.txt")
        await expect(line).to_contain_text("by another window")
        await expect(second.page.locator(".tool", has_text="new.txt")).to_contain_text("by you")
        await viewer.get_by_role("button", name="Take over").click()
        await second.say("Go on.")
        await expect(second.page.locator(".turn .weft .prose").last).to_have_text("And this.")
        await expect(first.page.locator(".composer-wrap.viewer")).to_be_visible()
        # A window that is closed drives no more.
        await second.page.close()
        await expect(first.page.locator(".composer-wrap.viewer")).to_have_count(0)


async def test_pictures_are_pasted_and_dropped_and_shown_again(plain_world: World) -> None:
    model = ScriptedModel(["I see."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        await view.open(session)
        give = """([data, how, target]) => {
            const bytes = Uint8Array.from(atob(data), each => each.charCodeAt(0));
            const transfer = new DataTransfer();
            transfer.items.add(new File([bytes], how + '.png', {type: 'image/png'}));
            const made = how === 'paste'
                ? new ClipboardEvent('paste', {clipboardData: transfer, bubbles: true})
                : new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true});
            document.querySelector(target).dispatchEvent(made);
        }"""
        await view.page.evaluate(give, [PIXEL_DATA, "paste", "#message"])
        await view.page.evaluate(give, [PIXEL_DATA, "drop", ".chat"])
        await expect(view.page.locator(".shots img")).to_have_count(2)
        await view.page.get_by_role("button", name="Remove drop.png").click()
        await view.say("What is it?")
        await expect(view.page.locator(".turn .weft .prose")).to_have_text("I see.")
        await expect(view.page.locator(".shots")).to_have_count(0)
        sent = [part for each in model.last_request.messages for part in getattr(each, "parts", ())]
        assert [part.media_type for part in sent if isinstance(part, Image)] == ["image/png"]
        await view.page.reload()
        shown = view.page.locator(".you .pictures img")
        await expect(shown).to_have_count(1)
        assert await shown.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        assert view.errors == []


async def test_a_folder_is_trusted_on_the_page_after_a_look(plain_world: World) -> None:
    plain_world.write(".weft/config.toml", '[permissions]\nallow = ["shell(make)"]\n')
    async with (
        serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        made = await served.good("POST", "/sessions", {"title": "T"})
        await view.open(made["id"])
        card = view.page.get_by_role("region", name="Trust")
        trust = card.get_by_role("button", name="Trust this folder")
        await expect(trust).to_have_attribute("aria-disabled", "true")
        await card.get_by_role("button", name="Look").click()
        await expect(card).to_contain_text("shell(make)")
        await trust.click()
        await expect(view.page.locator(".notice.float")).to_contain_text("is trusted")
        await expect(card).to_have_count(0)
        found = await served.good("GET", f"/projects/{made['project']}/trust")
        assert found["is_trusted"]


async def test_a_setting_goes_through_the_checks_of_the_command_line(plain_world: World) -> None:
    async with (
        serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        await view.page.evaluate("() => { location.hash = '#/settings' }")
        await view.page.get_by_label("Find a setting").fill("session.max_turns")
        field = view.page.get_by_label("session.max_turns", exact=True)
        await field.fill("many")
        await field.press("Enter")
        await expect(view.page.locator(".notice.bad")).to_contain_text("session.max_turns")
        await field.fill("17")
        await field.press("Enter")
        await expect(view.page.locator(".notice.ok")).to_be_visible()
        setting = (await served.good("GET", "/projects/main/config"))["session.max_turns"]
        assert setting["value"] == 17
        assert setting["source"].endswith("config.toml")
        await view.page.get_by_label("Find a setting").fill("How answers are written")
        style = view.page.get_by_role("group", name="model.style")
        await style.get_by_role("button", name="explanatory").click()
        await expect(style.get_by_role("button", name="explanatory")).to_have_attribute(
            "aria-pressed", "true"
        )
        await view.page.get_by_role("button", name="Back to default").click()
        await expect(style.get_by_role("button", name="concise")).to_have_attribute(
            "aria-pressed", "true"
        )
        await view.page.get_by_label("Find a setting").fill("")
        await view.page.get_by_role("button", name="Models and keys").click()
        await view.page.get_by_role("button", name="Add the key of Anthropic").click()
        await view.page.get_by_label("Key", exact=True).fill("sk-ant-api03-" + "x" * 40)
        await view.page.get_by_role("button", name="Save", exact=True).click()
        # This server's models were handed in: there is nobody to ask.
        saved = view.page.locator(".notice.warn", has_text="The key is saved")
        await expect(saved).to_contain_text("could not be tested")
        await view.page.get_by_role("button", name="Costs").click()
        await expect(view.page.locator(".cost-screen")).to_contain_text("Nothing was used")


async def test_a_command_shows_its_output_as_it_comes_and_is_stopped(plain_world: World) -> None:
    command = "echo begun; exec sleep 600"
    model = ScriptedModel([CallTool(name="shell", args={"command": command}), "Never."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        started = {"title": "T", "permission_mode": "bypass"}
        session = (await served.good("POST", "/sessions", started))["id"]
        await view.open(session)
        await view.say("Run it.")
        line = view.page.locator(".tool", has_text="sleep 600")
        await expect(line.locator(".last")).to_have_text("begun")
        await line.click()
        await expect(view.page.locator(".card pre")).to_contain_text("begun")
        await view.page.get_by_role("button", name="Stop").click()
        await expect(view.page.locator(".notice", has_text="Stopped")).to_be_visible()
        await expect(line.get_by_role("img", name="stopped")).to_be_visible()


async def test_a_tab_that_is_not_in_view_says_that_it_is_needed(plain_world: World) -> None:
    gate = anyio.Event()
    words = (SayText(text="Wait "), Stall(gate="on"), SayText(text="done."))
    async with (
        serving(plain_world, ScriptedModel([words], gates={"on": gate}), page=PAGE) as served,
        browsing(served) as view,
    ):
        await view.open((await served.good("POST", "/sessions", {"title": "T"}))["id"])
        await view.say("Go.")
        await expect(view.page.locator(".streaming")).to_contain_text("Wait")
        hide = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})"
        await view.page.evaluate(f"() => {{ {hide} }}")
        gate.set()
        await expect(view.page).to_have_title("● T · Weft")


async def test_on_a_phone_one_hunk_fills_the_screen_and_is_put_back(plain_world: World) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    async with (
        serving(plain_world, ScriptedModel([write, "Written."]), page=PAGE) as served,
        browsing(served, phone=True) as view,
    ):
        started = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", started))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Write."})
        await view.open(session, "changes")
        revert = view.page.locator(".phone-hunk .acts").get_by_role("button", name="Revert")
        box = await revert.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        await revert.click()
        await expect(view.page.locator(".phone-hunk")).to_have_count(0)
        assert not (plain_world.project / "new.txt").exists()
