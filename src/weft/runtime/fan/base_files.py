"""The base of a fan-out: the project as it was when the candidates began, whatever the user does to
it meanwhile.

It is the last commit and a pin layer, one for all candidates, which lies between the project and
what each of them writes.  The layer holds what no commit has: changed files, and new ones that are
not ignored.  It also holds a git directory of its own, with the project's objects borrowed and no
hooks, so that a candidate's commits are its own, and the user's move nothing in it.

What a commit has is not copied.  When the user changes such a file, its old content is put into
each candidate's overlay through the descriptor that its tools use (`pin_old`); it is equal to the
base, and so no change of the candidate.  Ignored files (dependencies, build products) are linked
into a layer of their own (`ignored_trees`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from weft.errors import FinalToolError, UsageError
from weft.repo.file_paths import IgnoredPaths
from weft.runtime.fan.ignored_trees import IgnoredTrees, changed_in_place, link_trees
from weft.workspace import GitRepository, Runner, SafeGit, find_repository, open_safe_git
from weft.workspace.repository_copies.included_files import slashes
from weft.workspace.sandbox.overlay_changes import OPAQUE, is_mark, mark_gone
from weft.workspace.sandbox.secret_names import is_secret_file
from weft.workspace.views.held_view import OBJECTS

BaseKind: TypeAlias = Literal["now", "head"]
Isolation: TypeAlias = Literal["overlay", "reflink", "worktree"]

MOST_PINNED: Final = 512 * 1024 * 1024
"""Bytes that the pin layer may take."""
MOST_FILES: Final = 20_000
"""Files in it."""
_RECORD: Final = "base.json"
_PIN: Final = "pin"
_IGNORED: Final = "ignored"
_SUBMODULE: Final = 0o160000
_OWN_CONFIG: Final = """\
[core]
\trepositoryformatversion = 1
\tbare = false
\thooksPath = /dev/null
\tfsmonitor = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = Weft
\temail = weft@localhost
"""


class BaseFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file as a base has it."""

    mode: int
    """Kind and permissions, as far as git knows them."""
    data: bytes
    """The content, or a link's target."""


class _TreeFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    mode: int
    oid: str


class BaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down of a base."""

    root: str
    kind: BaseKind
    commit: str = ""
    """Empty where there is none; then all files are in the pin layer."""
    prefix: str = ""
    """Where the project lies in its repository, with a slash at the end; empty at its top."""
    absent: tuple[str, ...] = ()
    """Paths of the commit, or of the project, that the base does not have."""
    objects: str = ""
    """The objects of the repository, for the candidates' own git directories."""
    ignored: IgnoredTrees = IgnoredTrees()
    at_ns: int = 0
    """When it was pinned."""
    isolation: Isolation = "overlay"
    """What keeps the candidates apart."""
    why: str = ""
    """Why it is no overlay."""


