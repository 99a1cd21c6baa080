"""What people do on the page, in a real browser, with the real server."""

from __future__ import annotations

import re

import anyio
import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.free_port import free_port
from tests.support.page_browser import browsing
from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.script import CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def started(served: ServedWorld, title: str = "First") -> str:
    return str((await served.good("POST", "/sessions", {"title": title}))["id"])


async def said(served: ServedWorld, session: str, *prompts: str) -> None:
    for prompt in prompts:
        await served.good("POST", f"/sessions/{session}/message", {"content": prompt})


async def test_a_message_is_sent_and_its_answer_streams_in(plain_world: World) -> None:
    gate = anyio.Event()
    words = (Think(text="Let me see."), SayText(text="One 🧵 **two** "), Stall(gate="on"))
    model = ScriptedModel([(*words, SayText(text="three\n\n- four"))], gates={"on": gate})
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        await view.open(await started(served))
        await view.say("Go on.")
        await expect(view.page.locator(".streaming strong")).to_have_text("two")
        await expect(view.page.locator("#message")).to_have_value("")
        await expect(view.page.get_by_role("button", name="Stop")).to_be_visible()
        gate.set()
        await expect(view.page.locator(".turn .weft li")).to_have_text("four")
        await expect(view.page.locator(".turn .weft .prose p")).to_have_text("One 🧵 two three")
        await expect(view.page.locator(".turn .thought button")).to_contain_text("Thought")
        await expect(view.page.locator(".streaming")).to_have_count(0)
        assert view.errors == []


