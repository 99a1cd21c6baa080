"""Sessions as other agents wrote them: what their programs left, cut down to its form, and a home
folder that has them where they would be.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from weft.export.agents import READERS, ForeignSession

FILES = Path(__file__).parent.parent / "export" / "agents" / "files"
FOLDER = "/home/ada/notes"
"""Where the sessions of the files worked."""
NOW = 1_800_000_000.0


def real_files() -> list[Path]:
    """One for each program and version."""
    return sorted(each for each in FILES.iterdir() if each.is_file())


def agent_of(file: Path) -> str:
    return file.name.partition("-")[0]


def records_of(file: Path) -> list[dict[str, Any]]:
    """The records as a reader takes them."""
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_text().splitlines()]
    export = json.loads(file.read_text())
    found: list[dict[str, Any]] = [{"session": export["info"]}]
    for each in export["messages"]:
        found.append({"message": each["info"]})
        found += [{"part": part} for part in each["parts"]]
    return found


def read_as(agent: str, records: list[dict[str, Any]]) -> ForeignSession:
    reader = READERS[agent](NOW)
    for record in records:
        reader.take(record)
    return reader.finish()


def put_in_home(file: Path, home: Path, project: str) -> Path:
    """The session where its program keeps it, as one of `project`; returns the file."""
    agent = agent_of(file)
    text = file.read_text().replace(FOLDER, project)
    if agent == "opencode":
        return _database(json.loads(text), home / ".local" / "share" / "opencode")
    name = {
        "claude": f".claude/projects/{re.sub('[^A-Za-z0-9]', '-', project)}/{file.stem}.jsonl",
        "codex": f".codex/sessions/2026/11/19/rollout-{file.stem}.jsonl",
        "pi": f".pi/agent/sessions/--here--/{file.stem}.jsonl",
    }[agent]
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _database(export: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "opencode.db"
    about = export["info"]
    with closing(apsw.Connection(str(path))) as database:
        database.execute(
            "create table if not exists session (id text primary key, parent_id text,"
            " directory text, title text, version text, revert text);"
            "create table if not exists message (id text primary key, session_id text, data text);"
            "create table if not exists part (id text, message_id text, data text)"
        )
        keys = ("id", "parent_id", "directory", "title", "version", "revert")
        database.execute(
            "insert into session values (?, ?, ?, ?, ?, ?)", tuple(about.get(key) for key in keys)
        )
        for each in export["messages"]:
            info = dict(each["info"])
            key = info.pop("id")
            row = (key, about["id"], msgspec.json.encode(info).decode())
            database.execute("insert into message values (?, ?, ?)", row)
            for part in each["parts"]:
                data = msgspec.json.encode(part).decode()
                database.execute("insert into part values (?, ?, ?)", ("", key, data))
    return path
