"""The first minute of a user who has one key, or none: the real program, a vendor on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
import pytest

from tests.support.loopback_server import LoopbackConnection, LoopbackServer, serving
from tests.support.terminal_picture import keep_picture
from tests.support.tmux_terminal import TmuxTerminal, needs_tmux
from tests.support.vendor_servers import VENDOR_WIRES, send_plan
from tests.support.weft_program import WeftProgram
from weft.providers.script import CallTool, SayText, ScriptedAnswer, Step

pytestmark = [pytest.mark.anyio, pytest.mark.process]
EFFORT_FIELDS = ("thinking", "output_config", "reasoning", "reasoning_effort")


class FirstKey(NamedTuple):
    """What a user has, and what they should get."""

    variable: str
    vendor: str
    """Whose protocol is spoken."""
    model: str
    address: str = ""
    """The variable that names the vendor's address; the settings do, where there is none."""


KEYS = [
    FirstKey("GEMINI_API_KEY", "google", "gemini-3.8-flash", "GOOGLE_GEMINI_BASE_URL"),
    FirstKey("OPENROUTER_API_KEY", "openai-chat", "anthropic/claude-sonnet-5.5"),
    FirstKey("OPENAI_API_KEY", "openai", "gpt-6.1-sol", "OPENAI_BASE_URL"),
    FirstKey("ANTHROPIC_API_KEY", "anthropic", "claude-sonnet-5-5", "ANTHROPIC_BASE_URL"),
]
each_key = pytest.mark.parametrize("first", KEYS, ids=lambda first: first.variable)


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


@asynccontextmanager
async def vendor(
    weft: WeftProgram, first: FirstKey
) -> AsyncGenerator[tuple[LoopbackServer, dict[str, str]]]:
    """The vendor of a key, and the environment of its user."""

    look: tuple[Step, ...] = (
        SayText(text="I'll look at the code first."),
        CallTool(name="read", args={"path": "calc.py"}),
    )

    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            is_first = b"what does" in asked.body and b"return a + b" not in asked.body
            steps = look if is_first else (SayText(text="Hello from the vendor."),)
            await send_plan(line, VENDOR_WIRES[first.vendor](), ScriptedAnswer(steps=steps))

    async with serving(handler) as server:
        environ = {first.variable: "sk-test-0123456789abcdef", "OLLAMA_HOST": "127.0.0.1:9"}
        if first.address:
            environ[first.address] = server.url
        else:
            weft.config.mkdir(parents=True, exist_ok=True)
            settings = f'[providers.openrouter]\nbase_url = "{server.url}/api/v1"\n'
            (weft.config / "config.toml").write_text(settings)
        yield server, environ


def requested_model(server: LoopbackServer) -> str:
    asked = server.asked[0]
    body: dict[str, Any] = json.loads(asked.body)
    return str(body.get("model") or asked.path.partition("/models/")[2].partition(":")[0])


@each_key
async def test_one_key_answers_with_the_right_model_at_the_vendors_own_effort(
    weft: WeftProgram, first: FirstKey
) -> None:
    async with vendor(weft, first) as (server, environ):
        done = await anyio.to_thread.run_sync(lambda: weft.run("-p", "Say hello.", env=environ))
    assert (done.returncode, done.stdout) == (0, "Hello from the vendor.\n")
    assert done.stderr == ""
    assert requested_model(server) == first.model
    body = json.loads(server.asked[0].body)
    # Nothing is said of it: then the model thinks as hard as its vendor thinks right.
    efforts = {name: body[name] for name in EFFORT_FIELDS if name in body}
    assert "effort" not in str(efforts)
    assert "thinkingLevel" not in str(body.get("generationConfig", {}))
    assert body.get("tools"), "the model has its tools from the first request on"


# OpenRouter is known by the name of its host; `tests/providers/test_levels.py` has its levels.
@pytest.mark.parametrize("first", [key for key in KEYS if key.address], ids=lambda key: key.vendor)
async def test_one_key_is_enough_to_choose_how_hard_its_model_thinks(
    weft: WeftProgram, first: FirstKey
) -> None:
    async with vendor(weft, first) as (server, environ):
        done = await anyio.to_thread.run_sync(
            lambda: weft.run("-p", "--effort", "low", "Say hello.", env=environ)
        )
    assert (done.stdout, done.stderr) == ("Hello from the vendor.\n", "")
    body = json.loads(server.asked[0].body)
    told = [body.get(name) for name in (*EFFORT_FIELDS, "generationConfig")]
    assert "'low'" in str(told).lower()


