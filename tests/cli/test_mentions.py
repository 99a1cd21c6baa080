"""`@file` at every edge: `-p`, the chat, stream-json, and commands from files behave alike."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.image_samples import picture
from tests.support.stream_json_driver import ASKS, PRINT, SdkDriver, StreamJsonDriver, answer, user
from tests.support.weft_program import WeftProgram, lines
from weft.app import App
from weft.view.blocks import UserBlock

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def command(project: Path, name: str, body: str) -> None:
    folder = project / ".weft" / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(body)


def outside_of(project: Path, content: str = "OUTSIDE") -> Path:
    path = project.parent / "outside.txt"
    path.write_text(content)
    return path


def sent(weft: WeftProgram) -> list[dict[str, Any]]:
    """The parts of the first message of the newest session."""
    newest = weft.sessions()[0]["id"]
    exported = json.loads(weft.call("session", "export", newest, "--format", "json").stdout)
    first = next(node for node in exported["nodes"] if node["role"] == "user")
    parts: list[dict[str, Any]] = first["revisions"][0]["parts"]
    return parts


# --- -p ------------------------------------------------------------------------------------


def test_p_attaches_a_file_and_leaves_the_prompt_as_it_was_typed(weft: WeftProgram) -> None:
    (weft.project / "a b.txt").write_text("CONTENT")
    done = weft.run("-p", "-m", weft.script("Fine."), "Look at", "@a b.txt")
    assert (done.stdout, done.stderr) == ("Fine.\n", "")
    assert sent(weft) == [
        {"type": "text", "text": "Look at @a b.txt"},
        {"type": "file", "name": "a b.txt", "text": "CONTENT"},
    ]


def test_p_attaches_lines_and_says_which_file_is_missing(weft: WeftProgram) -> None:
    (weft.project / "calc.py").write_text("one\ntwo\nthree\n")
    done = weft.call(
        "-p", "-m", weft.script("Fine."), "Explain @calc.py:1-2 and @nofile.py to @bob"
    )
    assert done.stdout == "Fine.\n"
    assert done.stderr == "weft: there is no file 'nofile.py'; nothing of it is attached\n"
    assert sent(weft)[1:] == [{"type": "file", "name": "calc.py (lines 1-2)", "text": "one\ntwo\n"}]


@pytest.mark.parametrize(
    "said", ["/look nofile.py", "/none with @nofile.py", "/tmp/x: see @nofile.py"]
)
def test_p_says_which_file_is_missing_that_a_command_names(weft: WeftProgram, said: str) -> None:
    command(weft.project, "look", "Look at @$1 and @calc.py, @bob")
    command(weft.project, "none", "Look.")
    (weft.project / "calc.py").write_text("one\n")
    done = weft.call("-p", "-m", weft.script("Fine."), said)
    assert done.stdout == "Fine.\n"
    assert done.stderr == "weft: there is no file 'nofile.py'; nothing of it is attached\n"


@pytest.mark.parametrize("said", ["@{}", "What is in @{}?", "/look {}", "/none @{}"])
def test_p_ends_with_one_sentence_that_names_add_dir_for_a_file_outside(
    weft: WeftProgram, said: str
) -> None:
    outside = outside_of(weft.project)
    command(weft.project, "look", "Look at @$1")
    command(weft.project, "none", "Just do it.")
    prompt = said.format(outside)
    refused = weft.call("-p", "-m", weft.script("Never."), prompt)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == (
        f"weft: '{outside}' is outside the project; add its folder with "
        f"--add-dir {outside.parent} if it is to be read\n"
    )
    assert weft.sessions() == []
    added = ("--add-dir", str(outside.parent))
    done = weft.call("-p", *added, "-m", weft.script("Fine."), prompt)
    assert (done.stdout, done.stderr) == ("Fine.\n", "")
    assert {"type": "file", "name": str(outside), "text": "OUTSIDE"} in sent(weft)


@pytest.mark.parametrize("said", ["@link", "/look link"])
def test_p_counts_a_link_that_leads_outside_as_outside(weft: WeftProgram, said: str) -> None:
    outside = outside_of(weft.project)
    (weft.project / "link").symlink_to(outside)
    command(weft.project, "look", "Look at @$1")
    done = weft.call("-p", "-m", weft.script("Never."), said)
    assert done.returncode == 2
    assert f"'{outside}' is outside the project" in done.stderr


@pytest.mark.parametrize("said", ["see @key.txt now", "/look key.txt"])
def test_p_masks_secrets_in_files(weft: WeftProgram, said: str) -> None:
    (weft.project / "key.txt").write_text(f"key = {KEY}")
    command(weft.project, "look", "Look at @$1")
    done = weft.call("-p", "-m", weft.script("Fine."), said)
    assert (done.stdout, done.returncode) == ("Fine.\n", 0)
    assert sent(weft)[1]["text"].startswith("key = [redacted")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("@missing.txt", "there is no file 'missing.txt'"),
        ("see @pipe", "'pipe' is a named pipe, not a regular file"),
        ("see @data", "'data' is neither text nor an image"),
        ("/look pipe", "'pipe' is a named pipe, not a regular file"),
        ("/look data", "'data' is neither text nor an image"),
    ],
)
def test_p_says_in_one_sentence_what_cannot_be_attached(
    weft: WeftProgram, said: str, told: str
) -> None:
    os.mkfifo(weft.project / "pipe")
    (weft.project / "data").write_bytes(b"\0\1\2")
    command(weft.project, "look", "Look at @$1")
    done = weft.call("-p", "-m", weft.script("Never."), said)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"weft: {told}")
    assert done.stderr.count("\n") == 1
    assert weft.sessions() == []


def test_a_command_from_a_file_attaches_what_stands_behind_it_once(weft: WeftProgram) -> None:
    (weft.project / "a.txt").write_text("CONTENT")
    command(weft.project, "look", "Look.")
    weft.call("-p", "-m", weft.script("Fine."), "/look @a.txt")
    assert [part["type"] for part in sent(weft)] == ["text", "file"]


def test_p_takes_an_image_from_anywhere_and_refuses_what_is_none(weft: WeftProgram) -> None:
    (weft.home / "shot").write_bytes(picture())
    (weft.home / "text.png").write_text("no image")
    done = weft.call("-p", "-m", weft.script("Fine."), "-i", str(weft.home / "shot"), "hi")
    assert (done.returncode, done.stderr) == (0, "")
    done = weft.call("-p", "-m", weft.script("Never."), "-i", str(weft.home / "text.png"), "hi")
    assert done.returncode == 2
    assert "text.png' is not an image that models take; those are PNG, JPEG" in done.stderr


def test_what_is_piped_in_names_no_files(weft: WeftProgram) -> None:
    """A log or a diff is data: an `@` in it is not the user's."""
    (weft.project / "a.txt").write_text("CONTENT")
    done = weft.run("-p", "-m", weft.script("Fine."), "explain", stdin="see @a.txt")
    assert done.stdout == "Fine.\n"
    assert sent(weft) == [{"type": "text", "text": "explain\n\nsee @a.txt"}]


