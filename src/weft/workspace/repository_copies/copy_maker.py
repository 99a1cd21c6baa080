"""Making a repository again from its record, in a folder of ours.

Nothing of it is cloned and no remote is asked: packs are indexed, which tests every object by its
hash, and the rest are small files.  The work tree is put there by the caller; what it cannot put is
read from the objects.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from weft.errors import FinalToolError
from weft.ids import BlobId
from weft.workspace.base import Runner
from weft.workspace.git import SafeGit, open_safe_git
from weft.workspace.git_repository import GitRepository
from weft.workspace.repository_copies.copy_record import (
    RepositoryRecord,
    check_record,
    config_text,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LoadBlob = Callable[[BlobId], Awaitable[bytes | None]]
_FOLDERS: Final = ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info", "logs/refs")
_NO_NAMES: Final = frozenset({"", ".", "..", ".git"})


@asynccontextmanager
async def made_repository(
    runner: Runner, top: str, record: RepositoryRecord, load: LoadBlob, scratch: Path
) -> AsyncIterator[RepositoryCopy]:
    """A repository at `top`, a folder of ours that has none, with all that a record names.

    Raises:
        FinalToolError: something of it is not stored, or not what it should be.
    """
    check_record(record)
    records = f"{top}/.git"
    await anyio.to_thread.run_sync(_lay_out, records, record)
    repository = GitRepository(top=top, records=records, common=records)
    async with open_safe_git(runner, repository, scratch) as git:
        for pack in record.packs:
            await _index_pack(git, await _joined(pack, load))
        await _check_objects(git, record)
        await anyio.to_thread.run_sync(_write_refs, records, record)
        if record.index is not None:
            index = await _joined((record.index,), load)
            await anyio.to_thread.run_sync(Path(f"{records}/index").write_bytes, index)
    # Anew: what was linked before does not have the refs and the index.
    async with open_safe_git(runner, repository, scratch) as git:
        copy = RepositoryCopy(git, record)
        if record.index is None:
            await copy.reset_index()
        else:
            await copy.check_index()
        yield copy


class RepositoryCopy:
    """A repository that was made again, while its work tree is put in place."""

    def __init__(self, git: SafeGit, record: RepositoryRecord) -> None:
        self._git = git
        self._record = record

    async def reset_index(self) -> None:
        """Let the index be that of the last commit, if there is one."""
        await self._git.run("read-tree", "HEAD", work_tree=self._git.repository.top)

    async def check_index(self) -> None:
        """See that all that the index names lies in the work tree: git tests what is added to one,
        and not what it reads.

        Raises:
            FinalToolError: it does not.
        """
        for path in await self._staged():
            if any(part.lower() in _NO_NAMES for part in path.split("/")):
                raise FinalToolError("the index that is stored is not what git writes")

    async def contents(self, paths: Mapping[str, str]) -> dict[str, bytes]:
        """What the index has at those paths below the project whose content has this SHA-256."""
        from weft.sha256 import sha256

        found: dict[str, bytes] = {}
        prefix = f"{self._record.inside}/" if self._record.inside else ""
        staged = await self._staged()
        for path, wanted in paths.items():
            oid = staged.get(prefix + path)
            if oid is None:
                continue
            data = await self._content(oid)
            if data is not None and sha256(data).hexdigest() == wanted:
                found[path] = data
        return found

    async def _staged(self) -> dict[str, str]:
        into = str(self._git.common.parent / "staged-printed")
        await self._git.save("ls-files", "--stage", "-z", into=into)
        found: dict[str, str] = {}
        for line in (await anyio.Path(into).read_bytes()).split(b"\0"):
            about, _, path = line.partition(b"\t")
            if path:
                found[os.fsdecode(path)] = about.split()[1].decode()
        return found

    async def _content(self, oid: str) -> bytes | None:
        into = str(self._git.common.parent / "content-printed")
        done = await self._git.save("cat-file", "blob", oid, into=into)
        return None if done.exit_code else await anyio.Path(into).read_bytes()

    async def put_surroundings(self) -> None:
        """Put the files of the index in place that lie beside the project."""
        inside = self._record.inside
        if not inside:
            return
        beside = [os.fsencode(path) for path in await self._staged()
                  if not path.startswith(f"{inside}/")]  # fmt: skip
        done = await self._git.run(
            *("checkout-index", "-q", "-z", "--stdin"),
            work_tree=self._git.repository.top,
            stdin=b"\0".join(beside),
        )
        if done.exit_code:
            raise FinalToolError(f"files cannot be checked out: {done.errors.strip()[-300:]}")

    async def refresh(self) -> None:
        """Let the index know the files that lie in the work tree now, so that none looks
        changed."""
        await self._git.run("update-index", "-q", "--refresh", work_tree=self._git.repository.top)


def _lay_out(records: str, record: RepositoryRecord) -> None:
    for folder in _FOLDERS:
        os.makedirs(f"{records}/{folder}")
    _write(f"{records}/HEAD", f"{record.head}\n".encode())
    _write(f"{records}/config", config_text(record).encode())
    for name, data in record.files.items():
        _write(f"{records}/{name}", data)


def _write_refs(records: str, record: RepositoryRecord) -> None:
    lines = [f"{oid} {name}\n" for name, oid in sorted(record.refs.items())]
    _write(f"{records}/packed-refs", "".join(lines).encode())
    for name, target in record.symbolic.items():
        os.makedirs(os.path.dirname(f"{records}/{name}"), exist_ok=True)
        _write(f"{records}/{name}", f"ref: {target}\n".encode())
    # A reflog counts for a ref that is there as a file, too.
    if "logs/refs/stash" in record.files and (oid := record.refs.get("refs/stash")):
        _write(f"{records}/refs/stash", f"{oid}\n".encode())


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


async def _joined(pieces: tuple[BlobId, ...], load: LoadBlob) -> bytes:
    found: list[bytes] = []
    for piece in pieces:
        data = await load(piece)
        if data is None:
            raise FinalToolError("a part of the session's repository is not stored any more")
        found.append(data)
    return b"".join(found)


async def _index_pack(git: SafeGit, data: bytes) -> None:
    done = await git.run("index-pack", "--stdin", "--fix-thin", stdin=data)
    if done.exit_code:
        raise FinalToolError(f"a pack cannot be read: {done.errors.strip()[-300:]}")


async def _check_objects(git: SafeGit, record: RepositoryRecord) -> None:
    asked = "".join(f"{oid}\n" for oid in sorted(record.refs.values())).encode()
    if not asked:
        return
    done = await git.run("cat-file", "--batch-check", stdin=asked)
    if done.exit_code or " missing" in done.output:
        raise FinalToolError("objects of the session's repository are not stored")
