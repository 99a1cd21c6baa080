"""Moving in the conversation from the chat: the tree, going back, names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import call, text
from weft.api.session import Session
from weft.app import App
from weft.cli.chat.screens.list_question import ListAnswer
from weft.cli.chat.screens.screen import ChoiceQuestion, GoBack
from weft.thinking_levels import THINKING_LEVELS
from weft.view import NoteBlock, TableBlock

pytestmark = pytest.mark.anyio

WRITING: tuple[Any, ...] = (
    [call("write", path="a.txt", content="one\n")],
    "Made a.",
    [call("write", path="a.txt", content="two\n"), call("write", path="b.txt", content="b\n")],
    "Made b.",
    "And so on.",
    "And so on.",
)


def session_of(talk: ChatDriver) -> Session:
    session = talk.chat.conversation.session
    assert session is not None
    return session


async def said(talk: ChatDriver) -> list[str]:
    return [
        each.content
        for each in await session_of(talk).messages()
        if each.role in ("user", "assistant")
    ]


def files(app: App) -> dict[str, str]:
    return {path.name: path.read_text() for path in Path(app.project_path).iterdir()}


# --- the tree ------------------------------------------------------------------------------


async def test_the_tree_moves_the_conversation_and_loses_no_line(app: App) -> None:
    async with driven_chat(app, "One.", "Two.", "Other two.") as talk:
        await talk.say("first")
        await talk.say("second")
        talk.screen.typed("/tree")
        question = await talk.screen.opened_list()
        assert [(row.label, row.details[-1]) for row in question.rows] == [
            ("first", ""),
            ("second", "here, main"),
        ]
        assert question.picked == 1
        talk.screen.answer(0)
        await talk.screen.noted("now on branch-1, 2 messages")
        assert await said(talk) == ["first", "One."]
        await talk.say("third")
        talk.screen.typed("/tree")
        question = await talk.screen.opened_list()
        assert question.about == "2 branches"
        assert [(row.margin + row.label, row.details[-1]) for row in question.rows] == [
            ("first", ""),
            ("├─ second", "main"),
            ("└─ third", "here, branch-1"),
        ]
        talk.screen.answer(1)
        await talk.screen.noted("now on main, 4 messages")
        assert await said(talk) == ["first", "One.", "second", "Two."]


@pytest.mark.parametrize("with_files", [False, True])
async def test_files_go_along_with_a_move_only_if_the_user_says_so(
    app: App, with_files: bool
) -> None:
    async with driven_chat(app, *WRITING, flags=("--yolo",)) as talk:
        await talk.say("make a")
        await talk.say("make b")
        talk.screen.typed("/tree")
        await talk.screen.pick("make a")
        question = await talk.screen.choice()
        assert question.title == "Restore files too?"
        assert question.rows[1].detail == "restore 1 file, delete 1 file"
        (shown,) = talk.screen.of(TableBlock)
        assert [row[:2] for row in shown.rows] == [("a.txt", "restore"), ("b.txt", "delete")]
        talk.screen.answer(int(with_files))
        await talk.screen.noted("now on branch-1")
        after = {"a.txt": "one\n"} if with_files else {"a.txt": "two\n", "b.txt": "b\n"}
        assert files(app) == after


async def test_saying_it_differently_goes_to_before_it_with_its_words_in_the_line(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        await talk.say("second")
        talk.screen.typed("/tree")
        await talk.screen.pick("second", key="tab")
        await talk.screen.pick("Edit and resend")
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "second"
        assert await said(talk) == ["first", "One."]


async def test_what_was_learned_on_another_line_is_brought_over(app: App) -> None:
    async with driven_chat(app, "One.", "Two.", "Learned much.", "Learned much.") as talk:
        await talk.say("first")
        await talk.say("second")
        first = (await session_of(talk).messages_with_ids())[1][0]
        await session_of(talk).branch_at(first, "other")
        talk.screen.typed("/tree")
        await talk.screen.pick("second", key="tab")
        await talk.screen.pick("Summarize that branch")
        await talk.screen.noted("added to the conversation")
        history = await session_of(talk).messages()
        assert history[-1].role == "system"
        assert "What was learned" in history[-1].content


async def test_a_branch_is_renamed_and_forgotten_from_the_tree(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        await talk.say("second")
        talk.screen.typed("/branch left")
        await talk.screen.noted("new branch left")
        await talk.say("third")
        talk.screen.typed("/tree")
        await talk.screen.pick("main", key="tab")
        await talk.screen.pick("Rename")
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer("right")
        await talk.screen.noted("is right now")
        talk.screen.typed("/tree")
        await talk.screen.pick("right", key="tab")
        await talk.screen.pick("Delete the branch name")
        await talk.screen.until(lambda: talk.screen.question is None)
        talk.screen.typed("/switch right")
        await talk.screen.noted("no branch 'right'")
        assert [branch.name for branch in await session_of(talk).list_branches()] == ["left"]


# --- going back ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "left", "there"),
    [
        ("Conversation and files", 2, {"a.txt": "one\n"}),
        ("Conversation only", 2, {"a.txt": "two\n", "b.txt": "b\n"}),
        ("Files only", 4, {"a.txt": "one\n"}),
    ],
)
async def test_going_back_takes_what_was_chosen_and_can_be_undone(
    app: App, what: str, left: int, there: dict[str, str]
) -> None:
    async with driven_chat(app, *WRITING, flags=("--yolo",)) as talk:
        await talk.say("make a")
        await talk.say("make b")
        before = len(await said(talk))
        talk.screen.typed(GoBack())
        question = await talk.screen.opened_list()
        assert [(row.label, row.details[1:]) for row in question.rows] == [
            ("make a", ("1 call", "a.txt +1 −0")),
            ("make b", ("2 calls", "a.txt +1 −1, b.txt +1 −0")),
            ("you are here", ()),
        ]
        assert question.picked == 2, "Enter twice changes nothing"
        talk.screen.answer(1)
        choice = await talk.screen.choice()
        assert choice.title == "→ Before “make b” (1 turn back)"
        assert choice.rows[0].detail == "a.txt +1 −1 is restored, b.txt +1 −0 is deleted"
        talk.screen.answer([row.label for row in choice.rows].index(what))
        note = await talk.screen.noted("/undo takes it back")
        assert ("restored a.txt, deleted b.txt" in note) == ("iles" in what)
        assert files(app) == there
        if what == "Files only":
            assert len(await said(talk)) == before
            assert talk.screen.line == ""
        else:
            await talk.screen.until(lambda: talk.screen.line == "make b")
            assert len([each for each in await said(talk) if each]) == left
        talk.screen.typed("/undo")
        await talk.screen.noted("the rewind is undone")
        assert files(app) == {"a.txt": "two\n", "b.txt": "b\n"}
        assert len(await said(talk)) == before


async def test_nothing_goes_back_when_the_question_is_dismissed(app: App) -> None:
    async with driven_chat(app, *WRITING, flags=("--yolo",)) as talk:
        await talk.say("make a")
        await talk.say("make b")
        before = await said(talk)
        talk.screen.typed("/rewind")
        await talk.screen.pick("make a")
        question = await talk.screen.choice()
        assert question.title == "→ Before “make a” (2 turns back)"
        talk.screen.answer(None)
        again = await talk.screen.opened_list()
        assert again.picked == 0, "back in the list, where it was left"
        talk.screen.answer(None)
        talk.screen.typed("/undo rewind")
        await talk.screen.noted("there is no rewind to undo")
        assert await said(talk) == before
        assert files(app) == {"a.txt": "two\n", "b.txt": "b\n"}


async def test_undo_takes_the_last_message_back_where_nothing_was_rewound(app: App) -> None:
    async with driven_chat(app, *WRITING, flags=("--yolo",)) as talk:
        await talk.say("make a")
        await talk.say("make b")
        before = await said(talk)
        for answer in (None, 0):
            talk.screen.typed("/undo")
            question = await talk.screen.choice()
            assert question.title == "→ Before “make b” (1 turn back)"
            talk.screen.answer(answer)
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "make b"
        assert files(app) == {"a.txt": "one\n"}
        talk.screen.typed("/undo")
        await talk.screen.noted("the rewind is undone")
        assert await said(talk) == before
        assert files(app) == {"a.txt": "two\n", "b.txt": "b\n"}


@pytest.mark.parametrize("overwrite", [False, True])
async def test_what_another_program_changed_goes_back_only_when_that_is_said(
    app: App, overwrite: bool
) -> None:
    async with driven_chat(app, *WRITING, flags=("--yolo",)) as talk:
        await talk.say("make a")
        await talk.say("make b")
        (Path(app.project_path) / "b.txt").write_text("mine\n")
        talk.screen.typed("/rewind")
        await talk.screen.pick("make b")
        await talk.screen.pick("Conversation and files")
        question = await talk.screen.choice()
        assert question.title == "1 file changed outside the session since."
        talk.screen.answer(int(overwrite))
        await talk.screen.noted("/undo takes it back")
        assert files(app) == {"a.txt": "one\n", **({} if overwrite else {"b.txt": "mine\n"})}


async def used(talk: ChatDriver) -> int:
    return (await session_of(talk).editor_snapshot()).context_used


async def test_a_checkpoint_is_come_back_to_by_its_name(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        talk.screen.typed("/checkpoint safe")
        await talk.screen.noted("checkpoint 'safe' saved")
        await talk.say("second")
        talk.screen.typed("/rewind safe")
        await talk.screen.pick("Conversation only")
        await talk.screen.noted("Rewound to checkpoint 'safe'; files stay. /undo takes it back.")
        assert await said(talk) == ["first", "One."]
        assert talk.chat.live.context_used == await used(talk)


async def test_a_compaction_is_undone(app: App) -> None:
    answers = [f"Answer {number}. " + "word " * 400 for number in range(8)]
    async with driven_chat(app, *answers) as talk:
        for number in range(6):
            await talk.say(f"question {number}")
        talk.screen.typed("/compact")
        await talk.screen.noted("tokens reduced to")
        short = talk.chat.live.context_used
        assert short == await used(talk)
        talk.screen.typed("/undo")
        await talk.screen.noted("the model sees again what it took")
        assert short < talk.chat.live.context_used == await used(talk)
        assert (await session_of(talk).tree()).summarized_to is None


async def test_why_a_session_was_not_compacted_is_said_once(app: App) -> None:
    async with driven_chat(app, "One.") as talk:
        await talk.say("first")
        talk.screen.typed("/compact")
        await talk.screen.noted("nothing is gained: ")
        talk.screen.typed("/compact")
        await talk.screen.noted("the session was not compacted")
        await talk.screen.noted("there is nothing to compact")
        notes = [note.text for note in talk.screen.of(NoteBlock)]
        assert sum("there is nothing to compact" in note for note in notes) == 1


@pytest.mark.parametrize("command", ["/tree", "/rewind", "/switch"])
async def test_enter_on_a_list_as_it_opens_changes_nothing(app: App, command: str) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        talk.screen.typed("/branch")
        await talk.screen.noted("new branch")
        await talk.say("second")
        before = await said(talk)
        talk.screen.typed(command)
        question = await talk.screen.opened_list()
        assert question.rows[question.picked].is_current
        shown = len(talk.screen.blocks)
        talk.screen.answer(question.picked)
        talk.screen.typed("/todo")
        await talk.screen.noted("no to-do list yet")
        assert await said(talk) == before
        # Only the command that was typed to see that the list is closed, and its note.
        assert len(talk.screen.blocks) == shown + 2


async def test_a_message_is_looked_at_from_the_list_and_a_branch_begun_there(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        await talk.say("second")
        talk.screen.typed("/rewind")
        await talk.screen.pick("second", key="space")
        await talk.screen.until(lambda: getattr(talk.screen.question, "peek", ()))
        question = await talk.screen.opened_list()
        assert [block.text for block in question.peek] == ["second"]  # type: ignore[union-attr]
        talk.screen.answer(ListAnswer(1, "space"))
        await talk.screen.until(lambda: not getattr(talk.screen.question, "peek", True))
        await talk.screen.pick("second")
        await talk.screen.pick("New branch")
        await talk.screen.noted("On the new branch branch-1. /switch goes back.")
        assert talk.screen.line == "second"
        assert await said(talk) == ["first", "One."]


async def test_the_tree_shows_tool_calls_and_names_places(app: App) -> None:
    async with driven_chat(app, *WRITING, flags=("--yolo",)) as talk:
        await talk.say("make a")
        talk.screen.typed("/tree")
        await talk.screen.pick("make a", key="c-t")
        await talk.screen.until(lambda: len(getattr(talk.screen.question, "rows", ())) == 2)
        question = await talk.screen.opened_list()
        assert [row.label for row in question.rows] == ["make a", "Created a.txt"]
        assert question.rows[0].details == ("1 call", "a.txt", "here, main")
        talk.screen.answer(ListAnswer(0, "c-k"))
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer("good")
        await talk.screen.noted("checkpoint 'good' saved")
        question = await talk.screen.opened_list()
        assert question.rows[0].details[-1] == "here, ⚑ good, main"
        talk.screen.answer(ListAnswer(0, "c-b"))
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer("other")
        await talk.screen.noted("now on the new branch other")


# --- names -----------------------------------------------------------------------------------


async def test_a_branch_is_begun_and_switched_between(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("first")
        talk.screen.typed("/branch")
        await talk.screen.noted("new branch branch-1")
        await talk.say("second")
        talk.screen.typed("/switch")
        question = await talk.screen.opened_list()
        assert {row.label: (*row.details, row.is_current) for row in question.rows} == {
            "branch-1": ("4 messages", True),
            "main": ("2 messages", False),
        }
        await talk.screen.pick("main")
        await talk.screen.noted("now on main, 2 messages")
        await talk.screen.noted("What was learned on the branch that you left can come along")
        assert await said(talk) == ["first", "One."]
        talk.screen.typed("/switch main")
        await talk.screen.noted("you are on main already")


async def test_a_pinned_message_is_pinned(app: App) -> None:
    async with driven_chat(app, "One.") as talk:
        await talk.say("keep this in mind")
        talk.screen.typed("/pin")
        await talk.screen.pick("keep this in mind")
        await talk.screen.noted("pinned")
        tree = await session_of(talk).tree()
        assert [each.text for each in tree.messages if each.is_pinned] == ["keep this in mind"]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/tree", "there is nothing to show yet"),
        ("/rewind", "there is nothing to go back to yet"),
        ("/undo", "there is nothing to undo yet"),
        ("/branch", "there is nothing to branch from yet"),
        ("/switch", "there is nothing to switch yet"),
        ("/checkpoint", "there is nothing to mark yet"),
        ("/pin", "there is nothing to pin yet"),
    ],
)
async def test_before_the_first_word_there_is_nothing_to_move_in(
    app: App, typed: str, told: str
) -> None:
    async with driven_chat(app, "Hello.") as talk:
        talk.screen.typed(typed)
        await talk.screen.noted(told)
    assert await app.sessions.list_saved() == []


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/rewind nowhere", "there is no message 'nowhere'"),
        ("/undo everything", "not 'everything'"),
        ("/undo compaction", "there is no compaction to undo"),
        ("/switch", "there is only one branch"),
        ("/switch nowhere", "no branch 'nowhere'; there are main"),
        ("/branch main", "the name 'main' is taken"),
    ],
)
async def test_a_move_that_cannot_be_made_says_why_in_one_sentence(
    app: App, typed: str, told: str
) -> None:
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("hi")
        talk.screen.typed(typed)
        note = await talk.screen.noted(told)
        assert [each.level for each in talk.screen.of(NoteBlock) if each.text == note] == ["error"]


@pytest.mark.process
async def test_a_list_that_is_open_and_a_request_that_comes_up_do_not_take_each_others_answers(
    app: App,
) -> None:
    steps = [text("word " * 200, 5), call("shell", command="touch made")]
    async with driven_chat(app, steps, "Done.", pace_seconds=0.01) as talk:
        talk.screen.typed("go")
        await talk.screen.until(lambda: talk.screen.live.is_busy)
        talk.screen.typed("/effort")
        question = await talk.screen.choice()
        assert question.title == "Thinking level? (now default)"
        await talk.screen.until(lambda: talk.screen.live.requests)
        assert talk.screen.question is question
        talk.screen.answer(THINKING_LEVELS.index("high"))
        await talk.screen.until(
            lambda: (
                isinstance(talk.screen.question, ChoiceQuestion)
                and talk.screen.question.title == "Allow this command?"
            )
        )
        talk.screen.answer(0)
        await talk.screen.until(lambda: talk.screen.live.effort == "high")
        await talk.screen.idle()


async def test_esc_esc_without_messages_is_no_error(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed(GoBack())
        await talk.screen.until(lambda: "nothing to go back to yet" in talk.screen.notices)
        assert talk.screen.blocks == [], "nothing is printed"
