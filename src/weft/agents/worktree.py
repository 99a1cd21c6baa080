"""A git worktree for one agent: a copy of the project, made and removed by us.

Nothing of the project runs meanwhile, because git works on a stand-in without its settings
(`weft.workspace.git`).  There the copy is checked out; then its record is put where the repository
keeps those of worktrees, so that it is one to every other git.  The copy holds the last commit;
what is not committed is not in it.  Files that a filter would change (LFS) are as they are stored.

Later, when an agent has worked in the copy, nothing in it is believed: where its record lies is
known from the project.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import anyio.to_thread
import msgspec

from weft.errors import FinalToolError, ToolError
from weft.workspace import (
    GitRepository,
    Runner,
    SafeGit,
    find_repository,
    open_safe_git,
    read_pointer,
)

_GITLINK = "160000 "
_REMOVED = ".removed"


class AgentWorktree(msgspec.Struct, frozen=True, kw_only=True):
    """One copy."""

    repository: str
    """The project it is a copy of."""
    top: str
    project: str
    """The project's folder in the copy: `top`, or a folder below it."""
    commit: str


async def add_worktree(runner: Runner, project: str, folder: Path) -> AgentWorktree:
    """Make a copy of the project's last commit at `folder`; one that is there is taken as it is.

    A cancel leaves nothing, or a copy that the next call makes anew.

    Raises:
        FinalToolError: the project is in no git repository, or git fails.
    """
    repository = await anyio.to_thread.run_sync(find_repository, project)
    if repository is None:
        raise FinalToolError("an isolated agent needs a git repository, and the project is in none")
    await anyio.to_thread.run_sync(_prepare, folder.parent)
    async with open_safe_git(runner, repository, folder.parent) as git:
        commit = await git.output("rev-parse", "--verify", "HEAD^{commit}")
        if commit is None:
            raise FinalToolError(
                "an isolated agent needs a commit to start from, and there is none"
            )
        if await anyio.to_thread.run_sync(_clear_unfinished, folder, repository):
            await _check_out(git, folder, commit)
    return AgentWorktree(
        repository=project,
        top=str(folder),
        project=await anyio.to_thread.run_sync(_same_place, project, repository.top, folder),
        commit=commit,
    )


async def remove_if_unchanged(runner: Runner, place: AgentWorktree) -> bool:
    """Remove a copy in which nothing was changed; False when it is kept."""
    folder = Path(place.top)
    try:
        record = await anyio.to_thread.run_sync(_known_record, place.repository, folder)
        if record is None:
            return False
        async with open_safe_git(runner, record, folder.parent) as git:
            if await _is_changed(git, place):
                return False
        await anyio.to_thread.run_sync(_remove, folder, Path(record.records))
    except (ToolError, OSError):
        return False  # what cannot be looked at, or removed, stays
    return True


# --- making ------------------------------------------------------------------------------------


def _prepare(folder: Path) -> None:
    """Make the private folder of all copies, without what a crash left of removed ones."""
    # Private: a copy holds the whole project, and other users may be able to read the folders
    # around it.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for removed in folder.glob(f".*{_REMOVED}"):
        shutil.rmtree(removed, ignore_errors=True)


def _same_place(project: str, top: str, folder: Path) -> str:
    """The project's folder in the copy."""
    inside = os.path.relpath(os.path.realpath(project), top)
    return str(folder if inside == "." else folder / inside)


def _record_of(folder: Path, repository: GitRepository) -> Path:
    """Where the repository keeps what it knows of a copy."""
    return Path(repository.common, "worktrees", folder.name)


def _clear_unfinished(folder: Path, repository: GitRepository) -> bool:
    """Take away what a crash left of a copy that was being made; False when one is finished."""
    named = read_pointer(f"{folder}/.git")
    # Until it is finished, a copy belongs to the stand-in, which lies beside it.
    if named is not None and not named.startswith(
        f"gitdir: {os.path.realpath(folder.parent)}/.git-"
    ):
        return False
    if named is None and folder.is_dir() and any(folder.iterdir()):
        return False
    shutil.rmtree(folder, ignore_errors=True)
    record = _record_of(folder, repository)
    if _names_back(record, folder):
        _forget(record)
    return True


async def _check_out(git: SafeGit, folder: Path, commit: str) -> None:
    made = await git.run("worktree", "add", "--detach", "--", str(folder), commit)
    if made.exit_code:
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
        raise FinalToolError(f"git could not make a worktree: {_why(made.errors)}")
    try:
        await anyio.to_thread.run_sync(_register, git, folder)
    except OSError as error:
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
        raise FinalToolError(f"git's record of a worktree cannot be written: {error}") from error


def _why(errors: str) -> str:
    # The end of it: git prints its progress first and the error last.
    said = errors.strip()[-500:]
    if "unable to read" in said or "missing" in said or "promisor" in said:
        said += "; the repository lacks objects, and Weft fetches none: fetch them with git first"
    return said


