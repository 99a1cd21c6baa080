"""Taking the state of a repository: what it names, and the objects that are not stored yet.

Git only reads here, on a stand-in (`weft.workspace.git`): nothing in the repository can start a
program.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from weft.errors import FinalToolError
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import Runner
from weft.workspace.git import SafeGit, open_safe_git
from weft.workspace.git_repository import GitRepository, read_small
from weft.workspace.repository_copies.copy_record import (
    FIRST_FILES,
    LARGEST_FILE,
    BranchSource,
    RepositoryRecord,
    is_ref_name,
    read_settings,
    without_password,
)

MOST_PACKS: Final = 16
"""Packs that build on one another; then all behind the first become one."""
PIECE: Final = 8 * 1024 * 1024
"""Bytes of a pack that are one blob."""
LARGEST_PACK: Final = 256 * 1024 * 1024
"""Bytes of new objects that are taken at once: all of it is in memory until it is stored."""
LARGEST_INDEX: Final = 64 * 1024 * 1024
_SHARED_INDEX: Final = "sharedindex."
_REFS: Final = "--format=%(objectname) %(refname) %(symref)"


class TakenRepository(msgspec.Struct, frozen=True):
    """A repository as it is now."""

    record: RepositoryRecord
    blobs: dict[BlobId, bytes]
    """What the record names and was not known before."""


async def take_repository(
    runner: Runner,
    repository: GitRepository,
    inside: str,
    scratch: Path,
    known: RepositoryRecord | None,
) -> TakenRepository:
    """Read a repository; `known` is a record of it whose blobs are stored, and `inside` the way
    from its top to the project.

    Raises:
        FinalToolError: it cannot be read, or has more new objects than are taken.
    """
    async with open_safe_git(runner, repository, scratch) as git:
        taker = _CopyTaker(git, known)
        record = await taker.names()
        record = msgspec.structs.replace(record, inside=inside)
        index = await anyio.to_thread.run_sync(_read_index, repository.records)
        if index is not None:
            record = msgspec.structs.replace(record, index=taker.add(index))
        return TakenRepository(await taker.with_packs(record), taker.blobs)


def stamp_of(repository: GitRepository) -> tuple[object, ...]:
    """What changes whenever a repository's refs or index do; a few looks at the disk.  Blocks."""
    files = ("HEAD", "index", *FIRST_FILES)
    looked = [_look(f"{repository.records}/{name}") for name in files]
    looked.append(_look(f"{repository.common}/packed-refs"))
    looked.append(_look(f"{repository.common}/config"))
    # A ref is renamed into its folder, which changes the folder.
    for folder, _, _ in os.walk(f"{repository.common}/refs"):
        looked.append(_look(folder))
    for folder, _, _ in os.walk(f"{repository.common}/reftable"):
        looked.append(_look(folder))
    return tuple(looked)


