"""Tokens: the program's own, those of pages, and the codes that a page gets one for.

Of a page's token only its SHA-256 is kept, so that what lies on the disk lets nobody in.  The
program's token lies in a file that only the user can read: whoever can read that may drive anyway.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from weft.clock import Clock
from weft.errors import UsageError
from weft.sha256 import sha256

TokenRole: TypeAlias = Literal["driver", "viewer"]

CODE_SECONDS: Final = 60.0
PAGE_SECONDS: Final = 30 * 24 * 3600.0
MOST_PAGES: Final = 200
"""Tokens of pages that are kept; the oldest is forgotten first."""
MOST_CODES: Final = 100


class PageToken(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a page's token."""

    digest: str
    expires: float
    role: TokenRole = "driver"


class KeptTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a server's tokens."""

    version: int = 1
    pages: tuple[PageToken, ...] = ()


class SharedTokens(Protocol):
    """Tokens that every server of a cluster knows by their signature."""

    @property
    def program_token(self) -> str:
        """That of programs."""
        ...

    def new_page(self, role: TokenRole, expires: float) -> str:
        """One for a page."""
        ...

    def page_role(self, token: str, now: float) -> TokenRole | None:
        """What the token of a page lets it do; None for what is none."""
        ...


class TokenStore:
    """The tokens that one server takes."""

    def __init__(
        self,
        folder: Path,
        name: str,
        clock: Clock,
        password: str = "",
        shared: SharedTokens | None = None,
    ) -> None:
        """`name` is the server's among others: its port.  `password` lets a page pair, too; tokens
        that are `shared` count at every server of a cluster.
        """
        self._shared = shared
        self._folder = folder
        self._name = name
        self._clock = clock
        self._password = _digest(password) if password else ""
        self._codes: dict[str, tuple[float, TokenRole]] = {}
        self._pages: dict[str, PageToken] = {}
        self._program = ""

    @property
    def program_file(self) -> Path:
        """Where the program's token lies."""
        return self._folder / f"{self._name}.token"

    @property
    def _pages_file(self) -> Path:
        return self._folder / f"{self._name}.pages.json"

    def open(self, *, forget: bool = False) -> None:
        """Read what an earlier server on this port kept; with `forget`, begin anew.

        Raises:
            UsageError: the folder cannot be written to.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if forget:
                self._pages_file.unlink(missing_ok=True)
                self.program_file.unlink(missing_ok=True)
            if self._shared is not None:
                self._program = self._shared.program_token
            else:
                self._program = self._kept_program() or secrets.token_urlsafe(32)
            write_private(self.program_file, f"{self._program}\n".encode())
            self._pages = {each.digest: each for each in self._kept_pages()}
        except OSError as error:
            raise UsageError(f"cannot keep tokens in {self._folder}: {error.strerror}") from error

    @property
    def program_token(self) -> str:
        """The token that programs of this user use."""
        return self._program

    def role_of(self, token: str) -> TokenRole | None:
        """What a token lets its bearer do; None for one that is not known."""
        if self._program and hmac.compare_digest(token.encode(), self._program.encode()):
            return "driver"
        given, now = _digest(token), self._clock.now()
        if self._shared is not None and (role := self._shared.page_role(token, now)) is not None:
            return role
        # All are compared, so that the time tells nothing of which one was near.
        found = [
            page
            for page in self._pages.values()
            if hmac.compare_digest(page.digest, given) and page.expires > now
        ]
        return found[0].role if found else None

    def new_code(self, role: TokenRole = "driver") -> str:
        """A code for one page, good for a minute."""
        self._drop_codes()
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(16)
        self._codes[_digest(code)] = (self._clock.monotonic() + CODE_SECONDS, role)
        return code

    def pair(self, code: str) -> str | None:
        """The token for a code, or for the password; None when it is neither, or was used."""
        given = _digest(code)
        self._drop_codes()
        if self._password and hmac.compare_digest(given, self._password):
            return self._new_page("driver")
        held = self._codes.pop(given, None)
        return None if held is None else self._new_page(held[1])

    def _new_page(self, role: TokenRole) -> str:
        now = self._clock.now()
        if self._shared is not None:
            return self._shared.new_page(role, now + PAGE_SECONDS)
        token = secrets.token_urlsafe(32)
        page = PageToken(digest=_digest(token), expires=now + PAGE_SECONDS, role=role)
        living = [each for each in self._pages.values() if each.expires > now]
        kept = (*living, page)[-MOST_PAGES:]
        self._pages = {each.digest: each for each in kept}
        write_private(self._pages_file, msgspec.json.encode(KeptTokens(pages=kept)))
        return token

    def _drop_codes(self) -> None:
        now = self._clock.monotonic()
        self._codes = {code: held for code, held in self._codes.items() if held[0] > now}

    def _kept_program(self) -> str:
        try:
            return self.program_file.read_text(encoding="ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def _kept_pages(self) -> tuple[PageToken, ...]:
        try:
            return msgspec.json.decode(self._pages_file.read_bytes(), type=KeptTokens).pages
        except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
            return ()  # a damaged file costs a pairing, and lets nobody in


def write_private(path: Path, content: bytes) -> None:
    """Put a file in place whole, readable by its owner alone."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(beside, path)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
