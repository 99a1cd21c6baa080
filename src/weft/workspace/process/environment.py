"""What a program we start finds in its environment: no secrets, nothing that re-points tools,
nothing that waits for a user's input.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final

from weft.data_tables import read_table

_REPOINTING = (
    # Loaders and git's own switches.
    *("LD_*", "DYLD_*", "GIT_*"),
    # What shells and interpreters run by themselves, or read before the command.
    *("BASH_ENV", "ENV", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "CDPATH"),
    *("GLOBIGNORE", "IFS", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "PERL5DB", "RUBYOPT"),
    *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "LESSOPEN"),
    *("LESSCLOSE", "NPM_CONFIG_SCRIPT_SHELL"),
)
_HARMLESS = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSL_")
"""Of git's variables those that run nothing: who the author is, and how servers are trusted."""
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

QUIET: Mapping[str, str] = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    # An editor that saves what it was given and exits, and a prompt that is refused: no user is
    # there to answer.
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_update_notifier": "false",
    # An embedded bare repository in the project would run programs of its own.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
"""What is set for every program, whatever the user's own environment says."""


class VariableNames:
    """Names of variables, some with `*`: compared without a pattern, whose compiling alone would
    cost every start a millisecond.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._holds: list[str] = []
        self._parts: list[tuple[str, list[str], str]] = []
        for name in names:
            begin, *middle = name.split("*")
            if not middle:
                self._exact.add(name)
            elif begin or middle[-1]:
                self._parts.append((begin, middle[:-1], middle[-1]))
            else:
                self._holds += middle[:-1]

    def hold(self, name: str) -> bool:
        """True when the name is one of them, in capitals or not."""
        name = name.upper()
        if name in self._exact or any(part in name for part in self._holds):
            return True
        return any(
            name.startswith(begin) and name.endswith(end) and all(part in name for part in middle)
            for begin, middle, end in self._parts
        )


@cache
def _names(kind: str = "") -> VariableNames:
    """The names of `secret_names.tsv`: of one kind, or all of them."""
    rows = read_table(__file__, "secret_names.tsv", 4)
    return VariableNames(name for name, of_kind, *_ in rows if kind in ("", of_kind))


@cache
def _repointing() -> VariableNames:
    return VariableNames(_REPOINTING)


def _repoints(name: str) -> bool:
    return _repointing().hold(name) and not name.upper().startswith(_HARMLESS)


def is_secret_name(name: str) -> bool:
    """True when a variable of this name probably holds a secret, or leads to one."""
    return _names().hold(name)


_LOGIN: Final = re.compile(r"://[^\s/:@]*:[^\s/@]+@")


def scrubbed(environ: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """The environment for programs that a model starts; `passed` names what the user lets through.

    What re-points tools is never let through: it would run a program before the command does.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if (name in passed or not (is_secret_name(name) or _holds_login(name, value)))
        and not _repoints(name)
    }
    # A relative entry would find programs in the project itself.
    folders = [part for part in kept.get("PATH", "").split(":") if part.startswith("/")]
    kept["PATH"] = ":".join(folders) or _DEFAULT_PATH
    if not any(kept.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        # Only how characters are read: with all of `LANG` a shell loads a dozen files more at every
        # start.
        kept["LC_CTYPE"] = "C.UTF-8"
    return {**kept, **QUIET}


def _holds_login(name: str, value: str) -> bool:
    """True for an address with a password in it, whatever its variable is called.

    Not that of a proxy, without which no program has a network; its password is masked in texts.
    """
    return "://" in value and not name.lower().endswith("_proxy") and bool(_LOGIN.search(value))


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Values that must never be shown: of the variables that hold a secret, not of those that only
    lead to one (a socket's path in every text would be masked).
    """
    holds_secret = _names("secret").hold
    return tuple(value for name, value in environ.items() if value and holds_secret(name))