@needs_tmux
@each_key
async def test_the_first_chat_shows_the_model_and_its_answer(
    weft: WeftProgram, tmp_path: Path, first: FirstKey
) -> None:
    terminal = TmuxTerminal(weft, tmp_path, height=20)
    (weft.project / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    name = first.variable.partition("_")[0].lower()
    async with vendor(weft, first) as (_, environ):

        def talk() -> str:
            terminal.start(**environ, COLORTERM="truecolor")
            terminal.wait_for(first.model.rpartition("/")[2], "context 0%")
            keep_picture(terminal, f"first-{name}", f"The first start with {first.variable}")
            terminal.type("what does calc.py do?")
            terminal.keys("Enter")
            terminal.wait_for("Hello from the vendor.", "1 call ·")
            keep_picture(terminal, f"first-{name}-answer", "The first answer")
            return terminal.screen()

        try:
            screen = await anyio.to_thread.run_sync(talk)
        finally:
            terminal.close()
    assert "API key" not in screen
    assert environ[first.variable] not in screen
    assert "● Read calc.py" in screen
    assert "default" not in screen, "the vendor's own effort is no news"


@needs_tmux
@pytest.mark.parametrize("columns", [40, 80, 200])
async def test_the_first_question_without_a_key_is_read_whole(
    weft: WeftProgram, tmp_path: Path, columns: int
) -> None:
    terminal = TmuxTerminal(weft, tmp_path, width=columns, height=20)
    try:
        terminal.start(OLLAMA_HOST="127.0.0.1:9")
        screen = await anyio.to_thread.run_sync(
            lambda: terminal.wait_for("Use the small embedded model", "/login asks again")
        )
    finally:
        terminal.close()
    assert "…" not in screen.replace("OpenRouter …", "")


@needs_tmux
async def test_the_first_chat_without_a_key_asks_what_should_answer(
    weft: WeftProgram, tmp_path: Path
) -> None:
    terminal = TmuxTerminal(weft, tmp_path, height=20)
    key = "sk-ant-api03-0123456789abcdefghij"

    def talk(environ: dict[str, str]) -> str:
        terminal.start(**environ, COLORTERM="truecolor")
        screen = terminal.wait_for("Use the small embedded model", "Esc goes on without")
        keep_picture(terminal, "first-none", "The first start without a key")
        terminal.keys("1")
        terminal.wait_for("Paste the key")
        terminal.paste(key)
        keep_picture(terminal, "first-none-key", "A key is pasted, and not shown")
        terminal.keys("Enter")
        terminal.wait_for("claude-sonnet-5-5", "asks first")
        terminal.type("hi")
        terminal.keys("Enter")
        assert key not in terminal.wait_for("Hello from the vendor.")
        keep_picture(terminal, "first-none-answer", "The first answer with the pasted key")
        return screen

    try:
        async with vendor(weft, KEYS[-1]) as (server, environ):
            del environ["ANTHROPIC_API_KEY"]
            screen = await anyio.to_thread.run_sync(talk, environ)
            assert server.asked[-1].headers["x-api-key"] == key
    finally:
        terminal.close()
    assert "No API key was found. What should answer?" in screen
    assert "Paste an API key" in screen
    assert "Get a key from OpenRouter" in screen
    assert max(map(len, screen.splitlines())) <= 80


@needs_tmux
async def test_a_message_waits_for_the_key_that_it_needs(weft: WeftProgram, tmp_path: Path) -> None:
    terminal = TmuxTerminal(weft, tmp_path, height=20)

    def talk(environ: dict[str, str]) -> str:
        terminal.start(**environ)
        terminal.wait_for("Paste an API key", "/login asks again")
        terminal.keys("Escape")
        terminal.wait_for("› Ask anything")
        terminal.type("what now?")
        terminal.keys("Enter")
        terminal.wait_for("Paste an API key", "/login asks again")
        terminal.keys("1")
        terminal.wait_for("Paste the key")
        terminal.paste("sk-ant-api03-0123456789abcdefghij")
        terminal.keys("Enter")
        return terminal.wait_for("› what now?", "Hello from the vendor.")

    try:
        async with vendor(weft, KEYS[-1]) as (_, environ):
            del environ["ANTHROPIC_API_KEY"]
            screen = await anyio.to_thread.run_sync(talk, environ)
    finally:
        terminal.close()
    assert "there is no model" not in screen


def test_the_first_run_without_a_key_says_what_to_do(weft: WeftProgram) -> None:
    done = weft.run("-p", "Say hello.")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 3)
