"""The guard of git history: what a command may do to the records of a repository.

A command writes below `.git` all the time, so the paths say nothing; what counts is what can still
be reached.  Before the changes of a command are put into the project, these hold:

- a branch or tag that is gone was merged: its commit can be reached from another ref;
- every commit that a ref, or a reflog of the last 30 days, named is still named, or an ancestor of
  one that is.  Git itself forgets older entries (`gc.reflogExpireUnreachable`);
- one stash may go at a time (`git stash pop`), and is named;
- every object that was removed is still there in another place, unless it was neither reachable
  nor younger than the two weeks for which git spares what it cannot reach (`gc.pruneExpire`);
- nothing that an index names is removed, however old: what is staged is named nowhere else;
- refs name objects that are there, and the history is not cut off by `shallow` or `alternates`, nor
  hidden by objects in the place of others (`refs/replace`).

Otherwise nothing of what the command did to that repository reaches the project: half of it could
be a repository that no git reads.  Refs that are gone are handed to the file history, so that a
rewind brings them back; their objects stay.

Most commands are judged by reading a few small files.  Git is asked only where these do not tell,
and never on the repository itself: it gets a view of it with the changes, made of links, through
`SafeGit`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from weft.errors import ToolError
from weft.workspace.base import ChangedFile, ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.git import SafeGit, open_view
from weft.workspace.git_records import is_oid
from weft.workspace.git_repository import may_be_record
from weft.workspace.sandbox.overlay_plan import ApplyStep
from weft.workspace.sandbox.repository.repository_change import RepositoryChange, oldest_remembered

MOST_NAMED: Final = 5
_PLAINLY: Final = ("-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false")
"""Both files repeat what objects and packs say; a command could have made them say otherwise."""
_JUDGED: Final = ("put", "make", "remove", "remove_folder")


class GitJudgement(msgspec.Struct, kw_only=True):
    """What the guard says of the changes of one command."""

    refused: dict[str, str] = {}
    """Git directory → why nothing of it may change; "" is the project itself."""
    lost_refs: list[ChangedFile] = []
    """Refs that are gone and stashes that were dropped, for the history."""
    kept: set[str] = set()
    """Paths of removed files that are to be kept for a while."""
    left_out: set[str] = set()
    """Paths of files that are not taken over, and that git makes again where it needs them."""
    remarks: list[str] = []


class GitGuard:
    """Judges what commands do to repositories."""

    def __init__(self, runner: Runner, threads: DiskThreads, scratch: Callable[[], str]) -> None:
        """`runner` runs git; `scratch` is a folder that only the user can enter."""
        self._runner = ReadingRunner(runner)
        self._threads = threads
        self._scratch = scratch

    async def judge(
        self,
        root: str,
        upper: str,
        steps: Sequence[ApplyStep],
        shown: Callable[[str], str],
    ) -> GitJudgement:
        """What to make of the steps that lie in repositories; none costs nothing."""
        judgement = GitJudgement()
        for folder, below in (await self._repositories(root, steps)).items():
            change = RepositoryChange.of_steps(root, upper, folder, below)
            try:
                why = await self._why_not(change, root)
            except (ToolError, OSError) as error:
                why = f"what it did to the repository could not be checked ({error})"
            if why:
                judgement.refused[folder] = why
                continue
            judgement.lost_refs += [
                msgspec.structs.replace(lost, path=shown(change.path_of(lost.path)))
                for lost in change.lost_records()
            ]
            await self._threads.run(change.renew_times)
            judgement.kept |= change.kept
            judgement.left_out |= change.left_out()
            judgement.remarks += [
                f"`{shown(change.path_of(lost.path))}` was lost, and with it what was staged; a "
                "rewind brings it back."
                for lost in change.lost_indexes()
            ]
            judgement.remarks += [
                f"A stash was dropped; `git stash store {oid}` brings it back."
                for oid in change.losses.stashes
            ]
        return judgement

    async def _repositories(
        self, root: str, steps: Sequence[ApplyStep]
    ) -> Mapping[str, list[ApplyStep]]:
        inside = [step for step in steps if step.do in _JUDGED and may_be_record(step.path)]
        if not inside:
            return {}
        return await self._threads.run(lambda: by_repository(root, inside))

    async def _why_not(self, change: RepositoryChange, root: str) -> str:
        if why := await self._threads.run(change.why_not):
            return why
        if not change.needs_git:
            return ""
        scratch = Path(self._scratch())
        async with open_view(self._runner, root, scratch, change.make_view) as git:
            return await ask_git(git, change)


async def ask_git(git: SafeGit, change: RepositoryChange) -> str:
    """What is wrong with a change as far as only git can tell; empty when all is well.

    All of it is asked at once: the user waits for the slowest answer and not for their sum.  What
    is said is what the first check in the list finds, as if they had run one after the other; the
    later ones may stumble over a damage that an earlier one names.
    """
    answers: list[str | ToolError | OSError] = [""] * len(_CHECKS)

    async def ask(number: int) -> None:
        try:
            answers[number] = await _CHECKS[number](git, change)
        except (ToolError, OSError) as error:
            answers[number] = error

    async with anyio.create_task_group() as group:
        for number in range(len(_CHECKS)):
            group.start_soon(ask, number)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
        if answer:
            return answer
    return ""


async def _why_not_packs(git: SafeGit, change: RepositoryChange) -> str:
    return await change.packs.why_not(git)


async def _why_not_graph(git: SafeGit, change: RepositoryChange) -> str:
    if change.has_new_graph and (await git.run("commit-graph", "verify")).exit_code:
        return "it leaves a commit-graph that does not fit the commits"
    return ""


async def _why_not_unmerged(git: SafeGit, change: RepositoryChange) -> str:
    """Which branch or tag is gone with commits that no other ref leads to."""
    unmerged = change.losses.unmerged
    if not unmerged:
        return ""
    # A stash leads to the commit that it was made on, and goes with the next `git stash pop`: what
    # it alone leads to is not kept.
    in_refs = change.after.tips(with_logs=False, with_stashes=False)
    if not (lost := await _unreachable(git, set(unmerged.values()), in_refs)):
        return ""
    names = sorted(name for name, oid in unmerged.items() if oid in lost)
    named = _listed(names or sorted(unmerged))
    return f"it removes {named}, with commits that are in no other branch"


async def _why_not_dropped(git: SafeGit, change: RepositoryChange) -> str:
    """Which commits no ref and no reflog leads to any more."""
    if not (dropped := change.losses.dropped):
        return ""
    left = change.after.tips(with_stashes=False, since=oldest_remembered())
    if lost := await _unreachable(git, dropped, left):
        return f"it loses commits: {_listed(sorted(oid[:12] for oid in lost))}"
    return ""


async def _why_not_missing(git: SafeGit, change: RepositoryChange) -> str:
    if not change.missing:
        return ""
    if not await _is_connected(git, change.before.tips()):
        return "it removes objects of the history"
    if await anyio.to_thread.run_sync(change.loses_staged):
        return "it removes what is staged"
    return ""


async def _why_not_uncut(git: SafeGit, change: RepositoryChange) -> str:
    """Whether the commits that `shallow` no longer names have their parents."""
    if not change.uncut:
        return ""
    # `cat-file` shows what a commit names, whatever `shallow` says of it.
    found = await git.run("cat-file", "--batch", stdin=_lines(sorted(change.uncut)))
    parents = {line[7:] for line in found.output.splitlines() if line.startswith("parent ")}
    if any(is_oid(oid) and not change.after.has_object(oid) for oid in parents):
        return "it lets the history lead to commits that are not there (.git/shallow)"
    return ""


async def _why_not_branches(git: SafeGit, change: RepositoryChange) -> str:
    """Which branch would name what is no commit."""
    if not change.branches:
        return ""
    lines = _lines(sorted(change.branches))
    found = await git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=lines)
    for line in found.output.splitlines():
        oid, _, kind = line.partition(" ")
        if kind != "commit" and oid in change.branches:
            return f"it lets {change.branches[oid]} name what is no commit"
    return ""


_CHECKS: Final = (
    _why_not_packs,
    _why_not_graph,
    _why_not_uncut,
    _why_not_branches,
    _why_not_unmerged,
    _why_not_dropped,
    _why_not_missing,
)


async def _unreachable(git: SafeGit, asked: set[str], tips: set[str]) -> list[str]:
    """Those of some objects that no tip leads to; what is no commit counts as reached."""
    if not (left := asked - tips):
        return []
    # With `^` and not after `--not`: git before 2.42 takes no options from standard input.
    lines = [*sorted(left), *(f"^{tip}" for tip in sorted(tips))]
    options = ("--ignore-missing", "--max-count=100", "--stdin")
    found = await git.run(*_PLAINLY, "rev-list", *options, stdin=_lines(lines))
    if found.exit_code:
        raise ToolError(f"git: {found.errors.strip()[-200:]}")
    listed = set(found.output.split())
    # The first commits are the tips themselves, unless one is an ancestor of another.
    return sorted(left & listed) or sorted(listed)[:1]


async def _is_connected(git: SafeGit, tips: set[str]) -> bool:
    """True when everything that tips lead to is there."""
    lines = _lines(sorted(tips))
    options = ("--objects", "--quiet", "--ignore-missing", "--stdin")
    return not (await git.run(*_PLAINLY, "rev-list", *options, stdin=lines)).exit_code


def by_repository(root: str, steps: Iterable[ApplyStep]) -> dict[str, list[ApplyStep]]:
    """Steps by the git directory that they lie in; one that the command made itself is none."""
    found: dict[str, list[ApplyStep]] = {}
    known: dict[str, str | None] = {}
    for step in steps:
        folder = _repository_of(root, step.path.rpartition("/")[0], known)
        if folder is not None:
            found.setdefault(folder, []).append(step)
    return found


def _repository_of(root: str, folder: str, known: dict[str, str | None]) -> str | None:
    """The innermost git directory that a folder is, or lies in: a submodule's lies in another, and
    a bare repository has any name.

    The project may be one itself, which is "".
    """
    # Each folder is looked at once: a `git gc` has steps in 256 folders of objects.
    if folder not in known:
        if _is_repository(root, folder):
            known[folder] = folder
        else:
            above = folder.rpartition("/")[0]
            known[folder] = _repository_of(root, above, known) if folder else None
    return known[folder]


def _is_repository(root: str, folder: str) -> bool:
    here = f"{root}/{folder}"
    return (
        os.path.lexists(f"{here}/HEAD")
        and os.path.isdir(f"{here}/objects")
        and (".git" in folder.split("/") or os.path.isdir(f"{here}/refs"))
    )


class ReadingRunner(Runner):
    """A runner of commands that change nothing, so that none is watched for what it changed."""

    def __init__(self, inner: Runner) -> None:
        self._inner = inner

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        command = msgspec.structs.replace(command, only_reads=True)
        return await self._inner.run(command, on_output)


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
