"""Attacks on logins to MCP servers, by a server, an issuer, a page in the browser or another server
of the same host: nothing is allowed, nothing leaks, and nothing is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio
import pytest

from tests.support.loopback_server import LoopbackConnection, LoopbackServer, serving
from tests.support.mcp_issuer import LoginServer, fields, reply
from weft.clock import Clock, ManualClock
from weft.errors import UsageError
from weft.mcp.oauth_tokens import LoginFile, SavedAuthorization, SavedLogin
from weft.runtime.mcp.oauth_login import LoginOptions, OAuthLogin
from weft.transport import HttpClient, HttpRequest

pytestmark = pytest.mark.anyio
pytest.importorskip("mcp", reason="the MCP SDK is an extra")

SECRET = "Header-Secret-12345678"


class EvilServer(LoginServer):
    """A server and issuer that lies in one place."""

    def __init__(self) -> None:
        super().__init__()
        self.about: Callable[[dict[str, Any]], dict[str, Any]] = lambda said: said
        self.resource_about: Callable[[dict[str, Any]], dict[str, Any]] = lambda said: said
        self.back: Callable[[dict[str, str]], dict[str, str]] = lambda said: said
        self.tokens_about: Callable[[dict[str, Any]], dict[str, Any]] = lambda said: said
        self.raw: dict[str, tuple[int, bytes, str]] = {}
        """By path, an answer as it is sent."""

    async def handle(self, line: LoopbackConnection) -> None:
        while asked := await line.request():
            path = urlsplit(asked.path).path
            if found := next((self.raw[key] for key in self.raw if path.startswith(key)), None):
                await line.reply(found[1], status=found[0], headers=found[2])
            elif path.startswith("/.well-known/oauth-protected-resource"):
                said = {"resource": self.resource, "authorization_servers": [self.url]}
                await reply(line, self.resource_about(said))
            elif path.startswith("/.well-known/"):
                await reply(line, self.about(self._about()))
            elif path == "/mcp":
                await self._serve(line, asked)
            elif path == "/register":
                await self._register(line, json.loads(asked.body))
            elif path == "/authorize":
                await self._authorize_back(line, fields(urlsplit(asked.path).query))
            elif path == "/token":
                await self._token_with(line, fields(asked.body.decode()))
            else:
                await line.reply(b"", status=404)

    async def _authorize_back(self, line: LoopbackConnection, asked: dict[str, str]) -> None:
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        back = self.back({"state": asked["state"], "code": code})
        where = f"{asked['redirect_uri']}?{urlencode(back)}"
        await line.reply(b"", status=302, headers=f"location: {where}\r\n")

    async def _token_with(self, line: LoopbackConnection, form: dict[str, str]) -> None:
        self.forms.append(form)
        allowed = self._allowed(form)
        if allowed is None:
            await reply(line, {"error": "invalid_grant"}, status=400)
            return
        given: dict[str, Any] = {"access_token": "access-1", "refresh_token": "refresh-1"}
        self.tokens["access-1"], self.refresh["refresh-1"] = allowed, allowed
        given |= {"token_type": "Bearer", "expires_in": 3600, "scope": allowed}
        await reply(line, self.tokens_about(given))


@asynccontextmanager
async def listening() -> AsyncGenerator[tuple[EvilServer, LoopbackServer]]:
    evil = EvilServer()
    async with serving(evil.handle) as server:
        evil.url = server.url
        yield evil, server


class PlainBrowser:
    """Goes where it is sent, and shows nothing."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._ask = anyio.Event()

    def show(self, address: str) -> None:
        self.shown.append(address)
        self._ask.set()

    async def paste(self) -> str | None:
        await self._ask.wait()
        async with HttpClient().send(HttpRequest(url=self.shown[-1], method="GET")) as answer:
            return answer.headers.get("location")


async def attempt(
    evil: EvilServer, folder: Path, browser: PlainBrowser | None = None, **options: Any
) -> SavedLogin:
    browser = browser or PlainBrowser()
    asked = LoginOptions(
        url=f"{evil.url}/mcp",
        headers={"x-own": SECRET},
        show=browser.show,
        paste=browser.paste,
        **options,
    )
    clock: Clock = ManualClock()
    with anyio.fail_after(20):
        return await OAuthLogin(asked, LoginFile(folder), HttpClient(), clock).run()


# --- what an issuer says of itself ------------------------------------------------------------

