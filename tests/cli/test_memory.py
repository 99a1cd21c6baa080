"""`/memory`, a line that begins with `# `, and `weft memory`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import WeftProgram
from weft.app import App
from weft.project.slash_commands import is_note
from weft.view import AnswerBlock, TableBlock, UserBlock


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("# use tabs", True),
        ("#12 is broken", False),
        ("#", False),
        ("# Task\n\nDo this.", False),
        ("a # b", False),
    ],
)
def test_only_one_line_behind_a_hash_and_a_space_is_a_note(line: str, is_one: bool) -> None:
    assert is_note(line) is is_one


@pytest.mark.anyio
async def test_a_line_with_a_hash_is_remembered_where_the_user_says(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("# use tabs")
        question = await talk.screen.choice()
        assert question.title == "Remember “use tabs”?"
        talk.screen.answer(0)
        await talk.screen.noted("remembered for this project: use tabs")
        talk.screen.typed("# answer in German")
        await talk.screen.pick("every project")
        await talk.screen.noted("remembered for every project: answer in German")
        notes = await app.memory.list()
        assert [(each.scope, each.text) for each in notes] == [
            ("user", "answer in German"),
            ("project", "use tabs"),
        ]
        assert talk.screen.of(AnswerBlock) == []


@pytest.mark.anyio
async def test_a_line_with_a_hash_may_be_a_message_or_nothing(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("# a heading")
        await talk.screen.pick("send it as a message")
        await talk.screen.until(lambda: talk.screen.of(AnswerBlock))
        assert [each.text for each in talk.screen.of(UserBlock)] == ["# a heading"]
        await talk.screen.idle()
        talk.screen.typed("# another")
        await talk.screen.choice()
        talk.screen.answer(None)
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "# another"
        assert await app.memory.list() == []


@pytest.mark.anyio
async def test_memory_is_shown_edited_and_forgotten(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/memory")
        await talk.screen.noted("nothing is remembered yet")
        talk.screen.typed("/memory add use tabs")
        assert len((await talk.screen.choice()).rows) == 2
        talk.screen.answer(0)
        await talk.screen.noted("remembered for this project")
        talk.screen.typed("/memory")
        files = await talk.screen.opened_list()
        assert talk.screen.of(TableBlock)[-1].rows == (("this project", "use tabs"),)
        assert [each.label for each in files.rows] == ["This project", "Every project"]
        assert files.rows[0].details[0] == "1 note"
        talk.screen.answer(0)
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        assert "- use tabs\n" in str(talk.screen.question)
        talk.screen.answer("# Mine\n\n- use spaces\n- be brief\n")
        await talk.screen.noted(f"{app.memory.path('project')} is changed")
        talk.screen.typed("/memory forget spaces")
        await talk.screen.noted("forgotten: use spaces")
        talk.screen.typed("/memory forget")
        await talk.screen.pick("be brief")
        await talk.screen.noted("forgotten: be brief")
        assert Path(app.memory.path("project")).read_text() == "# Mine\n\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/memory add", "/memory add needs what is to be remembered"),
        ("/memory use tabs", "/memory knows add TEXT, edit and forget, not 'use'"),
        ("/memory edit everything", "/memory edit takes project or user"),
        ("/memory forget", "nothing is remembered"),
    ],
)
async def test_what_memory_does_not_take_is_said(app: App, typed: str, told: str) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed(typed)
        await talk.screen.noted(told)


def test_the_command_lists_adds_edits_and_forgets(weft: WeftProgram) -> None:
    assert "nothing is remembered here" in weft.call("memory").stderr
    added = weft.call("memory", "add", "use", "tabs")
    note_id, path = added.stdout.split()
    assert Path(path).read_text().endswith("- use tabs\n")
    weft.call("memory", "add", "--user", "answer in German")
    [mine, ours] = json.loads(weft.call("memory", "--json").stdout)
    assert (mine["scope"], mine["text"]) == ("user", "answer in German")
    assert mine["path"] == str(weft.config / "MEMORY.md")
    assert ours == {"id": note_id, "scope": "project", "text": "use tabs", "path": path}
    listed = weft.call("memory").stdout
    assert f"{note_id}  project  use tabs" in listed
    editor = weft.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s\\n" "- from the editor" >> "$1"\n')
    editor.chmod(0o755)
    weft.call("memory", "edit", env={"EDITOR": str(editor)})
    assert "from the editor" in weft.call("memory").stdout
    assert weft.call("memory", "forget", note_id).stdout == "forgotten: use tabs\n"
    again = weft.call("memory", "forget", note_id)
    assert (again.returncode, again.stdout) == (2, "")
    assert "nothing with the id" in again.stderr