class BaseFiles:
    """The files of one base."""

    def __init__(self, record: BaseRecord, folder: str, runner: Runner) -> None:
        self.record = record
        self.folder = folder
        self._runner = runner
        self._absent = frozenset(record.absent)
        self._tree: dict[str, _TreeFile] | None = None
        self.submodules: tuple[str, ...] = ()
        """Where those of the commit lie, once its tree was read."""
        self._loading = anyio.Lock()

    @property
    def root(self) -> str:
        """The project."""
        return self.record.root

    @property
    def pin(self) -> str:
        """The pin layer."""
        return f"{self.folder}/{_PIN}"

    @property
    def layers(self) -> tuple[str, ...]:
        """All layers that lie above the project, the first on top."""
        ignored = f"{self.folder}/{_IGNORED}"
        return (self.pin, ignored) if self.record.ignored.linked else (self.pin,)

    def changed_in_place(self) -> tuple[int, list[str]]:
        """How many ignored files were written to in the project since, and a few of them: that is
        what candidates see.  Blocks.
        """
        return changed_in_place(f"{self.folder}/{_IGNORED}", self.record.at_ns)

    def is_pinned(self, path: str) -> bool:
        """Whether the pin layer has a path, so that no change of the project shows through.  One
        `stat`.
        """
        return os.path.lexists(f"{self.pin}/{path}")

    def ignored(self) -> IgnoredPaths:
        """What the project's ignore files leave out now."""
        return IgnoredPaths(self.root)

    async def paths(self) -> set[str]:
        """Every file of the base.

        Raises:
            FinalToolError: the commit cannot be read.
        """
        tree = await self._load_tree()
        pinned = await anyio.to_thread.run_sync(lambda: set(_files_below(self.pin)))
        return {path for path in tree if path not in self._absent} | pinned

    async def read(self, paths: Iterable[str]) -> dict[str, BaseFile]:
        """The files at these paths; those that the base does not have are left out.

        Raises:
            FinalToolError: the commit cannot be read.
        """
        asked, tree = list(paths), await self._load_tree()

        def pinned() -> dict[str, BaseFile]:
            there = ((path, _file_at(f"{self.pin}/{path}")) for path in asked)
            return {path: file for path, file in there if file is not None}

        found = await anyio.to_thread.run_sync(pinned)
        wanted = {
            path: tree[path]
            for path in asked
            if path not in found and path in tree and path not in self._absent
        }
        return found | await self._blobs(wanted)

    # -- the commit

    async def _load_tree(self) -> dict[str, _TreeFile]:
        async with self._loading:
            if self._tree is None:
                self._tree = await self._listed() if self.record.commit else {}
            return self._tree

    async def _listed(self) -> dict[str, _TreeFile]:
        into = f"{self.folder}/tree"
        named = f"{self.record.commit}:{self.record.prefix}".rstrip("/")
        async with self._git() as git:
            done = await git.save("ls-tree", "-r", "-z", "--full-tree", named, into=into)
        if done.exit_code:
            raise FinalToolError(f"the commit of the base cannot be read: {done.errors[-300:]}")
        tree = dict(_tree_entries(await anyio.Path(into).read_bytes()))
        self.submodules = tuple(path for path, file in tree.items() if file.mode == _SUBMODULE)
        return {path: file for path, file in tree.items() if file.mode != _SUBMODULE}

    async def changed_since_commit(self) -> set[str]:
        """The paths at which the project differs from the commit now; new files are not among them.

        Raises:
            FinalToolError: the repository cannot be read.
        """
        async with self._git() as git:
            into = _passing(git)
            done = await git.save(
                *("diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=all"),
                *(self.record.commit, "--"),
                into=into,
                work_tree=git.repository.top,
            )
            if done.exit_code:
                raise FinalToolError(f"the project cannot be compared: {done.errors[-300:]}")
            data = await anyio.Path(into).read_bytes()
        prefix = self.record.prefix
        names = [os.fsdecode(name) for name in data.split(b"\0") if name]
        return {name[len(prefix) :] for name in names if name.startswith(prefix)}

    def _git(self) -> _SafeGitContext:
        return _SafeGitContext(self._runner, self.root, self.folder)

    async def _blobs(self, wanted: dict[str, _TreeFile]) -> dict[str, BaseFile]:
        if not wanted:
            return {}
        names = list(wanted)
        prefix = self.record.prefix
        # Through the filters that git itself knows (line endings): a file is compared as it lies
        # in the project.
        asked = [os.fsencode(f"{wanted[name].oid} {prefix}{name}\n") for name in names]
        # The size that git could print before a content is that of the stored object, before the
        # filters; a word that no file holds parts them as well.
        mark = secrets.token_hex(16)
        async with self._git() as git:
            into = _passing(git)
            done = await git.save(
                *("cat-file", f"--batch={mark} %(objectname)", "--filters"),
                into=into,
                stdin=b"".join(asked),
                work_tree=git.repository.top,
            )
            if done.exit_code:
                raise FinalToolError(f"the commit of the base cannot be read: {done.errors[-300:]}")
            return await anyio.to_thread.run_sync(_read_blobs, into, mark, wanted)


def _passing(git: SafeGit) -> str:
    """A file for what git prints, which goes with the folder of its stand-in: a git that outlives
    our process by a moment can leave nothing once that is removed.
    """
    return str(git.common.parent / "printed")


class _SafeGitContext:
    """Git over the repository of a project."""

    def __init__(self, runner: Runner, root: str, scratch: str) -> None:
        self._runner, self._root, self._scratch = runner, root, scratch

    async def __aenter__(self) -> SafeGit:
        repository = await anyio.to_thread.run_sync(find_repository, self._root)
        if repository is None:
            raise FinalToolError(f"{self._root} is in no git repository any more")
        self._context = open_safe_git(self._runner, repository, Path(self._scratch))
        return await self._context.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await self._context.__aexit__(*error)  # type: ignore[arg-type]  # as it was handed to us


