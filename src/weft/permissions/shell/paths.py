"""Paths among the words of commands: what lies outside the project, and what holds secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_FREE: Final = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero"})
_SECRET: Final = re.compile(
    r"\.env(\..+)?|\.envrc|\.?env\.local|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|"
    r"\.htpasswd|\.git-credentials|\.dockercfg|\.vault-token|credentials(\.json|\.toml|\.ya?ml)?|"
    r"id_(rsa|dsa|ecdsa|ed25519)(_sk)?|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg|ppk)|"
    r"secrets?\.(json|ya?ml|toml|txt|env)|service[-_]account.*\.json|\.?kube/?config|"
    r"terraform\.tfstate(\.backup)?|.*\.tfvars|master\.key|shadow|\.aws|\.ssh|\.gnupg",
    re.IGNORECASE,
)
"""Names of files in which keys and passwords are kept: reading one by name asks."""
_SAMPLE: Final = re.compile(r".*\.(example|sample|template|dist|defaults?|schema|test)", re.I)


_SECRET_FOLDERS: Final = frozenset({".aws", ".ssh", ".gnupg"})


def is_file_name(name: str) -> bool:
    """Whether a name is hardly a folder's: it ends like a file's, or is one that holds secrets."""
    if name in _SECRET_FOLDERS:
        return False
    return "." in name.rstrip(".")[1:] or _SECRET.fullmatch(name) is not None


_UNKNOWN: Final = re.compile(r"\$\{[^}]*\}|\$\(.*\)|`.*`|\$\w+|\$.|\{[^}]*\}|^~[^/]*", re.DOTALL)


def as_glob(raw: str) -> str:
    """A word that is expanded when it runs, with a star for each part that is not known."""
    return re.sub(r"\*+", "*", _UNKNOWN.sub("*", raw.replace('"', "").replace("'", "")))


_MOST_SIGNS: Final = 12


def paths_in(text: str) -> set[str]:
    """What of a word may be a path: all of it, what stands behind a sign (`HEAD:x`, `if=x`, `@x`),
    and the value of a short option.
    """
    found = {text}
    signs = [place for place, letter in enumerate(text) if letter in ":=,@"]
    for place in signs[-_MOST_SIGNS:]:
        found.add(text[place + 1 :])
    for place in signs[:_MOST_SIGNS]:
        found.add(text[:place])
    if len(signs) > _MOST_SIGNS:
        # Each piece alone: all that could be joined of them would take the square of the length.
        found.update(re.split(r"[:=,@]", text))
    if text.startswith("-") and not text.startswith("--"):
        found.add(text[2:])
    return {each for each in found if each}


_LONGEST_GLOB: Final = 300
"""Longer ones are taken to mean every file: to compare them takes the square of their length."""


@lru_cache(maxsize=512)
def _plain_glob(text: str) -> str:
    return re.sub(r"\[[^]]*\]", "?", text) if "[" in text else text


def may_meet(glob: str, pattern: str, *, crosses: bool) -> bool:
    """Whether a glob and the pattern of a rule have a path in common; rather once too often.

    The star of a pattern stands for slashes too, that of a glob only when it `crosses` them.
    """
    if len(glob) > _LONGEST_GLOB:
        return True
    ours, theirs = _plain_glob(glob), _plain_glob(pattern)
    seen: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        at, place = waiting.pop()
        if (at, place) in seen:
            continue
        seen.add((at, place))
        mine, other = ours[at : at + 1], theirs[place : place + 1]
        if not mine and not other:
            return True
        if mine == "*":
            waiting.append((at + 1, place))
            if other and other != "*" and (crosses or other != "/"):
                waiting.append((at, place + 1))
        if other == "*":
            waiting.append((at, place + 1))
            if mine and mine != "*":
                waiting.append((at + 1, place))
        elif mine and mine != "*" and other and (mine == other or "?" in (mine, other)):
            waiting.append((at + 1, place + 1))
    return False


def why_not_readable(text: str, root: str = "") -> str:
    """Why a word, taken for a path, is not read unasked; empty when it may be."""
    if why := why_outside(text, root):
        return why
    for name in text.split("/"):
        # `HEAD:.env` of git, `--include=.env` and the like name the file behind a sign.
        for piece in re.split(r"[:=,@]", name):
            if _SECRET.fullmatch(piece) and not _SAMPLE.fullmatch(piece):
                return f"{piece} may hold secrets"
    return ""


def why_outside(text: str, root: str = "") -> str:
    """Why a path may lie outside the project; empty when it cannot, links left aside."""
    for piece in (text, *re.split(r"[:=,@]", text)[1:]):
        if why := _why_outside(piece, root):
            return why
    return ""


def _why_outside(text: str, root: str) -> str:
    if text in _FREE:
        return ""
    if text.startswith("~"):
        return f"{text} lies in a home folder"
    if ".." in text.split("/"):
        return f"{text} may lie outside the project"
    if text.startswith("/"):
        inside = root.rstrip("/")
        if inside and (text == inside or text.startswith(f"{inside}/")):
            return ""
        return f"{text} lies outside the project"
    return ""
