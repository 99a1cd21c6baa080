"""The other screens, in a real browser with the real server: plan, decisions, loom, comparison, the
phone.
"""

from __future__ import annotations

import anyio
import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_plan_is_edited_in_place_and_nothing_runs_before_it_is_approved(
    plain_world: World,
) -> None:
    first = {"action": "create", "file": "a.txt", "description": "Make it.", "details": "Make it."}
    second = {"action": "create", "file": "b.txt", "description": "And it.", "details": "Too."}
    model = ScriptedModel(
        [
            CallTool(name="submit", args={"summary": "Two files.", "steps": [first, second]}),
            CallTool(name="write", args={"path": "a.txt", "content": "a\n"}),
            "Made a.",
            CallTool(name="write", args={"path": "b.txt", "content": "b\n"}),
            "Made b.",
        ]
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        started = {"mode": "architect", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", started))["id"]
        await view.open(session, "plan")
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Two files, please."})
        await expect(view.page.locator(".step")).to_have_count(2)
        await expect(view.page.locator(".status")).to_contain_text("Plan waits for you")
        for what, words in (
            ("Check", "test -f a.txt"),
            ("File", "made.txt"),
            ("What the step does", "Make another."),
        ):
            await view.page.get_by_role("button", name=f"Edit: {what} of step 1").click()
            field = view.page.get_by_role("textbox", name=f"{what} of step 1")
            await field.fill(words)
            await field.press("Enter")
            await expect(view.page.locator(".step").first).to_contain_text(words)
        await expect(view.page.get_by_role("table", name="Your edits")).to_contain_text("made.txt")
        await view.page.locator(".step-grip").last.drag_to(view.page.locator(".step").first)
        await expect(view.page.locator(".step").first).to_contain_text("And it.")
        await view.page.get_by_role("button", name="Add a step").click()
        await expect(view.page.locator(".step")).to_have_count(3)
        await view.page.get_by_role("button", name="Take step 3 out").click()
        await expect(view.page.locator(".step")).to_have_count(2)
        assert not (plain_world.project / "a.txt").exists()
        await view.page.get_by_role("button", name="Reject, and say why…").click()
        await view.page.get_by_label("Why not").fill("one file is enough")
        await view.page.get_by_label("Why not").press("Enter")
        await expect(view.page.locator(".plan-ask")).to_have_count(0)
        assert not (plain_world.project / "a.txt").exists()


async def test_decisions_are_shown_with_what_was_rejected_and_why_a_file_is_as_it_is(
    plain_world: World,
) -> None:
    (plain_world.project / "retry.py").write_text("LONGEST = 60\n")
    async with serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served:
        made = await served.good("POST", "/sessions", {"title": "T"})
        await served.good(
            "POST",
            f"/projects/{made['project']}/decisions",
            {
                "title": "Parse the header ourselves",
                "why": "A dependency would bring 1,900 lines.",
                "scope": ["retry.py"],
                "options": ["tenacity"],
            },
        )
        async with browsing(served) as view:
            await view.open(made["id"], "decisions")
            box = view.page.locator(".box", has_text="Parse the header ourselves")
            await box.click()
            await expect(view.page.locator(".panel")).to_contain_text("1,900 lines")
            await view.page.get_by_label("Why: a path and a line").fill("retry.py:1")
            await view.page.keyboard.press("Enter")
            await expect(view.page.locator(".why-chain")).to_contain_text("Parse the header")
            await view.page.get_by_role("button", name="List").click()
            await expect(view.page.get_by_role("row")).not_to_have_count(0)


async def test_a_tree_of_text_grows_and_a_child_is_chosen(plain_world: World) -> None:
    gate = anyio.Event()
    model = ScriptedModel(
        [(SayText(text="and every "), Stall(gate="on"), SayText(text="download with a question."))],
        gates={"on": gate},
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        await view.open(session, "loom")
        await view.page.get_by_label("First words").fill("Every build begins, ")
        await view.page.get_by_role("button", name="Begin").click()
        await view.page.get_by_role("button", name="Generate").click()
        await expect(view.page.locator(".stream.grows")).to_contain_text("and every")
        gate.set()
        child = view.page.locator(".stream", has_text="download with a question.")
        await expect(view.page.locator(".stream.grows")).to_have_count(0)
        await child.click()
        await expect(view.page.locator(".loom-read p.here")).to_contain_text("and every download")


async def test_two_turns_are_compared_word_by_word(plain_world: World) -> None:
    model = ScriptedModel(["Start.", "We cap it at sixty.", "We cap it at ninety."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        path = f"/sessions/{session}"
        await served.good("POST", f"{path}/message", {"content": "one"})
        page = await served.good("GET", f"{path}/messages")
        await served.good("POST", f"{path}/message", {"content": "two"})
        await served.good("POST", f"{path}/branches", {"at": page["messages"][-1]["id"]})
        await served.good("POST", f"{path}/message", {"content": "other"})
        await view.open(session, "tree")
        for words in ("two", "other"):
            await view.page.get_by_role("treeitem", name=words).click()
            await view.page.get_by_role("tree").press("=")
        await expect(view.page.locator(".compare-side.B .only")).to_have_text("ninety")
        await expect(view.page.locator(".compare-side.A .only")).to_have_text("sixty")


async def test_on_a_phone_a_permission_is_a_sheet_with_large_answers(plain_world: World) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    model = ScriptedModel([write, "It is written."])
    async with (
        serving(plain_world, model, page=PAGE) as served,
        browsing(served, phone=True) as view,
    ):
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        await view.open(session)
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Write it."})
        once = view.page.locator(".requests").get_by_role("button", name="Once")
        await once.wait_for()
        box = await once.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        card = view.page.locator(".request")
        await expect(card).to_have_attribute("data-ready", "true")
        await once.click()
        await expect(view.page.locator(".requests")).to_have_count(0)
        await view.page.locator(".phone-bar").get_by_role("link", name="Changes").click()
        await expect(view.page.locator(".diff td.text").first).to_have_text("two")
        wide = await view.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0


async def test_a_search_shows_the_words_around_what_was_said(plain_world: World) -> None:
    model = ScriptedModel(["Our mirror sends Retry-After fifty times.", "Nothing of that kind."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        for title in ("Fetches", "Retry uploads"):
            made = await served.good("POST", "/sessions", {"title": title})
            await served.good("POST", f"/sessions/{made['id']}/message", {"content": "Begin."})
        found = await served.good("GET", "/sessions/excerpts?q=retry%20after")
        assert list(found["excerpts"].values()) == ["Our mirror sends Retry-After fifty times."]
        answer = await served.call("GET", "/sessions/excerpts?q=x&limit=0")
        assert answer.status == 400
        await view.page.evaluate("() => { location.hash = '#/sessions' }")
        search = view.page.get_by_role("searchbox", name="Search sessions")
        await search.fill("retry")
        row = view.page.locator(".session-row", has_text="Fetches")
        await expect(row.locator(".sub")).to_have_text("Our mirror sends Retry-After fifty times.")
        await expect(row.locator("mark")).to_have_text("Retry")
        other = view.page.locator(".session-row", has_text="Retry uploads")
        await expect(other.locator(".sub")).to_have_text("Begin.")
        await search.fill("")
        await expect(row.locator(".sub")).to_have_text("Begin.")
        assert view.errors == []


async def test_on_a_phone_the_tree_has_the_thread_and_how_a_tool_ended_is_not_cut(
    plain_world: World,
) -> None:
    long = CallTool(name="shell", args={"command": f"echo {'long ' * 20}; false"})
    async with (
        serving(plain_world, ScriptedModel([long, "Done."]), page=PAGE) as served,
        browsing(served, phone=True) as view,
    ):
        made = await served.good("POST", "/sessions", {"title": "T", "permission_mode": "bypass"})
        await served.good("POST", f"/sessions/{made['id']}/message", {"content": "Begin."})
        await view.open(made["id"])
        end = view.page.locator(".tool .end").first
        await expect(end).to_contain_text("exit 1")
        assert await end.evaluate("each => each.scrollWidth <= each.clientWidth")
        await view.open(made["id"], "tree")
        await expect(view.page.get_by_role("slider")).to_be_visible()
        await expect(view.page.locator(".map")).to_be_hidden()
        assert view.errors == []
