"""Architect mode from the chat: the plan is shown, approved, changed or turned down, and its steps
are told.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chat_driver import ChatDriver, driven_chat
from tests.support.weft_program import WeftProgram, call
from weft.app import App
from weft.cli.chat.plan_text import as_text, from_text
from weft.errors import UsageError
from weft.view import NoteBlock, PermissionBlock, PlanBlock

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
STEPS = st.fixed_dictionaries(
    {"action": st.sampled_from(["create", "edit", "delete", "run"])},
    optional={
        "file": WORDS.filter(bool),
        "description": WORDS.filter(bool),
        "details": WORDS.filter(bool),
        "check": WORDS.filter(bool),
        "boundary": st.fixed_dictionaries({"first": st.integers(0, 9), "last": st.integers(0, 9)}),
    },
)


@given(plan=st.fixed_dictionaries({"summary": WORDS, "steps": st.lists(STEPS, max_size=3)}))
def test_a_plan_comes_back_from_the_editor_as_it_went_there(plan: dict[str, Any]) -> None:
    back = from_text(as_text(plan))
    assert {"summary": back["summary"], "steps": back.get("steps", [])} == plan


def test_long_texts_keep_their_lines_in_the_editor() -> None:
    text = as_text({"summary": "s", "steps": [{"action": "run", "details": "one\n\ttwo\\\nthree"}]})
    assert 'details = """\none\n\\ttwo\\\\\nthree"""' in text
    assert tomllib.loads(text)["steps"][0]["details"] == "one\n\ttwo\\\nthree"


def test_what_is_no_plan_is_said_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"cannot be read.*line 2"):
        from_text('summary = "x"\nsteps = [nonsense]')


# --- in the chat ---------------------------------------------------------------------------


def step(number: int, **more: Any) -> dict[str, Any]:
    return {
        "action": "create",
        "file": f"{number}.txt",
        "description": f"make file {number}",
        "details": f"It holds {number}.",
        **more,
    }


def editor_model(app: App, *answers: Any) -> str:
    script = Path(app.project_path).parent / "editor.json"
    script.write_text(json.dumps({"by": "content", "answers": answers}))
    return f"scripted:{script}"


PLAN = [call("submit", summary="Make files.", steps=[step(1), step(2)])]
WRITE = ([call("write", path="1.txt", content="1\n")], "Wrote it.")


def drawn(talk: ChatDriver) -> list[str]:
    return [note.text for note in talk.screen.of(NoteBlock)]


@pytest.mark.anyio
async def test_a_plan_is_shown_whole_approved_and_its_steps_are_reported(app: App) -> None:
    flags = ("--edit-model", editor_model(app, *WRITE), "--permission-mode", "accept_edits")
    async with driven_chat(app, PLAN, "Done.", flags=flags) as talk:
        assert talk.screen.live.is_architect
        talk.screen.typed("make them")
        question = await talk.screen.choice()
        assert [row.label for row in question.rows] == [
            "Yes",
            "Edit it first",
            "No, and say what to do instead",
        ]
        assert question.picked == -1, "Enter alone approves nothing"
        (shown,) = talk.screen.of(PlanBlock)
        assert [each["details"] for each in shown.plan["steps"]] == ["It holds 1.", "It holds 2."]
        assert not list(Path(app.project_path).iterdir()), "nothing is done before it is approved"
        talk.screen.answer(0)
        await talk.screen.noted("step 2 of 2 done")
        await talk.screen.idle()
        assert (Path(app.project_path) / "1.txt").read_text() == "1\n"
        told = drawn(talk)
        assert told.index("plan approved") < told.index("step 1 of 2 (create 1.txt: make file 1)")


@pytest.mark.anyio
async def test_what_an_approved_plan_names_is_not_asked_about_again(app: App) -> None:
    """The files of its steps, not others."""
    writes = ([call("write", path=name, content="1\n") for name in ("1.txt", "other.txt")], "Did.")
    flags = ("--edit-model", editor_model(app, *writes), "--architect")
    plan = [call("submit", summary="Make it.", steps=[step(1)])]
    async with driven_chat(app, plan, "Done.", flags=flags) as talk:
        talk.screen.typed("make it")
        await talk.screen.pick("Yes")
        question = await talk.screen.choice()
        (asked,) = talk.screen.of(PermissionBlock)
        assert asked.target == "other.txt", question.rule
        assert (Path(app.project_path) / "1.txt").read_text() == "1\n"
        talk.screen.answer(0)
        await talk.screen.noted("step 1 of 1 done")
        await talk.screen.idle()


@pytest.mark.anyio
@pytest.mark.process
async def test_the_checks_of_an_approved_plan_are_not_asked_about_again(app: App) -> None:
    flags = ("--edit-model", editor_model(app, *WRITE), "--architect")
    plan = [call("submit", summary="Make it.", steps=[step(1, check="test -f 1.txt")])]
    async with driven_chat(app, plan, "Done.", flags=flags) as talk:
        talk.screen.typed("make it")
        await talk.screen.pick("Yes")
        await talk.screen.noted("step 1 of 1 done")
        await talk.screen.idle()
        assert talk.screen.of(PermissionBlock) == []


@pytest.mark.anyio
async def test_a_plan_is_changed_in_the_editor_and_asked_about_again(app: App) -> None:
    flags = ("--edit-model", editor_model(app, *WRITE), "--permission-mode", "accept_edits")
    async with driven_chat(app, PLAN, "Done.", flags=flags) as talk:
        talk.screen.typed("make them")
        await talk.screen.pick("Edit it first")
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        written = str(talk.screen.question)
        assert 'description = "make file 2"' in written
        first_only = written[: written.rindex("[[steps]]")]
        talk.screen.answer("summary = ")
        await talk.screen.noted("the plan cannot be read")
        await talk.screen.pick("Keep editing")
        await talk.screen.until(lambda: talk.screen.question == "summary = ")
        talk.screen.answer(first_only)
        await talk.screen.until(lambda: len(talk.screen.of(PlanBlock)) == 2)
        assert len(talk.screen.of(PlanBlock)[-1].plan["steps"]) == 1
        await talk.screen.pick("Yes")
        await talk.screen.noted("step 1 of 1 done")
        await talk.screen.idle()


@pytest.mark.anyio
async def test_a_plan_that_is_turned_down_does_nothing_and_the_reason_is_kept(app: App) -> None:
    async with driven_chat(app, PLAN, "I see.", flags=("--architect",)) as talk:
        talk.screen.typed("make them")
        await talk.screen.pick("No, and say what to do instead")
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer("too many files")
        await talk.screen.noted("plan rejected: too many files")
        await talk.screen.idle()
        assert not list(Path(app.project_path).iterdir())


@pytest.mark.anyio
async def test_dismissing_a_plan_stops_the_turn_and_carries_nothing_out(app: App) -> None:
    async with driven_chat(app, PLAN, "Never.", flags=("--architect", "--yolo")) as talk:
        talk.screen.typed("/mode default")
        await talk.screen.noted("mode: asks first (default)")
        talk.screen.typed("make them")
        await talk.screen.choice()
        talk.screen.answer(None)
        await talk.screen.noted("Stopped")
        await talk.screen.idle()
        assert "plan approved" not in drawn(talk)
        assert not list(Path(app.project_path).iterdir())


@pytest.mark.anyio
async def test_a_plan_that_was_left_waiting_is_asked_about_when_the_session_is_resumed(
    app: App,
) -> None:
    flags = ("--edit-model", editor_model(app, *WRITE), "--permission-mode", "accept_edits")
    async with driven_chat(app, PLAN, "Done.", flags=flags) as talk:
        talk.screen.typed("make them")
        await talk.screen.choice()
        session = talk.chat.conversation.session
        assert session is not None
        talk.screen.typed("/steer hurry up")
        await talk.screen.until(lambda: talk.screen.live.queue)
    await session.stop()
    async with driven_chat(app, PLAN, "Done.") as talk:
        talk.screen.typed(f"/resume {session.id}")
        await talk.screen.pick("Continue it")
        await talk.screen.pick("Yes")
        await talk.screen.noted("step 2 of 2 done")
        await talk.screen.idle()


@pytest.mark.anyio
async def test_a_plan_that_was_dismissed_is_offered_when_the_session_is_resumed(app: App) -> None:
    flags = ("--edit-model", editor_model(app, *WRITE), "--permission-mode", "accept_edits")
    async with driven_chat(app, PLAN, "Done.", flags=flags) as talk:
        talk.screen.typed("make them")
        await talk.screen.choice()
        talk.screen.answer(None)
        await talk.screen.noted("Stopped")
        await talk.screen.idle()
        session = talk.chat.conversation.session
        assert session is not None
    async with driven_chat(app, PLAN, "Done.") as talk:
        talk.screen.typed(f"/resume {session.id}")
        question = await talk.screen.pick("Don't continue")
        assert question.title == "The plan was not finished."
        talk.screen.typed("/todo")
        await talk.screen.noted("no to-do list yet")
        assert talk.screen.question is None, "what nobody goes on with is not asked about"
        talk.screen.typed("/continue")
        await talk.screen.pick("Yes")
        assert len(talk.screen.of(PlanBlock)) == 1
        await talk.screen.noted("step 2 of 2 done")
        await talk.screen.idle()


@pytest.mark.process
@pytest.mark.anyio
async def test_a_plan_that_was_stopped_goes_on_with_the_step_where_it_stood(app: App) -> None:
    editor = editor_model(app, [call("shell", command="echo x >> log")], "Ran it.")
    plan = [
        call(
            "submit",
            summary="Run things.",
            steps=[
                {"action": "run", "description": f"run {number}", "details": "Run it."}
                for number in (1, 2)
            ],
        )
    ]
    async with driven_chat(app, plan, "Done.", flags=("--edit-model", editor)) as talk:
        talk.screen.typed("do it")
        await talk.screen.pick("Yes")
        await talk.screen.pick("Yes")
        await talk.screen.noted("step 2 of 2")
        await talk.screen.choice()
        talk.screen.answer(None)
        await talk.screen.noted("Stopped")
        await talk.screen.idle()
        before = len(drawn(talk))
        talk.screen.typed("/continue")
        await talk.screen.noted("step 2 of 2 done")
        await talk.screen.idle()
        assert not [text for text in drawn(talk)[before:] if text.startswith("step 1")]
        assert (Path(app.project_path) / "log").read_text() == "x\n", "step 1 ran once"


@pytest.mark.anyio
async def test_the_mode_is_switched_on_and_off_and_a_task_can_go_along(app: App) -> None:
    plan = [call("submit", summary="Nothing to do.", steps=[])]
    async with driven_chat(app, plan, "Hello.") as talk:
        talk.screen.typed("/architect look at it")
        await talk.screen.until(lambda: talk.screen.live.is_architect)
        await talk.screen.until(lambda: "Nothing to do." in talk.screen.words())
        await talk.screen.idle()
        session = talk.chat.conversation.session
        assert session is not None
        assert await session.get_mode() == "architect"
        talk.screen.typed("/architect off")
        await talk.screen.noted("architect mode is off")
        assert await session.get_mode() == "normal"
        assert not talk.screen.live.is_architect


def test_without_a_user_a_plan_needs_bypass_and_that_is_said(weft: WeftProgram) -> None:
    model = weft.script(PLAN, "Done.")
    done = weft.call("-p", "--architect", "-m", model, "make them")
    assert done.returncode == 1
    assert "--permission-mode bypass" in done.stderr
    assert not list(weft.project.iterdir())


def test_without_a_user_and_with_bypass_a_plan_is_carried_out(weft: WeftProgram) -> None:
    editor = weft.script(*WRITE)
    planner = weft.script([call("submit", summary="Make it.", steps=[step(1)])], "Done.")
    done = weft.call(
        "-p",
        "--yolo",
        "--verbose",
        "--plan-model",
        planner,
        "--edit-model",
        editor,
        "-m",
        planner,
        "x",
    )
    assert done.returncode == 0
    assert "· step 1: started\n" in done.stderr
    assert "· step 1: passed\n" in done.stderr
    assert (weft.project / "1.txt").read_text() == "1\n"


def test_without_a_user_the_result_of_a_plan_is_text_on_the_output_and_in_the_file(
    weft: WeftProgram,
) -> None:
    planner = weft.script([call("submit", summary="Make it.", steps=[step(1)])], "Done.")
    options = ("--yolo", "--architect", "--edit-model", weft.script(*WRITE), "-m", planner)
    done = weft.run("-p", *options, "-o", "last.txt", "x")
    said = "Make it.\n\n1. ✓ create 1.txt: make file 1 — Wrote it.\n\n1 of 1 steps done.\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert (weft.project / "last.txt").read_text() == said
