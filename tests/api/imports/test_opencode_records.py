"""Databases and folders of opencode that are odd, damaged, large, or open in its program."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from weft.api.imports.agent_import import read_source
from weft.api.imports.foreign_places import ForeignPlaces, ForeignSource
from weft.api.imports.opencode_records import OpencodeRecords
from weft.errors import UsageError

PROJECT = "/home/ada/notes"
SCHEMA = """
    create table session (id, parent_id, directory, title, version, revert);
    create table message (id, session_id, data);
    create table part (id, message_id, data);
    insert into session values ('ses_1', null, '/home/ada/notes', 'T', '1', null);
    insert into message values ('m1', 'ses_1', '{"role": "user"}');
    insert into part values ('p1', 'm1', '{"type": "text", "text": "hello"}');
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    return folder


def database(data: Path, *statements: str) -> Path:
    path = data / "opencode.db"
    with closing(apsw.Connection(str(path))) as made:
        made.execute(SCHEMA)
        for statement in statements:
            made.execute(statement)
    return path


def sources(data: Path) -> list[ForeignSource]:
    return ForeignPlaces(data.parents[2], {}).of_folder("opencode", PROJECT)


def texts(source: ForeignSource) -> list[str]:
    nodes = read_source(source, 1_800_000_000.0).foreign.document.nodes
    return [part.text for node in nodes for part in node.revisions[0].parts]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into message values ('m2', 'ses_1', 5)",
        "insert into part values ('p2', 'm1', 5)",
        "insert into part values ('p2', 'm1', x'ff00')",
        "insert into part values ('p2', 'm1', cast(x'7b22ff227d' as text))",
        "update session set title = cast(x'ff' as text)",
        "update session set revert = 5",
        "insert into session values (x'00', 'ses_1', 'x', 't', '1', null)",
        "insert into session values (7, 'ses_1', 'x', 't', '1', null)",
        "insert into session values (cast(x'ff' as text), null, '/home/ada/notes', 't', 1, null)",
        "insert into session values ('ses_1', 'ses_1', 'x', 't', '1', null)",
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) "
        "insert into session select 'ses_' || (i + 1), 'ses_' || i, 'x', 't', '1', null from n",
    ],
)
def test_a_value_of_any_kind_may_stand_in_a_database(statement: str, data: Path) -> None:
    database(data, statement)
    (source,) = [each for each in sources(data) if each.session_id == "ses_1"]
    assert texts(source) == ["hello"]


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    found = [path.stat() for path in sorted(folder.iterdir())]
    return {
        path.name: (about.st_size, about.st_mtime_ns)
        for path, about in zip(sorted(folder.iterdir()), found, strict=True)
    }


def test_beside_a_database_that_nobody_has_open_no_file_is_made(data: Path) -> None:
    """SQLite makes two for whoever reads one with a write-ahead log."""
    database(data, "pragma journal_mode = wal", "update session set title = 'U'")
    before = contents(data)
    assert list(before) == ["opencode.db"]
    (source,) = sources(data)
    assert texts(source) == ["hello"]
    assert contents(data) == before


def test_a_database_that_is_open_is_read_with_what_stands_in_its_log(data: Path) -> None:
    path = database(data, "pragma journal_mode = wal")
    with closing(apsw.Connection(str(path))) as opencode:
        row = '{"type": "text", "text": "in the log"}'
        opencode.execute("insert into part values ('p2', 'm1', ?)", (row,))
        before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
        (source,) = sources(data)
        assert texts(source) == ["hello", "in the log"]
        opencode.execute("begin immediate")
        assert texts(source) == ["hello", "in the log"]
        opencode.execute("rollback")
        assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before


def test_what_changes_while_it_is_read_is_not_taken(data: Path) -> None:
    path = database(data, "pragma journal_mode = wal")
    records = iter(OpencodeRecords(path, "ses_1"))
    next(records)
    with closing(apsw.Connection(str(path))) as opencode:
        opencode.execute("delete from part")
    with pytest.raises(UsageError, match="changed while it was read"):
        list(records)


def test_a_damaged_database_hides_no_other(data: Path) -> None:
    database(data)
    (data / "opencode-old.db").write_bytes(b"garbage" * 1_000)
    assert {each.session_id for each in sources(data)} == {"ses_1", ""}
    damaged = next(each for each in sources(data) if not each.session_id)
    with pytest.raises(UsageError, match=r"opencode-old\.db"):
        texts(damaged)


def storage(data: Path) -> Path:
    place = data / "storage"
    for name, value in {
        "session/g/ses_1.json": {"id": "ses_1", "directory": PROJECT, "title": "T"},
        "message/ses_1/msg1.json": {"id": "msg1", "role": "user"},
        "part/msg1/a.json": {"id": "a", "type": "text", "text": "hello"},
    }.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return place


def test_links_and_pipes_in_the_folder_are_left_out_and_said(data: Path) -> None:
    place = storage(data)
    secret = data / "secret.json"
    secret.write_text(json.dumps({"id": "ses_9", "directory": PROJECT, "text": "a secret"}))
    (place / "session" / "g" / "ses_2.json").symlink_to(secret)
    (place / "part" / "msg1" / "b.json").symlink_to(secret)
    os.mkfifo(place / "part" / "msg1" / "c.json")
    (source,) = sources(data)
    assert texts(source) == ["hello"]
    (problem,) = read_source(source, 0.0).problems
    assert problem.startswith("2 of its records are damaged")


def test_agents_of_agents_are_read_to_any_depth(data: Path) -> None:
    place = storage(data)
    for number in range(1, 400):
        about = {"id": f"ses_{number + 1}", "parentID": f"ses_{number}"}
        (place / "session" / "g" / f"ses_{number + 1}.json").write_text(json.dumps(about))
    (source,) = sources(data)
    assert texts(source) == ["hello"]


def test_an_id_finds_its_session_in_the_store_that_has_it(data: Path) -> None:
    database(data, "update session set id = 'ses_7'")
    storage(data)
    (found,) = ForeignPlaces(data.parents[2], {}).named("opencode", "ses_1", "/")
    assert Path(found.path).name == "storage"
    with pytest.raises(UsageError, match="no session of opencode has the id 'ses_8'"):
        ForeignPlaces(data.parents[2], {}).named("opencode", "ses_8", "/")


@pytest.mark.parametrize("parts", [5, "x", {"a": 1}, None])
def test_an_export_with_odd_parts_is_read(parts: Any, tmp_path: Path) -> None:
    text = {"type": "text", "text": "hello"}
    messages = [
        {"info": {"id": "a", "role": "user"}, "parts": parts},
        {"info": {"id": "b", "role": "user"}, "parts": [text]},
    ]
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"info": {"id": "s"}, "messages": messages}))
    assert texts(ForeignSource(agent="opencode", path=str(file))) == ["hello"]
