"""What a git directory records: refs, reflogs, loose objects and pack indexes, read as files.

Two states are read with the same code: the directory as it is, and as it would be with the changes
of a command that still lie in another folder.  No git is started here, because most commands change
nothing that needs one; what a file cannot tell (is this commit an ancestor of that one, is this
pack whole) is asked of git by the caller.

Everything here blocks, and only looks.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from weft.workspace.git_repository import read_pointer

LARGEST_RECORD: Final = 64 * 1024 * 1024
"""Bytes that are read of one file: a reflog or `packed-refs` larger than this is none of git's."""
STASH: Final = "refs/stash"
LARGEST_OBJECT: Final = 64 * 1024 * 1024
_OID: Final = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LOOSE: Final = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38}(?:[0-9a-f]{24})?)")
_PACK: Final = re.compile(r"objects/pack/(.+)\.(pack|idx)")
_DERIVED: Final = re.compile(
    r"objects/(?:info/commit-graph|info/commit-graphs/.+\.graph"
    r"|pack/(?:multi-pack-index|.+\.(?:rev|bitmap|mtimes)))"
)
_LOG_LINE: Final = re.compile(
    rb"^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*?> (\d+) [^\n]*$", re.MULTILINE
)
_PACKED: Final = re.compile(rb"^([0-9a-f]{40,64}) ([^\n]+)$", re.MULTILINE)
_PACKED_LINE: Final = re.compile(
    # A ref, perhaps with the object that a tag leads to; names as `git check-ref-format` has them.
    rb"(?:[0-9a-f]{40}|[0-9a-f]{64}) ([^\x00-\x20\x7f~^:?*\[\\]+)\n"
    rb"(?:\^(?:[0-9a-f]{40}|[0-9a-f]{64})\n)?"
)
_LINKS_FOLLOWED: Final = 5
"""Symbolic refs that lead from one to the next; git follows as many."""
_LEADS_TO: Final = re.compile(rb"^(?:tree|parent) ([0-9a-f]{40,64})$", re.MULTILINE)
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_IDX_MAGIC: Final = b"\xfftOc\x00\x00\x00\x02"
_FANOUT: Final = 256 * 4
_PIECE: Final = 1024 * 1024


class ReflogLine(msgspec.Struct, frozen=True):
    """One entry of a reflog."""

    old: str
    new: str
    time: int


