"""The blocking API at work: in scripts, in notebooks, in threads, after forks and interrupts."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio.lowlevel
import pytest

import weft
import weft.sync
from weft.errors import SessionNotFound, UsageError
from weft.events import FactBase, NewMessage, TurnFinished
from weft.providers import ModelInfo
from weft.providers.script import CallTool, SayText
from weft.providers.scripted import ScriptedModel


@pytest.fixture
def app(tmp_path: Path) -> Iterator[weft.sync.App]:
    with open_app(tmp_path) as app:
        yield app


def open_app(path: Path) -> weft.sync.App:
    return weft.sync.open(path, "memory", environ={"HOME": str(path)})


def test_a_script_needs_no_loop(app: weft.sync.App) -> None:
    session = app.sessions.start_session(model=ScriptedModel(["hello"]), title="A", tools=[])
    assert session.send_message("hi").text == "hello"
    assert isinstance(session, weft.sync.Session)
    assert [message.content for message in session.messages()] == ["hi", "hello"]
    assert [info.title for info in app.sessions.list_active()] == ["A"]
    found = app.sessions.find_session(session.id)
    assert found is not None
    assert found.id == session.id
    assert app.config.get("session.max_turns") == 100


def test_errors_are_the_same(app: weft.sync.App) -> None:
    with pytest.raises(SessionNotFound):
        app.sessions.get("ses_nobody")
    assert app.sessions.find_session("ses_nobody") is None


def test_a_session_can_be_kept_in_another_store(app: weft.sync.App, tmp_path: Path) -> None:
    store = tmp_path / "other.db"
    model = ScriptedModel(["one", "two"])
    session = app.sessions.start_session(model=model, title="A", tools=[], store=store)
    assert session.send_message("hi").text == "one"
    assert [row.id for row in app.sessions.list_saved()] == [session.id]
    session.stop()
    with pytest.raises(SessionNotFound):
        app.sessions.get(session.id)
    again = app.sessions.start_session(session_id=session.id, store=store)
    assert again.send_message("again").text == "two"
    assert [message.content for message in again.messages()] == ["hi", "one", "again", "two"]


def test_events_are_a_plain_iterator_that_may_be_left(app: weft.sync.App) -> None:
    session = app.sessions.start_session(model=ScriptedModel(["a", "b"]), title="A", tools=[])
    events = session.subscribe(after=0)
    session.send_message("one")
    kinds = []
    for event in events:
        kinds += [type(event).__name__] if isinstance(event, FactBase) else []
        if isinstance(event, TurnFinished):
            break
    assert (kinds[0], kinds[-1]) == ("SessionCreated", "TurnFinished")
    assert events.cursor == len(kinds)
    session.send_message("two")
    assert any(isinstance(event, NewMessage) for event in events)
    events.close()
    stored = [type(event).__name__ for event in session.subscribe(after=0, live=False)]
    assert (stored[0], stored[-1]) == ("SessionCreated", "TurnFinished")
    with pytest.raises(StopIteration):
        next(events)


def test_events_end_with_the_session(app: weft.sync.App) -> None:
    session = app.sessions.start_session(model=ScriptedModel(["a"]), tools=[])
    events = session.subscribe(after=0)
    session.stop()
    assert [type(event).__name__ for event in events][:1] == ["SessionCreated"]


def test_one_question_and_one_run_need_no_app(tmp_path: Path) -> None:
    assert weft.sync.query("?", model=ScriptedModel(["a"])).text == "a"
    stream = weft.sync.stream("?", model=ScriptedModel([SayText(text="abc", chunk=1)]))
    assert [delta.text for delta in stream] == ["a", "b", "c"]
    assert stream.answer.text == "abc"
    result = weft.sync.run("go", model=ScriptedModel(["done"]), cwd=tmp_path, tools=[])
    assert (result.text, result.finish_reason) == ("done", "stop")


def test_an_import_gives_a_blocking_session(app: weft.sync.App, tmp_path: Path) -> None:
    session = app.sessions.start_session(model=ScriptedModel(["hello"]), tools=[])
    session.send_message("hi")
    app.sessions.export_session(session.id, path=tmp_path / "a.json")
    report = app.sessions.import_session(tmp_path / "a.json")
    assert report.session.messages() == session.messages()


@pytest.mark.anyio
async def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    """As a notebook does it: the cell's own loop stands still meanwhile."""
    with open_app(tmp_path) as app:
        session = app.sessions.start_session(model=ScriptedModel(["hello"]), tools=[])
        assert session.send_message("hi").text == "hello"
    await anyio.lowlevel.checkpoint()


def test_threads_share_one_loop(app: weft.sync.App) -> None:
    both = threading.Barrier(8)

    def talk(number: int) -> str:
        info = ModelInfo(provider="scripted", name=f"m{number}")
        model = ScriptedModel([f"answer {number}"], info=info)
        session = app.sessions.start_session(model=model, tools=[])
        both.wait(10)
        return session.send_message("?").text

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(talk, range(8)))
    assert answers == [f"answer {number}" for number in range(8)]
    assert [thread.name for thread in threading.enumerate()].count("weft.sync") == 1


