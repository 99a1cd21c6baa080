"""A correction of the user's is noted as a decision, and kept with one key or a command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.weft_program import WeftProgram
from weft.app import App
from weft.cli.chat.screens.screen import KeepNoted
from weft.decisions.note import noted_text, noted_title
from weft.ids import DecisionId
from weft.view import NoteBlock

OFFER = "Noted: use an in-process LRU · Alt+K keeps it as a decision"
KEPT = "Kept as a decision: use an in-process LRU"


@pytest.fixture
def window(weft: WeftProgram, tmp_path: Path) -> Iterator[TmuxTerminal]:
    terminal = TmuxTerminal(weft, tmp_path, width=90, height=30)
    yield terminal
    terminal.close()


def say(window: TmuxTerminal, words: str) -> None:
    window.type(words)
    window.keys("Enter")


def statuses(weft: WeftProgram) -> dict[str, str]:
    """The decisions of the project, with what has become of each."""
    listed = json.loads(weft.run("decisions", "list", "--json").stdout)
    # Fields that have their defaults are left out.
    return {
        node["title"]: node.get("status", "proposed")
        for node in listed
        if node.get("kind", "decision") == "decision"
    }


@needs_tmux
def test_one_key_keeps_what_was_noted_and_takes_nothing_from_typing(
    weft: WeftProgram, window: TmuxTerminal
) -> None:
    model = weft.script("I'll add Redis as a cache.", "An LRU then.", "Fine.")
    window.start("-m", model)
    window.wait_for("asks first")
    window.keys("M-k")
    window.wait_for("nothing was noted")
    say(window, "Lookups are slow.")
    window.wait_for("I'll add Redis as a cache.")
    say(window, "no, not that; use an in-process LRU")
    window.wait_for("An LRU then.", OFFER)
    assert statuses(weft) == {"use an in-process LRU": "proposed"}
    window.type("k, kept or not")
    window.keys("M-k")
    window.wait_for(KEPT, "k, kept or not")
    assert statuses(weft) == {"use an in-process LRU": "active"}
    window.keys("Enter")
    window.wait_for("Fine.")
    window.keys("M-k")
    window.wait_for("nothing was noted")


@pytest.mark.anyio
async def test_a_command_keeps_what_was_noted_newest_first_also_in_a_later_chat(app: App) -> None:
    answers = ("I'll add Redis as a cache.", "An LRU then.", "I'll write it in Perl.", "Python.")
    async with driven_chat(app, *answers) as talk:
        await talk.say("Lookups are slow.")
        await talk.say("no, not that; use an in-process LRU")
        offers = [note.text for note in talk.screen.of(NoteBlock) if "Noted" in note.text]
        assert offers == ["Noted: use an in-process LRU · /keep keeps it as a decision"]
        await talk.say("Now a script.")
        await talk.say("no, not Perl; use Python")
        talk.screen.typed("/keep")
        await talk.screen.until(lambda: "Kept" in talk.screen.of(NoteBlock)[-1].text)
        assert talk.screen.of(NoteBlock)[-1].text == "Kept as a decision: use Python"
        session = talk.chat.conversation.session
        assert session is not None
    assert await _statuses(app) == {"use an in-process LRU": "proposed", "use Python": "active"}
    async with driven_chat(app, "x") as talk:
        talk.screen.typed(f"/resume {session.id}")
        await talk.screen.until(lambda: talk.chat.conversation.session is not None)
        talk.screen.typed(KeepNoted())
        await talk.screen.until(lambda: "Kept" in talk.screen.of(NoteBlock)[-1].text)
        talk.screen.typed(KeepNoted())
        await talk.screen.until(lambda: talk.screen.notices)
        assert talk.screen.notices == ["nothing was noted that could be kept"]
        talk.screen.typed("/keep it")
        await talk.screen.until(lambda: "takes no words" in talk.screen.of(NoteBlock)[-1].text)
    assert set((await _statuses(app)).values()) == {"active"}


async def _statuses(app: App) -> dict[str, str]:
    return {node.title: node.status for node in await app.decisions.nodes(kind="decision")}


def test_only_the_sentence_of_a_session_is_known_again() -> None:
    text = noted_text("use (a) · b", DecisionId("dec_1"))
    assert noted_title(text) == "use (a) · b"
    for other in (f"{text} now", f"So: {text}", text.replace("(dec_1)", "(dec_2)"), "Noted: x"):
        assert noted_title(other) is None


@pytest.mark.anyio
async def test_a_command_is_no_correction(app: App) -> None:
    plan = "Plan: replace the minus in `calc.py:3`. Replace the minus."
    async with driven_chat(app, plan, "Done as planned.", "None.") as talk:
        talk.screen.typed("/plan")
        await talk.say("how would you fix add?")
        talk.screen.typed("/plan go")
        await talk.screen.until(lambda: "Done as planned." in talk.screen.words())
        await talk.say("thanks")
        assert not [note for note in talk.screen.of(NoteBlock) if "Noted" in note.text]
    assert await _statuses(app) == {}
