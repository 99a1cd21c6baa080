"""Screens that change something, in a real browser with the real server: what a request says of
itself, plans, decisions, trees of text, settings and files.
"""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import serving
from tests.support.world import World
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"


def write_file(path: str, content: str) -> CallTool:
    return CallTool(name="write", args={"path": path, "content": content})


async def test_a_request_says_where_it_runs_and_takes_no_words_of_the_model_for_facts(
    plain_world: World,
) -> None:
    command = "# with the word of the user\ngit push origin x"
    model = ScriptedModel([CallTool(name="shell", args={"command": command}), "Done."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        await view.open(session)
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Push."})
        card = view.page.locator(".request")
        await expect(card.locator(".command")).to_have_text(command)
        facts = card.locator(".facts")
        await expect(facts).to_contain_text("Without a sandbox")
        await expect(facts).to_contain_text("No rule covers git push")
        await expect(facts).not_to_contain_text("word of the user")
        assert view.errors == []


async def test_a_node_of_a_tree_is_rated_edited_brought_back_and_branched_at_a_token(
    plain_world: World,
) -> None:
    tokens = (("sunny", -0.3, (("sunny", -0.3), ("grey", -1.4))), (".", -0.01, ()))
    model = ScriptedModel([(SayText(text="sunny.", tokens=tokens),)])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        root = (await served.good("POST", "/looms", {"text": "The day was "}))["id"]
        await served.good("PUT", f"/looms/{root}/settings", {"logprobs": 5})
        await served.good("POST", f"/looms/{root}/generate", {})
        await view.open(session, f"loom?loom={root}")
        page = view.page
        await page.locator(".loom-row", has_text="sunny.").click()
        panel = page.get_by_role("complementary", name="Node")
        await panel.get_by_role("button", name="4 of 5").click()
        await expect(panel.get_by_role("button", name="4 of 5")).to_have_attribute(
            "aria-pressed", "true"
        )
        await panel.get_by_role("tab", name="Tokens").click()
        await panel.get_by_role("button", name="sunny", exact=True).click()
        await panel.get_by_role("button", name="Branch with “grey”").click()
        await expect(page.locator(".loom-read p.here .text")).to_have_text("grey")
        await panel.get_by_role("tab", name="Node").click()
        await panel.get_by_role("button", name="Edit", exact=True).first.click()
        await panel.get_by_label("Text of this node").fill("grey and long.")
        await panel.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator(".loom-read p.here .text")).to_have_text("grey and long.")
        await panel.get_by_role("tab", name="Revisions").click()
        await panel.get_by_role("button", name="Bring back").click()
        await expect(page.locator(".loom-read p.here .text")).to_have_text("grey")
        await panel.get_by_role("button", name="Make it a coding session").click()
        await expect(page.locator("#message")).to_have_value("The day was grey")
        assert view.errors == []


async def test_two_branches_of_a_tree_are_compared_and_woven_with_keys(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        root = (await served.good("POST", "/looms", {"text": "Both begin.\n\n"}))["id"]
        for text in ("One end.", "Another end."):
            await served.good("POST", f"/looms/{root}/children", {"text": text})
        async with browsing(served) as view:
            await view.open(session, f"loom?loom={root}")
            page, tree = view.page, view.page.locator(".loom")
            await page.locator(".loom-row", has_text="One end.").click()
            await tree.press("=")
            await page.locator(".loom-row", has_text="Another end.").click()
            await tree.press("=")
            compared = page.get_by_role("region", name="Two branches compared")
            await expect(compared.locator(".only-second")).to_contain_text("Another")
            await tree.press("w")
            await page.locator(".loom-row", has_text="One end.").click()
            await tree.press("w")
            here = page.locator(".loom-read p.here .text")
            await expect(here).to_contain_text("Another end.")
            await expect(here).to_contain_text("One end.")
            assert view.errors == []


async def test_two_branches_show_their_checks_and_are_woven(plain_world: World) -> None:
    plain_world.write("a.py", "a = 1\n")
    check = "echo pytest; echo '3 passed in 1s'"
    model = ScriptedModel(
        [
            "Hello.",
            (write_file("one.py", "one = 1\n"), CallTool(name="shell", args={"command": check})),
            "One way.",
            (
                write_file("two.py", "two = 2\n"),
                CallTool(name="shell", args={"command": "echo pytest: 2 failed; exit 1"}),
            ),
            "Another way.",
        ]
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"permission_mode": "bypass"}))["id"]
        path = f"/sessions/{session}"
        await served.good("POST", f"{path}/message", {"content": "hello"})
        above = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await served.good("POST", f"{path}/message", {"content": "one"})
        theirs = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await served.good("POST", f"{path}/rewind", {"to": above})
        await served.good("POST", f"{path}/message", {"content": "two"})
        mine = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await view.open(session, f"compare?a={mine}&b={theirs}")
        rows = view.page.locator(".compare-head tbody tr")
        await expect(rows.first.locator(".bad")).to_have_text("2 failed")
        await expect(rows.last.locator(".ok")).to_have_text("3 passed")
        await expect(rows.last.locator(".stat .add")).to_have_text("+1")
        await view.page.get_by_role("button", name="Weave…").click()
        form = view.page.get_by_role("region", name="Weave both branches")
        await form.get_by_role("button", name="Weave", exact=True).click()
        await expect(view.page.locator(".notice.float")).to_contain_text("Woven")
        assert plain_world.read("one.py") == "one = 1\n"
        assert plain_world.read("two.py") == "two = 2\n"
        assert view.errors == []


