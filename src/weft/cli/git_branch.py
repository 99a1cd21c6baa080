"""The branch of a folder, read from git's own file: no program is started."""

from __future__ import annotations

import os

_LARGEST = 4096
_SHOWN = 60


def branch_of(folder: str) -> str:
    """The branch, or the beginning of the commit's id; empty outside of a repository."""
    head = _head(folder)
    if head.startswith("ref: refs/heads/"):
        return head[16 : 16 + _SHOWN]
    return head[:7] if head and all(each in "0123456789abcdef" for each in head) else ""


def _head(folder: str) -> str:
    # By the path alone: a repository may belong to another user, but its HEAD is only shown.
    while True:
        git = os.path.join(folder, ".git")
        pointed = _first_line(git)
        if pointed.startswith("gitdir: "):
            git = os.path.join(folder, pointed[8:])
        if head := _first_line(os.path.join(git, "HEAD")):
            return head
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _first_line(path: str) -> str:
    try:
        # Not blocking: a pipe in a file's place must not stop the chat.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        text = os.read(fd, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
    line = text.partition("\n")[0]
    return line if line.isprintable() else ""
