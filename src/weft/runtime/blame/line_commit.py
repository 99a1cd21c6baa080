"""The commit of a line, as git's own blame has it, and notes in the repository about what sessions
wrote.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Final

import anyio.to_thread

from weft.config.paths import WeftPaths
from weft.decisions.sound_values import LAST_TIME, one_line
from weft.errors import FinalToolError, ToolError
from weft.evidence.blame import LineCommit
from weft.workspace import GitRepository, Runner, RunResult, SafeGit, find_repository, open_safe_git

logger = logging.getLogger(__name__)

LONGEST_SUMMARY: Final = 200
NOTES: Final = "weft"
"""Notes are kept below `refs/notes/weft`."""
_AUTHOR: Final = ("-c", "user.name=Weft", "-c", "user.email=weft@localhost")
_COMMIT: Final = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+)", re.MULTILINE)


async def blamed_commit(
    runner: Runner, places: WeftPaths, project: str, path: str, line: int | None
) -> LineCommit | None:
    """The commit of a line (or the newest of the file); None where it is in none, or there is no
    repository.

    Raises:
        FinalToolError: there is no git, or it failed and cannot tell.
    """
    scratch = places.home / "scratch"
    try:
        found = await anyio.to_thread.run_sync(_place, project, path, scratch)
        if found is None:
            return None
        repository, inside = found
        async with open_safe_git(runner, repository, scratch) as git:
            return await _last_commit(git, inside, line)
    except (ToolError, OSError) as error:
        logger.info("git cannot tell where a line comes from: %s", error)
        raise FinalToolError(one_line(str(error), LONGEST_SUMMARY)) from error


async def _last_commit(git: SafeGit, inside: str, line: int | None) -> LineCommit | None:
    if line is None:
        # Literal: a file may be called `*.py`.
        log = ("log", "-1", "--format=%H", "HEAD", "--", inside)
        found = await git.run("--literal-pathspecs", *log)
        if found.exit_code:
            await _check_is_in_none(git, inside, found)
            return None
        commit = found.output.strip()
        return await _described(git, commit) if commit else None
    blame = await git.run(
        *("blame", "--porcelain", "-L", f"{line},{line}", "--", inside),
        work_tree=git.repository.top,
    )
    if blame.exit_code:
        await _check_is_in_none(git, inside, blame)
        return None
    blamed = _COMMIT.search(blame.output)
    # Of a line that is not committed git names a commit of zeros.
    if blamed is None or not blamed[1].strip("0"):
        return None
    return await _described(git, blamed[1])


async def _check_is_in_none(git: SafeGit, inside: str, failed: RunResult) -> None:
    """Git also fails for what it does not know: a file that is in no commit, or a repository that
    has none yet.

    Raises:
        FinalToolError: neither is so.
    """
    if await git.output("rev-parse", "--quiet", "--verify", "HEAD") is None:
        return
    listed = await git.run("--literal-pathspecs", "ls-tree", "HEAD", "--", inside)
    if listed.exit_code or listed.output.strip():
        said = (failed.errors or failed.output).split("\n")[0].strip()
        raise FinalToolError(said or "it does not say why")


def _place(project: str, path: str, scratch: Path) -> tuple[GitRepository, str] | None:
    """The repository of a project, and the file's name in it; None where there is none."""
    repository = find_repository(project)
    if repository is None:
        return None
    scratch.mkdir(0o700, parents=True, exist_ok=True)
    whole = os.path.join(os.path.realpath(project), path)
    return repository, os.path.relpath(whole, repository.top)


async def _described(git: SafeGit, commit: str) -> LineCommit:
    text = await git.output("show", "-s", "--format=%an%x00%ct%x00%s", commit)
    author, at, summary = (*(text or "").split("\0"), "", "", "")[:3]
    return LineCommit(
        commit=commit,
        author=one_line(author),
        # A committer may claim any date, even one that no calendar has.
        at=min(float(at), LAST_TIME) if at.isdigit() else 0.0,
        summary=one_line(summary, LONGEST_SUMMARY),
    )


async def write_note(
    runner: Runner, places: WeftPaths, project: str, commit: str, text: str
) -> None:
    """Add to the note of a commit below `refs/notes/weft` what it does not say yet; git sees no
    settings of the repository, and runs no hook.

    Raises:
        FinalToolError: there is no repository, or git failed.
    """
    scratch = places.home / "scratch"
    found = await anyio.to_thread.run_sync(_place, project, "", scratch)
    if found is None:
        raise FinalToolError("there is no repository")
    repository = found[0]
    async with open_safe_git(runner, repository, scratch) as git:
        if await _leads_elsewhere(git, repository.common):
            raise FinalToolError(f"refs/notes/{NOTES} leads elsewhere")
        note = ("notes", f"--ref={NOTES}")
        known = await git.output(*note, "show", commit)
        if known is not None and text in known:
            return
        done = await git.run(*_AUTHOR, *note, "append", "-m", text, commit)
    if done.exit_code:
        said = (done.errors or done.output).split("\n")[0].strip()
        raise FinalToolError(one_line(said, LONGEST_SUMMARY) or "git does not say why")


async def _leads_elsewhere(git: SafeGit, common: str) -> bool:
    """Whether the name of the notes stands for another one, as a branch: that would be moved."""
    if await git.output("symbolic-ref", "--quiet", f"refs/notes/{NOTES}") is not None:
        return True
    place = f"{common}/refs/notes"
    real = await anyio.to_thread.run_sync(os.path.realpath, place)
    return real != place