METADATA: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "no proof of the code": lambda said: {**said, "code_challenge_methods_supported": ["plain"]},
    "an empty list of proofs": lambda said: {**said, "code_challenge_methods_supported": []},
    "no list of proofs": lambda said: {
        key: value for key, value in said.items() if key != "code_challenge_methods_supported"
    },
    "another issuer": lambda said: {**said, "issuer": "https://accounts.example"},
    "an issuer with a path": lambda said: {**said, "issuer": f"{said['issuer']}/tenant"},
    "the user sent by http": lambda said: {
        **said,
        "authorization_endpoint": "http://login.example/authorize",
    },
    "tokens by http": lambda said: {**said, "token_endpoint": "http://tokens.example/token"},
    "a register by http": lambda said: {
        **said,
        "registration_endpoint": "http://register.example/",
    },
    "a script as the address": lambda said: {
        **said,
        "authorization_endpoint": "javascript:alert(1)",
    },
    "a file as the address": lambda said: {**said, "authorization_endpoint": "file:///etc/passwd"},
    "tokens from a file": lambda said: {**said, "token_endpoint": "file:///etc/passwd"},
    "tokens from the cloud's metadata": lambda said: {
        **said,
        "token_endpoint": "http://169.254.169.254/latest/meta-data/",
    },
    "a register in the private network": lambda said: {
        **said,
        "registration_endpoint": "http://10.0.0.1/register",
    },
    "no place for tokens": lambda said: {
        key: value for key, value in said.items() if key != "token_endpoint"
    },
    "a list": lambda said: {"0": [said]},
    "deep": lambda said: {**said, "x": json.loads("[" * 400 + "]" * 400)},
}


UNREADABLE = {
    *("a script as the address", "a file as the address", "tokens from a file"),
    *("no place for tokens", "a list"),
}
"""What is no description of an issuer: then the server itself is the issuer, as it was at first."""


@pytest.mark.parametrize("attack", METADATA)
async def test_an_issuer_that_lies_of_itself_gets_no_login(tmp_path: Path, attack: str) -> None:
    async with listening() as (evil, _):
        evil.about = METADATA[attack]
        if attack == "deep":
            evil.tokens_about = lambda said: {"error": "no"}
        browser = PlainBrowser()
        if attack in UNREADABLE:
            saved = await attempt(evil, tmp_path, browser)
            assert saved.token_endpoint == f"{evil.url}/token"
            assert all(address.startswith(f"{evil.url}/authorize") for address in browser.shown)
            return
        with pytest.raises(UsageError):
            await attempt(evil, tmp_path, browser)
        assert not (tmp_path / "mcp-auth.json").exists()


RESOURCES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "for another host": lambda said: {**said, "resource": "http://another.example/mcp"},
    "for another path": lambda said: {**said, "resource": f"{said['resource']}-other"},
    "for a longer path": lambda said: {**said, "resource": f"{said['resource']}/admin"},
    "an issuer by http": lambda said: {**said, "authorization_servers": ["http://login.example"]},
    "an issuer in the private network": lambda said: {
        **said,
        "authorization_servers": ["http://192.168.1.1"],
    },
    "the cloud's metadata": lambda said: {
        **said,
        "authorization_servers": ["http://169.254.169.254"],
    },
    "no issuers": lambda said: {**said, "authorization_servers": []},
    "a file": lambda said: {**said, "authorization_servers": ["file:///etc"]},
}


@pytest.mark.parametrize("attack", RESOURCES)
async def test_a_server_that_lies_of_its_issuer_gets_no_login(tmp_path: Path, attack: str) -> None:
    asked: list[str] = []
    async with listening() as (evil, _):
        evil.resource_about = RESOURCES[attack]
        client = HttpClient()

        class Recording:
            """Our transport, and where it was sent."""

            def send(self, request: HttpRequest) -> Any:
                asked.append(request.url)
                return client.send(request)

            async def aclose(self) -> None:
                await client.aclose()

        browser = PlainBrowser()
        terms = LoginOptions(url=f"{evil.url}/mcp", show=browser.show, paste=browser.paste)
        login = OAuthLogin(terms, LoginFile(tmp_path), Recording(), ManualClock())
        with anyio.fail_after(20):
            # Where no issuer is named that can be one, the server itself is, as it was at first.
            if attack in ("no issuers", "a file"):
                await login.run()
            else:
                with pytest.raises(UsageError):
                    await login.run()
                assert not (tmp_path / "mcp-auth.json").exists()
        assert all(url.startswith(evil.url) for url in asked), asked


