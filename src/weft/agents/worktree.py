"""A copy of the project for one agent: a git worktree, made and removed by us.

Nothing of the project runs meanwhile: hooks, file-system monitors and content filters are switched off for our own git calls, because a
repository that somebody handed us may name any program there.  The copy holds the last commit; what is not committed is not in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from weft.errors import FinalToolError
from weft.workspace import Command, Runner, RunResult

SECONDS: Final = 300.0
_SAFE: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.sshCommand=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "advice.detachedHead=false"),
)
_FILTER_PARTS: Final = ("clean", "smudge", "process")


class Worktree(msgspec.Struct, frozen=True, kw_only=True):
    """One copy."""

    repository: str
    """The project it is a copy of."""
    top: str
    project: str
    """The project's folder in the copy: `top`, or a folder below it."""
    commit: str


async def add_worktree(runner: Runner, project: str, folder: Path) -> Worktree:
    """Make a copy of the project's last commit at `folder`; one that is there already is taken as it is.

    Raises:
        FinalToolError: the project is in no git repository, or git fails.
    """
    git = _Git(runner, project)
    prefix = await git.output("rev-parse", "--show-prefix")
    if prefix is None:
        raise FinalToolError("an isolated agent needs a git repository, and the project is in none")
    commit = await git.output("rev-parse", "--verify", "HEAD^{commit}")
    if commit is None:
        raise FinalToolError("an isolated agent needs a commit to start from, and there is none")
    place = Worktree(
        repository=project,
        top=str(folder),
        project=str(folder / prefix.rstrip("/")) if prefix else str(folder),
        commit=commit,
    )
    if not await anyio.to_thread.run_sync(_is_there, folder):
        await anyio.to_thread.run_sync(_make_private, folder.parent)
        made = await git.run("worktree", "add", "--detach", "--", str(folder), commit)
        if made.exit_code:
            raise FinalToolError(f"git could not make a worktree: {made.errors.strip()[-500:]}")
    return place


async def remove_if_unchanged(runner: Runner, place: Worktree) -> bool:
    """Remove a copy in which nothing was changed; False when it is kept."""
    inside = _Git(runner, place.top)
    head = await inside.output("rev-parse", "--verify", "HEAD^{commit}")
    changed = await inside.output("status", "--porcelain", "--ignored=no")
    if head is None or changed is None or changed:
        return False
    if head != place.commit and not await _is_commit_elsewhere(place, head, runner):
        return False
    removed = await _Git(runner, place.repository).run("worktree", "remove", "--", place.top)
    return removed.exit_code == 0


async def _is_commit_elsewhere(place: Worktree, head: str, runner: Runner) -> bool:
    """True when a branch of the repository has the commit, so that removing the copy loses nothing."""
    found = await _Git(runner, place.repository).output("branch", "--contains", head)
    return bool(found and any(not line.startswith(("*", "+", "(")) for line in found.splitlines()))


class _Git:
    """Our own git calls in one folder."""

    def __init__(self, runner: Runner, folder: str) -> None:
        self._runner = runner
        self._folder = folder
        self._filters: tuple[str, ...] | None = None

    async def output(self, *args: str) -> str | None:
        """What git prints, None when it fails."""
        result = await self.run(*args)
        return None if result.exit_code else result.output.strip()

    async def run(self, *args: str) -> RunResult:
        if self._filters is None:
            self._filters = await self._without_filters()
        return await self._call(*self._filters, *args)

    async def _without_filters(self) -> tuple[str, ...]:
        """Switches that turn every configured filter into "take it as it is"."""
        found = await self._call("config", "--name-only", "--get-regexp", r"^filter\.")
        drivers = {
            name.removeprefix("filter.").rpartition(".")[0]
            for name in found.output.split()
            if found.exit_code == 0 and name.startswith("filter.")
        }
        switches: list[str] = []
        for driver in sorted(drivers):
            for part in _FILTER_PARTS:
                switches += ["-c", f"filter.{driver}.{part}="]
            switches += ["-c", f"filter.{driver}.required=false"]
        return tuple(switches)

    async def _call(self, *args: str) -> RunResult:
        git = self._runner.which("git", not_below=self._folder)
        if git is None:
            raise FinalToolError("an isolated agent needs git, and there is none on this machine")
        return await self._runner.run(
            Command(
                argv=(git, *_SAFE, *args),
                cwd=self._folder,
                timeout_seconds=SECONDS,
                errors_apart=True,
            )
        )


def _is_there(folder: Path) -> bool:
    return (folder / ".git").exists()


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
