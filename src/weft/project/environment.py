"""The environment of a session as a model is told it: a sentence each on the date, the git
repository, the permission mode and the sandbox.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

import msgspec

from weft.errors import WeftError
from weft.permissions import Mode
from weft.workspace import (
    GitChanges,
    GitRepository,
    find_repository,
    read_pointer,
    read_small,
    uncommitted_changes,
)

SOURCE_SUFFIXES: Final = frozenset(
    {
        *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".go"),
        *(".rs", ".java", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".cs", ".rb"),
        *(".rake", ".php", ".ex", ".exs", ".sh", ".bash", ".kt", ".kts", ".swift", ".scala"),
        *(".sc", ".lua", ".zig"),
    }
)
"""How files end that are code and can be indexed: those of `weft.repo`, without prose."""
_MOST_INDEX: Final = 4 * 1024 * 1024
_MOST_NAMES: Final = 2_000
_BRANCH: Final = re.compile(r"ref: refs/heads/([^\s\x00-\x20~^:?*\[\\\x7f]{1,200})")
_COMMIT: Final = r"[0-9a-f]{40}|[0-9a-f]{64}"
_PLAIN_NAME: Final = r"[\w./+@ -]{1,120}"
_NAMED: Final = 5
"""Changed files that are named; `git status` has the rest."""
_UNDER_WAY: Final = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}
"""Files of a git directory that are there while something is half done."""
_MODES: Final[dict[Mode, str]] = {
    "plan": "plan. Nothing may be changed now: you have the tools that read and search, and of "
    "commands those that only read. Look as far as you need, then answer with a plan: what to "
    "change in which files, in which order, and how to check it. The user decides whether it is "
    "carried out, and switches the mode then.",
    "default": "default. Edits and commands {ask}.",
    "accept_edits": "accept_edits. Edits in the project run without asking; commands {ask}.",
    "auto": "auto. Edits and sandboxed commands run without asking; other actions {ask}.",
    "bypass": "bypass. Nothing is asked for, so take care with what cannot be undone.",
}
_ASK: Final = "may ask the user for permission first"
_NO_USER: Final = "that would need permission are denied: no user is there to ask"


_MOST_HOSTS: Final = 30


class SandboxTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say of the sandbox for commands."""

    is_on: bool
    network: bool = False
    unix_sockets: bool = False
    hosts: tuple[str, ...] = ()
    """What rules let commands reach, as they name it: `*.example.org`, `localhost:8080`."""


class SessionSurroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment of a session is found out from."""

    git: str
    """The sentence about the repository, with secrets masked."""
    changes: str
    """The sentence about its uncommitted changes, with secrets masked."""
    now: float
    """Wall-clock time."""
    mode: Mode
    sandbox: SandboxTerms
    has_user: bool


def environment_of(given: SessionSurroundings) -> dict[str, str]:
    """The sentences by subject, in the order in which they are told."""
    # In the machine's own time zone: "today" is the user's, not Greenwich's.
    date = time.strftime("%Y-%m-%d (%A)", time.localtime(given.now))
    found = {
        "date": f"Date: {date}",
        "git": given.git,
        "changes": given.changes,
        "mode": mode_sentence(given.mode, has_user=given.has_user),
        "sandbox": sandbox_sentence(given.sandbox, has_user=given.has_user),
    }
    return {subject: text for subject, text in found.items() if text}


def has_uncommitted_changes(project: str) -> bool:
    """Whether the work tree differs from its newest commit; False where that cannot be told
    quickly.
    """
    repository = _repository(project)
    changes = uncommitted_changes(repository) if repository is not None else None
    return changes is not None and bool(changes.files or changes.is_staged)


def changed_files(project: str) -> list[str]:
    """The files of a project that differ from its newest commit and are there, the newest first;
    none where that cannot be told quickly.  Blocks.
    """
    repository = _repository(project)
    changes = uncommitted_changes(repository) if repository is not None else None
    if repository is None or changes is None:
        return []
    times: dict[str, int] = {}
    for name in changes.files[:_MOST_NAMES]:
        # From the top of the repository, of which the project may be a folder.
        place = f"{repository.top}/{name}"
        with suppress(OSError):
            times[os.path.relpath(place, project)] = os.stat(place).st_mtime_ns
    inside = [path for path in times if path[:3] != "../"]
    return sorted(inside, key=times.__getitem__, reverse=True)


@functools.cache
def mode_sentence(mode: Mode, *, has_user: bool) -> str:
    """What may be done without asking."""
    ask = _ASK if has_user else _NO_USER
    return f"Permission mode: {_MODES[mode].format(ask=ask)}"


def sandbox_sentence(terms: SandboxTerms, *, has_user: bool) -> str:
    """Where commands run, and what they cannot do there."""
    if not terms.is_on:
        return "Sandbox: none. Commands run with all rights of the user."
    sockets = "" if terms.unix_sockets else ", no unix sockets"
    reached = f" but {_hosts(terms.hosts)} (by the proxy in HTTPS_PROXY)" if terms.hosts else ""
    network = "the network" if terms.network else f"no network{reached}{sockets}"
    said = (
        "Sandbox: commands can write only in the project and in temporary folders; files with "
        f"secrets are hidden from them; they have {network}."
    )
    if not has_user:
        return said
    return (
        f"{said} One that cannot work there can be run with outside_sandbox, which asks the user."
    )


def _hosts(hosts: tuple[str, ...]) -> str:
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    return f"{', '.join(hosts[:_MOST_HOSTS])}{more}"


def repository_sentences(project: str) -> tuple[str, str]:
    """What is to be said of the repository, and of its uncommitted changes.  Blocks."""
    repository = _repository(project)
    if repository is None:
        return "", ""
    return git_sentence(repository), changes_sentence(uncommitted_changes(repository))


def holds_source(project: str) -> bool:
    """Whether a project has code that an index could be made of; False where a quick look finds
    none.  Blocks.

    By the names in git's index, else by those in the topmost folders.  No module is loaded for it:
    it is asked in every run.
    """
    repository = _repository(project)
    if repository is not None:
        # None where nothing was ever added.
        data = read_small(f"{repository.records}/index", _MOST_INDEX)
        if data is not None:
            # A NUL ends each name.
            return any(b"%b\0" % suffix.encode() in data for suffix in SOURCE_SUFFIXES)
    return _has_source_below(project)


def _has_source_below(project: str) -> bool:
    waiting, looked = [project], 0
    for folder in waiting:
        try:
            entries = list(islice(os.scandir(folder), _MOST_NAMES))
        except OSError:
            continue
        for entry in entries:
            looked += 1
            if os.path.splitext(entry.name)[1].lower() in SOURCE_SUFFIXES:
                return True
            if entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
        if looked > _MOST_NAMES:
            break
    return False


def _repository(project: str) -> GitRepository | None:
    try:
        return find_repository(project)
    except WeftError:
        return None


def git_sentence(repository: GitRepository | None) -> str:
    """The branch, and what is half done on it; empty where there is no repository.

    Read from the repository's files: to ask git would start a process before every turn.
    """
    if repository is None:
        return ""
    # The file is the project's own text: only what can be a branch or a commit is told.
    head = read_pointer(f"{repository.records}/HEAD") or ""
    if branch := _BRANCH.fullmatch(head):
        place = f"on branch {branch[1]}"
    elif re.fullmatch(_COMMIT, head):
        place = f"no branch, at commit {head[:12]}"
    else:
        return ""
    half_done = ", ".join(dict.fromkeys(_under_way(repository.records)))
    return f"Git: {place}" + (f"; {half_done} is under way" if half_done else "")


def _under_way(records: str) -> Iterator[str]:
    return (what for name, what in _UNDER_WAY.items() if os.path.lexists(f"{records}/{name}"))


def changes_sentence(changes: GitChanges | None) -> str:
    """How many files differ from the newest commit, and the first of them; empty where that is not
    known.
    """
    if changes is None:
        return ""
    told = []
    if changes.files:
        # A file's name is the project's own text: what could end the note, or fill it, is not told.
        names = [name for name in changes.files if re.fullmatch(_PLAIN_NAME, name)]
        shown = ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
        count = f"{len(changes.files)} file{'s' if len(changes.files) > 1 else ''}"
        told.append(f"{count} ({shown})" if shown else count)
    if changes.is_staged:
        told.append("some are staged")
    return f"Uncommitted changes of tracked files: {'; '.join(told) or 'none'}"