# --- making it ------------------------------------------------------------------------------------


async def make_base(
    runner: Runner,
    root: str,
    folder: str,
    kind: BaseKind,
    *,
    links_ignored: bool = True,
    isolation: Isolation = "overlay",
    why: str = "",
) -> BaseFiles:
    """Pin the project as it is (`now`), or as the last commit has it (`head`); without
    `links_ignored`, ignored files are shared as they are.  `isolation` and `why` are written down
    with it.

    Raises:
        UsageError: there is no commit to start from, or too much that none has.
        FinalToolError: the repository cannot be read.
    """
    await anyio.to_thread.run_sync(lambda: os.makedirs(f"{folder}/{_PIN}", 0o700, exist_ok=True))
    repository = await anyio.to_thread.run_sync(find_repository, root)
    if repository is None:
        if kind == "head":
            raise UsageError("`--base head` needs a git repository, and the project is in none")
        record = BaseRecord(root=root, kind=kind)
        files, ignored = await anyio.to_thread.run_sync(_walked, root)
        await anyio.to_thread.run_sync(_pin_files, root, f"{folder}/{_PIN}", files)
    else:
        is_overlay = isolation == "overlay"
        record, ignored = await _pin_repository(
            runner, repository, root, folder, kind, is_overlay=is_overlay
        )
    hidden = tuple(path for path in ignored if is_secret_file(os.path.basename(path)))
    ignored = [path for path in ignored if path not in hidden]
    trees = IgnoredTrees(shared=tuple(ignored), why="the setting fan.pin_ignored is off")
    if links_ignored:
        link = lambda: link_trees(root, f"{folder}/{_IGNORED}", ignored)  # noqa: E731
        trees = await anyio.to_thread.run_sync(link)
    trees = msgspec.structs.replace(trees, hidden=hidden)
    record = msgspec.structs.replace(
        record, ignored=trees, at_ns=time.time_ns(), isolation=isolation, why=why
    )
    await anyio.Path(f"{folder}/{_RECORD}").write_bytes(msgspec.json.encode(record))
    return BaseFiles(record, folder, runner)


async def open_base(runner: Runner, folder: str) -> BaseFiles | None:
    """The base that another process made; None where there is none, or not a whole one."""
    try:
        data = await anyio.Path(f"{folder}/{_RECORD}").read_bytes()
        return BaseFiles(msgspec.json.decode(data, type=BaseRecord), folder, runner)
    except (OSError, msgspec.MsgspecError):
        return None


async def _pin_repository(
    runner: Runner,
    repository: GitRepository,
    root: str,
    folder: str,
    kind: BaseKind,
    *,
    is_overlay: bool,
) -> tuple[BaseRecord, list[str]]:
    """The record, and what is ignored."""
    pin = f"{folder}/{_PIN}"
    prefix = "" if repository.top == root else f"{root[len(repository.top) :].lstrip('/')}/"
    async with _SafeGitContext(runner, root, folder) as git:
        commit = await git.output("rev-parse", "--verify", "--quiet", "HEAD^{commit}") or ""
        if kind == "head" and not commit:
            raise UsageError("`--base head` needs a commit, and the repository has none")
        changed, ignored = await changed_paths(git, prefix, f"{folder}/status")
        not_checked_out = await _not_checked_out(git, prefix)
        settings = git.plain_settings
    record = BaseRecord(root=root, kind=kind, commit=commit, prefix=prefix)
    if kind == "now":
        there, gone = _split(root, changed)
        await anyio.to_thread.run_sync(_pin_files, root, pin, there)
        record = msgspec.structs.replace(record, absent=tuple(gone))
    else:
        base = BaseFiles(record, folder, runner)
        await _pin_commit(base, changed, pin)
        tree = await base.paths()
        absent = tuple(path for path in changed if path not in tree)
        record = msgspec.structs.replace(record, absent=absent)
    record = msgspec.structs.replace(record, absent=(*record.absent, *not_checked_out))
    if not prefix:
        own = partial(_own_git_directory, repository, f"{pin}/.git", settings)
        objects = await anyio.to_thread.run_sync(partial(own, is_overlay=is_overlay))
        record = msgspec.structs.replace(record, objects=objects)
    return record, ignored


