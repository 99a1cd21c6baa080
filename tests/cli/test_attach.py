"""`weft attach`: chats on one session of a server, of which one drives."""

from __future__ import annotations

import ast
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

import weft
from tests.support.chat_driver import RecordingScreen
from tests.support.served_world import ServedWorld, serving
from tests.support.source_code import SRC, python_files
from tests.support.world import World
from weft.cli.attach.attach_command import own_server, split_words
from weft.cli.attach.attached_app import AttachedApp, AttachedHost
from weft.cli.attach.attached_chat import INTERRUPTED, AttachedChat
from weft.cli.chat.client_notes import client_note
from weft.cli.chat.screens.screen import ChatClosed
from weft.cli.parse import parse
from weft.cli.session_options import session_options_of
from weft.errors import NoPendingRequest, UsageError
from weft.events import DriverChanged, PermissionResolved
from weft.ids import RequestId, SessionId
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.server import RecordLock, RemoteApp, ServerRecord

pytestmark = pytest.mark.anyio

REFUSED = {
    "app": {
        "blame",
        "change_setting",
        "decisions",
        "fan",
        "fans",
        "forget_trust",
        "import_from",
        "index",
        "is_trusted",
        "kept_contents",
        "memory",
        "permissions",
        "save_key",
        "trust",
    },
    "host": {
        "agents",
        "fan_runs",
        "instructions",
        "model",
        "port",
        "provider_address",
        "run_as_user",
        "runs_here",
        "skills",
        "stop_child",
    },
}
"""What a chat uses of an application that an attached one refuses with a sentence."""


def test_all_that_the_chat_uses_of_an_application_works_or_is_refused() -> None:
    used: dict[str, set[str]] = {"app": set(), "host": set()}
    for file in python_files():
        if "cli/chat" not in str(file.relative_to(SRC)):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                inner = node.value
                name = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
                if name in ("app", "_app", "host"):
                    used["host" if name == "host" else "app"].add(node.attr)
    made = {
        "app": {*dir(AttachedApp), "project_path", "sessions", "host", "store", "config", "places"}
        | {"is_sandboxed"},
        "host": {*dir(AttachedHost), "on_woken"},
    }
    for of in ("app", "host"):
        assert used[of] - made[of] == REFUSED[of] & used[of]


async def test_what_needs_the_servers_machine_says_so(plain_world: World) -> None:
    async with _served(plain_world) as served, _chat(served) as (chat, screen):
        for line in ("/memory", "/config theme dark"):
            screen.typed(line)
            await screen.noted("server's own machine")
            screen.blocks.clear()
        assert chat.conversation.session is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ("", "")),
        (("http://x:1",), ("http://x:1", "")),
        (("unix:/s", "ses_1"), ("unix:/s", "ses_1")),
        (("Fix", "the", "test"), ("", "Fix the test")),
    ],
)
def test_an_address_and_a_session_are_told_apart(
    words: tuple[str, ...], expected: tuple[str, str]
) -> None:
    assert split_words(words) == expected


def test_two_addresses_are_refused() -> None:
    with pytest.raises(UsageError, match="one address"):
        split_words(("http://x", "http://y"))


def test_the_running_server_is_found(plain_world: World) -> None:
    app = plain_world.open(ScriptedModel([]))
    with pytest.raises(UsageError, match="weft serve --detach"):
        own_server(app)
    locks = []
    for port, project in ((1, "/elsewhere"), (2, app.project_path)):
        locks.append(RecordLock(app.places.servers, str(port)))
        locks[-1].hold(
            ServerRecord(
                pid=1,
                url=f"http://127.0.0.1:{port}",
                project_path=project,
                started=0.0,
                token_file="",
            )
        )
    assert own_server(app) == "http://127.0.0.1:2"
    for lock in locks:
        lock.release()


def test_notes_name_the_client_that_answered_or_drives() -> None:
    session = SessionId("ses_1")
    resolved = PermissionResolved(
        session_id=session, seq=1, request_id=RequestId("req_1"), action="deny", by="cli_1~ann@host"
    )
    note = client_note(resolved, "cli_2~ben@host")
    assert note is not None
    assert note.text == "denied by ann@host"
    assert client_note(resolved, "cli_1~ann@host") is None
    changed = DriverChanged(session_id=session, after_seq=1, client="cli_1~ann@host")
    note = client_note(changed, "cli_2~ben@host")
    assert note is not None
    assert note.text == "ann@host drives this session now; /drive takes over"
    assert client_note(changed, "") is None


async def test_two_chats_and_a_program_share_a_session(plain_world: World) -> None:
    model = ScriptedModel(
        [CallTool(name="write", args={"path": "a.txt", "content": "x"}), "Written.", "Mine."]
    )
    async with (
        _served(plain_world, model) as served,
        weft.connect(served.server.url, served.token) as program,
    ):
        session = await program.sessions.start_session(title="Shared")
        await session.attach("viewer", "program")
        async with (
            _chat(served, session.id) as (first, ann),
            _chat(served, session.id) as (_, ben),
        ):
            await ben.noted("drives this session; you watch. /drive takes over")
            ann.typed("Write it.")
            request = await ann.choice()
            assert (await ben.choice()).title == request.title
            ben.typed("Me too.")
            await ben.noted("only watches")
            assert ben.line == "Me too."
            ben.answer(0)
            assert "allowed by" in await ann.noted("allowed by")
            await ann.until(lambda: ann.words() == "Written.")
            await ben.until(lambda: ben.words() == "Written.")
            await ann.until(lambda: ann.question is None)
            with pytest.raises(NoPendingRequest):
                await session.respond_to_permission("allow_once", request_id="req_none")
            ben.typed("/drive")
            await ben.noted("you drive this session now")
            await ann.noted("drives this session now; /drive takes over")
            await ben.idle()
            ben.typed("Go on.")
            await ann.until(lambda: ann.words() == "Written.Mine.")
            assert first.conversation.session is not None
        # Leaving leaves it running.
        assert [each.id for each in await program.sessions.list_active()] == [session.id]
    assert plain_world.read("a.txt") == "x"