def test_a_tool_may_use_the_blocking_api_itself(app: weft.sync.App) -> None:
    def ask_another() -> str:
        """Ask another model."""
        return weft.sync.query("?", model=ScriptedModel(["deep"])).text

    model = ScriptedModel([CallTool(name="ask_another"), "done"])
    session = app.sessions.start_session(model=model, tools=[ask_another], auto_approve=True)
    reply = session.send_message("go")
    assert [message.content for message in reply.messages if message.role == "tool"] == ["deep"]


def test_a_callback_in_the_loop_is_told_instead_of_hanging(tmp_path: Path) -> None:
    told: list[str] = []

    def on_event(event: object) -> None:
        try:
            weft.sync.query("?", model=ScriptedModel(["never"]))
        except UsageError as error:
            told.append(str(error))

    weft.sync.run("go", model=ScriptedModel(["a"]), cwd=tmp_path, tools=[], on_event=on_event)
    assert "cannot be used in its own loop" in told[0]


def test_what_exits_in_the_loop_does_not_take_the_loop_along() -> None:
    def leave(request: object) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        weft.sync.query("?", model=ScriptedModel([], choose=leave))
    assert weft.sync.query("?", model=ScriptedModel(["still here"])).text == "still here"


# --- other processes ---------------------------------------------------------------------


def script(path: Path, text: str) -> list[str]:
    """Run a script in a process of its own; what it printed, line by line."""
    start = f"""
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs us may ignore it
        import weft.sync
        from weft.providers.script import *
        from weft.providers.scripted import ScriptedModel
        path = {str(path)!r}
        def open_app(store="memory"):
            return weft.sync.open(path, store, environ={{"HOME": path}})
    """
    code = textwrap.dedent(start) + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    return done.stdout.splitlines()


@pytest.mark.process
def test_an_interrupt_ends_the_wait_and_the_turn_goes_on(tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        """
        def choose(request):
            os.kill(os.getpid(), signal.SIGINT)
            return [Stall(), SayText(text="late")]

        model = ScriptedModel([], choose=choose)
        with open_app() as app:
            session = app.sessions.start_session(model=model, tools=[])
            try:
                session.send_message("go")
            except KeyboardInterrupt:
                print(session.get_status())
            print(session.abort().turn_id is not None)
            print(session.get_status())
        """,
    )
    assert printed == ["thinking", "True", "idle"]


@pytest.mark.process
def test_an_interrupted_run_closes_what_it_opened(tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        """
        class Watched(ScriptedModel):
            def stream(self, request):
                import contextlib
                inner = super().stream(request)
                @contextlib.asynccontextmanager
                async def watched():
                    try:
                        async with inner as events:
                            yield events
                    finally:
                        print("closed")
                return watched()

        def choose(request):
            os.kill(os.getpid(), signal.SIGINT)
            return [Stall()]

        try:
            weft.sync.run("go", model=Watched([], choose=choose), cwd=path, tools=[])
        except KeyboardInterrupt:
            print("interrupted")
        print(weft.sync.query("?", model=ScriptedModel(["again"])).text)
        """,
    )
    assert printed == ["closed", "interrupted", "again"]


@pytest.mark.process
def test_an_interrupted_iterator_loses_nothing(tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        """
        import threading
        with open_app() as app:
            session = app.sessions.start_session(model=ScriptedModel(["a"] * 9), tools=[])
            events = session.subscribe()
            for _ in range(3):
                threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    next(events)
                except KeyboardInterrupt:
                    print("interrupted")
            session.send_message("go")
            print(next(type(event).__name__ for event in events if hasattr(event, "seq")))
        """,
    )
    assert printed == ["interrupted"] * 3 + ["NewMessage"]


@pytest.mark.process
def test_a_forked_child_makes_its_own(tmp_path: Path) -> None:
    printed = script(
        tmp_path,
        """
        with open_app() as app:
            session = app.sessions.start_session(model=ScriptedModel(["parent"]), tools=[])
            child = os.fork()
            if child == 0:
                try:
                    session.messages()
                except weft.WeftError as error:
                    print(error)
                with open_app() as own:
                    mine = own.sessions.start_session(model=ScriptedModel(["child"]), tools=[])
                    print(mine.send_message("?").text, flush=True)
                del session, app
                os._exit(0)
            os.waitpid(child, 0)
            print(session.send_message("?").text)
        """,
    )
    assert printed == [
        "this belongs to the process that this one was forked from; open an app of your own",
        "child",
        "parent",
    ]


@pytest.mark.process
def test_a_script_that_closes_nothing_still_ends_and_gives_its_sessions_back(
    tmp_path: Path,
) -> None:
    printed = script(
        tmp_path,
        """
        app = open_app(path + "/weft.db").__enter__()
        session = app.sessions.start_session(model=ScriptedModel(["kept"]), tools=[])
        print(session.id, session.send_message("?").text)
        """,
    )
    session_id, text = printed[0].split()
    assert text == "kept"
    with weft.sync.open(tmp_path, tmp_path / "weft.db", environ={"HOME": str(tmp_path)}) as app:
        assert app.sessions.get(session_id).messages()[1].content == "kept"