async def test_a_page_that_is_reloaded_mid_answer_has_all_of_it(plain_world: World) -> None:
    gate = anyio.Event()
    model = ScriptedModel(
        [(SayText(text="one two "), Stall(gate="on"), SayText(text="three"))], gates={"on": gate}
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        await view.open(await started(served))
        await view.say("Count.")
        await expect(view.page.locator(".streaming")).to_contain_text("one two")
        await view.page.locator("#message").fill("half a thought")
        await view.page.reload()
        await expect(view.page.locator(".streaming")).to_contain_text("one two")
        await expect(view.page.locator("#message")).to_have_value("half a thought")
        gate.set()
        await expect(view.page.locator(".turn .weft .prose")).to_have_text("one two three")


async def test_a_permission_is_answered_with_a_key_and_enter_does_nothing(
    plain_world: World,
) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    model = ScriptedModel([write, "It is written."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = await started(served)
        await view.open(session)
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Write it."})
        card = view.page.locator(".request")
        await expect(card).to_contain_text("Write this file?")
        await expect(view.page.locator(".status")).to_contain_text("Waiting for you")
        # Answers count only once the card has been seen for a moment.
        await expect(card).to_have_attribute("data-ready", "true")
        await card.focus()
        await view.page.keyboard.press("Enter")
        snapshot = (await served.good("GET", f"/sessions/{session}"))["snapshot"]
        assert len(snapshot["requests"]) == 1
        await expect(card).to_be_visible()
        await view.page.keyboard.press("1")
        await expect(card).to_have_count(0)
        await expect(view.page.locator(".turn .weft .prose").last).to_have_text("It is written.")
        await expect(view.page.locator(".tool", has_text="new.txt").locator(".ok")).to_be_visible()
        assert plain_world.read("new.txt") == "two\n"
        await view.page.get_by_role("link", name="Changes").click()
        await expect(view.page.locator(".diff td.text").first).to_have_text("two")


async def test_a_no_is_said_with_its_reason(plain_world: World) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    model = ScriptedModel([write, "Then not."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = await started(served)
        await view.open(session)
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Write it."})
        # Keys count from then on: the question must have been seen.
        await expect(view.page.locator(".request")).to_have_attribute("data-ready", "true")
        await view.page.keyboard.press("Alt+4")
        await view.page.get_by_label("Why not").fill("keep the old one")
        await view.page.get_by_label("Why not").press("Enter")
        await expect(view.page.locator(".request")).to_have_count(0)
        await expect(view.page.locator(".tool", has_text="new.txt")).to_contain_text(
            "keep the old one"
        )
        assert not (plain_world.project / "new.txt").exists()


async def test_a_queued_message_is_edited_and_removed_and_escape_stops_the_turn(
    plain_world: World,
) -> None:
    model = ScriptedModel(
        [(SayText(text="working "), Stall(gate="on"))], gates={"on": anyio.Event()}
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        await view.open(await started(served))
        await view.say("Go.")
        await expect(view.page.locator(".streaming")).to_contain_text("working")
        for words in ("run mypy", "then push"):
            await view.page.locator("#message").fill(words)
            await view.page.locator("#message").press("Alt+Enter")
        await expect(view.page.locator(".queue li")).to_have_count(2)
        row = view.page.locator(".queue li", has_text="run mypy")
        await row.get_by_role("button", name="Edit").click()
        await view.page.get_by_label("Queued message", exact=True).fill("run ruff")
        await view.page.get_by_label("Queued message", exact=True).press("Enter")
        await expect(view.page.locator(".queue li").first).to_contain_text("run ruff")
        for words in ("run ruff", "then push"):
            row = view.page.locator(".queue li", has_text=words)
            await row.get_by_role("button", name="Remove").click()
            await expect(row).to_have_count(0)
        await view.page.locator("#message").press("Escape")
        await expect(view.page.locator(".notice", has_text="Stopped")).to_be_visible()
        await expect(view.page.locator(".turn .weft .prose")).to_contain_text("working")


async def test_looking_back_changes_nothing_and_sending_there_starts_a_branch(
    plain_world: World,
) -> None:
    model = ScriptedModel(["A1.", "A2.", "A3.", "B2."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = await started(served)
        await said(served, session, "one", "two", "three")
        await view.open(session)
        slider = view.page.get_by_role("slider", name="Turn")
        await expect(slider).to_have_attribute("aria-valuetext", "turn 3 of 3, three, now")
        await slider.press("Home")
        await expect(view.page.locator(".status")).to_have_text("Looking at turn 1")
        await expect(view.page.locator(".folded-turn")).to_have_count(2)
        await slider.press("Escape")
        await expect(view.page.locator(".folded-turn")).to_have_count(0)
        await slider.press("Home")
        await view.say("another way")
        await expect(view.page.locator(".turn .weft .prose").last).to_have_text("B2.")
        await expect(view.page.locator(".thread-bar .place")).to_have_text("Turn 2 of 2")
        await expect(view.page.locator(".thread-bar .lane circle")).to_have_count(2)
        branches = await served.good("GET", f"/sessions/{session}/branches")
        assert len(branches) == 2


async def test_a_rewind_shows_what_it_will_do_puts_files_back_and_is_undone(
    plain_world: World,
) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    model = ScriptedModel(["First.", write, "Written."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        made = await served.good("POST", "/sessions", {"auto_approve": True})
        await said(served, made["id"], "one", "two")
        await view.open(made["id"])
        await view.page.keyboard.press("Escape")
        await view.page.locator(".top-bar").get_by_role("link", name="Tree").click()
        await view.page.get_by_role("treeitem").last.click()
        panel = view.page.locator(".turn-panel")
        await expect(panel.locator(".rewind-item")).to_contain_text("new.txt")
        assert (plain_world.project / "new.txt").exists()
        await panel.get_by_role("button", name="Rewind Enter", exact=True).click()
        await expect(view.page.locator(".notice.float")).to_contain_text("1 file put back")
        assert not (plain_world.project / "new.txt").exists()
        await view.page.get_by_role("button", name="Undo").click()
        await expect(view.page.locator(".notice.float")).to_contain_text("taken back")
        assert plain_world.read("new.txt") == "two\n"


async def test_sessions_are_found_by_what_was_said_and_started_with_a_key(
    plain_world: World,
) -> None:
    model = ScriptedModel(["Yes.", "No.", "More."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        first, second = await started(served, "Alpha"), await started(served, "Beta")
        await said(served, first, "about the purple retry")
        await said(served, second, "something else")
        await view.page.reload()
        await expect(view.page.locator(".session-row")).to_have_count(2)
        await view.page.get_by_label("Search sessions", exact=True).last.fill("purple")
        await expect(view.page.locator(".session-row")).to_have_count(1)
        await expect(view.page.locator(".session-row mark").first).to_have_text("purple")
        await view.page.keyboard.press("Enter")
        await expect(view.page.locator(".top-bar h1")).to_have_text("Alpha")
        await expect(view.page.locator("#message")).to_be_focused()
        await view.page.locator(".chat .scroll").focus()
        await view.page.keyboard.press("n")
        await expect(view.page.locator(".top-bar h1")).to_have_text(re.compile("^(New s|S)ession"))
        await view.page.keyboard.press("Control+k")
        await view.page.keyboard.type("beta")
        await view.page.keyboard.press("Enter")
        await expect(view.page.locator(".top-bar h1")).to_have_text("Beta")


async def test_a_page_without_a_token_says_how_to_pair_it_and_shows_nothing(
    plain_world: World,
) -> None:
    model = ScriptedModel(["Yes."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        assert "code" not in view.page.url
        await view.page.evaluate("localStorage.removeItem('weft.token')")
        await view.page.reload()
        await expect(view.page.get_by_role("heading")).to_have_text("This page is not paired")
        await expect(view.page.locator(".shell")).to_have_count(0)


async def test_a_long_conversation_keeps_few_turns_in_the_document_and_reaches_its_first(
    plain_world: World,
) -> None:
    count = 90
    model = ScriptedModel([f"Answer {number}." for number in range(count)])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = await started(served)
        await said(served, session, *(f"prompt {number}" for number in range(count)))
        await view.open(session)
        turns = view.page.locator(".turn")
        await expect(turns.last).to_contain_text("Answer 89.")
        first = turns.filter(has_text="prompt 0").first
        box = view.page.locator(".chat .scroll")
        for _ in range(100 * count):
            await box.evaluate("box => { box.scrollTop = 0 }")
            assert await turns.count() <= 60
            if await first.count():
                break
            await view.page.evaluate("new Promise(requestAnimationFrame)")
        await expect(first).to_be_visible()
        await view.page.get_by_role("button", name="New below").click()
        await expect(turns.last).to_contain_text("Answer 89.")
        slider = view.page.get_by_role("slider", name="Turn")
        await slider.press("Home")
        await expect(view.page.locator(".turn.looked")).to_contain_text("Answer 0.")
        await expect(view.page.locator(".folded-turn").last).to_contain_text("prompt 89")


async def test_a_page_goes_on_with_a_server_that_was_stopped_and_started_again(
    shared_world: World,
) -> None:
    model = ScriptedModel(["Before.", "After."])
    port = free_port()
    async with serving(shared_world, model, port=port, page=PAGE) as served:
        session = await started(served)
        async with browsing(served) as view:
            await view.open(session)
            await view.say("one")
            await expect(view.page.locator(".turn .weft .prose")).to_have_text("Before.")
            served.server.stop()
            lost = view.page.locator(".notice", has_text="Connection lost")
            await expect(lost).to_be_visible()
            await view.page.locator("#message").fill("two")
            await served.has_ended.wait()
            async with serving(shared_world, model, port=port, page=PAGE):
                await expect(lost).to_have_count(0)
                await view.page.locator("#message").press("Enter")
                await expect(view.page.locator(".turn .weft .prose").last).to_have_text("After.")


async def test_what_is_being_read_stays_where_it_is_while_an_answer_streams(
    plain_world: World,
) -> None:
    gate = anyio.Event()
    paragraphs = "A paragraph of some words that fills a line.\n\n" * 40
    growing = (SayText(text=paragraphs), Stall(gate="on"), SayText(text=f"{paragraphs}The end."))
    model = ScriptedModel([paragraphs, growing], gates={"on": gate})
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = await started(served)
        await said(served, session, "one")
        await view.open(session)
        await view.say("two")
        await expect(view.page.locator(".streaming p")).to_have_count(40)
        box = view.page.locator(".chat .scroll")
        # Someone who is at the end is kept there.
        assert await box.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 40
        await box.evaluate("box => { box.scrollTop = 700 }")
        place = "[...document.querySelectorAll('.turn p')][20].getBoundingClientRect().top"
        before = await view.page.evaluate(place)
        gate.set()
        await expect(view.page.locator(".turn .weft p", has_text="The end.")).to_have_count(1)
        assert await view.page.evaluate(place) == before
        below = view.page.get_by_role("button", name="New below")
        await below.click()
        await expect(view.page.get_by_text("The end.")).to_be_in_viewport()