# --- what comes back ---------------------------------------------------------------------------

BACK: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "another issuer (mix-up)": lambda said: {**said, "iss": "https://evil.example"},
    "another state": lambda said: {**said, "state": "0"},
    "no state": lambda said: {"code": said["code"]},
    "an empty state": lambda said: {**said, "state": ""},
    "no code": lambda said: {"state": said["state"]},
    "an error and a code": lambda said: {**said, "error": "access_denied"},
    "a code of someone else": lambda said: {**said, "code": "stolen"},
}


@pytest.mark.parametrize("attack", BACK)
async def test_what_the_browser_brings_back_is_checked(tmp_path: Path, attack: str) -> None:
    async with listening() as (evil, _):
        evil.back = BACK[attack]
        with pytest.raises(UsageError):
            await attempt(evil, tmp_path)
        assert not (tmp_path / "mcp-auth.json").exists()


async def test_an_issuer_that_promises_its_name_and_leaves_it_out_is_not_believed(
    tmp_path: Path,
) -> None:
    async with listening() as (evil, _):
        evil.about = lambda said: {**said, "authorization_response_iss_parameter_supported": True}
        with pytest.raises(UsageError):
            await attempt(evil, tmp_path)
        assert not (tmp_path / "mcp-auth.json").exists()


TOKENS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "none": lambda said: {},
    "of another kind": lambda said: {**said, "token_type": "mac"},
    "a number": lambda said: {**said, "access_token": 7},
    "an empty one": lambda said: {**said, "access_token": ""},
}


@pytest.mark.parametrize("attack", TOKENS)
async def test_tokens_that_are_none_are_not_kept(tmp_path: Path, attack: str) -> None:
    async with listening() as (evil, _):
        evil.tokens_about = TOKENS[attack]
        with pytest.raises(UsageError):
            await attempt(evil, tmp_path)
        assert not (tmp_path / "mcp-auth.json").exists()


async def test_a_token_that_holds_a_header_is_never_sent(tmp_path: Path) -> None:
    login = SavedLogin(access_token="a\r\nx-evil: 1")
    LoginFile(tmp_path).keep("https://server.example/mcp", login)
    saved = SavedAuthorization(
        "https://server.example/mcp", LoginFile(tmp_path), HttpClient(), ManualClock()
    )
    assert await saved.header() == ""


# --- size, redirects, other places ---------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/token"],
)
async def test_answers_without_an_end_are_cut_and_refused(tmp_path: Path, path: str) -> None:
    async with listening() as (evil, _):
        kind = "content-type: application/json\r\n"
        evil.raw[path] = (200, b'{"x": "' + b"a" * (4 << 20) + b'"}', kind)
        if path != "/token":
            evil.raw["/.well-known/openid-configuration"] = (404, b"", "")
            evil.raw["/register"] = (500, b"", "")
        with pytest.raises(UsageError):
            await attempt(evil, tmp_path)
        assert not (tmp_path / "mcp-auth.json").exists()


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/token",
        "/register",
    ],
)
async def test_no_redirect_takes_a_login_to_another_host(tmp_path: Path, path: str) -> None:
    async with listening() as (evil, _), listening() as (other, seen):
        evil.raw[path] = (307, b"", f"location: {other.url}{path}\r\n")
        with suppress(UsageError):
            await attempt(evil, tmp_path)
        assert seen.asked == []


async def test_headers_of_the_entry_go_to_the_server_and_not_to_the_issuer(tmp_path: Path) -> None:
    async with listening() as (evil, own), listening() as (issuer, seen):
        evil.resource_about = lambda said: {**said, "authorization_servers": [issuer.url]}
        issuer.tokens = evil.tokens
        await attempt(evil, tmp_path)
        assert any(each.headers.get("x-own") == SECRET for each in own.asked)
        assert seen.asked
        assert not any(SECRET in str(each) for each in seen.asked)


async def test_what_one_issuer_knows_of_us_is_not_told_to_another(tmp_path: Path) -> None:
    """A server that was taken over names an issuer of its own at the next login."""
    async with listening() as (evil, _), listening() as (issuer, seen):
        first = await attempt(evil, tmp_path, port=0)
        client = {**first.client, "client_secret": "secret-of-the-first-issuer"}
        kept = LoginFile(tmp_path)
        kept.keep(
            f"{evil.url}/mcp",
            SavedLogin(
                access_token="old",
                refresh_token="old-refresh",
                client=client,
                client_id=first.client_id,
                client_secret="secret-of-the-first-issuer",
                issuer=first.issuer,
                token_endpoint=first.token_endpoint,
            ),
        )
        evil.tokens.clear()
        evil.resource_about = lambda said: {**said, "authorization_servers": [issuer.url]}
        issuer.tokens = evil.tokens
        await attempt(evil, tmp_path)
        told = " ".join(map(str, seen.asked))
        assert "secret-of-the-first-issuer" not in told
        assert first.client_id not in told
        assert "old-refresh" not in told


