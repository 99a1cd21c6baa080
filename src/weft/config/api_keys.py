"""API keys that the user saved: one small file that only they can read.

The environment comes first; this file is for people who do not want keys there.  Keys are never
shown, logged or sent anywhere but to their own provider.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.workspace.process.environment import secret_values

NAME = "auth.json"
LONGEST: Final = 8192
"""Characters of a key."""
SECRET_WORDS: Final = ("auth", "key", "token", "secret", "cookie")
"""Words in the names of fields and headers whose values are secrets."""
_PASSWORD: Final = r"(://[^:/?#@\s]*:)[^\s?#]*@"
_PASSWORD_WORD: Final = r"(?i)([?&][a-z]*password=)[^&#\s]*"


class SavedKey(msgspec.Struct, frozen=True):
    """What is kept for one provider."""

    key: str

    def __repr__(self) -> str:
        """Without the key: values end up in logs."""
        return "SavedKey(…)"


class KeyFile:
    """The file with the keys, `~/.config/weft/auth.json`."""

    def __init__(self, config: Path, profile: str = "") -> None:
        """`profile`: whose keys are kept, and come before those that are for all profiles."""
        self.path = config / NAME
        # In the same file, which is private and known to the sandbox; `@` is in no provider's name.
        self._mark = f"@{profile}" if profile else ""

    def keys(self) -> dict[str, str]:
        """The key of each provider; nothing where there is no file.

        Raises:
            UsageError: the file cannot be read.
        """
        all_keys = self.all_keys()
        own = {
            name.removesuffix(self._mark): key
            for name, key in all_keys.items()
            if self._mark and name.endswith(self._mark)
        }
        return {name: key for name, key in all_keys.items() if "@" not in name} | own

    def all_keys(self) -> dict[str, str]:
        """Every saved key, those of all profiles included.

        Raises:
            UsageError: the file cannot be read.
        """
        return {provider: login.key for provider, login in self._logins().items()}

    def keep(self, provider: str, key: str) -> None:
        """Keep the key of a provider, in place of an earlier one.

        Raises:
            UsageError: the file cannot be written.
        """
        self._write({**self._logins(), f"{provider}{self._mark}": SavedKey(key)})

    def forget(self, provider: str) -> bool:
        """Forget the key of a provider; False when there was none."""
        logins = self._logins()
        if logins.pop(f"{provider}{self._mark}", None) is None:
            return False
        self._write(logins)
        return True

    def is_private(self) -> bool:
        """True when no other user can read it, or it is not there."""
        try:
            # Only reported (by `weft auth` and `weft doctor`), not refused: to lock the user out of
            # their own keys protects nothing that was not readable before.
            return not self.path.stat().st_mode & 0o077
        except OSError:
            return True

    def _logins(self) -> dict[str, SavedKey]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(f"cannot read the keys in {self.path}: {error.strerror}") from error
        try:
            return msgspec.json.decode(data, type=dict[str, SavedKey])
        except msgspec.DecodeError as error:
            # Without the content: the sentence ends up on screens.
            raise UsageError(
                f"the keys in {self.path} are damaged; remove the file and log in again"
            ) from error

    def _write(self, logins: dict[str, SavedKey]) -> None:
        """Replace the file as a whole; it is private from its first byte on."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            import tempfile  # only when a key is kept: it costs start-up time

            fd, name = tempfile.mkstemp(dir=self.path.parent, prefix=".auth-")
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(logins)) + b"\n")
                    file.flush()
                    # Before the rename, which may reach the disk first: after a crash the file
                    # would be empty.
                    os.fsync(file.fileno())
                os.replace(name, self.path)
            # An interrupt, too, must not leave a file with keys behind.
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise UsageError(f"cannot save the key in {self.path}: {error.strerror}") from error


def check_key(key: str) -> None:
    """Refuse what can be no key.

    Raises:
        UsageError: it is empty, or not one word of printable characters.
    """
    if not key:
        raise UsageError("no key was given")
    if len(key) > LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("invalid key: it must be one word of printable ASCII characters")


def provider_of_key(key: str) -> str:
    """The provider whose keys begin like this one; empty where several could."""
    from weft.providers.catalogue import shipped  # only for those who log in

    # The longest: `sk-` alone would begin the keys of many.
    begins = {
        begin: name for name in shipped().providers for begin in shipped().vendor(name).key_begins
    }
    matching = (begin for begin in begins if key.startswith(begin))
    return begins.get(max(matching, key=len, default=""), "")


def provider_title(name: str) -> str:
    """What a provider calls itself."""
    from weft.providers.catalogue import shipped  # as above

    return shipped().vendor(name).title or name


def known_secrets(
    environ: Mapping[str, str], config: Path, providers: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """The secrets of the environment, the saved keys and those in the `providers` setting, to be
    masked wherever they turn up.
    """
    try:
        saved = KeyFile(config).all_keys().values()
    except UsageError:
        saved = {}.values()  # the provider that needs a key says what is wrong
    return (*secret_values(environ), *saved, *_secrets_in(providers or {}))


class SavedKeyWatch:
    """The saved keys, whenever another process has changed them: `weft auth login` in another
    terminal.
    """

    def __init__(self, config: Path) -> None:
        self._file = KeyFile(config)
        self._seen = self._look()

    def __call__(self) -> tuple[str, ...]:
        """The keys, when they have changed since the last call."""
        seen = self._look()
        if seen == self._seen:
            return ()
        # Before they are read: what is written meanwhile is read once more.
        self._seen = seen
        try:
            return tuple(self._file.all_keys().values())
        except UsageError:
            return ()

    def _look(self) -> tuple[int, int] | None:
        # One look at one file of the user's own: microseconds, and nothing that output has to wait
        # for. Each save makes a new file, so that its number tells of two within a clock's tick.
        try:
            about = os.stat(self._file.path)
        except OSError:
            return None
        return about.st_ino, about.st_mtime_ns


def _secrets_in(value: Any, name: str = "") -> Iterator[str]:
    """Keys and secret headers anywhere in a setting; what is wrong in it does not matter here."""
    if isinstance(value, Mapping):
        for inner, each in value.items():
            yield from _secrets_in(each, str(inner))
    elif isinstance(value, str) and value and is_secret_field(name):
        yield value


def is_secret_field(name: str) -> bool:
    """Whether the value of a provider's field or header is a secret."""
    # `key_env` names a variable and is shown: a user looks there for a wrong name.
    return name != "key_env" and any(word in name.lower() for word in SECRET_WORDS)


def masked_setting(value: Any, name: str = "") -> Any:
    """A setting without the keys that stand in it, and the passwords in addresses."""
    if isinstance(value, dict):
        return {inner: masked_setting(each, inner) for inner, each in value.items()}
    if not value or not isinstance(value, str):
        return value
    if is_secret_field(name):
        return "…"
    if "://" not in value:
        return value
    import re  # few settings are addresses

    return re.sub(_PASSWORD_WORD, r"\1…", re.sub(_PASSWORD, r"\1…@", value))


def key_variables() -> dict[str, tuple[str, ...]]:
    """The environment variables that may hold each provider's key, in the order in which they
    count.
    """
    from weft.providers.catalogue import shipped  # only for those who list: it costs start-up time
    from weft.providers.vendors import key_names

    found = {name: key_names(name, shipped()) for name in shipped().providers}
    return {name: each for name, each in found.items() if each}