# --- stream-json ---------------------------------------------------------------------------


def test_a_message_of_a_program_attaches_files_too(weft: WeftProgram) -> None:
    (weft.project / "a.txt").write_text("CONTENT")
    done = weft.run(*PRINT, "-m", weft.script("Fine."), stdin=user("see @a.txt"))
    assert lines(done.stdout)[-1]["result"] == "Fine."
    assert sent(weft)[1] == {"type": "file", "name": "a.txt", "text": "CONTENT"}


def test_a_file_outside_fails_the_message_of_a_program_and_the_next_one_works(
    weft: WeftProgram,
) -> None:
    outside = outside_of(weft.project)
    said = f"{user(f'@{outside}')}\n{user('hi')}"
    done = weft.run(*PRINT, "-m", weft.script("Fine."), stdin=said)
    refused, fine = [each for each in lines(done.stdout) if each["type"] == "result"]
    assert refused["is_error"]
    assert "--add-dir" in json.dumps(refused)
    assert fine["result"] == "Fine."


@pytest.mark.parametrize("behavior", ["allow", "deny"])
def test_a_program_that_answers_permissions_is_asked_about_a_file_outside(
    weft: WeftProgram, behavior: str
) -> None:
    outside = outside_of(weft.project)
    driver = SdkDriver(weft, *ASKS, "-m", weft.script("Fine."))
    driver.initialize()
    driver.send(user(f"@{outside}"))
    asked = driver.asked("can_use_tool")
    assert asked["request"]["tool_name"] == "Read"
    assert asked["request"]["input"] == {"file_path": str(outside)}
    driver.send(answer(asked, behavior=behavior))
    result: dict[str, Any] = driver.until("result")[-1]
    assert (result.get("result") == "Fine.") == (behavior == "allow")
    assert driver.end() == (0 if behavior == "allow" else 1)
    if behavior == "allow":
        assert sent(weft)[1]["text"] == "OUTSIDE"


