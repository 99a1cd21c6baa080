"""Lines of the log file that a deleted session may have left, and their removal.

A record is a line that begins with a time, and the lines of its traceback.  An error's text may
quote what was said, so the records of a deleted session go with it.
"""

from __future__ import annotations

import calendar
import os
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from weft.file_io import write_all

# Time, process, level, logger and session, as `weft.cli.logs` writes them.
_HEAD = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} \d+ [A-Z]+ \S+ (?:\[([^\]]*)\] )?")


def remove_log_lines(path: Path, sessions: Collection[str], since: float) -> None:
    """Remove the records of these sessions from the log and the older one beside it.

    So are those since then that name no session: any of them may be about these.
    """
    for each in (path, path.with_suffix(".log.1")):
        try:
            text = each.read_text("utf-8", "replace")
        except FileNotFoundError:
            continue
        left = "".join(record for record in _records(text) if not _is_of(record, sessions, since))
        if left != text:
            _replace(each, left)


def _records(text: str) -> Iterator[str]:
    record = ""
    for line in text.splitlines(keepends=True):
        if _HEAD.match(line) and record:
            yield record
            record = ""
        record += line
    if record:
        yield record


def _is_of(record: str, sessions: Collection[str], since: float) -> bool:
    if any(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", record) for each in sessions):
        return True
    head = _HEAD.match(record)
    # What no record begins is the rest of one that was torn.
    if head is None:
        return True
    try:
        at = calendar.timegm(time.strptime(head[1], "%Y-%m-%d %H:%M:%S"))
    except ValueError:
        return True
    # Without the place for the session: a record of an older version.
    return head[2] in (None, "-") and at >= int(since)


def _replace(path: Path, text: str) -> None:
    # A record that another process adds between the read and this is lost.  To lock the file for
    # every record would cost more than such a line is worth.
    new = path.with_name(f"{path.name}.new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, text.encode())
    finally:
        os.close(fd)
    os.replace(new, path)
