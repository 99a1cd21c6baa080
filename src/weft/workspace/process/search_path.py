"""Finding programs on `PATH`, away from folders whose content is not trusted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator


def find_program(program: str, path: str, *, outside: Iterable[str] = ()) -> str | None:
    """Absolute path of the first such program that lies in none of the folders of `outside`."""
    folders = list(outside)
    return next((each for each in _candidates(program, path) if not lies_in(each, folders)), None)


def lies_in(program: str, folders: Iterable[str]) -> bool:
    """True when the program, its folder, or what they are links to, lies in one of the folders.

    All of them count: a link inside the project can be turned to another target by a command.
    """
    where, name = os.path.split(program)
    resolved = os.path.join(os.path.realpath(where), name)
    ways = {os.path.normpath(program), resolved, os.path.realpath(program)}
    roots = [os.path.realpath(folder).rstrip("/") for folder in folders]
    return any(way.startswith(f"{root}/") for way in ways for root in roots)


def _candidates(program: str, path: str) -> Iterator[str]:
    # `scrubbed` has taken relative entries out: they would name another folder for each command.
    for folder in path.split(":"):
        found = os.path.join(folder, program)
        if os.path.isfile(found) and os.access(found, os.X_OK):
            yield found
