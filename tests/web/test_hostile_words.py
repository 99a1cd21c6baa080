"""Hostile words: whatever a model or a file says is shown, and none of it acts."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from scripts.build_page import ROOT

from tests.support.page_browser import FORBIDDEN, browsing
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
    f"<ScRiPt>{ACTS}</sCrIpT>",
    f"<script src='data:text/javascript,{ACTS}'></script>",
    f"<script type=module>{ACTS}</script>",
    f"<scr<script>ipt>{ACTS}</scr</script>ipt>",
    f"<img src=1 href=1 onerror='{ACTS}'></img>",
    f"<image src=x onerror={ACTS}>",
    f"<img/src='x'/onerror={ACTS}>",
    f"<img src=x:alert(1) onerror=eval(src)>{ACTS}",
    f"<video><source onerror={ACTS}></video>",
    f"<audio src=x onerror={ACTS}>",
    f"<body onload={ACTS}>",
    f"<input autofocus onfocus={ACTS}>",
    f"<select autofocus onfocus={ACTS}>",
    f"<textarea autofocus onfocus={ACTS}>",
    f"<marquee onstart={ACTS}>",
    f"<svg><script>{ACTS}</script></svg>",
    f"<svg><animate onbegin={ACTS} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{ACTS}'><text x=20 y=20>x</text></a></svg>",
    f"<svg><use href=\"data:image/svg+xml,<svg id='x' onload='{ACTS}'/>#x\"></svg>",
    f"<svg><foreignObject><iframe srcdoc='<script>{ACTS}</script>'></foreignObject></svg>",
    f"<math href='javascript:{ACTS}'>x</math>",
    f"<embed src='javascript:{ACTS}'>",
    f"<link rel=stylesheet href='javascript:{ACTS}'>",
    f"<template><script>{ACTS}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={ACTS}>'>",
    f"<table background='javascript:{ACTS}'>",
    f"<div style='background:url(javascript:{ACTS})'>",
    f"<div onpointerrawupdate={ACTS}>x</div>",
    f"<x contenteditable onblur={ACTS}>x",
    f"[a](vbscript:{ACTS})",
    f"[a](  javascript:{ACTS})",
    f"[a](java\tscript:{ACTS})",
    f"[a](&#106;avascript:{ACTS})",
    f"[a](\u0001javascript:{ACTS})",
    f"[a](blob:javascript:{ACTS})",
    f"[a](file:///etc/passwd 'onclick={ACTS}')",
    f"[a](https://example.org/?q=%22onmouseover={ACTS})",
    f"[![x](javascript:{ACTS})](javascript:{ACTS})",
    f"![x](data:image/svg+xml,<svg onload={ACTS}>)",
    f"<javascript:{ACTS}>",
    f"[x]: <javascript:{ACTS}>\n\n[x]",
    f"# <img src=x onerror={ACTS}>",
    f"- [ ] <img src=x onerror={ACTS}>\n- [x] <script>{ACTS}</script>",
    f"> <script>{ACTS}</script>\n> > <img src=x onerror={ACTS}>",
    f'```"><script>{ACTS}</script>\nx\n```',
    f"~~~html onload={ACTS}\n<svg onload={ACTS}>\n~~~",
    f"    <script>{ACTS}</script>",
    f"**<img src=x onerror={ACTS}>** _<script>{ACTS}</script>_ ~~<svg onload={ACTS}>~~",
    f'text <a href="https://example.org" onclick="{ACTS}">x</a>',
    f"\\<script>{ACTS}\\</script>",
    f"<a\n href='javascript:{ACTS}'>x</a>",
    f"\x00<script>{ACTS}</script>",
    f"{{{{constructor.constructor('{ACTS}')()}}}}",
    f"${{{ACTS}}} <%= {ACTS} %>",
    f"<style>*{{background:url('javascript:{ACTS}')}}</style>",
    f"<form action='javascript:{ACTS}'><input type=submit></form>",
    f"<frameset onload={ACTS}><frame src='javascript:{ACTS}'></frameset>",
    f"<isindex type=image src=1 onerror={ACTS}>",
    f"<object><param name=src value='javascript:{ACTS}'></object>",
)


async def test_no_words_of_a_model_become_a_program(plain_world: World) -> None:
    assert len(set(CASES)) >= 80
    answers = [(SayText(text=case, chunk=5),) for case in CASES]
    model = ScriptedModel(answers)
    async with serving(plain_world, model, page=PAGE) as served, browsing(served) as view:
        dialogs: list[str] = []
        view.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        session = (await served.good("POST", "/sessions", {"title": "<b>T</b>"}))["id"]
        await view.open(session)
        speaker = await served.app.sessions.get(session)
        for case in CASES:
            await speaker.send_message(case)
        await expect(view.page.locator(".thread-bar .place")).to_have_text(
            f"Turn {len(CASES)} of {len(CASES)}"
        )
        await expect(view.page.locator(".turn .weft")).not_to_have_count(0)
        assert await view.page.evaluate("window.canary") is None
        assert dialogs == []
        assert await view.page.locator(FORBIDDEN).count() == 0
        links = await view.page.locator(".prose a").evaluate_all("all => all.map(a => a.href)")
        assert all(each.startswith(("https:", "http:", "mailto:")) for each in links)
        # The teeth: one of them acts where a page makes elements of it, and this page cannot.
        bare = await view.page.context.new_page()
        await bare.set_content(CASES[1])
        await expect(bare.locator("img")).to_have_count(1)
        acted = "new Promise(done => setInterval(() => window.canary && done(window.canary), 5))"
        assert await bare.evaluate(acted) == 1
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