class GitRecords:
    """The records of one git directory, with what is put over it and what is taken away."""

    def __init__(
        self, folder: str, over: str = "", put: Iterable[str] = (), removed: Iterable[str] = ()
    ) -> None:
        """`put` names the files that `over` has in the place of the folder's, `removed` those that
        are gone; both relative to the folder.
        """
        self.folder = folder
        self.over = over
        self.put = frozenset(put)
        self.removed = frozenset(removed) - self.put
        self._packed: dict[str, str] | None = None

    # -- files

    def where(self, name: str) -> str | None:
        """The real path of a file; None when it is gone."""
        if name in self.put:
            return f"{self.over}/{name}"
        return None if name in self.removed else f"{self.folder}/{name}"

    def read(self, name: str) -> bytes | None:
        """What a record holds; None where there is none."""
        path = self.where(name)
        return None if path is None else _read_file(path)

    def names(self, folder: str) -> list[str]:
        """The files below a folder, at any depth, relative to the git directory."""
        found = set(_files(self.folder, folder)) - self.removed
        return sorted(found | {name for name in self.put if name.startswith(f"{folder}/")})

    # -- refs

    def ref(self, name: str) -> str | None:
        """What a ref holds: an object, or `ref: ` and another name.  None where there is none."""
        path = self.where(name)
        if path is not None and os.path.islink(path):
            return f"ref: {os.readlink(path)}"
        text = self.read(name)
        return self.packed().get(name) if text is None else text.decode(errors="replace").strip()

    def packed(self) -> dict[str, str]:
        """The refs of `packed-refs`."""
        if self._packed is None:
            text = self.read("packed-refs") or b""
            self._packed = {os.fsdecode(name): oid.decode() for oid, name in _PACKED.findall(text)}
        return self._packed

    def resolved(self, name: str) -> str | None:
        """The object that a ref leads to, through symbolic refs; None where it leads nowhere."""
        for _ in range(_LINKS_FOLLOWED):
            held = self.ref(name)
            if held is None or is_oid(held):
                return held
            if not held.startswith("ref: "):
                return None
            name = held.removeprefix("ref: ").strip()
        return None

    def can_read_packed(self) -> bool:
        """True when git can read `packed-refs`: at one line that it does not know, it gives up on
        every ref.
        """
        text = self.read("packed-refs")
        if text is None:
            path = self.where("packed-refs")
            return path is None or not os.path.lexists(path)
        header, at = b"", 0
        if text.startswith(b"#"):
            at = text.find(b"\n") + 1
            header = text[:at]
            if not at:
                return False
        names: list[bytes] = []
        while at < len(text):
            found = _PACKED_LINE.match(text, at)
            if found is None:
                return False
            names.append(found[1])
            at = found.end()
        # Git searches a file that says so by halves, and misses what stands in the wrong place.
        return b" sorted" not in header or names == sorted(set(names))

    def ref_names(self) -> list[str]:
        """All refs, and the HEAD of each work tree."""
        loose = [name for name in self.names("refs") if not name.endswith(".lock")]
        others = [name for name in self.names("worktrees") if _is_worktree_ref(name)]
        return sorted({"HEAD", *loose, *others, *self.packed()})

    def refs(self) -> dict[str, str]:
        """Name → object of every ref that names one by itself."""
        held = ((name, self.ref(name)) for name in self.ref_names())
        return {name: oid for name, oid in held if oid is not None and is_oid(oid)}

    # -- reflogs

    def log_names(self) -> list[str]:
        """The reflogs, of all work trees."""
        others = [name for name in self.names("worktrees") if "/logs/" in name]
        return [*self.names("logs"), *others]

    def log(self, name: str) -> list[ReflogLine]:
        """The entries of a reflog, the oldest first."""
        found = _LOG_LINE.findall(self.read(name) or b"")
        return [ReflogLine(old.decode(), new.decode(), int(time)) for old, new, time in found]

    def tips(
        self, *, with_logs: bool = True, with_stashes: bool = True, since: float = 0
    ) -> set[str]:
        """Every object that a ref, or an entry of a reflog from that time on, names."""
        refs = self.refs()
        if not with_stashes:
            refs.pop(STASH, None)
        found = set(refs.values())
        for name in self.log_names() if with_logs else ():
            if with_stashes or name != f"logs/{STASH}":
                for line in self.log(name):
                    if line.time >= since:
                        found |= {line.old, line.new}
        return {oid for oid in found if oid.strip("0")}

    # -- objects

    def has_object(self, oid: str) -> bool:
        """True when an object is there, loose or in a pack; what it holds is not looked at."""
        path = self.where(f"objects/{oid[:2]}/{oid[2:]}")
        if path is not None and os.path.isfile(path):
            return True
        raw = bytes.fromhex(oid)
        if any(lists(index, raw) for index in self.indexes()):
            return True
        return any(os.path.isfile(f"{each}/{oid[:2]}/{oid[2:]}") for each in self.borrowed())

    def packs(self) -> list[str]:
        """The packs that are whole as far as names go: content and index."""
        names = {name for name in self.names("objects/pack") if _PACK.fullmatch(name)}
        return sorted(
            name.removesuffix(".pack")
            for name in names
            if name.endswith(".pack") and f"{name.removesuffix('.pack')}.idx" in names
        )

    def indexes(self) -> Iterator[str]:
        """The index of each pack, of the repositories that this one borrows from too."""
        for name in self.packs():
            path = self.where(f"{name}.idx")
            if path is not None:
                yield path
        for folder in self.borrowed():
            yield from (f"{folder}/{name}" for name in _files(folder, "pack") if _is_index(name))

    def borrowed(self) -> list[str]:
        """The object folders that `alternates` names."""
        text = read_pointer_lines(f"{self.folder}/objects/info/alternates")
        return [os.path.realpath(os.path.join(self.folder, "objects", line)) for line in text]


def is_oid(text: str) -> bool:
    """True for the full name of an object."""
    return _OID.fullmatch(text.encode(errors="replace")) is not None


def loose_object(name: str) -> str:
    """The object that a path of a git directory is the loose file of; empty when it is none."""
    found = _LOOSE.fullmatch(name)
    return f"{found[1]}{found[2]}" if found else ""


def pack_of(name: str) -> str:
    """The pack that a path of a git directory is a part of; empty when it is of none."""
    found = _PACK.fullmatch(name)
    return f"objects/pack/{found[1]}" if found else ""


def indexed(path: str) -> frozenset[bytes]:
    """The objects that a pack index lists; none where it is damaged."""
    with _mapped(path) as data:
        start, count, width = _table(data)
        held = bytes(data[start : start + count * width])
    return frozenset(held[at : at + width] for at in range(0, len(held), width))


def lists(path: str, oid: bytes) -> bool:
    """True when a pack index lists an object; the index is searched, not read whole."""
    with _mapped(path) as data:
        start, count, width = _table(data)
        if width != len(oid):
            return False
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            at = start + middle * width
            if data[at : at + width] < oid:
                low = middle + 1
            else:
                high = middle
        at = start + low * width
        return low < count and data[at : at + width] == oid


