"""The chat with a real session and a screen that only remembers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.chat_driver import RecordingScreen, driven_chat
from tests.support.weft_program import call, text
from weft.app import App, open_app
from weft.cli.chat.approval_text import NO_LABEL
from weft.cli.chat.commands.chat_commands import ChatCommands
from weft.cli.chat.screens.screen import (
    ChoiceQuestion,
    InterruptPressed,
    NextMode,
    TakeBack,
)
from weft.project.slash_commands import COMMANDS
from weft.view import NoteBlock, PermissionBlock, QuestionBlock, TableBlock, ToolCard, UserBlock

pytestmark = pytest.mark.anyio


def _has_mode(screen: RecordingScreen, mode: str) -> bool:
    return screen.live.mode == mode


def _has_table(screen: RecordingScreen, title: str) -> bool:
    return any(table.title == title for table in screen.of(TableBlock))


async def test_a_chat_that_says_nothing_leaves_nothing_behind(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/context")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
    assert await app.sessions.list_saved() == []


async def test_what_is_said_and_answered_is_shown(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("hi")
        assert [said.text for said in talk.screen.of(UserBlock)] == ["hi"]
        assert talk.screen.words() == "Hello."


async def test_a_message_that_cannot_be_sent_goes_back_to_the_line(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed("/model nope:x")
        await talk.screen.until(lambda: talk.screen.of(NoteBlock))
        talk.screen.typed("a long and careful message")
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "a long and careful message"
        assert "no provider 'nope'" in talk.screen.of(NoteBlock)[-1].text
    assert await app.sessions.list_saved() == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("chosen", "made", "asked_again"),
    [(0, True, True), (1, True, False)],
    ids=["once", "session"],
)
async def test_permission_is_given_for_as_long_as_was_said(
    app: App, chosen: int, made: bool, asked_again: bool
) -> None:
    """The same command twice in one turn."""
    command = "date +%s%N > made"
    steps = [[call("shell", command=command)], [text("Again."), call("shell", command=command)]]
    async with driven_chat(app, *steps, "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        assert talk.screen.of(PermissionBlock)[0].preview == command
        talk.screen.answer(chosen)
        if asked_again:
            await talk.screen.until(lambda: len(talk.screen.of(PermissionBlock)) == 2)
            await talk.screen.asked()
            talk.screen.answer(2)
            assert await talk.screen.asked() == NO_LABEL
            talk.screen.answer("")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        assert len(talk.screen.of(PermissionBlock)) == (2 if asked_again else 1)
    assert (Path(app.project_path) / "made").exists() == made


@pytest.mark.process
async def test_a_no_with_a_reason_reaches_the_model(app: App) -> None:
    async with driven_chat(app, [call("shell", command="touch made")], "I see.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        talk.screen.answer(2)
        await talk.screen.until(lambda: talk.screen.question == NO_LABEL)
        talk.screen.answer("use the other way")
        await talk.screen.until(lambda: "I see." in talk.screen.words())
        (card,) = talk.screen.of(ToolCard)
        assert "use the other way" in card.result.text
    assert not (Path(app.project_path) / "made").exists()


@pytest.mark.process
async def test_dismissing_a_question_stops_the_turn_and_allows_nothing(app: App) -> None:
    async with driven_chat(app, [call("shell", command="touch made")], "Never.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        talk.screen.answer(None)
        await talk.screen.until(
            lambda: any(note.level == "stopped" for note in talk.screen.of(NoteBlock))
        )
        await talk.screen.idle()
    assert not (Path(app.project_path) / "made").exists()


@pytest.mark.process
async def test_another_clients_answer_takes_the_question_away(app: App) -> None:
    async with driven_chat(app, [call("shell", command="touch made")], "Done.") as talk:
        talk.screen.typed("go")
        await talk.screen.asked()
        session = talk.chat.conversation.session
        assert session is not None
        await session.respond_to_permission("allow_once")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        assert talk.screen.question is None


@pytest.mark.process
async def test_a_rule_that_allows_silently_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    rules = tmp_path / ".config" / "weft" / "config.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[permissions]\nallow = ["shell(echo hi)"]\n')
    calls = [[call("shell", command="echo hi")], [text("Again."), call("shell", command="echo hi")]]
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    opened = open_app(tmp_path / "project", tmp_path / "weft.db", environ=environ)
    async with opened as app, driven_chat(app, *calls, "Done.") as talk:
        await talk.say("go")
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        cards = talk.screen.of(ToolCard)
        assert [card.allowed_by for card in cards] == ["echo hi", ""]


async def test_all_edits_are_allowed_from_here_on(app: App) -> None:
    calls = [[call("write", path=name, content="x\n")] for name in ("a.txt", "b.txt")]
    async with driven_chat(app, *calls, "Done.") as talk:
        talk.screen.typed("go")
        question = await talk.screen.asked()
        assert isinstance(question, ChoiceQuestion)
        assert (question.rule, question.title) == ("Create a.txt ─ 1 line", "Allow this edit?")
        talk.screen.answer(2)
        await talk.screen.until(lambda: "Done." in talk.screen.words())
        assert talk.screen.live.mode == "accept_edits"
        assert len(talk.screen.of(PermissionBlock)) == 1


async def test_the_models_question_is_put_and_answered(app: App) -> None:
    ask = call("ask", question="Which colour?", options=["red", "blue"])
    async with driven_chat(app, [ask], "Blue it is.") as talk:
        talk.screen.typed("paint it")
        question = await talk.screen.asked()
        assert isinstance(question, ChoiceQuestion)
        assert [row.label for row in question.rows] == ["red", "blue", "Something else…"]
        talk.screen.answer(1)
        await talk.screen.until(lambda: "Blue it is." in talk.screen.words())
        assert talk.screen.of(QuestionBlock)[-1] == QuestionBlock(
            text="Which colour?", answer="blue"
        )
        assert [said.text for said in talk.screen.of(UserBlock)] == ["paint it"]
        assert talk.screen.of(ToolCard) == []


async def test_an_answer_of_ones_own_can_be_left_for_the_options_again(app: App) -> None:
    ask = call("ask", question="Which colour?", options=["red", "blue"])
    async with driven_chat(app, [ask], "Red.") as talk:
        talk.screen.typed("paint it")
        await talk.screen.pick("Something else…")
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer(None)
        await talk.screen.pick("red")
        await talk.screen.until(lambda: "Red." in talk.screen.words())


async def test_a_question_that_is_stopped_keeps_its_words(app: App) -> None:
    async with driven_chat(app, [call("ask", question="Which colour?")], "Never.") as talk:
        talk.screen.typed("paint it")
        await talk.screen.asked()
        talk.screen.answer(None)
        await talk.screen.noted("Stopped")
        assert talk.screen.of(QuestionBlock) == [QuestionBlock(text="Which colour?")]


async def test_esc_stops_the_turn_and_what_waited_goes_back_to_the_line(app: App) -> None:
    async with driven_chat(
        app, [text("word " * 10_000, 5)], "After.", "After.", pace_seconds=0.005
    ) as talk:
        talk.screen.typed("go")
        await talk.screen.until(lambda: talk.screen.live.text)
        talk.screen.typed("and also this")
        await talk.screen.until(lambda: talk.screen.live.queue)
        talk.screen.typed(InterruptPressed())
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "and also this"
        assert talk.screen.live.queue == []
        await talk.screen.idle()
        await talk.say("go on")
        assert talk.screen.words().endswith("After.")


@pytest.mark.process
async def test_what_is_said_while_it_works_steers_it(app: App) -> None:
    steps = [[text("Wait."), call("shell", command="sleep 2")]]
    async with driven_chat(app, *steps, "Heard you.", flags=("--yolo",)) as talk:
        talk.screen.typed("start")
        await talk.screen.until(lambda: talk.screen.live.running)
        talk.screen.typed("be careful")
        await talk.screen.until(lambda: talk.screen.live.queue)
        await talk.screen.until(lambda: "Heard you." in talk.screen.words())
        assert [said.text for said in talk.screen.of(UserBlock)] == ["start", "be careful"]


async def test_alt_up_takes_back_what_waits(app: App) -> None:
    async with driven_chat(app, [text("word " * 10_000, 5)], pace_seconds=0.005) as talk:
        talk.screen.typed("go")
        await talk.screen.until(lambda: talk.screen.live.text)
        talk.screen.typed("not yet")
        await talk.screen.until(lambda: talk.screen.live.queue)
        talk.screen.typed(TakeBack())
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "not yet"
        assert talk.screen.live.is_busy, "the turn goes on"


async def test_shift_tab_goes_through_the_modes_before_and_in_a_session(app: App) -> None:
    async with driven_chat(app, [call("write", path="a.txt", content="x")], "Done.") as talk:
        talk.screen.typed(NextMode())
        await talk.screen.until(lambda: talk.screen.live.mode == "accept_edits")
        await talk.say("go")
        assert (Path(app.project_path) / "a.txt").read_text() == "x"
        for mode in ("plan", "default", "accept_edits"):
            talk.screen.typed(NextMode())
            await talk.screen.until(partial(_has_mode, talk.screen, mode))


async def test_a_new_conversation_keeps_the_settings_and_the_old_one_can_be_resumed(
    app: App,
) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        first = talk.chat.conversation.session
        assert first is not None
        talk.screen.typed("/effort high")
        await talk.screen.until(lambda: talk.screen.live.effort == "high")
        talk.screen.typed("/new")
        await talk.screen.until(lambda: talk.chat.conversation.session is None)
        await talk.say("second")
        second = talk.chat.conversation.session
        assert second is not None
        assert second.id != first.id
        assert talk.screen.live.effort == "high"
        talk.screen.typed(f"/resume {first.id}")
        await talk.screen.until(lambda: talk.chat.conversation.session is not second)
        await talk.say("third")
        assert talk.screen.words().endswith("Two.")
    assert len(await app.sessions.list_saved()) == 2


async def test_resume_offers_the_other_conversations(app: App) -> None:
    async with driven_chat(app, "One.", "Two.", "Three.") as talk:
        await talk.say("the first one")
        talk.screen.typed("/new")
        await talk.screen.until(lambda: talk.chat.conversation.session is None)
        await talk.say("the second one")
        talk.screen.typed("/resume")
        question = await talk.screen.opened_list()
        assert question.title == "Resume · this folder"
        assert [(row.label, row.details[0], row.is_current) for row in question.rows] == [
            ("the second one", "1 turn", True),
            ("the first one", "1 turn", False),
        ]
        assert question.picked == 0
        talk.screen.answer(1)
        # What was said there is shown again.
        await talk.screen.until(lambda: talk.screen.of(UserBlock)[-1].text == "the first one")


async def test_a_fork_goes_on_beside_the_old_conversation(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        old = talk.chat.conversation.session
        talk.screen.typed("/fork other way")
        await talk.screen.until(lambda: talk.chat.conversation.session is not old)
        await talk.say("second")
        assert talk.screen.words().endswith("Two.")
    titles = {row.title for row in await app.sessions.list_saved()}
    assert "other way" in titles


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/nope", "there is no command /nope"),
        ("/contxt", "did you mean /context?"),
        ("/mode fly", "no mode 'fly'"),
        ("/effort wild", "no thinking level 'wild'"),
        ("/model nonsense", "write provider:model"),
        ("/resume ses_nope", "there is no session 'ses_nope'"),
        ("/fork", "nothing to fork"),
        ("/rename x", "send a message first"),
        ("/export", "nothing to export"),
        ("/compact", "nothing to compact"),
        ("/continue", "nothing to continue"),
    ],
)
async def test_a_command_that_cannot_be_done_says_why(app: App, typed: str, told: str) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed(typed)
        await talk.screen.until(
            lambda: [n for n in talk.screen.of(NoteBlock) if n.level == "error"]
        )
        assert told in talk.screen.of(NoteBlock)[-1].text


async def test_every_command_there_is_does_something(app: App) -> None:
    async with driven_chat(
        app,
        [call("write", path="a.txt", content="x"), call("todo", todos=[{"text": "t"}])],
        "Done.",
        flags=("--yolo",),
    ) as talk:
        await talk.say("go")
        for typed, title in [
            ("/help", "Keys"),
            ("/context", "Context"),
            ("/cost", "Tokens and cost"),
            ("/files", "Files"),
            ("/todo", ""),
        ]:
            talk.screen.typed(typed)
            await talk.screen.until(partial(_has_table, talk.screen, title))
        talk.screen.typed("/export out.pdf")
        await talk.screen.noted("an export is a .md, .html, .json or .jsonl file, not .pdf")
        talk.screen.typed("/export out.md")
        path = Path(app.project_path) / "out.md"
        await talk.screen.until(
            lambda: any(note.text == "written to out.md" for note in talk.screen.of(NoteBlock))
        )
        assert "Done." in path.read_text()
        talk.screen.typed("/export out.md")
        await talk.screen.until(
            lambda: any("already" in note.text for note in talk.screen.of(NoteBlock))
        )


async def test_the_last_answer_is_copied_or_its_last_code_block(app: App) -> None:
    answer = (
        "One:\n\n```sh\nls\n```\n\nTwo:\n\n- in a list\n\n  ```python\n  x = 1\n  y = 2\n  ```\n"
    )
    async with driven_chat(app, "Plain.", answer) as talk:
        talk.screen.typed("/copy")
        await talk.screen.until(
            lambda: any("nothing to copy" in note.text for note in talk.screen.of(NoteBlock))
        )
        await talk.say("go")
        talk.screen.typed("/copy code")
        await talk.screen.until(
            lambda: any("no code block" in note.text for note in talk.screen.of(NoteBlock))
        )
        await talk.say("on")
        talk.screen.typed("/copy")
        await talk.screen.until(lambda: talk.screen.copied == [answer])
        talk.screen.typed("/copy code")
        await talk.screen.until(lambda: talk.screen.copied[1:] == ["x = 1\ny = 2\n"])
        assert "copied 2 lines" in talk.screen.notices


async def test_every_command_in_the_table_is_carried_out(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        commands = ChatCommands(talk.chat)
        for slash in COMMANDS:
            if slash.name != "/quit":  # the chat itself leaves
                assert callable(commands._handler(slash.name))


async def test_a_path_at_the_start_of_a_line_is_no_command(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("/etc/hosts looks odd")
        assert talk.screen.words() == "Hello."


async def test_a_failing_provider_is_reported_and_the_chat_goes_on(app: App) -> None:
    broken = [
        {"do": "error", "error": "RequestRefused", "message": "not like this", "times": 1},
        text("Better."),
    ]
    async with driven_chat(app, broken) as talk:
        await talk.say("hi")
        assert "Not like this" in talk.screen.of(NoteBlock)[-1].text
        await talk.say("again")
        assert talk.screen.words() == "Better."