async def changed_paths(git: SafeGit, prefix: str, into: str) -> tuple[list[str], list[str]]:
    """The paths of a project that differ from the last commit, with the new ones that are not
    ignored; and those that are, a folder standing for all in it.
    """
    excludes = await git.user_excludes()
    done = await git.save(
        *("-c", f"core.excludesFile={excludes}", "status", "--porcelain", "-z"),
        *("--untracked-files=all", "--ignored=matching"),
        *("--no-renames", "--ignore-submodules=all"),
        *(("--", prefix) if prefix else ()),
        into=into,
        work_tree=git.repository.top,
    )
    if done.exit_code:
        raise FinalToolError(f"git cannot tell what is uncommitted: {done.errors[-300:]}")
    data = await anyio.Path(into).read_bytes()
    entries = [(entry[:2], os.fsdecode(entry[3:])) for entry in data.split(b"\0") if entry[3:]]
    ignored = [name[len(prefix) :].rstrip("/") for sign, name in entries if sign == b"!!"]
    # A nested repository is named by its folder; it is left as it is.
    changed = [
        name[len(prefix) :] for sign, name in entries if sign != b"!!" and not name.endswith("/")
    ]
    return changed, [name for name in ignored if name]


async def _not_checked_out(git: SafeGit, prefix: str) -> list[str]:
    """The files that a sparse checkout leaves out."""
    if "sparsecheckout" not in git.plain_settings:
        return []
    listed = await git.output("ls-files", "-t", "-z", work_tree=git.repository.top)
    names = [each[2:] for each in (listed or "").split("\0") if each.startswith("S ")]
    return [name[len(prefix) :] for name in names if name.startswith(prefix)]


def _split(root: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    there = [path for path in paths if os.path.lexists(f"{root}/{path}")]
    return there, [path for path in paths if path not in set(there)]


def _walked(root: str) -> tuple[list[str], list[str]]:
    """The files of a project without a repository, and what is ignored in it."""
    from weft.workspace import ignore_of

    found: list[str] = []
    ignored: list[str] = []
    waiting = [("", ignore_of(root))]
    while waiting:
        below, rules = waiting.pop()
        for entry in _entries(root, below):
            path = f"{below}/{entry.name}" if below else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if rules.ignores(entry.name, is_folder=is_folder):
                ignored.append(path)
            elif is_folder:
                waiting.append((path, rules.below(entry.name, f"{root}/{path}")))
            else:
                found.append(path)
    return found, ignored


def _entries(root: str, below: str) -> Iterator[os.DirEntry[str]]:
    """What is in a folder below a root; nothing where it cannot be read."""
    with suppress(OSError), os.scandir(f"{root}/{below}".rstrip("/")) as entries:
        yield from entries


def _pin_files(root: str, pin: str, paths: Sequence[str]) -> None:
    """Copy these files of the project; secrets are not, for no candidate sees them."""
    room = MOST_PINNED
    if len(paths) > MOST_FILES:
        raise UsageError(_too_much(f"{len(paths):,} files"))
    for path in paths:
        source, target = f"{root}/{path}", f"{pin}/{path}"
        if is_secret_file(os.path.basename(path)):
            continue
        try:
            about = os.lstat(source)
        except OSError:
            continue
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)):
            continue
        room -= about.st_size
        if room < 0:
            raise UsageError(_too_much(f"more than {MOST_PINNED >> 20} MiB"))
        _make_folders(root, pin, os.path.dirname(path))
        with suppress(FileNotFoundError):
            shutil.copy2(source, target, follow_symlinks=False)


def _too_much(what: str) -> str:
    return (
        f"the project has {what} that no commit has, and each of them would have to be pinned; "
        "commit them, or name them in .gitignore"
    )


def _make_folders(root: str, pin: str, folder: str) -> None:
    """The folders on the way to a pinned file, with the modes that the project's have."""
    if not folder or os.path.isdir(f"{pin}/{folder}"):
        return
    _make_folders(root, pin, os.path.dirname(folder))
    os.mkdir(f"{pin}/{folder}")
    with suppress(OSError):
        os.chmod(f"{pin}/{folder}", stat.S_IMODE(os.stat(f"{root}/{folder}").st_mode) | 0o700)


async def _pin_commit(base: BaseFiles, paths: Sequence[str], pin: str) -> None:
    """Show these paths as the commit has them; what it does not have is hidden."""
    files = await base.read(paths)

    def write() -> None:
        for path in paths:
            _make_folders(base.root, pin, os.path.dirname(path))
            target = f"{pin}/{path}"
            if path in files:
                put_file(target, files[path])
            elif os.path.lexists(f"{base.root}/{path}"):
                mark_gone(target)

    await anyio.to_thread.run_sync(write)


