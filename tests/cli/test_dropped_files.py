"""Pictures that are dropped on the window or pasted, and keys that are not shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tests.support.chat_driver import driven_chat
from tests.support.idle_loop import all_tasks_blocked
from tests.support.image_samples import picture as drawn
from tests.support.memory_terminal import driven_screen
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram
from weft.app import App
from weft.cli.chat.screens.dropped_files import ClipboardPictures, dropped_files, picture_label
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow, LineSubmitted
from weft.errors import UsageError
from weft.project.mentions import mentions_in
from weft.view import UserBlock

pytestmark = pytest.mark.anyio

PASTE = "\x1b[200~{}\x1b[201~"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "my shot.png"
    path.write_bytes(drawn("PNG"))
    return path


@pytest.mark.parametrize(
    "form", ["'{path}'", '"{path}"', "{escaped}", "file://{address}", "{escaped} ", "'{path}'\n"]
)
def test_every_way_in_which_terminals_paste_a_dropped_file_is_understood(
    picture: Path, form: str
) -> None:
    escaped, address = str(picture).replace(" ", "\\ "), str(picture).replace(" ", "%20")
    text = form.format(path=picture, escaped=escaped, address=address)
    assert dropped_files(text) == [os.path.realpath(picture)]


def test_the_label_of_a_long_name_has_both_ends() -> None:
    assert picture_label("/a/short.pdf") == "[PDF short.pdf]"
    label = picture_label("/a/my shot of the failing window.png")
    assert label == "[Image my shot of th…window.png]"


def test_several_files_may_be_dropped_at_once(picture: Path) -> None:
    assert len(dropped_files(f"'{picture}' '{picture}'")) == 2


@pytest.mark.parametrize(
    "text",
    ["", "my shot.png", "/nowhere/x.png", "see '/tmp'", "'", "/etc/passwd", "/tmp\n/tmp", "//"],
)
def test_any_other_text_stays_text(text: str) -> None:
    assert dropped_files(text) == []


async def test_a_dropped_picture_is_one_token_and_is_sent_as_a_mention(
    picture: Path, tmp_path: Path
) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type("look at ")
        await driven.type(PASTE.format(f"'{picture}' "))
        await driven.terminal.shows("› look at [Image my shot.png]")
        await driven.type("\x7f")
        await driven.terminal.shows("› look at")
        assert "Image" not in driven.terminal.text, "deleted as one"
        await driven.type(PASTE.format(f"'{picture}'"))
        await driven.type(" please\r")
        (line,) = [each for each in driven.sent() if isinstance(each, LineSubmitted)]
        real = os.path.realpath(picture)
        assert line.text == f'look at @"{real}" please'
        assert line.picked == (real,)
        assert line.typed == "look at [Image my shot.png] please"


async def test_a_picture_that_is_dropped_behind_a_word_is_sent_all_the_same(
    picture: Path, tmp_path: Path
) -> None:
    """In a text, `a@b` is no mention; a token in the input always is one."""
    real = os.path.realpath(picture)
    async with driven_screen(tmp_path) as driven:
        await driven.type("look")
        await driven.type(PASTE.format(f"'{picture}'"))
        await driven.type(PASTE.format(f"'{picture}'"))
        await driven.terminal.shows("› look[Image my shot.png][Image my shot.png]")
        await driven.type("now\r")
        (line,) = [each for each in driven.sent() if isinstance(each, LineSubmitted)]
    assert line.text == f'look @"{real}" @"{real}"now'
    assert mentions_in(line.text) == (real,)


async def test_a_picture_that_was_dropped_is_sent_without_a_question(
    app: App, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    path = outside / "shot.png"
    path.write_bytes(drawn("PNG"))
    async with driven_chat(app, "Nice.", "Nice.") as talk:
        real = os.path.realpath(path)
        typed = "look at [Image shot.png]"
        talk.screen.typed(LineSubmitted(f'look at @"{real}"', picked=(real,), typed=typed))
        await talk.screen.until(lambda: "Nice." in talk.screen.words())
        (said,) = talk.screen.of(UserBlock)
        assert (said.text, said.attached) == ("look at [Image shot.png]", ())
        session = talk.chat.conversation.session
        assert session is not None
        talk.screen.blocks.clear()
        await talk.chat.switch(session.id)
        (said,) = talk.screen.of(UserBlock)
        assert (said.text, said.attached) == ("look at [Image shot.png]", ())
        assert real in (await session.messages())[0].content, "the model knows where it is"
        # The same path, typed: that is asked about as ever once it was not picked.
        other = outside / "other.png"
        other.write_bytes(drawn("PNG"))
        talk.screen.typed(f'and @"{other}"')
        question = await talk.screen.choice()
        assert "Allow reading" in question.title
        talk.screen.answer(1)


def program(folder: Path, name: str, body: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {"PATH": str(folder), "DISPLAY": ":0"}


@pytest.mark.process
def test_the_picture_in_the_clipboard_is_a_file_until_the_end(
    picture: Path, tmp_path: Path
) -> None:
    environ = program(tmp_path / "bin", "xclip", f"/bin/cat '{picture}'")
    pictures = ClipboardPictures(environ)
    path = Path(pictures.take())
    assert path.read_bytes() == picture.read_bytes()
    assert path.parent.stat().st_mode & 0o077 == 0
    pictures.close()
    assert not path.exists()


@pytest.mark.process
@pytest.mark.parametrize(
    ("body", "said"),
    [("echo text", "no picture in the clipboard"), ("exit 1", "no picture in the clipboard")],
)
def test_a_clipboard_without_a_picture_says_so(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ClipboardPictures(program(tmp_path / "bin", "xclip", body)).take()


@pytest.mark.parametrize(
    ("environ", "said"),
    [({}, "no clipboard here"), ({"DISPLAY": ":0", "PATH": "/nowhere"}, "install xclip")],
)
def test_a_machine_that_cannot_paste_says_what_to_do(environ: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ClipboardPictures(environ).take()


@pytest.fixture
def terminal(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    window = TmuxTerminal(weft, tmp_path)
    yield window
    window.close()


@needs_tmux
@pytest.mark.process
def test_ctrl_v_takes_the_picture_from_the_clipboard(
    weft: WeftProgram, terminal: TmuxTerminal, picture: Path, tmp_path: Path
) -> None:
    environ = program(tmp_path / "bin", "xclip", f"/bin/cat '{picture}'")
    path = f"{environ['PATH']}:{os.environ['PATH']}"
    terminal.start("-m", weft.script("A shot."), PATH=path, DISPLAY=":0")
    terminal.wait_for("asks first")
    terminal.keys("C-v")
    terminal.wait_for("› [Image #1]")
    terminal.type(" what is it?")
    terminal.keys("Enter")
    screen = terminal.wait_for("A shot.")
    assert "Allow reading" not in screen
    assert "› [Image #1] what is it?" in screen
    assert "pasted-1" not in screen
    terminal.keys("Up")
    terminal.wait_for("\n› [Image #1] what is it?")
    terminal.keys("C-c", "C-c", "C-c")
    terminal.exit_code()
    terminal.again("-c", "-m", weft.script("Again."))
    screen = terminal.wait_for("A shot.", "asks first")
    assert "› [Image #1] what is it?" in screen
    assert "pasted-1" not in screen


async def test_a_key_is_not_shown_while_it_is_pasted(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven, anyio.create_task_group() as group:
        given: list[str | None] = []

        async def ask() -> None:
            given.append(await driven.screen.ask_line("Paste the key:", is_secret=True))

        group.start_soon(ask)
        await all_tasks_blocked()
        await driven.type(PASTE.format("sk-secret-123"))
        await driven.terminal.shows("Paste the key:", "•" * 13)
        assert "secret" not in driven.terminal.written
        await driven.type("\r")
        assert given == ["sk-secret-123"]


async def test_a_key_that_is_pasted_into_the_choice_before_is_the_key(tmp_path: Path) -> None:
    """Who reads "paste an API key" pastes it at once; in the input line it would be a message."""
    rows = (ChoiceRow("Paste an API key"), ChoiceRow("Use another"))
    question = ChoiceQuestion(title="What should answer?", rows=rows, paste_row=0)
    async with driven_screen(tmp_path) as driven, anyio.create_task_group() as group:
        given: list[int | str | None] = []

        async def ask() -> None:
            given.append(await driven.screen.choose(question))
            given.append(await driven.screen.ask_line("Paste the key:", is_secret=True))
            given.append(await driven.screen.ask_line("Again:", is_secret=True))

        group.start_soon(ask)
        await all_tasks_blocked()
        await driven.type(PASTE.format("sk-secret-123"))
        await driven.terminal.shows("Paste the key:", "•" * 13)
        assert "secret" not in driven.terminal.written
        await driven.type("\r")
        await driven.terminal.shows("Again:")
        await driven.type("\r")
        assert given == [0, "sk-secret-123", ""]


@needs_tmux
@pytest.mark.process
def test_a_key_is_not_echoed_in_a_plain_chat(weft: WeftProgram, terminal: TmuxTerminal) -> None:
    terminal.start("--plain", "-m", weft.script("Hello."))
    terminal.wait_for("You:")
    terminal.type("/login anthropic")
    terminal.keys("Enter")
    terminal.wait_for("Paste the key")
    terminal.type("sk-ant-" + "x" * 40)
    terminal.keys("Enter")
    screen = terminal.wait_for("saved the key")
    assert "sk-ant" not in screen
    terminal.type("hello there")
    terminal.wait_for("hello there")
