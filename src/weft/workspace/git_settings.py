"""Settings of a repository that git itself changes: which branch follows which.

`git checkout -b x origin/x`, `git branch -d x` and `git push -u` write into `.git/config`, where
other lines name programs.  What is let through is known line by line: everything but the sections
of branches is the same to the byte, and what stands in those names a remote that is there, and a
branch of it.
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


def only_follows(before: bytes, after: bytes) -> bool:
    """True when all that differs between two states of a `config` is what branches follow."""
    if max(len(before), len(after)) > LARGEST or b"\\\n" in before + after or b"\r" in after:
        return False  # a line that goes on in the next one could hide where a section begins
    then, _ = _parted(before)
    now, branches = _parted(after)
    # One that was there is as it was, or is read like a new one.
    old = _parted(before)[1]
    remotes = {b".", *(match[2] for match in map(_HEADER.fullmatch, now) if match)}
    return then == now and all(
        _is_harmless(lines, remotes) for name, lines in branches.items() if lines != old.get(name)
    )


def _parted(text: bytes) -> tuple[list[bytes], dict[bytes, list[bytes]]]:
    """The lines of everything but branches, and those of each branch."""
    others: list[bytes] = []
    branches: dict[bytes, list[bytes]] = {}
    here = others
    for line in text.split(b"\n"):
        if line.lstrip().startswith(b"["):
            header = _HEADER.fullmatch(line)
            here = others
            if header is not None and header[1] == b"branch":
                here = branches.setdefault(header[2], [])
                continue
        if line or here is others:
            here.append(line)
    return [line for line in others if line], branches


def _is_harmless(lines: list[bytes], remotes: set[bytes]) -> bool:
    for line in lines:
        found = _FOLLOWS.fullmatch(line)
        if found is None:
            return False
        # Git takes a name that no remote has for an address, or for a folder.
        if found["remote"] is not None and found["remote"] not in remotes:
            return False
    return True
