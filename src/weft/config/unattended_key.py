"""The key of this user that seals what may be done when no user is there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.errors import UsageError

VARIABLE: Final = "WEFT_UNATTENDED_KEY"
"""Names the key where several hosts share a store: each must know the seals of the others."""
LEAST_CHARACTERS: Final = 32
_BYTES: Final = 32


class UnattendedKey:
    """Makes seals.  The key is read, or made, with the first of them."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self._path = path
        self._shared = environ.get(VARIABLE, "")
        self._key = b""

    def seal(self, said: Sequence[str]) -> str:
        """What only the holder of the key can make of these words.

        Raises:
            UsageError: the key of the environment is too short, or none can be kept.
        """
        import hmac  # few sessions do something with no user there

        if not self._key:
            self._key = self._found()
        # Each with its length: two words must not seal the same as one of both.
        text = "".join(f"{len(word)}:{word}" for word in said)
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()

    def _found(self) -> bytes:
        if self._shared:
            if len(self._shared) < LEAST_CHARACTERS:
                raise UsageError(f"{VARIABLE} needs at least {LEAST_CHARACTERS} characters")
            return self._shared.encode()
        try:
            kept = self._kept()
            key = self._made() if kept is None else kept
        except OSError as error:
            raise UsageError(
                f"the key for what is done with no user there cannot be kept in {self._path}: "
                f"{error.strerror or error}"
            ) from error
        if len(key) < _BYTES:
            # Anyone can seal with a key that is empty.
            raise UsageError(
                f"{self._path} has no whole key; remove it, and schedule anew what another one "
                "has sealed"
            )
        return key

    def _kept(self) -> bytes | None:
        with suppress(FileNotFoundError):
            return self._path.read_bytes()
        return None

    def _made(self) -> bytes:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        key = os.urandom(_BYTES)
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, key)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            # Of two processes that make one at once, the first counts, and is never replaced.
            os.link(made, self._path)
        except FileExistsError:
            key = self._path.read_bytes()
        finally:
            os.unlink(made)
        return key
