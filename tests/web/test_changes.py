"""Changes on the page, in a real browser with the real server: net differences, hunks put back and
taken.
"""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import browsing
from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = ROOT / "src" / "weft" / "web" / "page"
LINES = "".join(f"line {number}\n" for number in range(1, 31))


def edit(path: str, old: str, new: str) -> CallTool:
    return CallTool(name="edit", args={"path": path, "old_string": old, "new_string": new})


def editor() -> ScriptedModel:
    return ScriptedModel(
        [
            CallTool(name="read", args={"path": "a.py"}),
            (edit("a.py", "line 2\n", "two\n"), edit("a.py", "line 29\n", "last\n")),
            "Changed.",
            edit("a.py", "two\n", "zwei\n"),
            "Changed again.",
            "More.",
        ]
    )


async def edited(served: ServedWorld) -> str:
    """A session in which two turns changed one file, and edits ask again."""
    started = {"title": "T", "permission_mode": "accept_edits"}
    session = str((await served.good("POST", "/sessions", started))["id"])
    for prompt in ("one", "two"):
        await served.good("POST", f"/sessions/{session}/message", {"content": prompt})
    await served.good("PUT", f"/sessions/{session}/permission-mode", {"mode": "default"})
    return session


async def test_a_hunk_is_put_back_by_the_click_alone_and_undone(plain_world: World) -> None:
    plain_world.write("a.py", LINES)
    async with serving(plain_world, editor(), page=PAGE) as served, browsing(served) as view:
        session = await edited(served)
        await view.open(session, "changes")
        hunks = view.page.locator(".hunk:not(.put-back)")
        # Both turns' changes of a line are one difference.
        await expect(hunks).to_have_count(2)
        await expect(hunks.first.locator("td.text.add").first).to_have_text("zwei")
        await expect(hunks.first.locator("td.text.del").first).to_have_text("line 2")
        await expect(hunks.first.locator(".hunk-head")).to_contain_text("turn 2")
        await hunks.first.get_by_role("button", name="Revert").click()
        await expect(view.page.locator(".put-back .struck")).to_be_visible()
        await expect(hunks).to_have_count(1)
        assert plain_world.read("a.py") == LINES.replace("line 29\n", "last\n")
        await view.page.locator(".put-back").get_by_role("button", name="Undo").click()
        await expect(hunks).to_have_count(2)
        assert "zwei\n" in plain_world.read("a.py")
        assert view.errors == []


async def test_a_file_that_the_log_does_not_tell_of_is_named(plain_world: World) -> None:
    plain_world.write("a.py", LINES)
    async with serving(plain_world, editor(), page=PAGE) as served, browsing(served) as view:
        session = await edited(served)
        plain_world.write("other.txt", "by hand\n")
        await view.open(session, "changes")
        named = view.page.get_by_role("region", name="Differences")
        await expect(named).to_contain_text("other.txt")
        await expect(named).to_contain_text("not by this session")
        (plain_world.project / "other.txt").unlink()
        await named.get_by_role("button", name="Look again").click()
        await expect(named).to_have_count(0)
        assert view.errors == []


async def test_changes_are_shown_of_one_turn_and_an_accepted_hunk_folds(
    plain_world: World,
) -> None:
    plain_world.write("a.py", LINES)
    async with serving(plain_world, editor(), page=PAGE) as served, browsing(served) as view:
        session = await edited(served)
        await view.open(session, "changes")
        await view.page.get_by_role("button", name="Scope").click()
        await view.page.get_by_role("menuitemradio", name="Turn 2 only").click()
        hunk = view.page.locator(".hunk")
        await expect(hunk).to_have_count(1)
        await expect(hunk.locator("td.text.del").first).to_have_text("two")
        await view.page.get_by_role("button", name="Unified").click()
        await expect(hunk.locator("table.unified")).to_be_visible()
        await view.page.keyboard.press("y")
        await expect(hunk.locator("table")).to_have_count(0)
        await expect(hunk.locator(".accepted")).to_be_visible()


async def test_a_hunk_whose_lines_were_changed_since_is_left_and_said_so(
    plain_world: World,
) -> None:
    plain_world.write("a.py", LINES)
    async with serving(plain_world, editor(), page=PAGE) as served, browsing(served) as view:
        session = await edited(served)
        await view.open(session, "changes")
        mine = plain_world.read("a.py").replace("zwei\n", "mine\n")
        plain_world.write("a.py", mine)
        await view.page.locator(".hunk").first.get_by_role("button", name="Revert").click()
        await expect(view.page.locator(".notice.bad")).to_contain_text("changed since")
        assert plain_world.read("a.py") == mine


async def test_a_hunk_of_another_branch_is_taken(plain_world: World) -> None:
    plain_world.write("a.py", LINES)
    model = ScriptedModel(
        [
            "Hello.",
            CallTool(name="read", args={"path": "a.py"}),
            (edit("a.py", "line 2\n", "two\n"), edit("a.py", "line 29\n", "last\n")),
            "One way.",
            CallTool(name="write", args={"path": "b.py", "content": "b = 1\n"}),
            (SayText(text="Another way."),),
        ]
    )
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        started = {"title": "T", "permission_mode": "accept_edits"}
        session = (await served.good("POST", "/sessions", started))["id"]
        path = f"/sessions/{session}"
        await served.good("POST", f"{path}/message", {"content": "hello"})
        above = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await served.good("POST", f"{path}/message", {"content": "one"})
        theirs = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await served.good("POST", f"{path}/rewind", {"to": above})
        await served.good("POST", f"{path}/message", {"content": "two"})
        mine = (await served.good("GET", f"{path}/messages"))["messages"][-1]["id"]
        await view.open(session, f"compare?a={mine}&b={theirs}")
        takes = view.page.get_by_role("button", name="Take B’s hunk into A")
        await expect(takes).to_have_count(2)
        await takes.last.click()
        await expect(view.page.locator(".notice.ok")).to_contain_text("Taken into a.py")
        assert plain_world.read("a.py") == LINES.replace("line 29\n", "last\n")