async def test_a_login_of_one_server_is_not_used_by_another_of_the_same_host(
    tmp_path: Path,
) -> None:
    async with listening() as (evil, _):
        await attempt(evil, tmp_path)
        for other in (f"{evil.url}/mcp2", f"{evil.url}/mcp/", f"{evil.url}/", f"{evil.url}/MCP"):
            saved = SavedAuthorization(other, LoginFile(tmp_path), HttpClient(), ManualClock())
            assert await saved.header() == ""
            assert not await saved.renewed("Bearer access-1")


async def test_a_refresh_token_goes_to_no_place_without_encryption(tmp_path: Path) -> None:
    asked: list[str] = []

    class Recording:
        def send(self, request: HttpRequest) -> Any:
            asked.append(request.url)
            raise AssertionError(request.url)

        async def aclose(self) -> None: ...

    login = SavedLogin(
        access_token="a",
        refresh_token="r",
        client_id="c",
        token_endpoint="http://tokens.example/token",
    )
    LoginFile(tmp_path).keep("https://server.example/mcp", login)
    saved = SavedAuthorization(
        "https://server.example/mcp",
        LoginFile(tmp_path),
        Recording(),
        ManualClock(),
    )
    assert not await saved.renewed("Bearer a")
    assert asked == []


async def test_what_an_issuer_says_reaches_no_terminal_as_it_is(tmp_path: Path) -> None:
    async with listening() as (evil, _):
        evil.back = lambda said: {
            "state": said["state"],
            "error": "x",
            "error_description": "\x1b]0;evil\x07\u202eno",
        }
        with pytest.raises(UsageError) as caught:
            await attempt(evil, tmp_path)
        assert "\x1b" not in str(caught.value)
        assert "\u202e" not in str(caught.value)


async def test_an_address_with_control_characters_is_not_shown(tmp_path: Path) -> None:
    async with listening() as (evil, _):
        evil.about = lambda said: {
            **said,
            "authorization_endpoint": f"{evil.url}/authorize?x=\x1b]8;;http://evil\x07",
        }
        browser = PlainBrowser()
        with suppress(UsageError):
            await attempt(evil, tmp_path, browser)
        assert not any("\x1b" in address or "\x07" in address for address in browser.shown)


# --- addresses -----------------------------------------------------------------------------------

HERE = "https://server.example/mcp"
ADDRESSES = {
    "http://login.example/": "encrypted",
    "https://127.0.0.1/": "private",
    "https://localhost/": "private",
    "https://10.1.2.3/": "private",
    "https://192.168.0.1/": "private",
    "https://172.16.0.1/": "private",
    "https://169.254.169.254/latest": "private",
    "https://100.64.0.1/": "private",
    "https://0.0.0.0/": "private",
    "https://[::1]/": "private",
    "https://[fe80::1]/": "private",
    "https://[fd00::1]/": "private",
    "https://[::ffff:10.0.0.1]/": "private",
    "ftp://login.example/": "web",
    "file:///etc/passwd": "web",
    "https://": "web",
    "https://a b/": "characters",
    "https://login.example/\r\nx: y": "characters",
}


@pytest.mark.parametrize("address", ADDRESSES)
async def test_an_address_that_a_stranger_names_leads_to_no_private_network(address: str) -> None:
    from weft.mcp.issuer_address import address_problem

    assert ADDRESSES[address] in await address_problem(address, "https://93.184.216.34/mcp")


async def test_an_address_of_the_web_and_the_servers_own_may_be_asked() -> None:
    from weft.mcp.issuer_address import address_problem

    assert await address_problem("https://93.184.216.34/login", HERE) == ""
    assert await address_problem("http://10.0.0.1/login", "http://10.0.0.1/mcp") == ""
    assert await address_problem("https://10.0.0.1/login", "https://10.0.0.2/mcp") == ""
    assert await address_problem("http://127.0.0.1:9/login", "http://127.0.0.1:8/mcp") == ""
