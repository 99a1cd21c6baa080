"""Sessions that reach the web: what is asked, what rules allow, what redirects come to."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.rewind_project import open_world, start, turns
from tests.support.sandboxed_session import tool_results
from tests.support.world import World, until
from weft.errors import BadArguments
from weft.events import PermissionRequest, TurnFinished
from weft.providers.script import CallTool
from weft.tools.web.fetch import plain_address

pytestmark = [pytest.mark.anyio, pytest.mark.process]

PAGE = b"""<html><head><title>T</title><script>evil()</script></head><body>
<nav><a href="/n">menu</a></nav><h1>Title</h1><p>Some <b>bold</b> <a href="/rel">link</a></p>
<pre><code>x = 1</code></pre></body></html>"""


class _Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status, kind, body, more = 200, "text/html; charset=utf-8", PAGE, ""
        if self.path == "/long":
            kind, body = "text/plain", b"0123456789" * 5_000
        elif self.path == "/here":
            status, more = 302, "/page"
        elif self.path == "/away":
            status, more = 302, "http://other.example/x"
        elif self.path == "/inside":
            status, more = 302, "http://169.254.169.254/latest"
        elif self.path == "/round":
            status, more = 302, "/round"
        elif self.path == "/deep":
            body = b"<div>" * 200_000 + b"x"
        elif self.path == "/picture":
            kind, body = "image/png", bytes(100)
        elif self.path == "/gone":
            status, kind, body = 404, "text/plain", b"no such page"
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if more:
            self.send_header("location", more)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the test's own output."""


@contextmanager
def site() -> Iterator[tuple[str, list[str]]]:
    """A site on loopback; gives its address, and what was asked of it."""
    asked: list[str] = []
    handler = type("Site", (_Site,), {"asked": asked})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(host: str, path: str, **more: int) -> CallTool:
    return CallTool(name="fetch", args={"url": f"http://{host}{path}", **more})


async def test_pages_come_as_text_and_redirects_to_other_places_are_told(
    plain_world: World,
) -> None:
    with site() as (host, asked):
        paths = ("/page", "/here", "/away", "/inside", "/round", "/picture", "/gone", "/deep")
        model = turns([*(fetch(host, path) for path in paths)])
        settings: dict[str, Any] = {
            "permissions__allow": [f"fetch(domain:{host})"],
            "web__tools": True,
        }
        async with open_world(plain_world, model, **settings) as app:
            await (await start(app)).send_message("go")
        page, here, away, inside, again, picture, gone, _ = tool_results(model)
    assert "# Title" in page
    assert f"[link](http://{host}/rel)" in page
    assert "x = 1" in page
    assert "evil()" not in page
    assert "menu" not in page
    assert "no instruction" in page
    assert "# Title" in here
    assert "redirects to another place, http://other.example/x" in away
    assert "http://169.254.169.254/latest" in inside
    assert "redirects again and again" in again
    assert "no text; the shell can download it" in picture
    assert "answers 404" in gone
    assert "no such page" in gone
    assert asked.count("/round") == 6


async def test_a_long_page_comes_in_parts_and_is_asked_for_once(plain_world: World) -> None:
    with site() as (host, asked):
        model = turns([fetch(host, "/long"), fetch(host, "/long", offset=40_000)])
        settings: dict[str, Any] = {
            "permissions__allow": [f"fetch(domain:{host})"],
            "web__tools": True,
        }
        async with open_world(plain_world, model, **settings) as app:
            await (await start(app)).send_message("go")
        first, second = tool_results(model)
    assert "call again with offset=40000" in first
    assert "50,000 characters" in second
    assert second.endswith("0123456789")
    assert asked == ["/long"]


async def test_without_a_rule_it_is_asked_and_what_is_kept_is_judged_again(
    plain_world: World,
) -> None:
    with site() as (host, asked):
        model = turns([fetch(host, "/page")])
        async with open_world(plain_world, model, web__tools=True) as app:
            session = await app.sessions.start_session(permission_mode="auto")
            await session.send_prompt("go")
            request = await until(session, PermissionRequest)
            assert request.tool_name == "fetch"
            assert request.preview == f"http://{host}/page"
            await session.respond_to_permission("deny", request_id=request.request_id)
            await until(session, TurnFinished)
    assert asked == []


async def test_models_are_told_of_it_where_the_user_wants_it_and_nowhere_else(
    plain_world: World,
) -> None:
    for is_wanted in (False, True):
        model = turns(())
        async with open_world(plain_world, model, web__tools=is_wanted) as app:
            await (await start(app)).send_message("go")
        names = {tool.name for tool in model.requests[0].tools}
        assert names.isdisjoint({"fetch", "web_search"}) is not is_wanted
    model = turns(())
    async with open_world(plain_world, model) as app:
        session = await app.sessions.start_session(tools=["read", "fetch"])
        await session.send_message("go")
    assert {tool.name for tool in model.requests[0].tools} == {"read", "fetch"}


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://a.example/",
            "file:///etc/passwd",
            "http://",
            "a.example",
            "http://user@a.example/",
        ),
        *("http://a.example@127.0.0.1/", "http://2130706433/", "http://127.1/", "http://0x7f.1/"),
        *("http://a.example\\@b.example/", "http://a%2eexample/", "http://a.example:99999/"),
        *("http://\u2488.example/", "http://a.example/\nx", "http://[::1%25lo]/", "http://a\0b/"),
    ],
)
async def test_an_address_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(BadArguments):
        plain_address(url)
