"""The page without a mouse, its files and its costs, in a real browser with the real server."""

from __future__ import annotations

import re

import anyio
import pytest
from playwright.async_api import expect

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.source_code import ROOT
from tests.support.world import World
from weft.messages import Usage
from weft.providers.script import CallTool, SayText, Spend
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


async def test_a_session_is_led_and_rewound_with_keys_alone(plain_world: World) -> None:
    write = CallTool(name="write", args={"path": "new.txt", "content": "two\n"})
    model = ScriptedModel(["Hello.", write, "Written.", "Branched."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        keys, page = view.page.keyboard, view.page
        await page.locator(".sessions").wait_for()
        await keys.press("Tab")
        await keys.press("n")
        await page.locator("#message").wait_for()
        await expect(page.locator("#message")).to_be_focused()
        await keys.type("One.")
        await keys.press("Enter")
        await expect(page.locator(".turn .weft .prose")).to_have_text("Hello.")
        await keys.type("Write it.")
        await keys.press("Enter")
        card = page.locator(".request")
        await expect(card).to_have_attribute("data-ready", "true")
        await card.focus()
        await keys.press("1")
        await expect(page.locator(".turn .weft .prose").last).to_have_text("Written.")
        await expect(page.locator("#message")).to_be_focused()
        # From part to part, then to the tree, up to the first turn, and back to it.
        await keys.press("Shift+F6")
        await expect(page.locator("#message")).not_to_be_focused()
        await keys.press("t")
        tree = page.get_by_role("tree")
        await tree.focus()
        await keys.press("ArrowDown")
        panel = page.locator(".turn-panel")
        await expect(panel.locator(".rewind-item")).to_contain_text("new.txt")
        await panel.get_by_role("button", name="Rewind Enter", exact=True).focus()
        await keys.press("Enter")
        await expect(page.locator(".notice.float")).to_contain_text("Rewound")
        assert not (plain_world.project / "new.txt").exists()
        await page.locator(".chat .scroll").focus()
        await keys.press("Control+z")
        await expect(page.locator(".notice.float")).to_contain_text("taken back")
        assert plain_world.read("new.txt") == "two\n"
        await keys.press("?")
        await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        await keys.press("Escape")
        await expect(page.get_by_role("dialog", name="Keys")).to_have_count(0)
        assert view.errors == []


async def test_a_file_is_found_read_and_put_into_the_message(plain_world: World) -> None:
    source = "LONGEST = 60\n\n\ndef wait() -> int:\n    return LONGEST\n"
    calls = [
        CallTool(name="write", args={"path": path, "content": source})
        for path in ("src/retry.py", "src/other.py")
    ]
    async with (
        serving(plain_world, ScriptedModel([calls, "Written."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        start = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Write them."})
        await view.open(session)
        await view.page.locator(".chat .scroll").focus()
        await view.page.keyboard.press("g")
        await view.page.keyboard.press("f")
        await view.page.get_by_label("Find a file").last.fill("retry")
        await expect(view.page.locator(".changes-side .file-row")).to_have_count(1)
        await view.page.locator(".changes-side .file-row").press("Enter")
        shown = view.page.get_by_role("table", name="src/retry.py")
        await expect(shown).to_contain_text("def wait() -> int:")
        await view.page.get_by_role("button", name="Put into the message").click()
        await expect(view.page.locator("#message")).to_have_value("@src/retry.py ")


async def test_files_stand_in_a_tree_that_arrows_open_and_a_key_puts_one_into_the_message(
    plain_world: World,
) -> None:
    calls = [
        CallTool(name="write", args={"path": path, "content": "LONGEST = 60\n"})
        for path in ("src/app/retry.py", "src/app/web/page.py", "README.md")
    ]
    async with (
        serving(plain_world, ScriptedModel([calls, "Written."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        start = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Cap it."})
        await view.open(session, "files")
        page, keys = view.page, view.page.keyboard
        tree = page.get_by_role("tree", name="Files")
        await expect(tree.locator(".name")).to_have_text(
            ["src/app", "web", "page.py", "retry.py", "README.md"]
        )
        await tree.get_by_role("treeitem", name="web").focus()
        await keys.press("ArrowLeft")
        await expect(tree.get_by_role("treeitem", name="page.py")).to_have_count(0)
        await keys.press("ArrowDown")
        await keys.press("Enter")
        await expect(tree.get_by_role("treeitem", name="retry.py")).to_have_attribute(
            "aria-selected", "true"
        )
        await page.get_by_role("table", name="src/app/retry.py").locator("th").first.hover()
        await expect(page.locator(".writer-tip")).to_contain_text(
            "Line 1, turn 1: `write src/app/retry.py` wrote it, asked for with “Cap it.”"
        )
        await keys.press("@")
        await expect(page.locator("#message")).to_have_value("@src/app/retry.py ")
        # A project without a repository is not listed: what was changed stands there.
        assert [each for each in view.errors if "status of 400" not in each] == []


async def test_a_line_of_a_file_names_its_turn_and_lines_go_into_the_message(
    plain_world: World,
) -> None:
    content = "LONGEST = 60\n\n\ndef wait() -> int:\n    return LONGEST  # ```\n"
    write = CallTool(name="write", args={"path": "retry.py", "content": content})
    async with (
        serving(plain_world, ScriptedModel([write, "Written."]), page=PAGE) as served,
        browsing(served) as view,
    ):
        start = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", start))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Cap the wait."})
        await view.open(session, "files")
        page = view.page
        await page.locator(".changes-side .file-row", has_text="retry.py").click()
        await page.get_by_role("button", name="4", exact=True).click()
        writer = page.locator(".line-writer")
        await expect(writer).to_contain_text("Line 4, turn 1: `write retry.py` wrote it")
        await page.get_by_role("button", name="5", exact=True).click(modifiers=["Shift"])
        await expect(page.locator("tr.here")).to_have_count(2)
        await page.get_by_role("button", name="Put lines 4–5 into the message").click()
        quoted = "````\ndef wait() -> int:\n    return LONGEST  # ```\n````\n"
        await expect(page.locator("#message")).to_have_value(f"@retry.py lines 4–5:\n{quoted}")
        await page.go_back()
        await writer.get_by_role("button", name="Go to the turn").click()
        await expect(page.get_by_role("treeitem", name="Cap the wait.")).to_have_attribute(
            "aria-selected", "true"
        )
        # A project without a repository is not listed: what was changed stands there.
        assert [each for each in view.errors if "status of 400" not in each] == []


async def test_costs_are_told_by_day_model_and_project(shared_world: World) -> None:
    usage = Usage(input_tokens=900, output_tokens=100, cost_usd=0.25)
    answers = [
        (SayText(text="One."), Spend(usage=usage)),
        (SayText(text="Two."), Spend(usage=usage)),
    ]
    async with (
        serving(shared_world, ScriptedModel(answers), page=PAGE) as served,
        browsing(served) as view,
    ):
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        for prompt in ("one", "two"):
            await served.good("POST", f"/sessions/{session}/message", {"content": prompt})
        await view.page.evaluate("() => { location.hash = '#/settings?show=Costs' }")
        screen = view.page.locator(".cost-screen")
        await expect(screen.locator(".sum")).to_contain_text("2 calls, 2,000 tokens")
        rows = screen.get_by_role("row")
        await expect(rows.filter(has_text="scripted:script")).to_contain_text("2,000")
        await expect(rows.filter(has_text=str(shared_world.project))).to_contain_text("2")
        await expect(screen.locator(".cost-bars span")).to_have_count(30)
        await screen.get_by_role("button", name="7 days").click()
        await expect(screen.locator(".cost-bars span")).to_have_count(7)
        assert view.errors == []


async def test_costs_of_one_model_are_looked_at_alone_and_saved_as_a_file(
    shared_world: World,
) -> None:
    usage = Usage(input_tokens=900, output_tokens=100, cost_usd=0.25)
    answers = [(SayText(text=text), Spend(usage=usage)) for text in ("One.", "Two.")]
    async with (
        serving(shared_world, ScriptedModel(answers), page=PAGE) as served,
        browsing(served) as view,
    ):
        for prompt in ("one", "two"):
            session = (await served.good("POST", "/sessions", {"title": prompt}))["id"]
            await served.good("POST", f"/sessions/{session}/message", {"content": prompt})
        await view.page.evaluate("() => { location.hash = '#/settings?show=Costs' }")
        screen = view.page.locator(".cost-screen")
        await screen.get_by_role("button", name="scripted:script", exact=True).click()
        await expect(screen.locator(".chosen-costs")).to_contain_text("scripted:script")
        await expect(screen.locator(".sum")).to_contain_text("2 calls")
        async with view.page.expect_download() as saved:
            await screen.get_by_role("button", name="Save as CSV").click()
        file = await saved.value
        assert re.fullmatch(r"weft-costs-\d{4}-\d\d-\d\d\.csv", file.suggested_filename)
        lines = (await anyio.Path(await file.path()).read_text()).splitlines()
        assert lines[0].startswith("day,project,model,calls,")
        assert [line.split(",")[2:5] for line in lines[1:]] == [["scripted:script", "2", "1800"]]
        await screen.get_by_role("button", name="Only scripted:script: show all again").click()
        await expect(screen.locator(".chosen-costs")).to_have_count(0)
        assert view.errors == []


async def test_four_hundred_turns_are_one_line_and_any_of_them_is_one_key_away(
    plain_world: World,
) -> None:
    count = 400
    model = ScriptedModel([f"Answer {number}." for number in range(count)])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        speaker = await served.app.sessions.get(session)
        for number in range(count):
            await speaker.send_message(f"prompt {number}")
        await view.open(session)
        bar = view.page.locator(".thread-bar")
        await expect(bar.locator(".place")).to_have_text(f"Turn {count} of {count}")
        await expect(bar.locator(".folded")).to_be_visible()
        # One row, as high as any other: the oldest are a plain line.
        box = await bar.bounding_box()
        assert box is not None
        assert box["height"] == 44
        assert await bar.locator("circle").count() < count
        slider = view.page.get_by_role("slider", name="Turn")
        await slider.press("Home")
        await expect(view.page.locator(".turn.looked")).to_contain_text("Answer 0.")
        await slider.press("ArrowRight")
        await expect(view.page.locator(".turn.looked")).to_contain_text("Answer 1.")
        await slider.press("Escape")
        await view.page.locator(".chat .scroll").focus()
        await view.page.keyboard.press("t")
        await expect(view.page.get_by_role("tree")).to_be_visible()
        await expect(view.page.get_by_role("treeitem").first).to_contain_text("prompt 399")
        assert await view.page.get_by_role("treeitem").count() < 60
        assert view.errors == []
