"""Slash commands from Markdown files, and folders that want to act: in the chat and without a
person.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.git_history import git
from tests.support.weft_program import WeftProgram, lines, text
from weft.app import App, open_app
from weft.cli.chat.screens.completion import ChatCompleter, FileCommands, ProjectFileList
from weft.cli.chat.screens.screen import ChoiceQuestion
from weft.config.paths import places
from weft.ids import CallUid
from weft.messages import ToolResult
from weft.project.slash_commands import command_problem
from weft.repo.index_cache import IndexCache
from weft.view import (
    LookupCard,
    NoteBlock,
    PermissionBlock,
    TableBlock,
    ToolCard,
    UserBlock,
)

pytestmark = pytest.mark.anyio

REVIEW = (
    "---\ndescription: Review a file\nargument-hint: FILE\n---\nReview @$1: !`wc -l < $1` lines."
)


def command(project: Path, name: str, body: str) -> None:
    folder = project / ".weft" / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(body)


# --- commands --------------------------------------------------------------------------------


@pytest.mark.process
async def test_a_command_from_a_file_is_sent_after_its_shell_command_was_allowed(app: App) -> None:
    project = Path(app.project_path)
    command(project, "review", REVIEW)
    (project / "a.txt").write_text("1\n2\n")
    async with driven_chat(app, "Reviewed.") as talk:
        talk.screen.typed("/review a.txt")
        question = await talk.screen.choice()
        assert question.picked == -1
        (leave,) = talk.screen.of(PermissionBlock)
        assert (leave.tool, leave.preview) == ("/review", "wc -l < a.txt")
        talk.screen.answer(0)
        await talk.screen.until(lambda: "Reviewed." in talk.screen.words())
        (said,) = talk.screen.of(UserBlock)
        assert (said.text, said.attached) == ("/review a.txt", ("a.txt",))
        session = talk.chat.conversation.session
        assert session is not None
        sent = [each.content for each in await session.messages() if each.role == "user"]
        assert sent[0].startswith("Review @a.txt: 2 lines.")
        assert (await session.metadata()).first_prompt == "/review a.txt"
        talk.screen.blocks.clear()
        await talk.chat.switch(session.id)
        (said,) = talk.screen.of(UserBlock)
        assert (said.text, said.attached) == ("/review a.txt", ("a.txt",)), "as it was shown"


@pytest.mark.process
async def test_a_command_whose_shell_is_refused_sends_nothing_and_comes_back_to_the_line(
    app: App,
) -> None:
    command(Path(app.project_path), "review", "!`touch made`")
    async with driven_chat(app, "Never.") as talk:
        talk.screen.typed("/review a b")
        await talk.screen.choice()
        talk.screen.answer(None)
        await talk.screen.noted("Denied by the user")
        await talk.screen.until(lambda: talk.screen.line == "/review a b")
        assert not (Path(app.project_path) / "made").exists()
    assert await app.sessions.list_saved() == []


async def test_commands_from_files_are_in_the_help_and_near_names_are_found(app: App) -> None:
    command(Path(app.project_path), "review", REVIEW)
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/help")
        await talk.screen.until(lambda: len(talk.screen.of(TableBlock)) == 3)
        assert talk.screen.of(TableBlock)[1] == TableBlock(
            title="Commands from files", rows=(("/review FILE", "Review a file"),)
        )
        talk.screen.typed("/reviw")
        await talk.screen.noted("there is no command /reviw; did you mean /review?")


def test_tab_offers_commands_from_files_but_none_in_place_of_ours(tmp_path: Path) -> None:
    command(tmp_path, "review", REVIEW)
    command(tmp_path, "rename", "not this one")
    completer = ChatCompleter(str(tmp_path), FileCommands(str(tmp_path), tmp_path / "config"))
    offered = completer.items("/re")
    assert [(each.text, each.about) for each in offered if "rev" in each.text] == [
        ("/review", "Review a file")
    ]
    assert [each.text for each in offered].count("/rename") == 1


def test_a_command_that_is_typed_whole_comes_before_one_that_was_used(tmp_path: Path) -> None:
    completer = ChatCompleter(str(tmp_path))
    (model, *_) = completer.items("/model")
    completer.used(model.text)
    assert [each.text for each in completer.items("/mod")][:2] == ["/model", "/mode"]
    assert [each.text for each in completer.items("/mode")][:2] == ["/mode", "/model"]
    assert completer.items("/q")[0].text == "/quit"


def test_without_a_user_a_command_from_a_file_is_expanded_too(weft: WeftProgram) -> None:
    command(weft.project, "greet", "Say hello to $1.")
    model = weft.script(
        {"when": {"user_says": "hello to Ada"}, "steps": [text("Hello, Ada.")]}, "What?"
    )
    done = weft.call("-p", "-m", model, "/greet Ada")
    assert (done.stdout, done.returncode) == ("Hello, Ada.\n", 0)
    message = {"type": "user", "message": {"role": "user", "content": "/greet Ada"}}
    streams = ("--input-format", "stream-json", "--output-format", "stream-json")
    done = weft.run("-p", "-m", model, *streams, stdin=json.dumps(message))
    assert lines(done.stdout)[-1]["result"] == "Hello, Ada."


def test_without_a_user_a_command_that_needs_permission_is_refused_in_one_sentence(
    weft: WeftProgram,
) -> None:
    command(weft.project, "danger", "!`touch made`")
    done = weft.call("-p", "-m", weft.script("Never."), "/danger")
    assert done.returncode == 2
    assert done.stderr == (
        "weft: /danger: `touch made` was not run. "
        "Denied: it needs the user's permission, and there is no one to ask.\n"
    )
    assert not (weft.project / "made").exists()
    assert weft.sessions() == []


# --- trust -----------------------------------------------------------------------------------


def hook(project: Path, line: str = "echo hi > hooked") -> None:
    (project / ".weft").mkdir(exist_ok=True)
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": line}]}]}
    (project / ".weft" / "hooks.json").write_text(json.dumps({"hooks": hooks}))


@pytest.mark.process
@pytest.mark.parametrize(("answer", "runs"), [(1, True), (0, False), (None, False)])
async def test_a_folder_that_wants_to_act_is_asked_about_first_and_acts_only_after_a_yes(
    tmp_path: Path, answer: int | None, runs: bool
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    hook(project)
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with (
        open_app(project, tmp_path / "weft.db", environ=environ) as app,
        driven_chat(app, "Hello.") as talk,
    ):
        question = await talk.screen.choice()
        assert "Do you trust" in question.title
        assert question.picked == -1, "Enter alone trusts nothing"
        (shown,) = talk.screen.of(TableBlock)
        assert ("runs", "echo hi > hooked") in shown.rows
        talk.screen.answer(answer)
        await talk.screen.noted("trusted")
        await talk.say("hi")
    assert (project / "hooked").exists() == runs


@pytest.mark.process
async def test_a_trusted_folder_is_not_asked_about_again_until_it_changes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    hook(project)
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with open_app(project, tmp_path / "weft.db", environ=environ) as app:
        await app.trust()
        async with driven_chat(app, "Hello.") as talk:
            await talk.say("hi")
            assert talk.screen.question is None
            talk.screen.typed("/trust")
            await talk.screen.noted("trusted already")
            talk.screen.typed("/hooks")
            await talk.screen.until(lambda: talk.screen.of(TableBlock))
            assert talk.screen.of(TableBlock)[-1].rows[0][:3] == (
                "UserPromptSubmit",
                "*",
                "echo hi > hooked",
            )
            hook(project, "echo ho > hooked")
            talk.screen.typed("/trust")
            await talk.screen.until(lambda: isinstance(talk.screen.question, ChoiceQuestion))
            assert talk.screen.of(TableBlock)[-1].title == "This folder has changed"
            assert ("changed", ".weft/hooks.json") in talk.screen.of(TableBlock)[-1].rows
            talk.screen.answer(0)
            talk.screen.typed("/trust off")
            await talk.screen.noted("not trusted any more")
            assert not await app.is_trusted()


async def test_a_folder_that_wants_nothing_is_asked_about_only_when_the_user_says_so(
    app: App,
) -> None:
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("hi")
        assert talk.screen.question is None
        talk.screen.typed("/trust me")
        await talk.screen.noted("not 'me'")
        talk.screen.typed("/trust")
        question = await talk.screen.choice()
        assert "Do you trust" in question.title
        assert question.picked == -1, "Enter alone trusts nothing"
        (shown,) = talk.screen.of(TableBlock)
        assert shown.title == "This folder has no hooks and settings"
        assert shown.rows == (("allows", "agents that work isolated"),)
        talk.screen.answer(1)
        await talk.screen.noted("trusted, as it is now")
        assert await app.is_trusted()
        talk.screen.typed("/trust")
        await talk.screen.noted("trusted already")


def test_without_a_user_nothing_is_trusted_and_that_is_said_in_one_line(
    weft: WeftProgram,
) -> None:
    hook(weft.project)
    done = weft.call("-p", "--yolo", "-m", weft.script("Hello."), "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert done.stderr.count("\n") == 1
    assert "this folder is not trusted, so its hooks are ignored" in done.stderr
    assert not (weft.project / "hooked").exists()


# --- unknown commands, and text that begins with a path ----------------------------------------


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("/nope", "there is no command /nope; `weft help slash` lists those there are"),
        ("/reviw a.txt", "there is no command /reviw; did you mean /review?"),
        ("/cost", "/cost works in the chat only; start it with `weft`"),
        ("/compct now", "there is no command /compct; did you mean /compact?"),
        ("/nope\nand more", "there is no command /nope;"),
    ],
)
def test_an_unknown_command_is_a_sentence_and_does_not_reach_the_model(
    weft: WeftProgram, said: str, told: str
) -> None:
    command(weft.project, "review", "Review $1.")
    done = weft.call("-p", "-m", weft.script("Never."), said)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr.splitlines()[-1]
    assert weft.call("session", "list", "--json").stdout == "[]\n"


def test_a_command_is_one_also_where_a_path_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    assert command_problem("init", (), in_chat=False).startswith("/init works in the chat only")
    assert command_problem("tmp", (), in_chat=False) == ""


@pytest.mark.parametrize(
    "said",
    [
        "/usr/bin/x fails",
        "/tmp is full, what now?",
        "/ is full",
        "//comment style",
        "/* a comment */",
        "/etc/hosts",
        "what does /nope do?",
    ],
)
def test_text_that_begins_with_a_path_goes_to_the_model(weft: WeftProgram, said: str) -> None:
    done = weft.call("-p", "-m", weft.script("Heard."), said)
    assert (done.returncode, done.stdout) == (0, "Heard.\n")


async def test_the_chat_takes_a_path_for_a_path_and_an_unknown_command_for_none(app: App) -> None:
    async with driven_chat(app, "Heard.") as talk:
        await talk.say("/tmp is full")
        assert talk.screen.words() == "Heard."
        talk.screen.typed("/nope")
        await talk.screen.noted("there is no command /nope; /help shows those there are")


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-5-5", "groq:any", "sonnet"])
def test_a_named_model_without_a_key_ends_as_no_key_at_all(weft: WeftProgram, model: str) -> None:
    done = weft.call("-p", "-m", model, "hi")
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("weft: there is no key for ")
    assert "`weft auth login" in line
    assert weft.call("session", "list", "--json").stdout == "[]\n"


def test_a_word_that_is_nearly_a_command_is_never_taken_for_it(weft: WeftProgram) -> None:
    done = weft.call("start")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "weft: there is no command 'start' (did you mean 'stats'?); "
        "`weft -- start` sends it as a prompt\n"
    )
    for words in (("start", "the server"), ("--", "start")):
        assert weft.call("-m", weft.script("Started."), *words).stdout == "Started.\n"


@pytest.fixture
def indexed_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project whose index has a file that is not there, so that one sees where files are from."""
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    project = tmp_path / "p"
    project.mkdir()
    (project / "seen.py").write_text("")
    folder = places({"WEFT_HOME": str(tmp_path / "home")}).index_of(str(project))
    cache = IndexCache(folder / "cache.db", writes=True)
    cache.write_listing("deep/indexed.py\0bad\x1bname\0", {})
    cache.close()
    return str(project)


