"""The changes of one repository: what a command did to its refs, reflogs and objects.

Read from files alone, before and after; `git_guard` says which rules they have to keep, and asks
git what files do not tell.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import ChangedFile
from weft.workspace.git_records import (
    STASH,
    GitRecords,
    ReflogLine,
    have_same_bytes,
    indexed,
    is_oid,
    is_sound,
    is_whole,
    loose_object,
    pack_of,
)
from weft.workspace.sandbox.overlay_plan import ApplyStep, size_of, written_at
from weft.workspace.sandbox.repository import git_shape
from weft.workspace.sandbox.repository.index_records import are_staged, lost_indexes
from weft.workspace.sandbox.repository.pack_check import PackCheck

FORGOTTEN_SECONDS: Final = 30 * 24 * 3600
SPARED_SECONDS: Final = 14 * 24 * 3600
MOST_KEPT_BYTES: Final = 256 * 1024 * 1024
"""Removed objects that one command may leave on the disk until they are swept."""
MOST_READ: Final = 100
"""Loose objects of one command that are read, which takes some 5 ms."""
_MERGED_ONLY: Final = ("refs/heads/", "refs/tags/", "refs/notes/")
_COPIES: Final = ("refs/remotes/",)
"""Refs that repeat what another repository has: `git fetch --prune` takes them away without a
question, and a rewind brings them back: that repository may have lost what they name."""


class RefLosses(msgspec.Struct, kw_only=True):
    """What refs and reflogs no longer name."""

    gone: dict[str, str] = {}
    """Refs that are there no more, with what they named."""
    unmerged: dict[str, str] = {}
    """Those whose commit no other ref names; another one may lead to it."""
    dropped: set[str] = set()
    """Objects that a ref or a reflog named, and none of the changed ones does."""
    stashes: list[str] = []


class RemovedFile(msgspec.Struct, frozen=True):
    """A file of objects that is gone: when it was written, and its bytes."""

    time: float
    size: int


class RepositoryChange:
    """What a command did to one git directory."""

    def __init__(
        self,
        before: GitRecords,
        after: GitRecords,
        *,
        changed: set[str],
        replaced: set[str] | None = None,
        made: set[str] | None = None,
        unmade: set[str] | None = None,
        gone: Mapping[str, RemovedFile] | None = None,
        folder: str = "",
    ) -> None:
        """`changed` names the records that differ, `replaced` those that were there before,
        `made` and `unmade` the folders that are new and those that are gone, `gone` what is known
        of removed files, all relative to the git directory; `folder` is what steps call it, ""
        where the project is the git directory.
        """
        self.before, self.after = before, after
        self.changed, self.replaced = changed, replaced or set()
        self._folder = folder
        self.losses = RefLosses()
        self.missing: set[bytes] = set()
        """Removed objects that are in no other place."""
        self.made, self.unmade = made or set(), unmade or set()
        self.uncut: set[str] = set()
        """Commits that `shallow` no longer names."""
        self.branches: dict[str, str] = {}
        """Objects in packs that branches name now, which have to be commits."""
        self.packs = PackCheck()
        self.kept: set[str] = set()
        """Removed files that are to be kept, as the steps name them."""
        self._known = gone or {}
        self._gone: dict[str, RemovedFile] = {}
        """Files of objects that were removed."""
        self._lists: dict[str, frozenset[bytes]] = {}
        self._heirs: set[str] = set()
        """Packs that hold what was removed, by path without ending."""

    @classmethod
    def of_steps(
        cls, root: str, upper: str, folder: str, steps: Sequence[ApplyStep]
    ) -> RepositoryChange:
        """What the steps of a sandboxed command come to."""
        start = len(folder) + 1 if folder else 0
        put = {step.path[start:] for step in steps if step.do == "put"}
        removed = {step.path[start:] for step in steps if step.do == "remove"}
        made = {step.path[start:] for step in steps if step.do == "make"}
        unmade = {step.path[start:] for step in steps if step.do == "remove_folder"}
        return cls(
            GitRecords(f"{root}/{folder}"),
            GitRecords(f"{root}/{folder}", f"{upper}/{folder}", put, removed),
            changed=put | removed,
            replaced={step.path[start:] for step in steps if step.do == "put" and step.before},
            made=made,
            unmade=unmade - made,
            gone={step.path[start:]: _removed_file(step) for step in steps if step.do == "remove"},
            folder=folder,
        )

    def path_of(self, name: str) -> str:
        """What steps call a file of the git directory."""
        return f"{self._folder}/{name}" if self._folder else name

    @property
    def is_sha256(self) -> bool:
        """True for a repository that names objects by SHA-256."""
        known = (*self.losses.unmerged.values(), *self.losses.dropped)
        return any(len(oid) > 40 for oid in known) or any(len(oid) > 20 for oid in self.missing)

    @property
    def needs_git(self) -> bool:
        """True when files do not tell whether all is well."""
        losses = self.losses
        return bool(losses.unmerged or losses.dropped or self.missing or self.packs) or bool(
            self.uncut or self.branches or self.has_new_graph
        )

    @property
    def has_new_graph(self) -> bool:
        """True when the command wrote a commit graph, which git believes."""
        return any(map(git_shape.is_graph, self.after.put))

    def why_not(self) -> str:
        """What is wrong as far as files tell; fills in what git has to be asked."""
        if any(name.startswith("reftable/") for name in self.changed):
            return "its refs are stored as reftables, which Weft cannot check"
        return self.why_not_named() or self._why_not_objects()

    def why_not_named(self) -> str:
        """The same for refs and reflogs alone."""
        return (
            git_shape.why_not_readable(self.after, self.changed, self.made)
            or git_shape.why_not_kept_folders(self.unmade)
            or git_shape.why_not_work_trees(self.after.removed, self.after)
            or git_shape.why_not_run_later(self.after)
            or self._why_not_refs()
            or self._why_not_cut()
        )

    # -- refs

    def _why_not_refs(self) -> str:
        if not any(_is_ref(name) or _is_log(name) for name in self.changed):
            return ""
        names = self._changed_refs()
        if why := self._broken(names):
            return why
        self._find_losses(names)
        # Reading all of it only now: a commit or a fetch leaves nothing to look for.
        if self.losses.dropped:
            self.losses.dropped -= self.after.tips(with_stashes=False, since=oldest_remembered())
        if unmerged := self.losses.unmerged:
            named = self.after.tips(with_logs=False, with_stashes=False)
            self.losses.unmerged = {name: oid for name, oid in unmerged.items() if oid not in named}
        if len(self.losses.stashes) > 1:
            return f"it drops {len(self.losses.stashes)} stashes at once"
        return ""

    def _changed_refs(self) -> set[str]:
        names = {name for name in self.changed if _is_ref(name) and name != "packed-refs"}
        if "packed-refs" in self.changed:
            old, new = self.before.packed(), self.after.packed()
            names |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        return {name for name in names if not name.endswith(".lock")}

    def _broken(self, names: Iterable[str]) -> str:
        """Which ref would name nothing that git can find."""
        for name in sorted(names):
            now = self.after.ref(name)
            if now is None or now == self.before.ref(name):
                continue
            if not git_shape.is_ref_name(name):
                return f"it leaves {name}, which no ref may be called"
            if why := git_shape.why_not_replacing(self.before, name):
                return why
            if git_shape.is_symbolic(now):
                # HEAD may name a branch that is yet to be born; any other ref would be lost.
                if _may_be_unborn(name) or self.after.resolved(name):
                    continue
                return f"it lets {name} lead nowhere"
            if not is_oid(now):
                return f"it leaves {name} with nothing that git can read"
            if why := git_shape.why_not_named(self.after, name, now):
                return why
            if git_shape.is_branch(name):
                self.branches[now] = name
        self._leave_out_commits()
        return ""

    def _leave_out_commits(self) -> None:
        """Leave out the branches whose commits are known, so that git is asked about few: a loose
        object was read just now, and what a ref or a reflog named was good enough for git.
        """
        asked = {oid for oid in self.branches if not git_shape.is_loose(self.after, oid)}
        asked -= self.before.tips() if asked else set()
        self.branches = {oid: name for oid, name in self.branches.items() if oid in asked}

    def _find_losses(self, names: Iterable[str]) -> None:
        losses = self.losses
        for name in names:
            old, new = self.before.ref(name), self.after.ref(name)
            if old is None or old == new or not is_oid(old):
                continue
            if name == STASH:
                continue  # its reflog is the list of stashes: see `_dropped_stashes`
            if new is None:
                losses.gone[name] = old
            if name.startswith(_COPIES):
                continue
            if new is None and name.startswith(_MERGED_ONLY):
                losses.unmerged[name] = old
            else:
                losses.dropped.add(old)
        named: set[str] = {new for name in names if (new := self.after.ref(name)) is not None}
        for name in filter(_is_log, self.changed):
            old_lines, new_lines = self.before.log(name), self.after.log(name)
            # As old entries go at the next `git gc`, one that was made older is as good as gone.
            named |= _recent(new_lines)
            if name != f"logs/{STASH}" and not any(f"logs/{each}" in name for each in _COPIES):
                losses.dropped |= _recent(old_lines)
        losses.stashes = self._dropped_stashes()
        losses.dropped -= named
        losses.dropped = {oid for oid in losses.dropped if oid.strip("0")}

    def _dropped_stashes(self) -> list[str]:
        log = f"logs/{STASH}"
        if not {STASH, log} & self.changed:
            return []
        # Without the ref git lists none of them, whatever the reflog says.
        left = self.after.log(log) if self.after.ref(STASH) is not None else []
        kept = {line.new for line in left}
        return [line.new for line in self.before.log(log) if line.new not in kept]

    def lost_records(self) -> list[ChangedFile]:
        """What a rewind has to put back so that git finds again what was named."""
        found = [_record(name, f"{oid}\n".encode(), None) for name, oid in self.losses.gone.items()]
        if self.losses.stashes:
            for name in (STASH, f"logs/{STASH}"):
                before = self.before.read(name)
                if before is not None:
                    found.append(_record(name, before, self.after.read(name)))
        return found + self.lost_indexes()

    def lost_indexes(self) -> list[ChangedFile]:
        """The indexes that are gone or no longer one: what was staged is named nowhere else."""
        return [
            _record(name, before, self.after.read(name))
            for name in lost_indexes(self.before, self.after, self.changed)
            if (before := self.before.read(name)) is not None
        ]

    def recent_tips(self) -> set[str]:
        """What refs named before, and reflogs for as long as git would not forget it."""
        found = set(self.before.refs().values())
        for name in self.before.log_names():
            found |= _recent(self.before.log(name))
        return {oid for oid in found if oid.strip("0")}

    # -- what cuts the history off

    def _why_not_cut(self) -> str:
        if "shallow" in self.changed and (now := self.after.read("shallow")) is not None:
            before = set((self.before.read("shallow") or b"").split())
            new = [oid.decode() for oid in set(now.split()) - before]
            # A commit that was here with its parents must not become the end of the history; one
            # that was just fetched may be.
            if any(is_oid(oid) and self.before.has_object(oid) for oid in new):
                return "it cuts the history off (.git/shallow)"
        if "shallow" in self.changed:
            left = set((self.after.read("shallow") or b"").split())
            before = set((self.before.read("shallow") or b"").split())
            self.uncut = {oid.decode() for oid in before - left}
        if git_shape.ALTERNATES in self.changed:
            if self.before.borrowed():
                return "it loses the objects that are borrowed from another repository"
            # What is there already is not stored again: later commits would live there alone.
            return "it lets the repository borrow objects from another place"
        return ""

    # -- objects

    def _why_not_objects(self) -> str:
        if why := self._why_not_replaced():
            return why
        candidates = self._removed_objects()
        if not candidates:
            return ""
        recent, old = self._missing(candidates)
        if recent:
            return f"it removes {len(recent):,} objects younger than two weeks"
        self._keep_heirs()
        self.missing = old
        if any(bytes.fromhex(tip) in old for tip in (self.before.tips() if old else ())):
            return "it removes commits that refs or reflogs name"
        return ""

    def loses_staged(self) -> bool:
        """True when an index names what was removed and is in no other place."""
        return are_staged(self.before, self.missing)

    def _why_not_replaced(self) -> str:
        if why := git_shape.why_not_derived(self.after, self.after.removed):
            return why
        for name in (*self.replaced, *self._new_loose()):
            if (oid := loose_object(name)) and not is_sound(f"{self.after.over}/{name}", oid):
                return f"it damages the object {oid[:12]}"
        for name in sorted(self.replaced):
            if (pack := pack_of(name)) and self._differs(name):
                # Both halves or none: git names a pack after what it holds, and so never changes
                # one of them.
                if not {f"{pack}.pack", f"{pack}.idx"} <= self.replaced:
                    return f"it damages {os.path.basename(name)}"
                self.packs.verify(f"{self.after.over}/{pack}.pack")
        return self._why_not_new_packs()

    def _new_loose(self) -> list[str]:
        """Loose objects that the command made, or some of them where there are many: each one is
        read.  When what such an object repeats is removed, it is looked at again.
        """
        made = [name for name in self.after.put - self.replaced if loose_object(name)]
        few = min(len(made), MOST_READ)
        return secrets.SystemRandom().sample(made, few)

    def _differs(self, name: str) -> bool:
        """False where only the time is new: git renews it when it would write what a pack holds."""
        return not have_same_bytes(f"{self.before.folder}/{name}", f"{self.after.over}/{name}")

    def _why_not_new_packs(self) -> str:
        """Whether packs that the command made are whole.

        Git asks the newest pack first and believes it: one that lists objects of the history would
        take their place, also with nothing removed.
        """
        for name in sorted(self.after.put - self.replaced):
            if not name.endswith(".idx") or not (pack := pack_of(name)):
                continue
            path = f"{self.after.over}/{pack}"
            if f"{pack}.pack" not in self.after.put or not is_whole(f"{path}.pack", f"{path}.idx"):
                return f"it leaves a damaged pack, {os.path.basename(pack)}"
            self.packs.look_into(path, self._tips_first(self._indexed(f"{path}.idx")))
        return ""

    def _tips_first(self, held: frozenset[bytes]) -> list[bytes]:
        """Objects of a pack, those that refs name first."""
        named = {bytes.fromhex(oid) for oid in self.before.refs().values()}
        return [*sorted(named & held), *(held - named)]

    def _keep_heirs(self) -> None:
        """Keep what was removed and lies in packs now (`git gc`).

        To have git verify each object takes as long as making them did; of a large pack only some
        are, so what it takes over from is kept for a while.  Where that is too much, git verifies.
        """
        if self._heirs and not self._keep_removed():
            for pack in sorted(self._heirs):
                self.packs.verify(f"{pack}.pack")

    def _keep_removed(self) -> bool:
        """Keep what is removed; False when there is too much of it."""
        if sum(about.size for about in self._gone.values()) > MOST_KEPT_BYTES:
            return False
        self.kept = {self.path_of(name) for name in self._gone}
        return True

    def _removed_objects(self) -> dict[bytes, float]:
        """The objects of what was removed, with the time of the file that held them."""
        found: dict[bytes, float] = {}
        packs: set[str] = set()
        for name in self.after.removed:
            oid = loose_object(name)
            pack = "" if oid else pack_of(name)
            if not oid and not pack:
                continue
            # A `git gc` removes thousands, and the steps know each of them already.
            about = self._known.get(name) or _look(f"{self.before.folder}/{name}")
            self._gone[name] = about
            if oid:
                found[bytes.fromhex(oid)] = about.time
            else:
                packs.add(pack)
        for pack in packs & set(self.before.packs()):
            then = _look(f"{self.before.folder}/{pack}.pack").time
            found |= dict.fromkeys(self._indexed(f"{self.before.folder}/{pack}.idx"), then)
        return found

    def _missing(self, candidates: Mapping[bytes, float]) -> tuple[set[bytes], set[bytes]]:
        """Those that are in no other place: recent ones, and old ones."""
        left = set(candidates)
        for pack in self.after.packs():
            path = self.after.where(f"{pack}.idx")
            held = frozenset() if path is None else self._indexed(path)
            if path is not None and not left.isdisjoint(held):
                # Also one that was there before: an earlier command may have made it.
                self.packs.look_into(path.removesuffix(".idx"), left & held)
                self._heirs.add(path.removesuffix(".idx"))
                left -= held
        if left and self.after.borrowed():
            for index in self.after.indexes():
                left -= indexed(index)
        left = {oid for oid in left if not self._is_loose(oid.hex())}
        oldest = time.time() - SPARED_SECONDS
        recent = {oid for oid in left if candidates[oid] > oldest}
        return recent, left - recent

    def _indexed(self, path: str) -> frozenset[bytes]:
        """What a pack lists; its index is read once, though several checks ask for it."""
        if path not in self._lists:
            self._lists[path] = indexed(path)
        return self._lists[path]

    def _is_loose(self, oid: str) -> bool:
        name = f"objects/{oid[:2]}/{oid[2:]}"
        path = self.after.where(name)
        return path is not None and os.path.isfile(path) and is_sound(path, oid)

    # -- what is taken over otherwise than the command left it

    def left_out(self) -> set[str]:
        """Bitmaps: `git prune` believes them, none of git's commands verifies one, and git works
        without.  And locks, whose holder ended with the command: git would wait for it for ever.
        """
        made = self.after.put - self.replaced
        names = {name for name in self.after.put if name.endswith(".bitmap")}
        names |= {name for name in made if name.endswith(".lock")}
        return {self.path_of(name) for name in names}

    def renew_times(self) -> None:
        """Let no object look older than it is: git removes what is old and cannot be reached, and
        so does this guard.
        """
        oldest = time.time() - SPARED_SECONDS
        for name in self.after.put:
            if not (loose_object(name) or pack_of(name)):
                continue
            path = f"{self.after.over}/{name}"
            was_old = name in self.replaced and _time(f"{self.before.folder}/{name}") < oldest
            if not was_old and _time(path) < oldest:
                os.utime(path, follow_symlinks=False)

    # -- for git

    def make_view(self, view: str) -> dict[str, str]:
        """A git directory of links in which git sees the objects as they would be; its settings."""
        os.makedirs(f"{view}/objects/info")
        os.mkdir(f"{view}/refs")
        Path(view, "HEAD").write_text("ref: refs/heads/none\n")
        if os.path.isfile(f"{self.before.folder}/shallow"):
            os.symlink(f"{self.before.folder}/shallow", f"{view}/shallow")
        sources = [*self.before.borrowed()]
        # Alternates are enough where nothing was removed; otherwise git would find it there.
        if any(
            loose_object(name) or pack_of(name) for name in (*self.after.removed, *self.replaced)
        ):
            self._link_objects(view)
        else:
            sources.append(f"{self.before.folder}/objects")
            if os.path.isdir(f"{self.after.over}/objects"):
                sources.append(f"{self.after.over}/objects")
        text = "".join(f"{path}\n" for path in sources)
        Path(view, "objects/info/alternates").write_text(text)
        self._link_graph(view)
        return {"extensions.objectformat": "sha256"} if self.is_sha256 else {}

    def _link_graph(self, view: str) -> None:
        if not self.has_new_graph:
            return
        for name in filter(git_shape.is_graph, self.after.names("objects/info")):
            if (path := self.after.where(name)) is not None and os.path.isfile(path):
                os.makedirs(os.path.dirname(f"{view}/{name}"), exist_ok=True)
                os.symlink(path, f"{view}/{name}")

    def _link_objects(self, view: str) -> None:
        """Link the folders of objects that are as they were, and in the others each file: there
        may be very many objects, and most commands touch few.
        """
        made: dict[str, set[str]] = {}
        for name in self.changed:
            top, _, rest = name.partition("/")
            part, _, leaf = rest.partition("/")
            if top == "objects" and leaf:
                made.setdefault(part, set())
                if name in self.after.put:
                    made[part].add(leaf)
        # A `git gc` takes most of 256 folders away; to list each one first took 6 ms.
        emptied = {part for part in made if f"objects/{part}" in self.unmade}
        parts = {*_names(f"{self.before.folder}/objects"), *made} - {"info"} - emptied
        for part in sorted(parts):
            here = f"{self.before.folder}/objects/{part}"
            if part not in made:
                os.symlink(here, f"{view}/objects/{part}")
                continue
            leaves = {*_names(here), *made[part]}
            paths = {leaf: self.after.where(f"objects/{part}/{leaf}") for leaf in leaves}
            # After a `git gc` there is nothing left in most of 256 folders.
            if any(paths.values()):
                os.mkdir(f"{view}/objects/{part}")
            for leaf, path in paths.items():
                if path is not None:
                    os.symlink(path, f"{view}/objects/{part}/{leaf}")


def _is_ref(name: str) -> bool:
    if name.startswith("worktrees/"):
        parts = name.split("/", 2)
        return len(parts) == 3 and (parts[2] == "HEAD" or parts[2].startswith("refs/"))
    return name in ("HEAD", "packed-refs") or name.startswith("refs/")


def _is_log(name: str) -> bool:
    return name.startswith("logs/") or (name.startswith("worktrees/") and "/logs/" in name)


def _may_be_unborn(name: str) -> bool:
    return name == "HEAD" or name.startswith(("worktrees/", *_COPIES))


def oldest_remembered() -> float:
    """The time of the oldest entry that git would not forget by itself."""
    return time.time() - FORGOTTEN_SECONDS


def _recent(lines: Iterable[ReflogLine]) -> set[str]:
    """What the entries name that git would not forget by itself yet."""
    oldest = oldest_remembered()
    return {oid for line in lines if line.time > oldest for oid in (line.old, line.new)}


def _record(name: str, before: bytes, after: bytes | None) -> ChangedFile:
    """A file of git's that goes back as a whole."""
    mode = stat.S_IFREG | 0o644
    return ChangedFile(
        path=name,
        action="deleted" if after is None else "modified",
        before=_hash(before),
        after=None if after is None else _hash(after),
        data_before=before,
        data_after=after,
        mode_before=mode,
        mode_after=0 if after is None else mode,
    )


def _hash(data: bytes) -> BlobId:
    return BlobId(sha256(data).hexdigest())


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _time(path: str) -> float:
    return _look(path).time


def _removed_file(step: ApplyStep) -> RemovedFile:
    """What the plan knows of a file that it removes."""
    if step.before is None or not step.before.identity:
        return RemovedFile(time.time(), 0)  # as new as can be: then nothing spares its removal
    return RemovedFile(written_at(step.before), size_of(step.before))


def _look(path: str) -> RemovedFile:
    try:
        about = os.lstat(path)
    except OSError:
        return RemovedFile(time.time(), 0)
    return RemovedFile(about.st_mtime, about.st_size)