async def test_a_decision_is_noted_changed_dropped_and_superseded_on_the_page(
    plain_world: World,
) -> None:
    plain_world.write("retry.py", "a = 1\nLONGEST = 60\nb = 2\n")
    async with serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served:
        made = await served.good("POST", "/sessions", {"title": "T"})
        path = f"/projects/{made['project']}/decisions"
        asked = {"title": "One lock a host", "status": "proposed"}
        await served.good("POST", path, asked)
        async with browsing(served) as view:
            await view.open(made["id"], "decisions")
            page = view.page
            await page.get_by_role("button", name="New…").click()
            await page.get_by_label("What").fill("Cap any wait")
            await page.get_by_role("textbox", name="Why", exact=True).fill(
                "A mirror asked for a day."
            )
            await page.get_by_label("Files it is about").fill("retry.py")
            await page.get_by_label("Not to propose again").fill("No cap")
            await page.get_by_role("button", name="Save").click()
            panel = page.get_by_role("complementary", name="Why")
            await expect(panel).to_contain_text("No cap")
            await panel.get_by_role("button", name="Edit").click()
            await panel.get_by_label("What").fill("Cap any wait at 60 s")
            await panel.get_by_role("button", name="Save").click()
            await expect(page.locator(".box", has_text="Cap any wait at 60 s")).to_be_visible()
            await page.get_by_label("Why: a path and a line").fill("retry.py:2")
            await page.keyboard.press("Enter")
            await expect(panel.locator("tr.here")).to_contain_text("LONGEST = 60")
            await panel.get_by_role("button", name="Supersede…").click()
            await page.get_by_label("What").fill("Cap any wait at 30 s")
            await page.get_by_role("button", name="Save").click()
            old = page.locator(".box", has_text="at 60 s")
            await expect(old).to_contain_text("superseded")
            await page.locator(".box", has_text="One lock a host").click()
            await panel.get_by_role("button", name="Drop").click()
            await expect(page.locator(".box", has_text="One lock")).to_contain_text("abandoned")
            await page.locator(".notice.float").get_by_role("button", name="Undo").click()
            await expect(page.locator(".box", has_text="One lock")).to_contain_text("proposed")
            assert view.errors == []


async def test_a_branch_is_found_and_rewound_to_with_the_keys_of_the_tree(
    plain_world: World,
) -> None:
    model = ScriptedModel(["One.", "Two.", "Another."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {"title": "T"}))["id"]
        path = f"/sessions/{session}"
        await served.good("POST", f"{path}/message", {"content": "first"})
        first = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await served.good("POST", f"{path}/message", {"content": "left behind"})
        await served.good("POST", f"{path}/branches", {"at": first})
        await served.good("POST", f"{path}/message", {"content": "present"})
        # An address may name any message of a turn.
        await view.open(session, f"tree?at={first}")
        tree = view.page.get_by_role("tree")
        await expect(view.page.locator(".turn-panel h3.big")).to_have_text("first")
        await expect(view.page.locator(".status")).to_contain_text("Looking at turn 1")
        await tree.press("l")
        await expect(view.page.locator(".turn-panel h3.big")).to_have_text("left behind")
        await tree.press("h")
        await expect(view.page.locator(".turn-panel h3.big")).to_have_text("present")
        await tree.press("End")
        await expect(view.page.locator(".turn-panel .primary")).to_have_attribute(
            "aria-disabled", "false"
        )
        await tree.press("Enter")
        await expect(view.page.locator(".notice.float")).to_contain_text("Rewound.")
        await expect(view.page.locator(".turn")).to_have_count(1)
        assert view.errors == []


async def test_a_line_of_a_file_is_chosen_and_asked_about_and_a_session_put_away_with_a_key(
    plain_world: World,
) -> None:
    plain_world.write("retry.py", "a = 1\nLONGEST = 60\nb = 2\n")
    async with serving(plain_world, ScriptedModel(["Yes."]), page=PAGE) as served:
        session = (await served.good("POST", "/sessions", {"title": "Put away"}))["id"]
        await served.good(
            "PUT", f"/sessions/{session}/boundaries/retry.py", {"first": 1, "last": 1}
        )
        async with browsing(served) as view:
            page = view.page
            await view.open(session, "files?path=retry.py")
            await expect(page.locator("tr.editable")).to_have_count(1)
            await page.get_by_role("button", name="2", exact=True).click()
            await page.get_by_role("button", name="Why line 2?").click()
            await expect(page.locator(".why tr.here")).to_contain_text("LONGEST = 60")
            await page.evaluate("() => { location.hash = '#/sessions' }")
            await page.locator(".session-row .open", has_text="Put away").focus()
            await page.keyboard.press("a")
            await expect(page.locator(".notice.float")).to_contain_text("Archived.")
            await expect(page.locator(".session-row")).to_have_count(0)
            await page.locator(".notice.float").get_by_role("button", name="Undo").click()
            await expect(page.locator(".session-row")).to_have_count(1)
