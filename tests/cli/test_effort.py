"""How hard a model thinks, from the command line: behind its name, by an option, by a setting."""

from __future__ import annotations

import json

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import WeftProgram
from weft.app import App
from weft.view import NoteBlock, TableBlock


def newest(weft: WeftProgram) -> tuple[str, str]:
    """Model and level of the newest session, as it is exported."""
    [row, *_] = json.loads(weft.call("session", "list", "--json").stdout)
    exported = weft.call("session", "export", row["id"], "-f", "json")
    about = json.loads(exported.stdout)["session"]
    return about["model"], about.get("thinking", "")


@pytest.mark.parametrize(
    ("behind", "options", "level"),
    [
        ("", (), ""),
        (":high", (), "high"),
        (":high", ("--effort", "low"), "low"),
        ("", ("--effort", "xhigh"), "xhigh"),
        (":default", ("--thinking", "off"), "off"),
        (":default", (), ""),
    ],
)
def test_the_effort_stands_behind_the_model_or_is_an_option(
    weft: WeftProgram, behind: str, options: tuple[str, ...], level: str
) -> None:
    model = weft.script("Hello.")
    assert weft.call("-p", "-m", model + behind, *options, "hi").stdout == "Hello.\n"
    assert newest(weft) == (model, level)


def test_a_session_goes_on_with_the_effort_that_it_is_told(weft: WeftProgram) -> None:
    model, other = weft.script("One."), weft.script("Two.", "Two.")
    assert weft.run("-p", "-m", model, "hi").stdout == "One.\n"
    assert weft.run("-p", "-c", "-m", f"{other}:max", "hi").returncode == 0
    assert newest(weft) == (other, "max")


def test_the_configured_model_has_an_effort_behind_it_too(weft: WeftProgram) -> None:
    model = weft.script("Hello.")
    assert weft.call("-p", "--set", f"model.default={model}:low", "hi").stdout == "Hello.\n"
    assert newest(weft) == (model, "low")


def test_the_configured_effort_is_that_of_new_sessions(weft: WeftProgram) -> None:
    model = weft.script("Hello.")
    effort = ("--set", "model.effort=high")
    assert weft.call("-p", *effort, "-m", model, "hi").stdout == "Hello.\n"
    assert newest(weft) == (model, "high")
    assert weft.call("-p", *effort, "-m", f"{model}:off", "hi").stdout == "Hello.\n"
    assert newest(weft) == (model, "off")
    refused = weft.call("-p", "--set", "model.effort=wild", "-m", model, "hi")
    assert refused.returncode == 2
    assert "model.effort" in refused.stderr
    assert "it takes one of default, off, minimal, low" in refused.stderr


def levelled(weft: WeftProgram, *levels: str, **known: object) -> str:
    """A model that has these thinking levels."""
    info = {"provider": "scripted", "name": "m", "thinks": bool(levels), "levels": levels, **known}
    return weft.script("Hello.", "Hello.", info=info)


@pytest.mark.parametrize(
    ("levels", "options", "said"),
    [
        (("low", "high"), ("--effort", "low"), ""),
        (("low", "high"), ("--effort", "off"), "cannot be switched off: it thinks at low"),
        (("low", "high"), ("--set", "model.effort=max"), "has no level max: it thinks at high"),
        ((), ("--effort", "high"), "has no thinking levels"),
        ((), ("--set", "model.effort=high"), ""),
    ],
)
def test_a_run_says_on_standard_error_which_level_is_used(
    weft: WeftProgram, levels: tuple[str, ...], options: tuple[str, ...], said: str
) -> None:
    done = weft.call("-p", "-m", levelled(weft, *levels), *options, "hi")
    assert done.stdout == "Hello.\n"
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
    again = weft.call("-p", "-c", "hi")
    assert (again.stdout, again.stderr) == ("Hello.\n", ""), "it was said"


# --- in the chat -----------------------------------------------------------------------------

INFO = {"provider": "scripted", "name": "m", "thinks": True, "levels": ["low", "high"]}


@pytest.mark.anyio
async def test_the_chat_offers_the_levels_that_the_model_has(app: App) -> None:
    info = {**INFO, "default_level": "high"}
    async with driven_chat(app, "Hello.", info=info) as talk:
        talk.screen.typed("/thinking")
        question = await talk.screen.choice()
        assert question.title == "Thinking level? (now default)"
        assert [row.label for row in question.rows] == ["default", "low", "high"]
        assert question.rows[0].detail == "the vendor's own: high"
        talk.screen.answer(1)
        await talk.screen.noted("effort: low")
        await talk.say("hi")
        talk.screen.typed("/effort")
        question = await talk.screen.choice()
        assert question.title == "Thinking level? (now low)"
        talk.screen.answer(0)
        await talk.screen.until(lambda: talk.screen.live.effort == "default")


@pytest.mark.anyio
async def test_the_chat_of_a_model_without_levels_offers_none(app: App) -> None:
    async with driven_chat(app, "Hello.", info={**INFO, "thinks": False, "levels": []}) as talk:
        talk.screen.typed("/effort")
        await talk.screen.noted("has no thinking levels; /model picks another one")


@pytest.mark.anyio
@pytest.mark.parametrize("is_begun", [False, True])
async def test_the_chat_says_once_which_level_is_used(app: App, is_begun: bool) -> None:
    async with driven_chat(app, "Hello.", info=INFO) as talk:
        if is_begun:
            await talk.say("hi")
        talk.screen.typed("/effort off")
        await talk.screen.noted("cannot be switched off: it thinks at low")
        await talk.say("hi")
        talk.screen.typed("/effort minimal")
        await talk.screen.noted("has no level minimal: it thinks at low")
        talk.screen.typed("/context")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
        said = [note.text for note in talk.screen.of(NoteBlock) if "it thinks at" in note.text]
        assert len(said) == 2
        assert talk.screen.live.effort == "minimal"


@pytest.mark.anyio
async def test_a_model_named_with_its_effort_in_the_chat(app: App) -> None:
    async with driven_chat(app, "Hello.", info=INFO) as talk:
        name = talk.screen.live.model
        talk.screen.typed(f"/model {name}:max")
        await talk.screen.noted("has no level max: it thinks at high")
        assert (talk.screen.live.model, talk.screen.live.effort) == (name, "max")
        await talk.say("hi")
        talk.screen.typed(f"/model {name}:low")
        await talk.screen.until(lambda: talk.screen.live.effort == "low")
        assert talk.screen.live.model == name