def is_whole(pack: str, index: str) -> bool:
    """True when a pack and its index belong together and neither was cut or changed since git wrote
    it.  Whether it holds what the index says, only git can tell.
    """
    with _mapped(pack) as data, _mapped(index) as listed:
        _, count, width = _table(listed)
        if not count or data[:4] != b"PACK" or int.from_bytes(data[8:12], "big") != count:
            return False
        # The last two checksums of an index are that of the pack and its own.
        if data[-width:] != listed[-2 * width : -width]:
            return False
        made = hashlib.sha1 if width == 20 else hashlib.sha256
        return all(
            made(memoryview(each)[:-width], usedforsecurity=False).digest() == each[-width:]
            for each in (data[:], listed[:])
        )


def is_derived(name: str) -> bool:
    """True for a file of a git directory that repeats what objects say, to be faster."""
    return _DERIVED.fullmatch(name) is not None


def ends_in_checksum(path: str) -> bool:
    """True when a file ends in the hash of what stands before, as git's binary files do."""
    with _mapped(path) as data:
        return is_checked(data[:])


def is_checked(data: bytes) -> bool:
    """The same for the content of a file."""
    return any(
        made(memoryview(data)[:-width], usedforsecurity=False).digest() == data[-width:]
        for made, width in ((hashlib.sha1, 20), (hashlib.sha256, 32))
    )


@contextmanager
def _mapped(path: str) -> Iterator[mmap.mmap | bytes]:
    try:
        fd = os.open(path, _READ)
    except OSError:
        yield b""
        return
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or not about.st_size:
            yield b""
            return
        with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as data:
            yield data
    finally:
        os.close(fd)


def _table(data: mmap.mmap | bytes) -> tuple[int, int, int]:
    """Where the names of an index start, how many there are, and the bytes of each."""
    start = len(_IDX_MAGIC) + _FANOUT
    # Version 1 has no magic number; git has written none since 2007.
    if len(data) < start or data[: len(_IDX_MAGIC)] != _IDX_MAGIC:
        return 0, 0, 20
    count = int.from_bytes(data[start - 4 : start], "big")
    # A name of 20 bytes has 8 or 16 bytes of checksum and offset besides, one of 32 has as many.
    width = 32 if len(data) - start >= count * 40 + 64 else 20
    if len(data) - start < count * width:
        return 0, 0, width
    return start, count, width


def _is_index(name: str) -> bool:
    return name.endswith(".idx")


def is_sound(path: str, oid: str) -> bool:
    """True when a loose object holds what its name says."""
    return loose_content(path, oid) is not None


def loose_content(path: str, oid: str) -> bytes | None:
    """A loose object with its header; None when it does not hold what its name says."""
    data = _read_file(path, LARGEST_OBJECT)
    if data is None:
        return None
    reader = zlib.decompressobj()
    try:
        unpacked = reader.decompress(data, LARGEST_OBJECT)
    except zlib.error:
        return None
    # Git refuses an object with anything behind its end.
    if not reader.eof or reader.unused_data:
        return None
    made = hashlib.sha1 if len(oid) == 40 else hashlib.sha256
    # SHA-1 is what git names objects by; nothing here relies on its strength.
    return unpacked if made(unpacked, usedforsecurity=False).hexdigest() == oid else None


def leads_to(commit: bytes) -> list[str]:
    """The tree and the parents that a commit names."""
    head, _, _ = commit.partition(b"\0")[2].partition(b"\n\n")
    return [oid.decode() for oid in _LEADS_TO.findall(head)]


def have_same_bytes(path: str, other: str) -> bool:
    """True when two files hold the same."""
    with _mapped(path) as one, _mapped(other) as two:
        # In pieces: a pack can be larger than the memory.
        return len(one) == len(two) and all(
            one[at : at + _PIECE] == two[at : at + _PIECE] for at in range(0, len(one), _PIECE)
        )


def read_pointer_lines(path: str) -> list[str]:
    """The lines of a small file such as `alternates`; none where there is none."""
    text = read_pointer(path)
    return [] if text is None else [line for line in text.split("\n") if line[:1] not in ("", "#")]


def _is_worktree_ref(name: str) -> bool:
    parts = name.split("/")
    return len(parts) > 2 and (parts[2] == "refs" or parts[2:] == ["HEAD"])


def _read_file(path: str, limit: int = LARGEST_RECORD) -> bytes | None:
    try:
        fd = os.open(path, _READ)
    except OSError:
        return None
    with open(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
            return None
        return file.read(limit)


def _files(base: str, folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(f"{base}/{folder}"):
        below = parent[len(base) + 1 :]
        yield from (f"{below}/{name}" for name in names)
