"""Commands and keys that hands know from other agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.memory_terminal import driven_screen
from tests.support.weft_program import text
from weft.app import App
from weft.cli.chat.screens.list_picker import ListPicker
from weft.cli.chat.screens.list_question import ListKey, ListQuestion, ListRow
from weft.cli.chat.screens.screen import LineSubmitted
from weft.config.api_keys import KeyFile
from weft.project.slash_commands import ELSEWHERE, find_slash
from weft.view import AnswerBlock, TableBlock, UserBlock

pytestmark = pytest.mark.anyio
KNOWN = """
help ? new clear resume sessions continue rename title name branch fork tree rewind undo checkpoint
redo compact summarize compress context tokens model models effort thinking plan architect ask code
permissions mode agents tasks ps stop mcp skills hooks memory init add-dir cd diff review copy
export import share unshare cost usage status stats config settings theme keybindings hotkeys keymap
editor doctor debug feedback login logout connect reload exit quit q loop plugin plugins
bashes approvals output-style fast vim todos
"""


@pytest.mark.parametrize("name", KNOWN.split())
def test_a_name_that_hands_know_does_it_or_says_what_does(name: str) -> None:
    assert find_slash(f"/{name}") is not None or name in ELSEWHERE


def test_what_is_said_of_a_name_names_what_there_is() -> None:
    for name, said in ELSEWHERE.items():
        assert find_slash(f"/{name}") is None, "the command goes first"
        named = [word.rstrip(",") for word in said.split() if word.startswith("/")]
        assert all(find_slash(word) is not None for word in named), said


async def test_a_name_of_another_agents_is_answered_with_ours(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/share")
        await talk.screen.noted("there is no command /share; /export chat.html writes a page")


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("/review", "Review the changes of this project that are not committed"),
        ("/review main..feature", "Review this: main..feature. Change nothing."),
    ],
)
async def test_a_review_is_asked_for(app: App, typed: str, asked: str) -> None:
    async with driven_chat(app, "Nothing is wrong.") as talk:
        talk.screen.typed(typed)
        await talk.screen.until(lambda: "Nothing is wrong." in talk.screen.words())
        assert [block.text for block in talk.screen.of(UserBlock)] == [typed]
        assert talk.chat.conversation.session is not None
        said = (await talk.chat.conversation.session.messages())[0].content
        assert said.startswith(asked)


async def test_a_review_of_the_users_own_takes_the_place_of_ours(app: App) -> None:
    folder = Path(app.project_path) / ".claude/commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("Look at $ARGUMENTS with my eyes.")
    mine = {"when": {"user_says": "with my eyes"}, "steps": [text("Mine.")]}
    async with driven_chat(app, mine, "Ours.") as talk:
        talk.screen.typed("/review a.py")
        await talk.screen.until(lambda: talk.screen.words())
        assert talk.screen.words() == "Mine."


async def test_the_turn_is_stopped_or_what_runs_beside_it(app: App) -> None:
    async with driven_chat(app, [text("word " * 9000, 5)], pace_seconds=0.01) as talk:
        talk.screen.typed("/stop")
        await talk.screen.noted("nothing runs")
        talk.screen.typed("tell me a story")
        await talk.screen.until(lambda: talk.screen.live.can_stop)
        talk.screen.typed("/stop")
        await talk.screen.idle()
        assert talk.chat.live.status == "idle"
        assert not talk.chat.live.is_busy


async def test_an_export_is_gone_on_with(app: App) -> None:
    async with driven_chat(app, "First answer.", "Second answer.") as talk:
        await talk.say("hello")
        talk.screen.typed("/export chat.json")
        await talk.screen.noted("written to")
        first = talk.chat.conversation.session
        talk.screen.typed("/import chat.json")
        await talk.screen.until(lambda: talk.chat.conversation.session is not first)
        assert talk.screen.of(AnswerBlock)[-1].text == "First answer."
        talk.screen.typed("/import")
        await talk.screen.noted("/import needs a file")
        talk.screen.typed("/import nothing.json")
        await talk.screen.noted("nothing.json")


async def test_a_message_is_written_in_the_editor(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/editor a draft")
        assert await talk.screen.asked() == "a draft"
        talk.screen.answer("a longer message")
        await talk.screen.until(lambda: talk.screen.line == "a longer message")


async def test_a_saved_key_is_deleted(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/logout")
        await talk.screen.noted("no key is saved")
        keys = KeyFile(app.places.config)
        keys.keep("openai", "sk-0123456789abcdef0123456789")
        talk.screen.typed("/logout opnai")
        await talk.screen.noted("no key for 'opnai' is saved; did you mean 'openai'?")
        talk.screen.typed("/logout")
        await talk.screen.pick("openai")
        await talk.screen.noted("deleted the key for openai")
        assert not keys.keys()


async def test_colors_keys_and_the_machine_are_shown(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/theme")
        question = await talk.screen.pick("light")
        assert [row.label for row in question.rows] == ["auto", "dark", "light", "none"]
        await talk.screen.noted("theme")
        assert app.config.get("theme") == "light"
        assert talk.screen.themes == ["light"], "and it holds at once"
        talk.screen.typed("/config statusline 'date +%H'")
        await talk.screen.noted("date")
        assert app.config.get("statusline") == "date +%H"
        talk.screen.typed("/config set statusline echo 'a' 'b'")
        await talk.screen.noted("echo")
        assert app.config.get("statusline") == "echo 'a' 'b'"
        talk.screen.typed("/hotkeys")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
        assert ("Ctrl+T", "Unfold the to-do list, and fold it") in talk.screen.of(TableBlock)[
            0
        ].rows


@pytest.mark.process
async def test_the_machine_is_looked_at(app: App) -> None:
    async with driven_chat(app) as talk:
        talk.screen.typed("/doctor")
        await talk.screen.until(lambda: talk.screen.of(TableBlock))
        assert [row[0] for row in talk.screen.of(TableBlock)[0].rows[:2]] == ["weft", "python"]


async def test_a_skill_is_named_with_the_message(app: App) -> None:
    folder = Path(app.project_path) / ".agents/skills/tidy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies.\n---\nSweep it all.")
    tidy = {"when": {"system_says": "Sweep it all."}, "steps": [text("Tidied.")]}
    async with driven_chat(app, tidy, "Without it.") as talk:
        talk.screen.typed("/skill:tdiy up")
        await talk.screen.noted("there is no skill 'tdiy'; did you mean 'tidy'?")
        assert talk.chat.conversation.session is None, "nothing is left behind"
        talk.screen.typed("/skill:tidy clean up")
        await talk.screen.until(lambda: talk.screen.words())
        assert talk.screen.words() == "Tidied."


# -- keys

CTRL_S, ALT_T, ENTER = "\x13", "\x1bt", "\r"


async def test_a_line_is_put_aside_for_a_message_in_between(tmp_path: Path) -> None:
    log = "\n".join(f"row {number}" for number in range(20))
    async with driven_screen(tmp_path) as driven:
        await driven.type("look at this ")
        await driven.type(f"\x1b[200~{log}\x1b[201~")
        await driven.type(CTRL_S)
        assert "[Pasted 20 lines]" not in driven.terminal.text
        assert "put aside" in driven.terminal.text
        await driven.type(f"quick question{ENTER}")
        assert driven.sent() == [LineSubmitted("quick question")]
        assert "look at this [Pasted 20 lines]" in driven.terminal.text, "it is back, as it was"
        await driven.type(ENTER)
        sent = driven.sent()[0]
        assert isinstance(sent, LineSubmitted)
        assert sent.text == f"look at this {log}"


async def test_what_was_put_aside_comes_back_and_changes_places(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type(CTRL_S)
        assert "nothing to put aside" in driven.terminal.text
        await driven.type(f"first{CTRL_S}second{CTRL_S}")
        assert "› first" in driven.terminal.text
        await driven.type(CTRL_S)
        assert "› second" in driven.terminal.text
        await driven.type("\x15")
        await driven.type(CTRL_S)
        assert "› first" in driven.terminal.text
        assert "put aside" not in driven.terminal.text, "nothing is any more"


async def test_a_key_chooses_the_thinking_level(tmp_path: Path) -> None:
    async with driven_screen(tmp_path) as driven:
        await driven.type(ALT_T)
        assert driven.sent() == [LineSubmitted("/effort")]


def test_a_list_takes_the_keys_that_hands_know(tmp_path: Path) -> None:
    keys = (ListKey("tab", "all folders", needs_row=False, others=("c-a",)),)
    picker = ListPicker(ListQuestion(title="Resume", rows=(ListRow("one"),), keys=keys))
    picker.press("c-a")
    assert picker.answer is not None
    assert picker.answer.key == "tab"


async def test_a_new_title_is_said(app: App) -> None:
    async with driven_chat(app, "Hello.") as talk:
        await talk.say("hello")
        talk.screen.typed("/title Greetings")
        await talk.screen.noted("this conversation is called 'Greetings' now")


@pytest.mark.parametrize("columns", [40, 80])
async def test_a_search_names_its_keys_in_any_window(tmp_path: Path, columns: int) -> None:
    async with driven_screen(tmp_path, columns=columns) as driven:
        await driven.type(f"a long story{ENTER}")
        await driven.type("\x12story")
        row = next(row for row in driven.terminal.text.split("\n") if "search: story" in row)
        assert all(key in row for key in ("Ctrl+R", "Enter", "Esc"))
        assert "…" not in row