def offered(completer: ChatCompleter, before: str) -> list[str]:
    return [item.text for item in completer.items(before)]


def test_files_of_an_indexed_project_come_from_its_index(indexed_project: str) -> None:
    files = ProjectFileList(indexed_project, lambda: True)
    completer = ChatCompleter(indexed_project, files=files)
    assert completer.items("@see") == []
    assert offered(completer, "@dpindx") == ["@deep/indexed.py "]
    assert completer.items("@bad") == []


def test_an_absolute_path_offers_files_of_the_project_only_where_it_leads_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passes.py").write_text("1\n")
    completer = ChatCompleter(str(tmp_path), files=ProjectFileList(str(tmp_path)))
    assert completer.items("@/etc/pas") == []
    assert offered(completer, f"@{tmp_path}/etc/pas") == ["@etc/passes.py "]
    assert offered(completer, "@etc/pas") == ["@etc/passes.py "]


def test_a_path_with_a_space_at_its_end_is_shown_with_it(tmp_path: Path) -> None:
    (tmp_path / " a.txt").write_text("1\n")
    completer = ChatCompleter(str(tmp_path), files=ProjectFileList(str(tmp_path)))
    assert [item.shown for item in completer.items("@a.t")] == ['" a.txt"']


def test_an_index_is_not_asked_for_files_where_the_setting_is_off(indexed_project: str) -> None:
    completer = ChatCompleter(
        indexed_project, files=ProjectFileList(indexed_project, lambda: False)
    )
    assert offered(completer, "@see") == ["@seen.py "]
    assert completer.items("@dpindx") == []


@pytest.mark.process
def test_files_of_the_conversation_come_first_and_then_those_that_were_changed(
    tmp_path: Path,
) -> None:
    for name in ("cart.py", "cart_a.py", "cart_changed.py", "cart_read.py", "cart_said.py"):
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "x")
    (tmp_path / "cart_changed.py").write_text("another text\n")
    completer = ChatCompleter(str(tmp_path))
    result = ToolResult(call_uid=CallUid("c"), text="1")
    completer.saw([UserBlock(text="look", attached=("cart_said.py", "cart_gone.py"))])
    card = ToolCard(name="read", args={"path": str(tmp_path / "cart_read.py")}, result=result)
    odd = ToolCard(name="odd", args={"path": 7}, result=result)
    completer.saw([LookupCard(cards=(card,)), odd, NoteBlock(text="x")])
    assert offered(completer, "@cart") == [
        "@cart_read.py ",
        "@cart_said.py ",
        "@cart_changed.py ",
        "@cart.py ",
        "@cart_a.py ",
    ]
    assert offered(completer, "@")[:3] == ["@cart_read.py ", "@cart_said.py ", "@cart_changed.py "]
