"""Hostile projects: every file that a project may bring, and every trap in its place."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

CANARY: Final = "CANARY-7c2f91"
"""Stands in files outside the project, which must not be read."""
GIGABYTE: Final = 1024**3

SKILL = f"---\nname: trap\ndescription: {CANARY}\n---\n{CANARY}\n"
AGENT = f"---\nname: trap\ndescription: {CANARY}\n---\n{CANARY}\n"
COMMAND = f"---\ndescription: {CANARY}\n---\n{CANARY}\n"
SETTINGS = f'[permissions]\nask = ["shell({CANARY})"]\n'
HOOKS = f'{{"PreToolUse": [{{"command": "echo {CANARY}"}}]}}'

SLOTS: Final = {
    "AGENTS.md": CANARY,
    "CLAUDE.md": CANARY,
    ".agents/skills/trap/SKILL.md": SKILL,
    ".claude/skills/trap/SKILL.md": SKILL,
    ".weft/agents/trap.md": AGENT,
    ".claude/agents/trap.md": AGENT,
    ".weft/commands/trap.md": COMMAND,
    ".weft/config.toml": SETTINGS,
    ".weft/hooks.json": HOOKS,
}
"""Every file that is read from a project, with a content that would be taken."""

FOLDERS: Final = {
    ".agents": "skills/trap/SKILL.md",
    ".agents/skills": "trap/SKILL.md",
    ".agents/skills/trap": "SKILL.md",
    ".weft": "config.toml",
    ".weft/agents": "trap.md",
    ".weft/commands": "trap.md",
}
"""Folders that may be links themselves, with the file behind them."""


class Outside:
    """What lies around a project and is none of its business."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home" / ".ssh").mkdir(parents=True)

    def file(self, text: str, name: str = "outside") -> Path:
        """A file that is not the project's."""
        path = self.folder / name
        path.write_text(text)
        return path


def _make_link(slot: Path, target: str | Path) -> None:
    slot.parent.mkdir(parents=True, exist_ok=True)
    slot.symlink_to(target)


def link_out(slot: Path, outside: Outside, text: str) -> None:
    """A link by an absolute path."""
    _make_link(slot, outside.file(text))


def link_out_by_dots(slot: Path, outside: Outside, text: str) -> None:
    """A link by a relative path."""
    target = outside.file(text)
    _make_link(slot, os.path.relpath(target, slot.parent))


def link_to_a_key(slot: Path, outside: Outside, text: str) -> None:
    """A link to the user's private key."""
    _make_link(slot, outside.file(text, "home/.ssh/id_rsa"))


def chain_of_links(slot: Path, outside: Outside, text: str) -> None:
    """Links that stay inside, but for the last."""
    target: Path = outside.file(text)
    slot.parent.mkdir(parents=True, exist_ok=True)
    for number in range(5):
        link = slot.parent / f"link{number}"
        link.symlink_to(target)
        target = link
    _make_link(slot, target)


def chain_in(folder: Path) -> str:
    """The name of the last of many links in a folder, each of which leads to the one before it.

    The first leads to `link0`.  No system follows so many, and nothing that calls itself for each
    link gets to their end.
    """
    most = sys.getrecursionlimit() + 100
    for number in range(1, most):
        os.symlink(f"link{number - 1}", f"{folder}/link{number}")
    return f"link{most - 1}"


def endless_chain(slot: Path, outside: Outside, text: str) -> None:
    """More links than any system follows, all of them inside."""
    slot.parent.mkdir(parents=True, exist_ok=True)
    (slot.parent / "link0").write_text(text)
    _make_link(slot, chain_in(slot.parent))


def link_through_the_parent(slot: Path, outside: Outside, text: str) -> None:
    """A link to a folder above, and a way down from there."""
    outside.file(text)
    slot.parent.mkdir(parents=True, exist_ok=True)
    up = slot.parent / "up"
    up.symlink_to(outside.folder)
    _make_link(slot, "up/outside")


def link_through_proc(slot: Path, outside: Outside, text: str) -> None:
    """A link that only this process can follow."""
    _make_link(slot, f"/proc/self/root{outside.file(text)}")


def link_to_itself(slot: Path, outside: Outside, text: str) -> None:
    _make_link(slot, slot.name)


def pipe(slot: Path, outside: Outside, text: str) -> None:
    """A pipe without a writer: a plain open of it waits for ever."""
    slot.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(slot)


def link_to_a_pipe(slot: Path, outside: Outside, text: str) -> None:
    pipe(slot.parent / "pipe", outside, text)
    _make_link(slot, "pipe")


def listening_socket(slot: Path, outside: Outside, text: str) -> None:
    slot.parent.mkdir(parents=True, exist_ok=True)
    here = os.getcwd()
    os.chdir(slot.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(slot.name)
    finally:
        os.chdir(here)


def folder(slot: Path, outside: Outside, text: str) -> None:
    slot.mkdir(parents=True)


def endless_device(slot: Path, outside: Outside, text: str) -> None:
    _make_link(slot, "/dev/zero")


def terminal(slot: Path, outside: Outside, text: str) -> None:
    _make_link(slot, "/dev/tty")


def environment(slot: Path, outside: Outside, text: str) -> None:
    _make_link(slot, "/proc/self/environ")


def binary(slot: Path, outside: Outside, text: str) -> None:
    slot.parent.mkdir(parents=True, exist_ok=True)
    slot.write_bytes(text.encode("utf-16"))


def other_letters(slot: Path, outside: Outside, text: str) -> None:
    """UTF-16 without its mark: every second byte is NUL."""
    slot.parent.mkdir(parents=True, exist_ok=True)
    slot.write_bytes(text.encode("utf-16-le"))


TRAPS: Final[tuple[Callable[[Path, Outside, str], None], ...]] = (
    link_out,
    link_out_by_dots,
    link_to_a_key,
    chain_of_links,
    endless_chain,
    link_through_the_parent,
    link_through_proc,
    link_to_itself,
    pipe,
    link_to_a_pipe,
    listening_socket,
    folder,
    endless_device,
    terminal,
    environment,
    binary,
    other_letters,
)
"""What may stand where a file is expected: never read, never waited for, reported in one
sentence.
"""


def sparse_file(slot: Path, text: str) -> None:
    """A gigabyte that costs nothing on disk."""
    slot.parent.mkdir(parents=True, exist_ok=True)
    with slot.open("wb") as file:
        file.write(text.encode() + b"\n")
        file.truncate(GIGABYTE)