def test_a_program_that_hangs_up_instead_of_an_answer_allows_nothing(weft: WeftProgram) -> None:
    outside = outside_of(weft.project)
    driver = StreamJsonDriver(weft, *ASKS, "-m", weft.script("Never."))
    driver.send(user(f"@{outside}"))
    driver.asked("can_use_tool")
    driver.hang_up()
    assert driver.until("result")[-1]["is_error"]


# --- the chat ------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("said", ["see @{}", "/look {}"])
async def test_the_chat_asks_before_it_reads_a_file_outside(app: App, said: str) -> None:
    outside = outside_of(Path(app.project_path))
    command(Path(app.project_path), "look", "Look at @$1")
    async with driven_chat(app, "Fine.") as talk:
        talk.screen.typed(said.format(outside))
        question = await talk.screen.choice()
        assert question.title == f"Allow reading {outside}?"
        assert question.picked == -1, "Enter alone allows nothing"
        talk.screen.answer(0)
        await talk.screen.until(lambda: "Fine." in talk.screen.words())
        (shown,) = talk.screen.of(UserBlock)
        assert shown.attached == (str(outside),)


@pytest.mark.anyio
@pytest.mark.parametrize("said", ["see @{}", "/look {}"])
@pytest.mark.parametrize("no", [1, None])
async def test_a_no_in_the_chat_sends_nothing_and_the_line_comes_back(
    app: App, said: str, no: int | None
) -> None:
    outside = outside_of(Path(app.project_path))
    command(Path(app.project_path), "look", "Look at @$1")
    typed = said.format(outside)
    async with driven_chat(app, "Never.") as talk:
        talk.screen.typed(typed)
        await talk.screen.choice()
        talk.screen.answer(no)
        await talk.screen.noted("was not allowed")
        await talk.screen.until(lambda: talk.screen.line == typed)
    assert await app.sessions.list_saved() == []


@pytest.mark.anyio
async def test_the_path_that_the_chat_asks_about_shows_what_is_unprintable(app: App) -> None:
    hidden = Path(app.project_path).parent / "a\u202etxt.exe"
    hidden.write_text("x")
    async with driven_chat(app, "Never.") as talk:
        talk.screen.typed(f"@{hidden}")
        question = await talk.screen.choice()
        assert "\u202e" not in question.title
        assert "<U+202E>" in question.title
        talk.screen.answer(1)
        await talk.screen.noted("was not allowed")


@pytest.mark.anyio
async def test_the_chat_attaches_files_and_images_of_the_project(app: App) -> None:
    (Path(app.project_path) / "shot").write_bytes(picture())
    async with driven_chat(app, "Fine.") as talk:
        talk.screen.typed("see @shot")
        await talk.screen.until(lambda: "Fine." in talk.screen.words())
        (shown,) = talk.screen.of(UserBlock)
        assert (shown.text, shown.attached) == ("see @shot", ("shot",))


@pytest.mark.anyio
async def test_the_chat_says_which_file_is_missing_and_sends_the_rest(app: App) -> None:
    (Path(app.project_path) / "calc.py").write_text("one\ntwo\nthree\n")
    async with driven_chat(app, "Fine.") as talk:
        talk.screen.typed("compare @calc.py:2-3 with @nofile.py")
        await talk.screen.until(lambda: "Fine." in talk.screen.words())
        (shown,) = talk.screen.of(UserBlock)
        assert shown.attached == ("calc.py (lines 2-3)",)
        await talk.screen.noted("there is no file 'nofile.py'; nothing of it is attached")


@pytest.mark.anyio
async def test_the_chat_says_which_file_is_missing_that_a_command_names(app: App) -> None:
    command(Path(app.project_path), "look", "Look at @$1")
    async with driven_chat(app, "Fine.") as talk:
        talk.screen.typed("/look nofile.py")
        await talk.screen.until(lambda: "Fine." in talk.screen.words())
        await talk.screen.noted("there is no file 'nofile.py'; nothing of it is attached")
