"""Logins to MCP servers: made in a browser, kept like keys, renewed, extended and forgotten."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from tests.support.loopback_server import LoopbackServer, serving
from tests.support.mcp_http_server import http_client
from tests.support.mcp_issuer import LoginServer, fields
from tests.support.mcp_servers import called
from weft.clock import Clock, ManualClock
from weft.errors import FinalToolError, UsageError
from weft.mcp import McpServer
from weft.mcp.oauth_tokens import LoginFile, SavedAuthorization, SavedLogin
from weft.runtime.mcp.oauth_login import LoginOptions, OAuthLogin
from weft.transport import HttpClient, HttpRequest

pytestmark = pytest.mark.anyio
pytest.importorskip("mcp", reason="the MCP SDK is an extra")


class Browser:
    """Opens what is shown, and goes where it is sent."""

    def __init__(self, *, pastes: bool = False) -> None:
        self.opened: list[dict[str, str]] = []
        self._ask = anyio.Event()
        self._pastes = pastes

    def show(self, address: str) -> None:
        self.opened.append(fields(urlsplit(address).query))
        self._address = address
        self._ask.set()

    async def paste(self) -> str | None:
        """What the user does: it runs beside the wait for the browser."""
        await self._ask.wait()
        self._ask = anyio.Event()
        client = HttpClient()
        async with client.send(HttpRequest(url=self._address, method="GET")) as reply:
            back = reply.headers["location"]
        if self._pastes:
            return back
        async with client.send(HttpRequest(url=back, method="GET")) as reply:
            self.status = reply.status
        await anyio.sleep_forever()
        return None


@asynccontextmanager
async def issuing(*traps: str) -> AsyncGenerator[tuple[LoginServer, LoopbackServer]]:
    login = LoginServer(*traps)
    async with serving(login.handle) as listening:
        login.url = listening.url
        yield login, listening


async def log_in(
    login: LoginServer, folder: Path, browser: Browser | None = None, **options: Any
) -> SavedLogin:
    browser = browser or Browser()
    asked = LoginOptions(url=f"{login.url}/mcp", show=browser.show, paste=browser.paste, **options)
    clock: Clock = ManualClock()
    with anyio.fail_after(30):
        return await OAuthLogin(asked, LoginFile(folder), HttpClient(), clock).run()


@asynccontextmanager
async def using(
    login: LoginServer, folder: Path, clock: Clock | None = None, hidden: list[str] | None = None
) -> AsyncGenerator[McpServer]:
    url = f"{login.url}/mcp"
    hide = (lambda secret: None) if hidden is None else hidden.append
    saved = SavedAuthorization(
        url, LoginFile(folder), HttpClient(), clock or ManualClock(), hide=hide
    )
    async with http_client(url, authorization=saved) as server:
        yield server


@pytest.mark.parametrize("pastes", [False, True])
async def test_a_login_in_the_browser_lets_calls_through_and_is_private(
    tmp_path: Path, pastes: bool
) -> None:
    async with issuing() as (login, _), using(login, tmp_path) as server:
        with pytest.raises(FinalToolError, match="`weft mcp login scripted` logs in"):
            await called(server)
        browser = Browser(pastes=pastes)
        saved = await log_in(login, tmp_path, browser)
        assert saved.issuer.rstrip("/") == login.url
        assert (await called(server, text="b")).text.endswith("echo: b")
    (asked,) = browser.opened
    assert asked["code_challenge_method"] == "S256"
    assert asked["resource"] == f"{login.url}/mcp"
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    file = tmp_path / "mcp-auth.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "access-" not in repr(saved)


async def test_a_login_that_is_over_is_renewed_without_the_user(tmp_path: Path) -> None:
    hidden: list[str] = []
    async with issuing() as (login, _):
        first = await log_in(login, tmp_path)
        login.tokens.clear()
        async with using(login, tmp_path, hidden=hidden) as server:
            assert (await called(server, text="b")).text.endswith("echo: b")
        fresh = LoginFile(tmp_path).of(f"{login.url}/mcp")
    assert fresh is not None
    assert fresh.refresh_token != first.refresh_token
    assert login.forms[-1]["grant_type"] == "refresh_token"
    assert login.forms[-1]["resource"] == f"{login.url}/mcp"
    assert {first.access_token, fresh.access_token, fresh.refresh_token} <= set(hidden)


async def test_a_login_is_renewed_before_its_end(tmp_path: Path) -> None:
    clock = ManualClock()
    async with issuing() as (login, _):
        first = await log_in(login, tmp_path)
        clock.advance(3590)
        async with using(login, tmp_path, clock) as server:
            await called(server)
        fresh = LoginFile(tmp_path).of(f"{login.url}/mcp")
    assert fresh is not None
    assert fresh.access_token != first.access_token


async def test_two_that_renew_at_once_do_it_once(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        first = await log_in(login, tmp_path)
        login.tokens.clear()
        refused = f"Bearer {first.access_token}"
        found: list[bool] = []

        async def renew() -> None:
            file, client = LoginFile(tmp_path), HttpClient()
            saved = SavedAuthorization(f"{login.url}/mcp", file, client, ManualClock())
            found.append(await saved.renewed(refused))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(renew)
    assert found == [True] * 4
    assert [form["grant_type"] for form in login.forms].count("refresh_token") == 1


async def test_a_login_that_cannot_be_renewed_is_needed_again(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        await log_in(login, tmp_path)
        login.tokens.clear()
        login.refresh.clear()
        async with using(login, tmp_path) as server:
            with pytest.raises(FinalToolError, match="`weft mcp login scripted` logs in"):
                await called(server)
            assert server.state == "needs_login"


async def test_the_next_login_asks_for_what_was_missing_and_keeps_the_rest(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        await log_in(login, tmp_path)
        login.wanted = "more"
        async with using(login, tmp_path) as server:
            with pytest.raises(FinalToolError, match="`weft mcp login scripted` logs in"):
                await called(server)
            browser = Browser()
            await log_in(login, tmp_path, browser)
            assert set(browser.opened[0]["scope"].split()) == {"tools", "more"}
            assert (await called(server, text="b")).text.endswith("echo: b")


async def test_a_client_that_the_user_registered_is_not_registered_again(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        saved = await log_in(login, tmp_path, client_id="mine", client_secret="secret-12345678")
        assert login.clients == {}
        assert (saved.client_id, saved.client_secret) == ("mine", "secret-12345678")


async def test_a_second_login_is_made_as_the_same_client(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        first = await log_in(login, tmp_path)
        second = await log_in(login, tmp_path)
        assert first.client_id == second.client_id
        assert len(login.clients) == 1


@pytest.mark.parametrize(
    ("trap", "said"),
    [
        ("denies", "the user said no"),
        ("wrong_issuer", "issuer"),
        ("other_resource", "does not match"),
    ],
)
async def test_what_goes_wrong_is_told_and_nothing_is_kept(
    tmp_path: Path, trap: str, said: str
) -> None:
    async with issuing(trap) as (login, _):
        with pytest.raises(UsageError, match=said):
            await log_in(login, tmp_path)
        assert LoginFile(tmp_path).of(f"{login.url}/mcp") is None
        assert not (tmp_path / "mcp-auth.json").exists()


async def test_a_page_that_does_not_know_the_state_is_not_believed(tmp_path: Path) -> None:
    async with issuing("forgets_state") as (login, _):
        browser = Browser()
        with anyio.move_on_after(0.5):
            await log_in(login, tmp_path, browser)
        assert browser.status == 404
        assert login.forms == []


async def test_a_server_that_asks_for_no_login_is_told(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        login.tokens[""] = "tools"
        with pytest.raises(UsageError, match="does not ask for a login"):
            await log_in(login, tmp_path)


async def test_a_login_goes_to_its_own_server_alone(tmp_path: Path) -> None:
    async with issuing() as (login, _), issuing() as (other, seen):
        await log_in(login, tmp_path)
        async with using(other, tmp_path) as server:
            with pytest.raises(FinalToolError, match="logs in"):
                await called(server)
        assert not any("authorization" in each.headers for each in seen.asked)


async def test_a_login_is_forgotten(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        await log_in(login, tmp_path)
        file = LoginFile(tmp_path)
        assert file.forget(f"{login.url}/mcp")
        assert not file.forget(f"{login.url}/mcp")
        async with using(login, tmp_path) as server:
            with pytest.raises(FinalToolError, match="logs in"):
                await called(server)


async def test_logins_that_others_could_have_written_count_for_nothing(tmp_path: Path) -> None:
    async with issuing() as (login, _):
        await log_in(login, tmp_path)
        (tmp_path / "mcp-auth.json").chmod(0o666)
        with pytest.raises(UsageError, match="cannot be read"):
            LoginFile(tmp_path).of(f"{login.url}/mcp")
        async with using(login, tmp_path) as server:
            with pytest.raises(FinalToolError, match="logs in"):
                await called(server)
