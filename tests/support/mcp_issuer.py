"""An issuer of logins (OAuth 2.1 with PKCE) and a server that wants them, on loopback."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.loopback_server import LoopbackConnection, ReceivedRequest
from tests.support.mcp_http_server import ScriptedHttpServer

_JSON = "content-type: application/json\r\n"


class LoginServer:
    """One address for all of it: `/mcp` is the server, the rest the issuer."""

    def __init__(self, *traps: str) -> None:
        self.traps = set(traps)
        self.scripted = ScriptedHttpServer("no_session")
        self.url = ""
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}
        """Access tokens that are good, and what they allow."""
        self.refresh: dict[str, str] = {}
        self.forms: list[dict[str, str]] = []
        """What was sent to the place that gives out tokens."""
        self.wanted = "tools"
        """What the server wants a token to allow."""

    async def handle(self, line: LoopbackConnection) -> None:
        while asked := await line.request():
            path = urlsplit(asked.path).path
            if path == "/mcp":
                await self._serve(line, asked)
            elif path.startswith("/.well-known/oauth-protected-resource"):
                await reply(line, {"resource": self.resource, "authorization_servers": [self.url]})
            elif path.startswith("/.well-known/oauth-authorization-server"):
                await reply(line, self._about())
            elif path == "/register":
                await self._register(line, json.loads(asked.body))
            elif path == "/authorize":
                await self._authorize(line, fields(urlsplit(asked.path).query))
            elif path == "/token":
                await self._token(line, fields(asked.body.decode()))
            else:
                await line.reply(b"", status=404)

    @property
    def resource(self) -> str:
        host = "http://another.example" if "other_resource" in self.traps else self.url
        return f"{host}/mcp"

    async def _serve(self, line: LoopbackConnection, asked: ReceivedRequest) -> None:
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        at = f'resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
        if token not in self.tokens:
            head = f"www-authenticate: Bearer {at}\r\n"
            await line.reply(b"", status=401, headers=head)
        elif self.wanted not in self.tokens[token].split() and b"tools/call" in asked.body:
            said = f'error="insufficient_scope", scope="{self.wanted}"'
            await line.reply(b"", status=403, headers=f"www-authenticate: Bearer {said}, {at}\r\n")
        else:
            await self.scripted.answer(line, asked)

    def _about(self) -> dict[str, Any]:
        issuer = "http://evil.example" if "wrong_issuer" in self.traps else self.url
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "scopes_supported": ["tools"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
        }

    async def _register(self, line: LoopbackConnection, asked: dict[str, Any]) -> None:
        name = secrets.token_hex(8)
        self.clients[name] = asked
        await reply(line, {**asked, "client_id": name}, status=201)

    async def _authorize(self, line: LoopbackConnection, asked: dict[str, str]) -> None:
        if "asks_user" in self.traps and "allowed" not in asked:
            await line.reply(_consent(asked), headers="content-type: text/html\r\n")
            return
        back = {"state": asked["state"]}
        if "denies" in self.traps:
            back |= {"error": "access_denied", "error_description": "the user said no"}
        else:
            code = back["code"] = secrets.token_hex(8)
            self.codes[code] = asked
        if "forgets_state" in self.traps:
            back["state"] = "another"
        await line.reply(
            b"", status=302, headers=f"location: {asked['redirect_uri']}?{urlencode(back)}\r\n"
        )

    async def _token(self, line: LoopbackConnection, form: dict[str, str]) -> None:
        self.forms.append(form)
        allowed = self._allowed(form)
        if allowed is None:
            await reply(line, {"error": "invalid_grant"}, status=400)
            return
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.tokens[access], self.refresh[refresh] = allowed, allowed
        given = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer"}
        await reply(line, {**given, "expires_in": 3600, "scope": allowed})

    def _allowed(self, form: dict[str, str]) -> str | None:
        if form["grant_type"] == "refresh_token":
            return self.refresh.pop(form["refresh_token"], None)  # good for one use
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        is_ours = base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
        return asked.get("scope", "") if is_ours else None


def _consent(asked: dict[str, str]) -> bytes:
    """A page on which the user allows what was asked for."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(text)}">'
        for name, text in asked.items()
    )
    about = f"<h1>Let Weft use this server?</h1><p>It may: {escape(asked.get('scope', ''))}</p>"
    button = '<button name="allowed" value="yes">Allow</button>'
    return f'<!doctype html>{about}<form action="/authorize">{hidden}{button}</form>'.encode()


def fields(query: str) -> dict[str, str]:
    """The fields of a query or a form."""
    return {key: found[0] for key, found in parse_qs(query).items()}


async def reply(line: LoopbackConnection, value: Any, status: int = 200) -> None:
    """An answer of JSON."""
    await line.reply(json.dumps(value).encode(), status=status, headers=_JSON)
