"""The list of models in the chat: order, prices, short names, effort; and `/config`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from tests.support.chat_driver import driven_chat
from weft.api.inspection import ModelInfo
from weft.app import App, open_app
from weft.cli.chat.commands.model_list import PRICE, PROVIDER, STATE, ModelList
from weft.cli.chat.screens.list_question import ListAnswer
from weft.cli.chat.screens.terminal.list_panel import ListPanel
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.view import NoteBlock, TableBlock

pytestmark = pytest.mark.anyio


def known(provider: str, name: str, **fields: object) -> ModelInfo:
    # Fields of the struct.
    return ModelInfo(provider=provider, name=name, **fields)  # type: ignore[arg-type]


MODELS = [
    known("openai", "gpt-6", price_input=2, price_output=10),
    known("anthropic", "opus-5", price_input=5, price_output=25, context_window=1_000_000),
    known(
        "anthropic",
        "sonnet-5",
        price_input=3,
        price_output=15,
        levels=("low", "high"),
        thinks=True,
    ),
    known("anthropic", "sonnet-4"),
    known("groq", "openai/oss", price_input=0.15, price_output=0.6),
]


def listed(**fields: object) -> ModelList:
    given = {
        "current": "anthropic:sonnet-5",
        "effort": "high",
        "recent": ["groq:openai/oss", "gone:x", "anthropic:sonnet-5"],
        "usable": {"anthropic", "groq"},
        "aliases": {"anthropic:opus-5": ("opus",)},
        **fields,
    }
    return ModelList(MODELS, **given)  # type: ignore[arg-type]  # as above


def test_the_current_model_is_first_then_used_ones_then_those_with_a_key() -> None:
    assert listed().names == [
        "anthropic:sonnet-5",
        "groq:openai/oss",
        "anthropic:opus-5",
        "anthropic:sonnet-4",
        "openai:gpt-6",
    ]
    question = listed().question()
    assert question.rows[question.picked].is_current
    assert "no key" not in " ".join(question.rows[0].details)


def test_a_row_says_price_window_short_name_and_effort() -> None:
    current, used, opus, unknown, keyless = listed().rows
    assert (current.details[PRICE], current.details[STATE]) == ("$3 / $15 per 1M", "now")
    assert (current.levels, current.level) == (("default", "low", "high"), "high")
    assert (used.label, used.details[PROVIDER], used.details[PRICE]) == (
        "oss",
        "groq",
        "$0.15 / $0.6",
    )
    assert opus.details[1:3] == ("$5 / $25", "1M")
    assert "opus" in opus.details
    assert unknown.details[PRICE] == "price unknown"
    assert keyless.is_dim
    assert keyless.details == ("openai", "no key: /login openai")


def test_words_mean_the_newest_model_that_has_them_and_a_key() -> None:
    assert listed().newest("sonnet") == "anthropic:sonnet-5"
    assert listed().newest("sonnet-4") == "anthropic:sonnet-4"
    assert listed().newest("gpt") is None


# --- in the chat ---------------------------------------------------------------------------------


@pytest.fixture
async def keyed(tmp_path: Path) -> AsyncIterator[App]:
    """An application with a key for one vendor."""
    (tmp_path / "project").mkdir()
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-ant-x"}
    async with open_app(tmp_path / "project", tmp_path / "weft.db", environ=environ) as opened:
        yield opened


def config_of(app: App) -> Path:
    return app.places.config / "config.toml"


async def test_enter_takes_a_model_for_the_session_with_the_chosen_effort(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        await talk.say("hi")
        talk.screen.typed("/model")
        question = await talk.screen.opened_list()
        names = [row.label for row in question.rows]
        assert question.rows[0].is_current
        assert question.picked == 0
        talk.screen.answer(ListAnswer(names.index("claude-opus-5-5"), level="high"))
        await talk.screen.noted("the model is anthropic:claude-opus-5-5 from the next step on")
        await talk.screen.noted("effort: high")
        assert talk.screen.live.model == "anthropic:claude-opus-5-5"
    assert not config_of(keyed).exists()


async def test_ctrl_d_makes_it_the_default_too(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        talk.screen.typed("/model")
        question = await talk.screen.opened_list()
        names = [row.label for row in question.rows]
        talk.screen.answer(ListAnswer(names.index("claude-opus-5-5"), "c-d", level="low"))
        await talk.screen.noted('model.default = "anthropic:claude-opus-5-5:low"')
    assert config_of(keyed).read_text() == 'model.default = "anthropic:claude-opus-5-5:low"\n'


async def test_esc_and_enter_on_the_current_model_change_nothing(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        for answer in (None, 0):
            talk.screen.blocks.clear()
            talk.screen.typed("/model")
            await talk.screen.opened_list()
            talk.screen.answer(answer)
            talk.screen.typed("/todo")
            await talk.screen.noted("no to-do list yet")
            assert len(talk.screen.of(NoteBlock)) == 1
            assert talk.screen.live.model.startswith("scripted:")


async def test_a_model_without_a_key_says_how_to_get_one(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        talk.screen.typed("/model")
        question = await talk.screen.opened_list()
        dim = next(n for n, row in enumerate(question.rows) if row.details[0] == "openai")
        talk.screen.answer(dim)
        await talk.screen.noted("there is no key for openai; /login openai adds one")


async def test_the_status_line_counts_with_the_window_of_the_model_that_was_switched_to(
    keyed: App,
) -> None:
    async with driven_chat(keyed, "One.") as talk:
        await talk.say("hi")
        assert talk.screen.live.context_used
        talk.screen.typed("/model claude-haiku-4-5")
        await talk.screen.until(lambda: talk.screen.live.model.endswith("haiku-4-5"))
        await talk.screen.until(lambda: talk.screen.live.context_window == 200_000)


async def test_a_switch_by_name_to_a_model_without_a_key_says_so(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        talk.screen.typed("/model openai:gpt-5.5")
        await talk.screen.noted("the model is openai:gpt-5.5 from the next step on")
        await talk.screen.noted("there is no key for openai; /login openai adds one")
        talk.screen.blocks.clear()
        talk.screen.typed("/model opus")
        await talk.screen.noted("the model is anthropic:claude-opus-5-5 from the next step on")
        talk.screen.typed("/todo")
        await talk.screen.noted("no to-do list yet")
        assert not [note for note in talk.screen.of(NoteBlock) if "no key" in note.text]


async def test_an_error_about_a_key_names_the_command_of_the_chat(keyed: App) -> None:
    refused = {"do": "error", "error": "AuthFailed", "message": "invalid key"}
    async with driven_chat(keyed, [refused]) as talk:
        talk.screen.typed("hi")
        note = await talk.screen.noted("Invalid key")
        assert note == "Invalid key; set it in the environment, or save it with `/login`"


async def test_part_of_a_name_takes_the_newest_match_and_says_which(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        talk.screen.typed("/model claude-op")
        await talk.screen.noted("the model is anthropic:claude-opus-5-5 from the next step on")
        talk.screen.typed("/model nonsense")
        await talk.screen.noted("unknown model 'nonsense'")


async def test_config_shows_sets_and_unsets_in_the_chat(keyed: App) -> None:
    async with driven_chat(keyed, "One.") as talk:
        talk.screen.typed("/config theme dark")
        note = await talk.screen.noted('theme = "dark" in ')
        assert "next start" not in note
        assert keyed.config.get("theme") == "dark"
        talk.screen.typed("/config theme")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
        assert ("value", "dark") in talk.screen.of(TableBlock)[0].rows
        talk.screen.typed("/config")
        question = await talk.screen.pick("theme")
        assert any(row.label == "session.max_turns" for row in question.rows)
        await talk.screen.until(lambda: talk.screen.line)
        assert talk.screen.line == "/config theme "
        talk.screen.typed("/config unset theme")
        await talk.screen.noted('theme is back at its default, "auto"')
        assert config_of(keyed).read_text() == ""
        talk.screen.blocks.clear()
        talk.screen.typed("/config unset theme")
        note = await talk.screen.noted("theme is not set in ")
        assert note.endswith('config.toml; it is "auto" (default)')
        for typed, told in (
            ("/config them dark", "did you mean 'theme'?"),
            ("/config theme blue", "theme: it takes one of"),
            ("/config model.default nope:x", "no provider 'nope'"),
            ("/config set", "/config set needs a setting and its value"),
            ("/config unset", "there is no setting ''"),
        ):
            talk.screen.typed(typed)
            await talk.screen.noted(told)
        assert config_of(keyed).read_text() == ""


# --- conversations -------------------------------------------------------------------------------


async def test_conversations_are_looked_into_renamed_and_deleted_from_the_list(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("the first one")
        talk.screen.typed("/new")
        await talk.screen.noted("a new conversation")
        await talk.say("the second one")
        talk.screen.typed("/resume")
        await talk.screen.pick("the first one", key="space")
        await talk.screen.until(lambda: getattr(talk.screen.question, "peek", ()))
        assert "One." in str(talk.screen.question)
        talk.screen.answer(ListAnswer(1, "space"))
        await talk.screen.until(lambda: not getattr(talk.screen.question, "peek", True))
        await talk.screen.pick("the first one", key="c-r")
        await talk.screen.until(lambda: isinstance(talk.screen.question, str))
        talk.screen.answer("Better")
        question = await talk.screen.opened_list()
        assert question.rows[question.picked].label == "Better", "the next key is for the same one"
        await talk.screen.pick("Better", key="delete")
        await talk.screen.pick("Yes, delete it")
        await talk.screen.until(lambda: hasattr(talk.screen.question, "empty"))
        question = await talk.screen.opened_list()
        assert question.rows == ()
        assert question.empty == "No other conversation in this folder. Tab shows all folders."
        talk.screen.answer(None)
    assert [row.first_prompt for row in await app.sessions.list_saved()] == ["the second one"]


async def test_another_conversation_is_taken_without_a_word_about_the_one_before(app: App) -> None:
    async with driven_chat(app, "One.", "Two.") as talk:
        await talk.say("the first one")
        talk.screen.typed("/new")
        await talk.screen.noted("a new conversation")
        await talk.say("the second one")
        talk.screen.blocks.clear()
        talk.screen.typed("/resume")
        await talk.screen.pick("the first one")
        await talk.screen.until(lambda: "One." in talk.screen.words())
        await talk.say("the third one")
        assert not [note for note in talk.screen.of(NoteBlock) if note.level == "warning"]


async def test_all_folders_are_listed_with_tab_and_no_conversation_is_no_error(app: App) -> None:
    async with driven_chat(app, "One.") as talk:
        talk.screen.typed("/resume")
        note = await talk.screen.noted("No other conversation.")
        assert [each.level for each in talk.screen.of(NoteBlock) if each.text == note] == ["quiet"]
        await app.sessions.start_session(project_path=Path(app.project_path).parent, title="Else")
        talk.screen.typed("/resume")
        question = await talk.screen.opened_list()
        assert question.rows == ()
        talk.screen.answer(ListAnswer(-1, "tab"))
        await talk.screen.until(lambda: getattr(talk.screen.question, "rows", ()))
        question = await talk.screen.opened_list()
        assert question.title == "Resume · all folders"
        assert [row.label for row in question.rows] == ["Else"]
        talk.screen.answer(None)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_price_and_window_are_seen_beside_models_without_a_key(width: int) -> None:
    named = known("anthropic", "claude-sonnet-5-5", price_input=3, price_output=15, thinks=True)
    other = known("openai", "gpt-6-sol", price_input=2, price_output=10)
    models = ModelList(
        [msgspec.structs.replace(named, levels=("low", "high")), other],
        current="anthropic:claude-sonnet-5-5",
        effort="high",
        recent=[],
        usable={"anthropic"},
        aliases={},
    )
    panel = ListPanel(models.question())
    styles = RowStyles(coloured=False, unicode=True)
    rows = panel.rows([], width=width, limit=20, styles=styles)
    shown = "\n".join(rows)
    assert "$3 / $15 per 1M" in shown
    assert " context" in rows[1], shown
    assert "thinking" in rows[1], shown
    assert "no key: /login openai" in shown
    assert "[high]" in shown, "the levels of the picked one"
