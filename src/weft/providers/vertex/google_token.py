"""Access tokens of Google Cloud, from the application default credentials.

A service account signs for a token, a login of `gcloud` refreshes one, and a machine of Google
Cloud asks its metadata server.  Each is one request; the token is kept for the hour that it lives.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import AuthFailed, ProviderUnavailable
from weft.providers.credentials import ProviderAccess
from weft.providers.vertex.rsa_signature import private_key, sign
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport

TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFE_SECONDS: Final = 3600
_EARLY_SECONDS: Final = 120.0
"""How long before its end a token is not used any more: an answer may take that long."""
_MOST_FILE: Final = 64 * 1024
_HELP: Final = "`gcloud auth application-default login` makes some"


class GoogleToken:
    """The token of one provider, fetched when it is needed."""

    def __init__(self, access: ProviderAccess, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self._access = access
        self._token = ""
        self._until = float("-inf")

    async def get(self, transport: HttpTransport) -> str:
        """A token that is good for a while.

        Raises:
            AuthFailed: there are no credentials, or Google refuses them.
            ProviderUnavailable: Google could not be asked.
        """
        if self.clock.now() >= self._until:
            answer = await _ask(transport, self._request())
            lives = answer.get("expires_in")
            self._token = str(answer.get("access_token") or "")
            if not self._token:
                raise AuthFailed("Google gave no access token for these credentials")
            seconds = float(lives) if isinstance(lives, int | float) else _LIFE_SECONDS
            self._until = self.clock.now() + seconds - _EARLY_SECONDS
        return self._token

    def _request(self) -> HttpRequest:
        found = self._file()
        if not found:
            return self._metadata_request()
        where = str(found.get("token_uri") or TOKEN_URL)
        match found.get("type"):
            case "service_account":
                text = assertion(found, where, self.clock.now())
                form = {"grant_type": _GRANT, "assertion": text}
            case "authorized_user":
                form = {"grant_type": "refresh_token"}
                form |= {name: str(found.get(name, "")) for name in _REFRESH}
            case other:
                raise AuthFailed(
                    f"Google credentials of the type {other!r} cannot be used; {_HELP}, and "
                    "`gcloud auth print-access-token` prints a token for key of [providers.vertex]"
                )
        return HttpRequest(
            url=where,
            headers=(("content-type", "application/x-www-form-urlencoded"),),
            body=urlencode(form).encode(),
            timeouts=HttpTimeouts(first_byte=30.0, idle=30.0),
        )

    def _file(self) -> dict[str, Any]:
        """The credentials in the user's file; nothing where there is none."""
        named = self._access.variable("GOOGLE_APPLICATION_CREDENTIALS")
        folder = self._access.variable("CLOUDSDK_CONFIG") or str(
            Path(self._access.variable("HOME"), ".config", "gcloud")
        )
        path = Path(named or folder, "" if named else "application_default_credentials.json")
        try:
            with path.open("rb") as file:
                value = msgspec.json.decode(file.read(_MOST_FILE))
        except FileNotFoundError:
            if not named:
                return {}
            raise AuthFailed(f"there is no file {named} (GOOGLE_APPLICATION_CREDENTIALS)") from None
        except (OSError, msgspec.MsgspecError) as error:
            # Without the content, which is a secret.
            raise AuthFailed(f"the Google credentials in {path} cannot be read") from error
        return value if isinstance(value, dict) else {}

    def _metadata_request(self) -> HttpRequest:
        host = self._access.variable("GCE_METADATA_HOST") or "169.254.169.254"
        return HttpRequest(
            url=f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token",
            method="GET",
            # Without it the server refuses: a page in a browser cannot set it.
            headers=(("metadata-flavor", "Google"),),
            timeouts=HttpTimeouts(connect=1.0, first_byte=5.0, idle=5.0),
        )


_REFRESH: Final = ("client_id", "client_secret", "refresh_token")


def assertion(account: dict[str, Any], audience: str, now: float) -> str:
    """What a service account signs to get a token: a JSON Web Token (RFC 7523).

    Raises:
        AuthFailed: its file is not complete.
    """
    email, pem = account.get("client_email"), account.get("private_key")
    if not isinstance(email, str) or not isinstance(pem, str):
        raise AuthFailed("the file of the service account has no client_email or private_key")
    head = {"alg": "RS256", "typ": "JWT", "kid": account.get("private_key_id", "")}
    claims = {
        "iss": email,
        "scope": SCOPE,
        "aud": audience,
        "iat": int(now),
        "exp": int(now) + _LIFE_SECONDS,
    }
    text = f"{_base64(msgspec.json.encode(head))}.{_base64(msgspec.json.encode(claims))}"
    return f"{text}.{_base64(sign(text.encode(), private_key(pem)))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


async def _ask(transport: HttpTransport, request: HttpRequest) -> dict[str, Any]:
    body = bytearray()
    try:
        async with transport.send(request) as reply:
            while len(body) < _MOST_FILE and (data := await reply.read()):
                body += data
            status = reply.status
    except ProviderUnavailable as error:
        if request.method == "GET":
            # No metadata server: this is no machine of Google Cloud, and nothing else was found.
            raise AuthFailed(f"there are no Google credentials; {_HELP}") from error
        raise
    try:
        value = msgspec.json.decode(bytes(body))
    except msgspec.MsgspecError:
        value = None
    found: dict[str, Any] = value if isinstance(value, dict) else {}
    if status != 200:
        why = found.get("error_description") or found.get("error") or f"status {status}"
        raise AuthFailed(f"Google refuses the credentials: {str(why)[:200]}; {_HELP}")
    return found
