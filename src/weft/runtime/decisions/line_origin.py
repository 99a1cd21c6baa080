"""Where a line of a file comes from: blame, its commit, and the turn of a session that made it.

A commit leads to a turn by the facts of the project's sessions: the newest turn that changed the
file before it was committed.  A line that is not committed yet comes from the newest of all.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from weft.config.paths import WeftPaths
from weft.decisions.sound_values import LAST_TIME, one_line
from weft.errors import FinalToolError, StoreError, ToolError
from weft.events import FileTouched, NewMessage, TurnStarted, decode
from weft.ids import NodeId, SessionId, TurnId
from weft.messages import typed_text
from weft.store import SessionRow, Store
from weft.workspace import GitRepository, Runner, RunResult, SafeGit, find_repository, open_safe_git

logger = logging.getLogger(__name__)

MOST_SESSIONS: Final = 30
"""Sessions of a project that are looked through, the newest first."""
PAGE: Final = 2_000
MOST_RECORDS: Final = 400_000
"""Records of all sessions that are looked at."""
LONGEST_SUMMARY: Final = 200
LATE_SECONDS: Final = 5.0
"""Clocks of git and of the log are read one after the other."""
_KINDS: Final = frozenset({"turn_started", "file_touched", "new_message"})
_COMMIT: Final = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+)", re.MULTILINE)


class LineCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that a line, or a file, was last changed in."""

    commit: str
    author: str = ""
    at: float = 0.0
    summary: str = ""


class LineTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that changed a file."""

    session_id: SessionId
    turn_id: TurnId
    node: NodeId | None = None
    at: float = 0.0
    prompt: str = ""
    """What the user had asked for."""


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


async def turn_of_change(
    store: Store, project_path: str, path: str, before: float | None
) -> LineTurn | None:
    """The newest turn of the project's sessions that changed a file, up to a time."""
    try:
        rows = await store.rows(project_path=project_path, limit=MOST_SESSIONS, children=True)
    except StoreError:
        return None
    best: LineTurn | None = None
    left = MOST_RECORDS
    for row in rows:
        if row.damaged or (before is not None and row.created > before + LATE_SECONDS):
            continue
        if best is not None and row.last_active < best.at:
            break  # rows come newest first
        if left <= 0:
            break
        try:
            found, read = await _newest_change(store, row, path, before, left)
        except StoreError as error:
            # A session that cannot be read hides none of the others.
            logger.warning("a session cannot be read: %s", error, extra={"session": row.id})
            continue
        left -= read
        if found is not None and (best is None or found.at > best.at):
            best = found
    return best


async def _newest_change(
    store: Store, row: SessionRow, path: str, before: float | None, most: int
) -> tuple[LineTurn | None, int]:
    """The newest change of a file in a session, and how many records were read for it."""
    found: LineTurn | None = None
    turn: TurnStarted | None = None
    prompts: dict[NodeId, str] = {}
    after = 0
    while after < most and (records := await store.read(row.id, after=after, limit=PAGE)):
        for record in records:
            if record.kind not in _KINDS:
                continue
            match decode(record.body):
                case TurnStarted() as started:
                    turn = started
                case NewMessage(node=node) if node.role == "user":
                    prompts[node.id] = typed_text(node.parts)
                case FileTouched(path=touched, at=at) if touched == path and turn is not None:
                    if before is None or at <= before + LATE_SECONDS:
                        prompt = prompts.get(turn.node, "") if turn.node else ""
                        found = LineTurn(
                            session_id=row.id,
                            turn_id=turn.turn_id,
                            node=turn.node,
                            at=at,
                            prompt=one_line(prompt, LONGEST_SUMMARY),
                        )
                case _:
                    pass
        after = records[-1].seq
    return found, after
