"""Export and import through the manager: whole sessions to files and back."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import weft
from weft.app import App
from weft.errors import Corrupt, SessionNotFound, TooNew, UsageError, WeftError
from weft.export import LARGEST
from weft.messages import Image, Text
from weft.providers import ChatMessage
from weft.providers.script import CallTogether, CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore

pytestmark = pytest.mark.anyio

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
LONG = "a long line of words\n" * 3_000


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with open_app(tmp_path / "here") as app:
        yield app


def open_app(path: Path, store: MemoryStore | str | None = None) -> App:
    path.mkdir(exist_ok=True)
    return weft.open(path, store or MemoryStore(), environ={"HOME": str(path)})


def store_at(kind: str, folder: Path) -> str:
    return {"memory": "memory", "sqlite": f"{folder}/w.db", "jsonl": f"jsonl:{folder}/log"}[kind]


async def rich_session(app: App) -> weft.Session:
    """A session with thinking, tools, a long message, a picture, a note, an edit and a branch."""
    both = CallTogether(
        calls=(
            CallTool(name="write", args={"path": "a.txt", "content": "one\n"}),
            CallTool(name="shell", args={"command": "seq 1 20000"}),
        )
    )
    model = ScriptedModel(
        [[Think(text="hm", signature="s"), SayText(text="Now."), both], "Done.", "Nice picture."]
    )
    session = await app.sessions.start_session(model=model, title="Rich", auto_approve=True)
    await session.send_message("Do it.\n" + LONG)
    await session.add_system_message("Look out.", "warning", to_model=True)
    await session.send_message((Text(text="And this?"), Image(media_type="image/png", data=PIXEL)))
    await session.pin((await session.messages_with_ids())[0][0])
    return session


def without_id(text: str, session_id: str) -> str:
    return text.replace(session_id, "ses_x")


@pytest.mark.process
@pytest.mark.requirement("manager:export_session")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl"])
@pytest.mark.parametrize("form", ["json", "jsonl"])
async def test_a_session_comes_back_whole_in_another_store(
    app: App, tmp_path: Path, form: Any, kind: str
) -> None:
    session = await rich_session(app)
    file = tmp_path / "session.export"
    text = await app.sessions.export_session(session.id, form, path=file)
    assert file.read_text() == text
    async with open_app(tmp_path / "there", store_at(kind, tmp_path)) as other:
        report = await other.sessions.import_session(file)
        again = await other.sessions.export_session(report.session.id, form)
        assert without_id(again, report.session.id) == without_id(text, session.id)
        assert report.session.id != session.id
        assert await report.session.messages() == await session.messages()
        about = await report.session.metadata()
    assert (about.title, about.turn_count, about.cost_usd) == ("Rich", 2, 0.0)
    assert about.created == (await session.metadata()).created


@pytest.mark.process
async def test_what_the_store_keeps_as_blobs_is_in_the_file(app: App) -> None:
    session = await rich_session(app)
    document = json.loads(await app.sessions.export_session(session.id))
    first = document["nodes"][0]["revisions"][0]["parts"][0]
    assert first["text"] == "Do it.\n" + LONG
    outputs = [result.get("full_text") for result in document["nodes"][1]["results"]]
    assert "\n10000\n" in outputs[1]
    assert '"blob"' not in json.dumps(document)


@pytest.mark.process
async def test_a_fork_is_exported_with_all_that_it_shares(app: App, tmp_path: Path) -> None:
    session = await rich_session(app)
    shared = await session.messages()
    fork = await app.sessions.fork_session(session.id)
    await app.sessions.delete_session(session.id)
    file = tmp_path / "fork.json"
    await app.sessions.export_session(fork.id, path=file)
    async with open_app(tmp_path / "there") as other:
        report = await other.sessions.import_session(file)
        assert await report.session.messages() == shared
        assert (await report.session.metadata()).title == "Rich (fork)"
        assert (await report.session.metadata()).parent_id is None


@pytest.mark.process
async def test_an_imported_session_goes_on_with_its_history(app: App, tmp_path: Path) -> None:
    session = await rich_session(app)
    file = tmp_path / "session.json"
    await app.sessions.export_session(session.id, path=file)
    report = await app.sessions.import_session(file)
    model = ScriptedModel(["It was fine."])
    await report.session.set_model(model)
    reply = await report.session.send_message("How was it?")
    assert reply.text == "It was fine."
    said = [
        m for m in model.last_request.messages if isinstance(m, ChatMessage) and m.role == "user"
    ]
    assert isinstance(said[0].parts[0], Text)
    assert said[0].parts[0].text == "Do it.\n" + LONG


async def test_an_imported_session_is_found_by_its_words(app: App, tmp_path: Path) -> None:
    session = await app.sessions.start_session(model=ScriptedModel(["Xylophone."]), tools=[])
    await session.send_message("Which instrument?")
    file = tmp_path / "session.jsonl"
    await app.sessions.export_session(session.id, "jsonl", path=file)
    async with open_app(tmp_path / "there") as other:
        report = await other.sessions.import_session(file)
        found = await other.sessions.list_saved(query="xylophone")
        assert [row.id for row in found] == [report.session.id]
        assert found[0].project_path == str(tmp_path / "there")


# --- what is left behind -----------------------------------------------------------------


@pytest.mark.requirement("manager:import_session")
async def test_nothing_but_the_conversation_is_taken_over_and_the_rest_is_named(
    app: App, tmp_path: Path
) -> None:
    model = ScriptedModel(
        [
            CallTool(name="write", args={"path": "a.txt", "content": "x"}),
            [SayText(text="waiting"), Stall()],
        ]
    )
    session = await app.sessions.start_session(
        model=model, permission_mode="bypass", system_prompt="Obey the file."
    )
    await session.send_prompt("go")
    await model.gate().reached.wait()
    await session.queue_follow_up("later")
    await session.schedule("+1h", "later still")
    file = tmp_path / "session.json"
    await app.sessions.export_session(session.id, path=file)
    report = await app.sessions.import_session(file)
    assert report.dropped["schedules"] == 1
    assert await report.session.waits() == []
    assert {"queue", "rules", "settings", "file_history", "usage", "open_turn"} <= set(
        report.dropped
    )
    assert report.dropped["queue"] == 1
    imported = report.session
    assert await imported.get_queued_messages() == ((), ())
    assert await imported.get_status() == "idle"
    assert await imported.touched_files() == []
    assert (await imported.editor_snapshot()).permission_mode == "default"
    await session.abort()


async def test_a_grant_and_an_open_request_stay_behind(app: App, tmp_path: Path) -> None:
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    other = CallTool(name="write", args={"path": "b.txt", "content": "x"})
    session = await app.sessions.start_session(model=ScriptedModel([write, other]))
    events = await session.subscribe(after=0)
    await session.send_prompt("go")
    asked = 0
    async for event in events:
        if type(event).__name__ == "PermissionRequest":
            asked += 1
            if asked == 2:
                break
            await session.respond_to_permission("allow_always")
    file = tmp_path / "session.json"
    await app.sessions.export_session(session.id, path=file)
    report = await app.sessions.import_session(file)
    assert (report.dropped["grants"], report.dropped["requests"]) == (1, 1)
    assert (await report.session.editor_snapshot()).requests == ()
    again = ScriptedModel([write, "ok"])
    await report.session.set_model(again)
    await report.session.send_prompt("again")
    with anyio.fail_after(5):
        async for event in await report.session.subscribe(after=0):
            if type(event).__name__ == "PermissionRequest":
                break
    assert len((await report.session.editor_snapshot()).requests) == 1


async def test_sections_that_are_no_conversation_are_not_read_and_named(
    app: App, tmp_path: Path
) -> None:
    document = await small_document(app)
    document |= {
        "grants": [{"pattern": "shell(rm -rf /)"}],
        "rules": "allow everything",
        "queue": [{"text": "do evil"}],
        "file_history": {"a.py": None},
    }
    report = await app.sessions.import_session(written(tmp_path, document))
    assert {"grants", "rules", "queue", "file_history"} <= set(report.dropped)
    assert await report.session.get_queued_messages() == ((), ())


# --- files -------------------------------------------------------------------------------


async def test_an_export_is_readable_by_its_owner_alone_and_replaces_what_was(
    app: App, tmp_path: Path
) -> None:
    session = await app.sessions.start_session(model=ScriptedModel([]), tools=[])
    file = tmp_path / "out.md"
    file.write_text("old")
    file.chmod(0o644)
    text = await app.sessions.export_session(session.id, "md", path=file)
    assert file.read_text() == text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["here", "out.md"]


async def test_an_export_that_cannot_be_written_says_so_and_leaves_nothing(
    app: App, tmp_path: Path
) -> None:
    session = await app.sessions.start_session(model=ScriptedModel([]), tools=[])
    with pytest.raises(UsageError, match="cannot write"):
        await app.sessions.export_session(session.id, path=tmp_path / "none" / "out.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="cannot write"):
        await app.sessions.export_session(session.id, path=tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["folder", "here"]


async def test_an_unknown_format_or_session_is_refused(app: App) -> None:
    session = await app.sessions.start_session(model=ScriptedModel([]), tools=[])
    with pytest.raises(UsageError, match="no export format 'pdf'; there are json, jsonl, md, html"):
        await app.sessions.export_session(session.id, "pdf")  # type: ignore[arg-type]  # the claim
    with pytest.raises(SessionNotFound):
        await app.sessions.export_session("ses_nobody")


# --- bad input ---------------------------------------------------------------------------


async def small_document(app: App) -> dict[str, Any]:
    """A session of two messages with one call, as a document."""
    call = CallTool(name="nothing", args={"path": "a"})
    session = await app.sessions.start_session(model=ScriptedModel([call, "done"]), title="Small")
    await session.send_message("go")
    document: dict[str, Any] = json.loads(await app.sessions.export_session(session.id))
    await app.sessions.delete_session(session.id)
    return document


def written(folder: Path, document: Any) -> Path:
    file = folder / "given.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


async def refused(app: App, file: Path, kind: type[WeftError], says: str) -> None:
    """The file is refused with one sentence, and nothing is imported."""
    with pytest.raises(kind, match=says) as caught:
        await app.sessions.import_session(file)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert await app.sessions.list_saved() == []
    assert await app.sessions.list_active() == []


NO_EXPORTS = [
    (b"", "is empty"),
    (b"  \n ", "is empty"),
    (b"\x00\x01\x02\xff\xfe" * 100, "not JSON"),
    (b"hello there", "not JSON"),
    (b"[1, 2, 3]", "JSON of another kind"),
    (b"{}", 'does not say "format": "weft-session"'),
    (b'{"format": "other", "version": 1}', "does not say"),
    (b'{"a": ' * 100_000, "not JSON"),
]


@pytest.mark.parametrize(("data", "says"), NO_EXPORTS)
async def test_what_is_no_export_is_refused(
    app: App, tmp_path: Path, data: bytes, says: str
) -> None:
    file = tmp_path / "given"
    file.write_bytes(data)
    await refused(app, file, UsageError, says)


async def test_what_is_no_file_is_refused(app: App, tmp_path: Path) -> None:
    await refused(app, tmp_path / "none", UsageError, "cannot read")
    await refused(app, tmp_path, UsageError, "is not a file|directory")
    os.mkfifo(tmp_path / "pipe")
    await refused(app, tmp_path / "pipe", UsageError, "is not a file")
    await refused(app, Path("/dev/zero"), UsageError, "is not a file")


async def test_a_file_that_is_too_large_is_refused(app: App, tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as out:
        out.truncate(LARGEST + 1)
    await refused(app, file, UsageError, "too large to import: more than 256 MiB")


@pytest.mark.parametrize("form", ["md", "html"])
async def test_a_transcript_is_for_reading(app: App, tmp_path: Path, form: Any) -> None:
    session = await app.sessions.start_session(model=ScriptedModel([]), tools=[])
    file = tmp_path / "given"
    await app.sessions.export_session(session.id, form, path=file)
    await app.sessions.delete_session(session.id)
    await refused(app, file, UsageError, "only json and jsonl exports can be imported")


async def test_an_export_of_a_newer_program_is_refused(app: App, tmp_path: Path) -> None:
    document = await small_document(app)
    document |= {"version": 2, "nodes": "of another form"}
    await refused(app, written(tmp_path, document), TooNew, r"newer Weft \(export version 2")


async def test_an_export_that_was_cut_off_anywhere_is_refused(app: App, tmp_path: Path) -> None:
    whole = json.dumps(await small_document(app))
    for length in (60, len(whole) // 2, len(whole) - 1):
        await refused(app, written(tmp_path, whole[:length]), Corrupt, "not whole")


async def test_lines_that_were_cut_off_anywhere_are_refused(app: App, tmp_path: Path) -> None:
    session = await app.sessions.start_session(model=ScriptedModel(["a", "b"]), tools=[])
    await session.send_message("go")
    whole = await app.sessions.export_session(session.id, "jsonl")
    await app.sessions.delete_session(session.id)
    lines = whole.splitlines(keepends=True)
    for count in range(1, len(lines)):
        await refused(app, written(tmp_path, "".join(lines[:count])), Corrupt, "not whole")
    await refused(
        app, written(tmp_path, "".join(lines[:-1]) + lines[-1][:5]), Corrupt, "is damaged"
    )
    without_one = "".join([*lines[:1], *lines[2:]])
    await refused(app, written(tmp_path, without_one), Corrupt, "lines are missing")


DAMAGES: dict[str, tuple[Any, str]] = {
    "unknown parent": (lambda d: d["nodes"][0].update(parent="nod_x"), "not there: 'nod_x'"),
    "a loop": (lambda d: d["nodes"][0].update(parent=d["nodes"][1]["id"]), "is not there"),
    "its own parent": (lambda d: d["nodes"][0].update(parent=d["nodes"][0]["id"]), "is not there"),
    "twice": (lambda d: d["nodes"].append(d["nodes"][0]), "there twice"),
    "no words": (lambda d: d["nodes"][0].update(revisions=[]), "says nothing"),
    "unknown head": (lambda d: d.update(head="nod_x"), "the head names"),
    "unknown ref": (lambda d: d.update(refs=[{"name": "r", "node": "nod_x"}]), "a ref names"),
    "same ref": (lambda d: d.update(refs=[{"name": "r"}, {"name": "r"}]), "the same name"),
    "unknown note": (lambda d: d.update(notes=[{"text": "t", "node": "n"}]), "a note names"),
    "unknown upto": (lambda d: d.update(compactions=[{"upto": "n", "summary": ""}]), "compaction"),
    "unknown end of what was cleared": (
        lambda d: d.update(clearings=[{"upto": "n", "results": {}}]),
        "a clearing names",
    ),
    "unknown result cleared": (
        lambda d: d.update(clearings=[{"upto": d["nodes"][1]["id"], "results": {"cal_x": 0}}]),
        "clears the result of a call that is not there: 'cal_x'",
    ),
    "less than nothing kept": (
        lambda d: d.update(
            clearings=[
                {
                    "upto": d["nodes"][1]["id"],
                    "results": {d["nodes"][1]["results"][0]["call_uid"]: -1},
                }
            ]
        ),
        ">= 0",
    ),
    "unknown deleted": (lambda d: d.update(deleted=["nod_x"]), "deleted subtree"),
    "result of nothing": (
        lambda d: d["nodes"][1]["results"].append({"call_uid": "cal_x"}),
        "answers no call",
    ),
    "result twice": (
        lambda d: d["nodes"][1]["results"].append(d["nodes"][1]["results"][0]),
        "answers no call",
    ),
    "a user that calls": (lambda d: d["nodes"][1].update(role="user"), "calls tools"),
    "a strange role": (lambda d: d["nodes"][0].update(role="root"), "role"),
    "a strange id": (lambda d: d["nodes"][0].update(id="../../x"), "is not an id"),
    "a wrong type": (lambda d: d["nodes"][0].update(revisions=7), "revisions"),
    "a strange part": (
        lambda d: d["nodes"][0]["revisions"][0].update(parts=[{"type": "code"}]),
        "type",
    ),
    "foreign content": (
        lambda d: d["nodes"][0]["revisions"][0].update(
            parts=[{"type": "text", "text": "", "blob": "0" * 64}]
        ),
        "not in the file",
    ),
    "no base64": (
        lambda d: d["nodes"][0]["revisions"][0].update(
            parts=[{"type": "image", "media_type": "image/png", "data": "%%%"}]
        ),
        "not base64",
    ),
    "no time": (lambda d: d["session"].update(created=1e300), "is not a time"),
    "no thinking": (lambda d: d["session"].update(thinking="hard"), "no thinking level"),
    "no version": (lambda d: d.update(version="1"), "no version"),
    "no session": (lambda d: d.pop("session"), "session"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_document_whose_parts_do_not_fit_is_refused(
    app: App, tmp_path: Path, damage: str
) -> None:
    document = await small_document(app)
    harm, says = DAMAGES[damage]
    harm(document)
    await refused(app, written(tmp_path, document), Corrupt, says)


async def test_an_import_that_cannot_be_stored_leaves_nothing(tmp_path: Path) -> None:
    async with open_app(tmp_path / "here") as app:
        file = written(tmp_path, await small_document(app))
    store = Failing()
    async with open_app(tmp_path / "there", store) as app:
        await refused(app, file, weft.WeftError, "full")
        assert await store.ids_with_prefix("ses") == []


class Failing(MemoryStore):
    """A store that takes nothing."""

    async def append(self, *appends: Any) -> None:
        raise weft.WeftError("the disk is full")


# --- versions ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["v1.json", "v1.jsonl"])
async def test_an_export_of_every_version_can_be_imported_for_ever(app: App, name: str) -> None:
    golden = Path(__file__).parent / "golden" / name
    report = await app.sessions.import_session(golden)
    messages = await report.session.messages()
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[0].content == "Which files are here?"
    assert messages[2].content == "a.txt"
    assert report.dropped == {"usage": 2}
