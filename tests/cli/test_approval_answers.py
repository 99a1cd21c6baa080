"""Answers to a request for approval that say more than yes or no, and what the model says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import call
from weft.app import App
from weft.cli.chat.input_edit import editable_input
from weft.cli.chat.screens.screen import ChoiceQuestion
from weft.errors import UsageError
from weft.view import NoteBlock, PermissionBlock, ToolCard, UserBlock

pytestmark = pytest.mark.anyio

WRITES = call("write", path="a.txt", content="one\n")


async def press(talk: ChatDriver, key: str) -> ChoiceQuestion:
    """Press one of the other keys of a question."""
    question = await talk.screen.choice()
    assert key in question.other_keys
    talk.screen.answer(len(question.rows) + question.other_keys.index(key))
    return question


async def test_a_note_goes_with_the_yes_and_is_heard_before_the_next_step(app: App) -> None:
    async with driven_chat(app, [WRITES], "Done.") as talk:
        talk.screen.typed("go")
        question = await press(talk, "tab")
        assert question.hint.startswith("Tab adds a note to yes · e opens it in your editor")
        assert isinstance(await talk.screen.asked(), str)
        talk.screen.answer("then add a test")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        await talk.screen.idle()
        said = [block.text for block in talk.screen.of(UserBlock)]
        assert said == ["go", "then add a test"]
        shown = [type(block) for block in talk.screen.blocks]
        assert shown.index(ToolCard) < len(shown) - 1 - shown[::-1].index(UserBlock)
    assert (Path(app.project_path) / "a.txt").read_text() == "one\n"


async def test_a_note_that_is_dismissed_asks_again_and_allows_nothing(app: App) -> None:
    async with driven_chat(app, [WRITES], "Done.") as talk:
        talk.screen.typed("go")
        await press(talk, "tab")
        await talk.screen.asked()
        talk.screen.answer(None)
        question = await talk.screen.choice()
        assert question.title == "Allow this edit?"
        assert not (Path(app.project_path) / "a.txt").exists()
        await talk.screen.pick("Yes")
        await talk.screen.until(lambda: "Done." in talk.screen.words())


async def test_what_the_user_wrote_in_the_editor_runs_in_place_of_what_was_asked(app: App) -> None:
    async with driven_chat(app, [WRITES], "Done.") as talk:
        talk.screen.typed("go")
        await press(talk, "e")
        assert await talk.screen.asked() == "one\n"
        talk.screen.answer("two\n")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        await talk.screen.idle()
        (card,) = talk.screen.of(ToolCard)
        assert card.args["content"] == "two\n", "the card shows what was done"
    assert (Path(app.project_path) / "a.txt").read_text() == "two\n"


async def test_an_editor_that_changes_nothing_asks_again(app: App) -> None:
    async with driven_chat(app, [WRITES], "Done.") as talk:
        talk.screen.typed("go")
        await press(talk, "e")
        await talk.screen.asked()
        talk.screen.answer("one\n")
        await talk.screen.choice()
        assert not (Path(app.project_path) / "a.txt").exists()
        await talk.screen.pick("Yes")
        await talk.screen.until(lambda: "Done." in talk.screen.words())


async def test_an_edit_that_cannot_be_read_says_so_and_keeps_what_was_written(app: App) -> None:
    edits = call("multi_edit", path="b.txt", edits=[{"old_string": "a", "new_string": "b"}])
    (Path(app.project_path) / "b.txt").write_text("a\n")
    async with driven_chat(app, [call("read", path="b.txt")], [edits], "Done.") as talk:
        talk.screen.typed("go")
        await press(talk, "e")
        assert '"new_string": "b"' in str(await talk.screen.asked())
        talk.screen.answer("{ no")
        assert "not valid JSON" in await talk.screen.noted("JSON")
        await press(talk, "e")
        assert await talk.screen.asked() == "{ no"
        talk.screen.answer(None)
        await talk.screen.pick("Yes")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        assert not [each for each in talk.screen.of(NoteBlock) if each.level == "warning"]


@pytest.mark.process
async def test_the_models_own_reason_stands_below_the_command(app: App) -> None:
    run = call("shell", command="touch made", description="Make the marker")
    async with driven_chat(app, [run], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.choice()
        (preview,) = talk.screen.of(PermissionBlock)
        assert preview.reason.split("\n")[0] == '"Make the marker"'
        assert preview.preview == "touch made"
        await talk.screen.pick("No")
        await talk.screen.asked()
        talk.screen.answer("")
        await talk.screen.until(lambda: "Done." in talk.screen.words())


async def test_the_options_of_a_question_are_described_under_their_rows(app: App) -> None:
    ask = call(
        "ask",
        question="Which database?",
        options=["PostgreSQL", "SQLite"],
        descriptions=["needs a server", "one file"],
    )
    async with driven_chat(app, [ask], "Good.") as talk:
        talk.screen.typed("go")
        question = await talk.screen.choice()
        assert [(row.label, row.detail) for row in question.rows] == [
            ("PostgreSQL", "needs a server"),
            ("SQLite", "one file"),
            ("Something else…", ""),
        ]
        assert question.are_described
        await talk.screen.pick("SQLite")
        await talk.screen.until(lambda: "Good." in talk.screen.words())


@pytest.mark.parametrize(
    ("tool", "args", "text", "suffix", "changed"),
    [
        ("shell", {"command": "ls"}, "ls", ".sh", {"command": "ls\nx"}),
        ("write", {"path": "a.py", "content": "x\n"}, "x\n", ".py", None),
        ("edit", {"path": "a", "old_string": "o", "new_string": "n"}, "n", ".txt", None),
        ("fetch", {"url": "u"}, '{\n  "url": "u"\n}', ".json", {"url": "v"}),
    ],
)
def test_of_an_input_the_part_is_edited_that_matters(
    tool: str, args: dict[str, str], text: str, suffix: str, changed: dict[str, str] | None
) -> None:
    given = editable_input(tool, args)
    assert (given.text, given.suffix) == (text, suffix)
    assert given.changed(text) is None
    if not text.endswith("\n"):
        assert given.changed(f"{text}\n") is None, "editors end a file with a newline"
    if changed is not None:
        written = "ls\nx\n" if tool == "shell" else '{"url": "v"}'
        assert given.changed(written) == changed


@pytest.mark.parametrize("written", ["", "  \n", "[1]", "{"])
def test_what_is_no_input_is_refused(written: str) -> None:
    with pytest.raises(UsageError):
        editable_input("fetch", {"url": "u"}).changed(written)


async def titles(talk: ChatDriver, *answers: int) -> list[str]:
    """The titles of the questions that come up, each answered."""
    found = []
    for answer in answers:
        found.append((await talk.screen.choice()).title)
        talk.screen.answer(answer)
    return found


COMMANDS = [call("shell", command=f"touch {name}") for name in "abc"]


@pytest.mark.process
async def test_several_commands_at_once_are_counted(app: App) -> None:
    read = call("read", path="nothing")
    async with driven_chat(app, [*COMMANDS, read], [COMMANDS[0]], "Done.") as talk:
        talk.screen.typed("go")
        assert await titles(talk, 0, 0, 0, 0) == [
            "Allow this command? (1 of 3)",
            "Allow this command? (2 of 3)",
            "Allow this command? (3 of 3)",
            "Allow this command?",
        ]
        await talk.screen.until(lambda: "Done." in talk.screen.words())


@pytest.mark.process
async def test_an_answer_that_covers_others_leaves_fewer_to_count(app: App) -> None:
    same = [call("shell", command="touch a"), call("shell", command="touch a")]
    async with driven_chat(app, [*same, COMMANDS[1]], "Done.") as talk:
        talk.screen.typed("go")
        assert await titles(talk, 1, 0) == [
            "Allow this command? (1 of 3)",
            "Allow this command? (3 of 3)",
        ]
        await talk.screen.until(lambda: "Done." in talk.screen.words())


@pytest.mark.process
async def test_the_count_begins_anew_after_a_stop(app: App) -> None:
    async with driven_chat(app, COMMANDS, [COMMANDS[0]], "Done.") as talk:
        talk.screen.typed("go")
        assert (await talk.screen.choice()).title.endswith("(1 of 3)")
        talk.screen.answer(None)
        await talk.screen.idle()
        talk.screen.typed("only one")
        assert await titles(talk, 0) == ["Allow this command?"]
        await talk.screen.until(lambda: "Done." in talk.screen.words())


async def test_a_plan_is_carried_out_without_asking_about_each_edit(app: App) -> None:
    answers = ("One file.", [WRITES], "Done.")
    async with driven_chat(app, *answers, flags=("--permission-mode", "plan")) as talk:
        screen = talk.screen
        await talk.say("what would you do?")
        await screen.noted("/plan go carries it out, without asking about each edit")
        screen.typed("/plan go")
        await screen.until(lambda: "Done." in screen.words())
        assert screen.live.mode == "accept_edits"
        assert screen.of(PermissionBlock) == []
        assert [each.text for each in screen.of(UserBlock)][1:] == ["/plan go"]
    assert (Path(app.project_path) / "a.txt").read_text() == "one\n"


async def test_only_a_plan_can_be_carried_out(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/plan go")
        await talk.screen.noted("there is no plan to carry out; /plan TASK makes one")
