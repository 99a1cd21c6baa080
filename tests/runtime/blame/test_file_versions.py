"""Versions of files, folded from logs of every age."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from weft.ids import SessionId
from weft.runtime.blame.file_versions import LogFold, VersionFold
from weft.store import Record

SESSION = SessionId("s")


def record(seq: int, kind: str, **fields: Any) -> Record:
    body = {"kind": kind, "session_id": "s", "seq": seq, "at": float(seq), **fields}
    return Record(seq, float(seq), kind, json.dumps(body).encode())


def test_a_log_of_the_first_version_tells_of_its_changes() -> None:
    fold = VersionFold(SESSION, LogFold())
    fold.take(
        [
            record(1, "session_created", project_path="/p"),
            record(2, "turn_started", turn_id="t", node="n"),
            record(3, "tool_executing", call_uid="c", node="n", tool_name="write"),
            record(4, "file_touched", path="a", action="created", after="1" * 64, call_uid="c"),
            record(5, "file_touched", path="a", action="modified"),
            record(6, "file_touched", path="/elsewhere", action="modified"),
            Record(7, 7.0, "file_touched", b"damaged"),
            record(8, "of_a_newer_program", path="a"),
            record(9, "file_touched", path="a", action="deleted", before="1" * 64),
        ]
    )
    shown = [(each.seq, each.tool, each.was_there, each.is_there) for each in fold.versions]
    assert shown == [(4, "write", False, True), (5, "", True, True), (9, "", True, False)]
    assert {each.turn_id for each in fold.versions} == {"t"}


def test_a_log_is_read_on_from_where_it_was_left() -> None:
    records = [
        record(1, "session_created", project_path="/p"),
        record(2, "turn_started", turn_id="t", node="n"),
        record(3, "tool_executing", call_uid="c", node="n", tool_name="edit"),
        record(4, "file_touched", path="a", action="modified", after="1" * 64, call_uid="c"),
        record(
            5,
            "tool_complete",
            call_uid="c",
            node="n",
            result={"call_uid": "c", "text": "", "data": {"commits": ["f" * 40]}},
        ),
    ]
    whole = VersionFold(SESSION, LogFold())
    whole.take(records)
    for cut in range(len(records)):
        known = LogFold()
        first = VersionFold(SESSION, known)
        first.take(records[:cut])
        rest = VersionFold(SESSION, known)
        rest.take(records[cut:])
        assert [*first.versions, *rest.versions] == whole.versions
        assert [*first.commits, *rest.commits] == whole.commits
    [made] = whole.commits
    assert (made.commit, made.turn_id) == ("f" * 40, "t")


def test_a_clock_that_was_set_back_turns_no_changes_of_a_log_round() -> None:
    records = [
        record(1, "session_created", project_path="/p"),
        record(5, "file_touched", path="a", action="created", after="1" * 64),
        record(6, "file_touched", path="a", action="modified", after="2" * 64),
    ]
    set_back = msgspec.structs.replace(records[2], at=2.0)
    fold = VersionFold(SESSION, LogFold())
    for each in (records[0], records[1], set_back):
        fold.take([each])
    fold.versions.sort(key=lambda each: each.order)
    assert [each.seq for each in fold.versions] == [5, 6]
