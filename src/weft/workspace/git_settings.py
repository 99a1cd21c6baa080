"""Settings of a repository that git itself writes: the first ones, which branch follows which, and
what is checked out.

`git checkout -b x origin/x`, `git push -u`, `git sparse-checkout` and `git init` write into
`.git/config`, where other lines name programs.  What is let through is known line by line:
everything but the sections of branches and a few settings that only say yes or no is the same to
the byte, and what stands in those sections names a remote that is there, and a branch of it.
"""

from __future__ import annotations

import re
from typing import Final

LARGEST: Final = 1024 * 1024
_HEADER: Final = re.compile(rb'\[(branch|remote) "([^"\\\[\]]{1,256})"\]')
_FOLLOWS: Final = re.compile(
    rb"\t(?:(?:remote|pushRemote) = (?P<remote>[\w.][\w./-]{0,255})"
    rb"|merge = refs/(?:heads|tags)/[\w.][\w./+@#=-]{0,511}|rebase = (?:true|false))"
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


def only_plain(before: bytes, after: bytes) -> bool:
    """True when all that differs between two states of a `config`, of which the first may be empty,
    is what branches follow and settings that name nothing.
    """
    if max(len(before), len(after)) > LARGEST or b"\\\n" in before + after or b"\r" in after:
        return False  # a line that goes on in the next one could hide where a section begins
    is_new = not before.strip()
    # One that was there is as it was, or is read like a new one.
    then, old = _parted(before, is_new=False)
    now, branches = _parted(after, is_new=is_new)
    remotes = {b".", *(match[2] for match in map(_HEADER.fullmatch, now) if match)}
    return then == now and all(
        _is_harmless(lines, remotes) for name, lines in branches.items() if lines != old.get(name)
    )


def _parted(text: bytes, *, is_new: bool) -> tuple[list[bytes], dict[bytes, list[bytes]]]:
    """The lines of everything that has to stay as it is, each behind the header of its section, and
    those of each branch.
    """
    others: list[bytes] = []
    branches: dict[bytes, list[bytes]] = {}
    here, section = others, b""
    for line in text.split(b"\n"):
        if line.lstrip().startswith(b"["):
            header = _HEADER.fullmatch(line)
            here, section = others, line
            if header is not None and header[1] == b"branch":
                here = branches.setdefault(header[2], [])
            # A header alone sets nothing; one of a remote, or with a setting behind it, is a line.
            elif line not in _YES_OR_NO:
                others.append(line)
            continue
        if line and here is not others:
            here.append(line)
        elif line and not _is_plain(section, line, is_new=is_new):
            others.append(section + b"\n" + line)
    return others, branches


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
