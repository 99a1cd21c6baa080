"""Hostile words: whatever a model or a file says is shown, and none of it acts."""

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
ACTS = "window.canary=1"
CASES = (
    f"<script>{ACTS}</script>",
    f"<img src=x onerror={ACTS}>",
    f"<svg onload={ACTS}>",
    f"<iframe srcdoc='<script>parent.{ACTS}</script>'></iframe>",
    f"[click](javascript:{ACTS})",
    f"[click](JaVaScRiPt&colon;{ACTS})",
    f"[click](data:text/html,<script>{ACTS}</script>)",
    f"![x](x){{onerror={ACTS}}}",
    f'![remote](https://example.invalid/p.png "\'onload={ACTS}")',
    f"<a href='javascript:{ACTS}'>x</a>",
    f"<math><mi xlink:href='javascript:{ACTS}'>x</mi></math>",
    f"<details open ontoggle={ACTS}>",
    f"<form><button formaction=javascript:{ACTS}>x</button></form>",
    f"<style>@import 'javascript:{ACTS}';</style>",
    f"<object data='javascript:{ACTS}'></object>",
    f"<base href='javascript:{ACTS}//'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{ACTS}'>",
    f"```html\n<script>{ACTS}</script>\n```",
    f"`<img src=x onerror={ACTS}>`",
    f"| <script>{ACTS}</script> | b |\n|---|---|\n| <img src=x onerror={ACTS}> | 2 |",
    f"[ref]\n\n[ref]: javascript:{ACTS} 'x'",
    f'<https://example.org/"onmouseover={ACTS}>',
    f"<!--><img src=x onerror={ACTS}>-->",
    f"<![CDATA[<script>{ACTS}</script>]]>",
    f"&lt;script&gt;{ACTS}&lt;/script&gt;",
)
FORBIDDEN = (
    "script:not([src]),iframe,object,embed,base,form form,img[src^=http],style,meta[http-equiv]"
)


async def test_no_words_of_a_model_become_a_program(plain_world: World) -> None:
    answers = [(SayText(text=case, chunk=3),) for case in CASES]
    model = ScriptedModel(answers)
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        dialogs: list[str] = []
        view.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        session = (await served.good("POST", "/sessions", {"title": "<b>T</b>"}))["id"]
        await view.open(session)
        for case in CASES:
            await served.good("POST", f"/sessions/{session}/message", {"content": case})
        await expect(view.page.locator(".thread-bar .place")).to_have_text(
            f"Turn {len(CASES)} of {len(CASES)}"
        )
        await expect(view.page.locator(".turn .weft")).not_to_have_count(0)
        assert await view.page.evaluate("window.canary") is None
        assert dialogs == []
        assert await view.page.locator(FORBIDDEN).count() == 0
        links = await view.page.locator(".prose a").evaluate_all("all => all.map(a => a.href)")
        assert all(each.startswith(("https:", "http:", "mailto:")) for each in links)
        # The teeth: the page itself cannot make elements of a string.
        refused = "try { document.body.innerHTML = '<i>x</i>'; 'done' } catch { 'refused' }"
        assert await view.page.evaluate(refused) == "refused"


async def test_a_command_with_hidden_characters_shows_them_and_offers_no_first(
    plain_world: World,
) -> None:
    run = CallTool(name="shell", args={"command": "rm -rf build \u202egnp.ogol/ && make"})
    model = ScriptedModel([run, "Then not."])
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        session = (await served.good("POST", "/sessions", {}))["id"]
        await view.open(session)
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Clean."})
        card = view.page.locator(".request")
        await expect(card.locator(".code-point")).to_have_text("<U+202E>")
        await expect(card.locator(".button.primary")).to_contain_text("No, and say why")