def _register(git: SafeGit, folder: Path) -> None:
    """Give the record, which git made in the stand-in, to the repository.

    The copy's own pointer comes last: a copy that has it is finished.
    """
    record = _record_of(folder, git.repository)
    record.parent.mkdir(exist_ok=True)
    # A link here would have the record written wherever a hostile repository wants.
    if os.path.realpath(record.parent) != str(record.parent):
        raise NotADirectoryError(20, "it is a link", str(record.parent))
    shutil.copytree(git.common / "worktrees" / folder.name, record, symlinks=True)
    if git.sparse:
        (record / "config.worktree").write_text(git.sparse)
    # In the stand-in's folder, which is swept after a crash, and on the same disk as the copy.
    handle, passing = tempfile.mkstemp(dir=git.common)
    with os.fdopen(handle, "wb") as file:
        file.write(b"gitdir: " + os.fsencode(record) + b"\n")
    # `mkstemp` makes files for their owner only; git's own pointer can be read by all.
    os.chmod(passing, 0o644)
    os.replace(passing, folder / ".git")


# --- removing ----------------------------------------------------------------------------------


def _known_record(project: str, folder: Path) -> GitRepository | None:
    """The copy as a repository, by what the project's repository knows of it.

    None when the two disagree, or the user has locked it.
    """
    repository = find_repository(project)
    if repository is None:
        return None
    record = _record_of(folder, repository)
    is_ours = os.path.realpath(record) == str(record) and _names_back(record, folder)
    if not is_ours or read_pointer(f"{folder}/.git") != f"gitdir: {record}":
        return None
    if (record / "locked").exists():
        return None
    return GitRepository(
        top=os.path.realpath(folder), records=str(record), common=repository.common
    )


def _names_back(record: Path, folder: Path) -> bool:
    named = read_pointer(f"{record}/gitdir")
    return named is not None and os.path.realpath(named) == f"{os.path.realpath(folder)}/.git"


async def _is_changed(git: SafeGit, place: AgentWorktree) -> bool:
    """True when removing the copy would lose something."""
    head = await git.output("rev-parse", "--verify", "HEAD^{commit}")
    excludes = f"core.excludesFile={await git.user_excludes()}"
    # Git would ask a submodule by a call of its own, with the submodule's settings.
    asked = ("status", "--porcelain", "--ignored=no", "--ignore-submodules=dirty")
    changed = await git.output("-c", excludes, *asked, work_tree=place.top)
    # What git cannot answer counts as changed: a copy that is kept costs disk, one that is lost
    # costs work.
    if head is None or changed is None or changed:
        return True
    if await _has_submodules(git, place):
        return True
    return head != place.commit and not await _is_commit_elsewhere(git, head)


async def _has_submodules(git: SafeGit, place: AgentWorktree) -> bool:
    """True when something is in the folder of a submodule.

    Whether it was changed cannot be known without the settings of the submodule's own repository.
    """
    links: list[str] = []
    rest = ""

    def take(text: str) -> None:
        nonlocal rest
        *entries, rest = (rest + text).split("\0")
        links.extend(entry.partition("\t")[2] for entry in entries if entry.startswith(_GITLINK))

    listed = await git.run("ls-files", "--stage", "-z", work_tree=place.top, on_output=take)
    if listed.exit_code:
        return True
    return await anyio.to_thread.run_sync(_any_filled, place.top, links)


def _any_filled(top: str, links: list[str]) -> bool:
    for link in links:
        # A name that is no text cannot be looked up as it was shown.
        if "\ufffd" in link or (os.path.isdir(f"{top}/{link}") and os.listdir(f"{top}/{link}")):
            return True
    return False


async def _is_commit_elsewhere(git: SafeGit, head: str) -> bool:
    """True when a branch other than the copy's own has the commit, so that nothing is lost."""
    own = await git.output("symbolic-ref", "--quiet", "HEAD")
    found = await git.output(
        "for-each-ref", "--format=%(refname)", f"--contains={head}", "refs/heads/"
    )
    return bool(found and any(branch != own for branch in found.splitlines()))


def _remove(folder: Path, record: Path) -> None:
    """Remove copy and record.  The copy is gone at once, so that no half of one is ever found."""
    passing = folder.with_name(f".{folder.name}{_REMOVED}")
    # Renamed first, which is atomic: a crash in the middle of the removal leaves a name that the
    # next call sweeps, never half a copy under its own.
    folder.rename(passing)
    _forget(record)
    shutil.rmtree(passing, ignore_errors=True)


def _forget(record: Path) -> None:
    """Remove a record; what cannot be removed, git prunes some day."""
    shutil.rmtree(record, ignore_errors=True)
    with suppress(OSError):
        record.parent.rmdir()  # as git does with the last one
