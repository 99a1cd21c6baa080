"""The check of packs: whether they hold what their indexes say.

Checksums do not tell, for a program can write right ones over anything.  Git can, by reading every
object, which takes as long as packing did.  So a small pack is verified whole, and of a large one
some objects are: those that refs name, and others by chance.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from typing import Final

from weft.workspace.git import SafeGit

SMALL_BYTES: Final = 128 * 1024
"""A pack up to this size is verified whole, which takes some 20 ms."""
MOST_SAMPLED: Final = 64
_NAMED_FIRST: Final = 16


class PackCheck:
    """Packs that git has to be asked about, and the objects to look at."""

    def __init__(self) -> None:
        self._whole: list[str] = []
        self._sampled: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._whole or self._sampled)

    def verify(self, path: str) -> None:
        """Have a pack verified whole."""
        if path not in self._whole:
            self._whole.append(path)

    def look_into(self, pack: str, objects: Iterable[bytes]) -> None:
        """Have a pack verified, by path without ending; if it is large, some of these objects."""
        path = f"{pack}.pack"
        try:
            is_small = os.path.getsize(path) <= SMALL_BYTES
        except OSError:
            is_small = True  # git says what is wrong
        if is_small:
            self.verify(path)
            return
        known = self._sampled.setdefault(path, [])
        known += [oid.hex() for oid in _sample(list(objects))]

    async def why_not(self, git: SafeGit) -> str:
        """Which pack is damaged; empty when none is."""
        for path in self._whole:
            if (await git.run("index-pack", "--verify", path)).exit_code:
                return _damaged(path)
        for path, objects in self._sampled.items():
            if path not in self._whole and not await _are_sound(git, objects):
                return _damaged(path)
        return ""


async def _are_sound(git: SafeGit, objects: Sequence[str]) -> bool:
    """True when git finds the objects, and they are what their names say.

    `pack-objects` copies what it finds without looking; in the small pack that it makes, the wrong
    ones show.
    """
    lines = "".join(f"{oid}\n" for oid in dict.fromkeys(objects)).encode()
    base = str(git.common.parent / "sample")
    made = await git.run("pack-objects", "-q", base, stdin=lines)
    if made.exit_code:
        return False
    pack = f"{base}-{made.output.strip()}.pack"
    return not (await git.run("index-pack", "--verify", pack)).exit_code


def _sample(objects: Sequence[bytes]) -> list[bytes]:
    """The first ones, and others that nobody can foresee."""
    rest = list(objects[_NAMED_FIRST:])
    chance = secrets.SystemRandom()
    more = chance.sample(rest, min(len(rest), MOST_SAMPLED - _NAMED_FIRST))
    return [*objects[:_NAMED_FIRST], *more]


def _damaged(path: str) -> str:
    return f"it leaves a damaged pack, {os.path.basename(path)}"
