"""Arguments that mean nothing: a call answers, or says in one sentence what is wrong with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.world import World
from weft.api.session import Session
from weft.app import App
from weft.errors import WeftError
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

NONSENSE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    b"bytes",
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "../../etc/passwd",
    "x" * 5_000,
    "nan:ses_1",
    "1:",
    ":",
    (),
    [1],
    {"a": 1},
    {1, 2},
    object(),
    len,
)

Call = Callable[[App, Session, Any], Awaitable[object]]

CALLS: dict[str, Call] = {
    "join": lambda app, session, value: session.join(value),
    "subscribe after": lambda app, session, value: session.subscribe(after=value, live=False),
    "subscribe live": lambda app, session, value: session.subscribe(live=value),
    "read_file": lambda app, session, value: session.read_file(value),
    "read_file at": lambda app, session, value: session.read_file("a.txt", at=value),
    "files_at": lambda app, session, value: session.files_at(value),
    "write_files at": lambda app, session, value: session.write_files(
        f"{app.project_path}-new", at=value
    ),
    "write_files": lambda app, session, value: session.write_files(value, at=0),
    "read_blob": lambda app, session, value: app.read_blob(value),
    "topic": lambda app, session, value: app.subscribe(value),
    "fork": lambda app, session, value: app.sessions.fork_session(value),
    "fork at": lambda app, session, value: app.sessions.fork_session(session.id, at=value),
    "fork title": lambda app, session, value: app.sessions.fork_session(session.id, title=value),
    "fork input_id": lambda app, session, value: app.sessions.fork_session(
        session.id, input_id=value
    ),
    "import": lambda app, session, value: app.sessions.import_session(value),
    "import input_id": lambda app, session, value: app.sessions.import_session(
        f"{app.project_path}/export.json", input_id=value
    ),
    "delete": lambda app, session, value: app.sessions.delete_session(value),
    "delete input_id": lambda app, session, value: app.sessions.delete_session(
        "ses_none", input_id=value
    ),
    "list project": lambda app, session, value: app.sessions.list_saved(value),
    "list query": lambda app, session, value: app.sessions.list_saved(query=value),
    "list limit": lambda app, session, value: app.sessions.list_saved(limit=value),
    "list after": lambda app, session, value: app.sessions.list_saved(after=value),
    "get": lambda app, session, value: app.sessions.get(value),
    "find": lambda app, session, value: app.sessions.find_session(value),
    "resolve": lambda app, session, value: app.sessions.resolve_id(value),
    "read_session": lambda app, session, value: app.sessions.read_session(value),
    "line before": lambda app, session, value: session.line(before=value),
    "line after": lambda app, session, value: session.line(after=value),
    "line limit": lambda app, session, value: session.line(limit=value),
}


async def test_a_nonsense_argument_is_answered_or_refused_in_a_sentence(
    shared_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = shared_world
    # Some of them are good names for a folder.
    here = tmp_path / "folder" / "folder"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    world.write("a.txt", "words")
    write = CallTool(name="write", args={"path": "b.txt", "content": "b"})
    async with world.open(ScriptedModel([write, "done"])) as app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await session.send_message("go")
        await app.sessions.export_session(session.id, path=world.project / "export.json")
        bare = [
            wrong
            for name, call in CALLS.items()
            for value in NONSENSE
            if (wrong := await what_is_wrong(name, call(app, session, value), value))
        ]
        assert not bare, "\n" + "\n".join(bare)
        # Nothing of it has hurt the session.
        assert len(await session.messages()) == 4


async def what_is_wrong(name: str, answer: Awaitable[object], value: Any) -> str:
    """How a call fails that should have said what is wrong with its argument; empty if it did."""
    try:
        await answer
    except WeftError as error:
        return "" if str(error).strip() else f"{name}: {value!r:.40} is refused without a word"
    except Exception as error:
        return f"{name}: {value!r:.40}: {type(error).__name__}: {error}"[:160]
    return ""
