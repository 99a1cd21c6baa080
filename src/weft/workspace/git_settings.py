"""Settings of a repository that git itself writes: the first ones, which branch follows which, and
what is checked out.

`git checkout -b x origin/x`, `git push -u`, `git sparse-checkout`, `git init` and `git clone` write
into `.git/config`, where other lines name programs.  What is let through is known line by line:
everything but the sections of branches and a few settings that only say yes or no is the same to
the byte, and what stands in those sections names a remote that is there, and a branch of it.  A new
repository may have remotes: where it was cloned from, by an address that starts no program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

LARGEST: Final = 1024 * 1024
_HEADER: Final = re.compile(rb'\[(branch|remote) "([^"\\\[\]]{1,256})"\]')
_FOLLOWS: Final = re.compile(
    rb"\t(?:(?:remote|pushRemote) = (?P<remote>[\w.][\w./-]{0,255})"
    rb"|merge = refs/(?:heads|tags)/[\w.][\w./+@#=-]{0,511}|rebase = (?:true|false))"
)
_FETCHES: Final = re.compile(
    rb"\tfetch = \+?refs/(?:heads|tags)/[\w.*][\w./+@#=*-]{0,511}:"
    rb"refs/(?:remotes|tags)/[\w.][\w./+@#=*-]{0,511}|\ttagOpt = --(?:no-)?tags"
)
_URL: Final = re.compile(rb"\turl = (?P<url>[^\s\"#;\\\x00-\x1f\x7f]{1,2048})")
_ADDRESS: Final = re.compile(
    # No `helper::address`, which starts a program, and no host that ssh takes for an option.
    r"(?:https?|ssh|git)://(?:\w[\w.~%+-]*(?::[^/@\s]*)?@)?[\w\[][\w.:\]-]*/(?!.*::)\S*"
    r"|(?:\w[\w.-]*@)?\w[\w.-]*\.[\w-]+:(?!:)[\w~/][\w~./+-]*"
)
_YES_OR_NO: Final = {
    b"[core]": rb"sparseCheckout(?:Cone)? = (?:true|false)",
    b"[index]": rb"sparse = (?:true|false)",
    b"[extensions]": rb"worktreeConfig = true",
}
_FIRST: Final = {
    b"[core]": rb"(?:filemode|symlinks|ignorecase|precomposeunicode|logallrefupdates) = "
    rb"(?:true|false)|repositoryformatversion = [01]|bare = false",
    b"[extensions]": rb"(?:objectformat = sha(?:1|256)|refstorage = files)",
}
"""What `git init` writes; later none of it is to change."""


def is_plain_address(url: str) -> bool:
    """Whether an address names no program and no option of one."""
    return _ADDRESS.fullmatch(url) is not None


def only_plain(before: bytes, after: bytes, may_clone: Callable[[str], bool] | None = None) -> bool:
    """True when all that differs between two states of a `config`, of which the first may be empty,
    is what branches follow and settings that name nothing.

    `may_clone` is given for a new repository, and says of a path whether it may be a remote.
    """
    if max(len(before), len(after)) > LARGEST or b"\\\n" in before + after or b"\r" in after:
        return False  # a line that goes on in the next one could hide where a section begins
    # One that was there is as it was, or is read like a new one.
    then = _ConfigParts(before, is_new=False, has_own_remotes=False)
    now = _ConfigParts(after, is_new=not before.strip(), has_own_remotes=may_clone is not None)
    are_branches_harmless = all(
        _is_harmless(lines, now.remote_names)
        for name, lines in now.branches.items()
        if lines != then.branches.get(name)
    )
    are_remotes_harmless = all(_is_source(lines, may_clone) for lines in now.remotes.values())
    return then.others == now.others and are_branches_harmless and are_remotes_harmless


class _ConfigParts:
    """The lines of everything that has to stay as it is, each behind the header of its section, and
    those of each branch and, where it may have its own, of each remote.
    """

    def __init__(self, text: bytes, *, is_new: bool, has_own_remotes: bool) -> None:
        self.others: list[bytes] = []
        self.branches: dict[bytes, list[bytes]] = {}
        self.remotes: dict[bytes, list[bytes]] = {}
        known = {b"branch": self.branches}
        if has_own_remotes:
            known[b"remote"] = self.remotes
        here, section = self.others, b""
        for line in text.split(b"\n"):
            if line.lstrip().startswith(b"["):
                header = _HEADER.fullmatch(line)
                here, section = self.others, line
                if header is not None and header[1] in known:
                    here = known[header[1]].setdefault(header[2], [])
                # A header alone sets nothing; one of a remote, or with a setting behind it, is a
                # line.
                elif line not in _YES_OR_NO:
                    self.others.append(line)
                continue
            if line and here is not self.others:
                here.append(line)
            elif line and not _is_plain(section, line, is_new=is_new):
                self.others.append(section + b"\n" + line)

    @property
    def remote_names(self) -> set[bytes]:
        """What a branch may follow."""
        named = {match[2] for match in map(_HEADER.fullmatch, self.others) if match}
        return {b".", *named, *self.remotes}


def _is_plain(section: bytes, line: bytes, *, is_new: bool) -> bool:
    tables = (_YES_OR_NO, _FIRST) if is_new else (_YES_OR_NO,)
    found = (table.get(section) for table in tables)
    return any(pattern and re.fullmatch(rb"\t(?:" + pattern + rb")", line) for pattern in found)


def _is_harmless(lines: list[bytes], remotes: set[bytes]) -> bool:
    for line in lines:
        found = _FOLLOWS.fullmatch(line)
        if found is None:
            return False
        # Git takes a name that no remote has for an address, or for a folder.
        if found["remote"] is not None and found["remote"] not in remotes:
            return False
    return True


def _is_source(lines: list[bytes], may_clone: Callable[[str], bool] | None) -> bool:
    """True for what `git clone` writes of the repository that it copied."""
    for line in lines:
        found = _URL.fullmatch(line)
        if found is None:
            if _FETCHES.fullmatch(line) is None:
                return False
            continue
        url = found["url"].decode(errors="replace")
        path = url.removeprefix("file://")
        is_path = path.startswith("/") and may_clone is not None and may_clone(path)
        if not is_path and _ADDRESS.fullmatch(url) is None:
            return False
    return True