async def test_a_chat_that_watches_and_cannot_stop_the_turn_asks_again(plain_world: World) -> None:
    """Esc at a question is refused: the question must not be gone for this window."""
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    async with _served(plain_world, ScriptedModel([write, "Written."])) as served:
        session = await served.app.sessions.start_session(title="Shared")
        async with (
            _chat(served, session.id) as (_, ann),
            _chat(served, session.id) as (_, ben),
        ):
            ann.typed("Write it.")
            asked = await ben.choice()
            ben.answer(None)
            await ben.noted("only watches")
            assert (await ben.choice()).title == asked.title
            assert ben.notices[-1] == ""
            ben.answer(0)
            await ann.until(lambda: ann.words() == "Written.")
    assert plain_world.read("a.txt") == "x"


async def test_a_chat_goes_on_when_the_server_was_started_again(shared_world: World) -> None:
    model = ScriptedModel([(SayText(text="one two "), Stall(), SayText(text="three"))])
    async with anyio.create_task_group() as group:
        port = 0
        async with _served(shared_world, model) as served:
            port = served.port
            remote, chat, screen = _made(served)
            group.start_soon(chat.run)
            screen.typed("Go.")
            await screen.until(lambda: screen.live.text == "one two ")
        await screen.until(lambda: any("is lost" in each for each in screen.notices))
        async with _served(shared_world, ScriptedModel(["All."]), port=port) as served:
            await screen.noted(INTERRUPTED)
            screen.typed("")
            await screen.until(lambda: "All." in screen.words())
            await screen.idle()
            screen.typed(ChatClosed())
            await chat.leave()
            await remote.aclose()


@pytest.mark.parametrize("answers", [True, False])
async def test_a_question_that_was_open_when_the_server_went_is_put_again(
    shared_world: World, answers: bool
) -> None:
    """Also where the user answered it while nobody was there to take the answer."""
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    async with anyio.create_task_group() as group:
        async with _served(shared_world, ScriptedModel([write])) as served:
            port = served.port
            remote, chat, screen = _made(served)
            group.start_soon(chat.run)
            screen.typed("Write it.")
            asked = await screen.choice()
        await screen.until(lambda: any("is lost" in each for each in screen.notices))
        if answers:
            screen.answer(0)
            await screen.noted("cannot be reached")
        async with _served(shared_world, ScriptedModel(["Written."]), port=port):
            await screen.noted(INTERRUPTED)
            if not answers:
                await screen.until(lambda: screen.question is None)
            screen.typed("")
            assert (await screen.choice()).title == asked.title
            screen.answer(0)
            await screen.until(lambda: screen.words() == "Written.")
            await screen.idle()
            screen.typed(ChatClosed())
            await chat.leave()
            await remote.aclose()
    assert shared_world.read("a.txt") == "x"


async def test_commands_of_a_conversation_work_on_a_server(plain_world: World) -> None:
    model = ScriptedModel(["One.", "Two.", "Three."])
    async with _served(plain_world, model) as served, _chat(served) as (chat, screen):
        for said, answer in (("First.", "One."), ("Second.", "Two.")):
            screen.typed(said)
            await screen.until(partial(_has_said, screen, answer))
            await screen.idle()
        session = chat.conversation.session
        assert session is not None
        screen.typed("/rename Far")
        screen.typed("/rewind")
        rows = [row.label for row in (await screen.opened_list()).rows]
        assert rows == ["First.", "Second.", "you are here"]
        screen.answer(1)
        await screen.pick("Conversation")
        await screen.noted("Rewound")
        assert screen.line == "Second."
        screen.typed("/effort low")
        screen.typed("/mode plan")
        await screen.until(lambda: screen.live.mode == "plan")
        screen.typed("/context")
        await screen.noted("process that has the session")
        other = await served.app.sessions.start_session(title="Other", model=model)
        await other.send_message("Elsewhere.")
        screen.typed("/resume")
        assert "Other" in str((await screen.opened_list()).rows)
        screen.answer(None)
        screen.typed("/new")
        await screen.noted("a new conversation")
        assert session.id in [each.id for each in await served.app.sessions.list_active()]


@asynccontextmanager
async def _served(
    world: World, *models: ScriptedModel, port: int = 0
) -> AsyncGenerator[ServedWorld]:
    async with serving(world, *(models or (ScriptedModel([]),)), port=port) as served:
        yield served


def _has_said(screen: RecordingScreen, text: str) -> bool:
    return text in screen.words()


def _made(served: ServedWorld) -> tuple[RemoteApp, AttachedChat, RecordingScreen]:
    remote = weft.connect(served.server.url, served.token)
    app = AttachedApp(remote, served.app, served.app.project_path)
    options = session_options_of(parse([]), headless=False)
    screen = RecordingScreen()
    return remote, AttachedChat(app, screen, options), screen


@asynccontextmanager
async def _chat(
    served: ServedWorld, session: SessionId | None = None
) -> AsyncGenerator[tuple[AttachedChat, RecordingScreen]]:
    remote, chat, screen = _made(served)
    async with remote:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(chat.run, resume=session))
            if session is not None:
                await screen.until(lambda: chat.drives is not None)
            yield chat, screen
            screen.typed(ChatClosed())
        await chat.leave()
