"""Past commits: what each was for and which files it changed, from git or from a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import anyio.to_thread
import msgspec

from weft.errors import ToolError, UsageError
from weft.repo.freshness import stamp_at
from weft.repo.index_cache import ABSENT, FileStamp, PastCommit
from weft.repo.indexer_order import history_mark
from weft.repo.project_files import GIT_SECONDS, ask_within
from weft.workspace import Runner, find_repository, open_safe_git, read_pointer

MOST_COMMITS: Final = 3_000
MOST_FILES: Final = 100
"""Files of a commit that are kept: one that changed more says nothing about any of them."""
_LOG: Final = (
    *("log", f"--max-count={MOST_COMMITS}", "--no-merges", "--no-renames", "--no-show-signature"),
    *("--name-only", "--relative", "-z"),
)
_FIELDS: Final = 3
_HistoryRow = tuple[float, list[str], str]


class PastRecord(NamedTuple):
    """The past as it is at a head."""

    head: str
    """What the past is of: as long as it is the same, so is the past."""
    commits: list[PastCommit]


async def read_past(
    runner: Runner,
    project: str,
    scratch: Path,
    known_head: str,
    go_on: Callable[[], bool] = lambda: True,
) -> PastRecord | None:
    """The past of a project by git; None where there is none, or it is the one that is known, and
    where git takes too long or `go_on` says no.
    """
    asked = partial(_by_git, runner, project, scratch, known_head)
    return await ask_within(asked, GIT_SECONDS, go_on)


async def _by_git(
    runner: Runner, project: str, scratch: Path, known_head: str
) -> PastRecord | None:
    try:
        repository = await anyio.to_thread.run_sync(find_repository, project)
        if repository is None:
            return None
        async with open_safe_git(runner, repository, scratch) as git:
            head = await git.output("rev-parse", "--verify", "--quiet", "HEAD")
            if not head or head == known_head:
                return None
            chunks: list[str] = []
            # A word that no subject and no path can know: they may hold every other one.
            mark = os.urandom(16).hex()
            asked = ("-C", project, *_LOG, f"--format={mark}%H%x00%ct%x00%s")
            # What came before a failure counts: a shallow or partial clone ends somewhere.
            await git.run(*asked, work_tree=repository.top, on_output=chunks.append)
    except ToolError:
        return None
    return PastRecord(head, list(_parsed("".join(chunks), mark)))


def head_stamps(project: str) -> dict[str, FileStamp]:
    """The files that another head changes, absolute, with their stamps.  Blocks."""
    try:
        repository = find_repository(project)
    except ToolError:
        return {}
    if repository is None:
        return {f"{project}/.git/HEAD": ABSENT}  # it may become one
    records, common = repository.records, repository.common
    # The log of the head grows with each commit; it may be switched off, and then the branch tells.
    files = [f"{records}/HEAD", f"{records}/logs/HEAD", f"{common}/reftable/tables.list"]
    named = (read_pointer(f"{records}/HEAD") or "").removeprefix("ref:").strip()
    if named.startswith("refs/"):
        files.append(f"{common}/{named}")
    found = {file: stamp_at(file) for file in files}
    if found.get(f"{common}/{named}") == ABSENT:
        found[f"{common}/packed-refs"] = stamp_at(f"{common}/packed-refs")
    return found


def _parsed(text: str, mark: str) -> Iterator[PastCommit]:
    for entry in text.split(mark)[1:]:
        fields = entry.split("\0")
        if len(fields) < _FIELDS or not fields[1].isdecimal():
            continue  # cut off
        id, at, subject, *files = fields
        # A line break stands between the subject and the first name.
        named = [name.lstrip("\n") for name in files if name.strip("\n")]
        yield PastCommit(id, int(at), subject, named[:MOST_FILES])


def read_history_file(path: Path, known_head: str) -> PastRecord | None:
    """The past from JSON lines, newest first: `[time, files, subject]`; None when it is the one
    that is known.

    Raises:
        UsageError: it cannot be read, or a line has another form.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the history {str(path)!r}: {error.strerror}") from error
    head = history_mark(data)
    if head == known_head:
        return None
    decoder = msgspec.json.Decoder(_HistoryRow)
    try:
        rows = [decoder.decode(line) for line in data.splitlines()[:MOST_COMMITS] if line.strip()]
        commits = [PastCommit("", int(at), said, files[:MOST_FILES]) for at, files, said in rows]
    except (msgspec.MsgspecError, OverflowError) as error:
        raise UsageError(
            f"{str(path)!r} is no history: each line is [time, [files], subject]: {error}"
        ) from error
    return PastRecord(head, commits)