def put_file(target: str, file: BaseFile) -> None:
    """Write a file or a link where nothing is."""
    if stat.S_ISLNK(file.mode):
        os.symlink(os.fsdecode(file.data), target)
        return
    with open(target, "xb") as opened:
        opened.write(file.data)
    os.chmod(target, stat.S_IMODE(file.mode))


def replaced(paths: Iterable[str], put: Collection[str]) -> set[str]:
    """Those paths that what is put takes the place of: by a folder, or by a file in the place of a
    folder above.
    """
    above = {each[:end] for each in put for end in slashes(each)}
    put = set(put)
    return {
        path for path in paths if path in above or any(path[:end] in put for end in slashes(path))
    }


def _own_git_directory(
    repository: GitRepository, own: str, settings: str, *, is_overlay: bool
) -> str:
    """A git directory for the candidates, with its own HEAD, refs and index, and those settings of
    the project's that name no program; returns where the objects are that it borrows.
    """
    objects = os.path.realpath(f"{repository.common}/objects")
    os.makedirs(f"{own}/objects/info", exist_ok=True)
    os.makedirs(f"{own}/info", exist_ok=True)
    # Nothing of the project's own git directory shows through.
    try:
        os.setxattr(own, OPAQUE, b"y")
    except OSError:
        if is_overlay:
            raise
    # Those that the project borrows in turn are named, too: git follows a chain from the first one
    # alone where that says so by absolute paths.
    with open(f"{own}/objects/info/alternates", "w") as file:
        file.write(f"{OBJECTS}\n")
    split = [name for name in os.listdir(repository.records) if name.startswith("sharedindex.")]
    records = ("HEAD", "index", "info/sparse-checkout", *split)
    for folder, names in ((repository.common, _SHARED), (repository.records, records)):
        for name in names:
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{folder}/{name}", f"{own}/{name}")
    for name in ("refs", "reftable"):
        with suppress(FileNotFoundError):
            source = f"{repository.common}/{name}"
            shutil.copytree(source, f"{own}/{name}", symlinks=True, dirs_exist_ok=True)
    with open(f"{own}/config", "w") as file:
        # Ours after theirs: of two the last one counts.
        file.write(f"{settings}{_OWN_CONFIG}")
    return objects


_SHARED: Final = (
    *("packed-refs", "shallow", "info/exclude", "info/attributes", "info/sparse-checkout"),
)


# --- reading --------------------------------------------------------------------------------------


def _files_below(folder: str) -> Iterator[str]:
    """The files and links below a pin layer; neither its git directory nor its marks."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        for entry in _entries(folder, below):
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting += [path] if path != ".git" else []
            elif _is_pinned_file(entry):
                yield path


def _is_pinned_file(entry: os.DirEntry[str]) -> bool:
    is_file = entry.is_file(follow_symlinks=False) or entry.is_symlink()
    return is_file and not is_mark(entry.path)


def _file_at(path: str) -> BaseFile | None:
    try:
        about = os.lstat(path)
        if stat.S_ISLNK(about.st_mode):
            return BaseFile(about.st_mode, os.fsencode(os.readlink(path)))
        if not stat.S_ISREG(about.st_mode) or is_mark(path):
            return None
        with open(path, "rb") as file:
            return BaseFile(about.st_mode, file.read())
    except OSError:
        return None


def _tree_entries(data: bytes) -> Iterator[tuple[str, _TreeFile]]:
    for entry in data.split(b"\0"):
        if not entry:
            continue
        about, _, name = entry.partition(b"\t")
        mode, _, oid = about.decode().split(" ")
        yield os.fsdecode(name), _TreeFile(int(mode, 8), oid)


def _read_blobs(path: str, mark: str, wanted: dict[str, _TreeFile]) -> dict[str, BaseFile]:
    with open(path, "rb") as file:
        _, *answers = file.read().split(f"{mark} ".encode())
    contents = [answer.partition(b"\n")[2][:-1] for answer in answers]
    if len(contents) != len(wanted):
        raise FinalToolError(
            "the repository lacks objects of the commit that the base is, and Weft fetches none: "
            "fetch them with git first"
        )
    return {
        name: BaseFile(about.mode, content)
        for (name, about), content in zip(wanted.items(), contents, strict=True)
    }