def _look(path: str) -> tuple[int, int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


class _CopyTaker:
    def __init__(self, git: SafeGit, known: RepositoryRecord | None) -> None:
        self._git = git
        self._known = known
        self.blobs: dict[BlobId, bytes] = {}

    def add(self, data: bytes) -> BlobId:
        blob_id = BlobId(sha256(data).hexdigest())
        self.blobs[blob_id] = data
        return blob_id

    async def names(self) -> RepositoryRecord:
        """All that it names; without its index and objects."""
        repository = self._git.repository
        head = await anyio.to_thread.run_sync(read_small, f"{repository.records}/HEAD")
        refs, symbolic = await self._refs()
        told = read_settings(await self._git.follows())
        stored = {
            name: value
            for name, value in self._git.settings.items()
            if name != "extensions.refstorage"  # the copy has files
        }
        return RepositoryRecord(
            head=(head or b"").decode(errors="replace").strip(),
            refs=refs,
            symbolic=symbolic,
            settings=stored,
            remotes=_remotes(told["remote"]),
            branches=_branches(told["branch"]),
            user=told["user"],
            files=await anyio.to_thread.run_sync(_small_files, repository),
        )

    async def _refs(self) -> tuple[dict[str, str], dict[str, str]]:
        into = str(self._git.common.parent / "refs-printed")
        done = await self._git.save("for-each-ref", _REFS, into=into)
        if done.exit_code:
            raise FinalToolError(f"the refs cannot be read: {done.errors.strip()[-300:]}")
        refs: dict[str, str] = {}
        symbolic: dict[str, str] = {}
        for line in (await anyio.Path(into).read_text(errors="replace")).splitlines():
            oid, name, *target = line.split(" ")
            if target and target[0] and is_ref_name(target[0]):
                symbolic[name] = target[0]
            elif is_ref_name(name):
                refs[name] = oid
        return refs, symbolic

    async def with_packs(self, record: RepositoryRecord) -> RepositoryRecord:
        """The record with packs that have all of its objects."""
        known = self._known
        packs, first, have = (known.packs, known.first_tips, known.tips) if known else ((), (), ())
        if len(packs) > MOST_PACKS:
            packs, have = packs[:1], first
        wanted = await self._present(record.object_ids)
        # A ref that leads to nothing would keep all the others from being made again.
        there = set(wanted)
        refs = {name: oid for name, oid in record.refs.items() if oid in there}
        made = await self._pack(wanted, await self._present(have))
        if made:
            packs = (*packs, made)
        # What a ref no longer leads to is packed all the same, and may be built on.
        tips = tuple(sorted({*have, *wanted}))
        return msgspec.structs.replace(
            record,
            refs=refs,
            packs=packs,
            tips=tips,
            first_tips=first if first or not made else tips,
        )

    async def _present(self, oids: Collection[str]) -> list[str]:
        """Those of these objects that are there."""
        if not oids:
            return []
        into = str(self._git.common.parent / "objects-printed")
        asked = "".join(f"{oid}\n" for oid in sorted(oids)).encode()
        done = await self._git.save("cat-file", "--batch-check=%(objectname)", into=into,
                                    stdin=asked)  # fmt: skip
        if done.exit_code:
            raise FinalToolError(f"objects cannot be read: {done.errors.strip()[-300:]}")
        lines = (await anyio.Path(into).read_text()).splitlines()
        return [line for line in lines if " " not in line]

    async def _pack(self, wanted: Iterable[str], have: Iterable[str]) -> tuple[BlobId, ...]:
        """A pack of what these lead to and those do not, in pieces; none where that is nothing."""
        into = str(self._git.common.parent / "pack-printed")
        asked = [*wanted, "--not", *have]
        done = await self._git.save(
            *("pack-objects", "--revs", "--indexed-objects", "--thin", "--stdout", "-q"),
            *("--threads=1", "--delta-base-offset"),
            into=into,
            stdin="".join(f"{line}\n" for line in asked).encode(),
        )
        if done.exit_code:
            raise FinalToolError(f"objects cannot be packed: {done.errors.strip()[-300:]}")
        pieces = await anyio.to_thread.run_sync(_pieces, into)
        return tuple(map(self.add, pieces))


def _pieces(path: str) -> list[bytes]:
    size = os.path.getsize(path)
    if size > LARGEST_PACK:
        raise FinalToolError(f"there are {size:,} bytes of commits, more than are taken at once")
    data = Path(path).read_bytes()
    # How many objects are in it stands behind its version.
    if not int.from_bytes(data[8:12], "big"):
        return []
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]


def _read_index(records: str) -> bytes | None:
    data = read_small(f"{records}/index", LARGEST_INDEX)
    is_split = any(name.startswith(_SHARED_INDEX) for name in os.listdir(records))
    return None if data is None or (is_split and b"link" in data) else data


def _small_files(repository: GitRepository) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in FIRST_FILES:
        # Of a linked work tree some are its own, and some those of all.
        for folder in dict.fromkeys((repository.records, repository.common)):
            data = read_small(f"{folder}/{name}", LARGEST_FILE)
            if data is not None and len(data) < LARGEST_FILE:
                found.setdefault(name, data)
    return found


def _remotes(told: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removesuffix(".url"): without_password(url)
        for name, url in told.items()
        if name.endswith(".url")
    }


def _branches(told: Mapping[str, str]) -> dict[str, BranchSource]:
    merges = {
        name.removesuffix(".merge"): value
        for name, value in told.items()
        if name.endswith(".merge")
    }
    return {
        name: BranchSource(told[f"{name}.remote"], merge)
        for name, merge in merges.items()
        if f"{name}.remote" in told
    }
