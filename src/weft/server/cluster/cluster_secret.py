"""The secret that the servers of one database share, and what is signed with it.

Nothing that is handed out lets its holder find the secret, or sign for another purpose: each
purpose has a key of its own.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import Final, TypeVar

import msgspec

from weft.errors import UsageError
from weft.server.page_tokens import TokenRole

_T = TypeVar("_T")

LEAST_BYTES: Final = 32
HOP_SECONDS: Final = 60.0
"""How long a hop's token counts: its way takes milliseconds, and clocks of machines differ."""


class HopToken(msgspec.Struct, frozen=True, kw_only=True):
    """What one server tells another of a request that it hands on.

    The other one believes it and nothing else of the user: not the user's own token.
    """

    tenant: str
    role: TokenRole
    client: str
    """The client that the call is made by; empty for none."""
    to: str
    """The address that it was sent to: it is of no use at another server."""
    method: str
    target: str
    """The path and what stands behind the `?`."""
    hops: int
    """Servers that it came through."""
    expires: float


class PageClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What the token of a page says, where several servers take it."""

    role: TokenRole
    expires: float
    salt: str


class ClusterSecret:
    """Signs, and knows what it has signed."""

    def __init__(self, secret: bytes) -> None:
        """Raises:
        UsageError: it is too short to be one.
        """
        secret = secret.strip()
        if len(secret) < LEAST_BYTES:
            raise UsageError(
                f"the secret of a cluster needs at least {LEAST_BYTES} bytes; "
                "`openssl rand -hex 32` makes one"
            )
        self._secret = secret

    @property
    def program_token(self) -> str:
        """The token of programs, the same at every server."""
        return urlsafe_b64encode(self._key("program")).decode().rstrip("=")

    def sign_hop(self, token: HopToken) -> str:
        """A hop's token as a header has it."""
        return self._signed("hop", msgspec.json.encode(token))

    def hop(self, text: str, now: float) -> HopToken | None:
        """The token that a header has; None for one that was not signed here, or is too old."""
        token = self._opened("hop", text, HopToken)
        return token if token is not None and token.expires > now else None

    def new_page(self, role: TokenRole, expires: float) -> str:
        """A token for a page."""
        claim = PageClaim(role=role, expires=expires, salt=secrets.token_urlsafe(16))
        return self._signed("page", msgspec.json.encode(claim))

    def page_role(self, token: str, now: float) -> TokenRole | None:
        """What the token of a page lets it do; None for one that is none, or too old."""
        claim = self._opened("page", token, PageClaim)
        return claim.role if claim is not None and claim.expires > now else None

    def _key(self, purpose: str) -> bytes:
        return hmac.digest(self._secret, f"weft cluster: {purpose}".encode(), "sha256")

    def _signed(self, purpose: str, body: bytes) -> str:
        mark = hmac.digest(self._key(purpose), body, "sha256")
        return ".".join(urlsafe_b64encode(each).decode().rstrip("=") for each in (body, mark))

    def _opened(self, purpose: str, text: str, kind: type[_T]) -> _T | None:
        first, _, second = text.partition(".")
        try:
            body, mark = (urlsafe_b64decode(f"{each}==") for each in (first, second))
            right = hmac.digest(self._key(purpose), body, "sha256")
            # Decoding is lenient: only the very text that was signed counts.
            is_right = hmac.compare_digest(mark, right) and self._signed(purpose, body) == text
            return msgspec.json.decode(body, type=kind) if is_right else None
        except (Base64Error, ValueError, msgspec.MsgspecError):
            return None
