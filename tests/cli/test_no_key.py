"""Without an API key: what a run says, and how the chat leads to a model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

import weft
from tests.support.chat_driver import ChatDriver, RecordingScreen
from tests.support.http_exchange import fetch
from tests.support.loopback_server import LoopbackConnection, LoopbackServer, serving
from tests.support.vendor_servers import VENDOR_WIRES, send_plan
from tests.support.weft_program import WeftProgram
from weft.cli.chat.chat import Chat
from weft.cli.chat.screens.screen import ChatClosed
from weft.cli.parse import parse
from weft.cli.session_options import session_options_of
from weft.config.api_keys import KeyFile, key_variables
from weft.providers.script import SayText, ScriptedAnswer
from weft.transport import HttpClient, HttpRequest

# --- a run -----------------------------------------------------------------------------


def test_a_run_without_a_key_says_what_to_do_in_three_lines_and_exits_3(weft: WeftProgram) -> None:
    done = weft.call("-p", "hi")
    assert done.returncode == 3
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert "no API key was found" in lines[0]
    assert "weft auth login" in lines[1]
    assert "local:smollm2" in lines[2]
    assert "downloading" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [("-p", "hi"), ("auth", "list"), ("auth", "login"), ("doctor",), ("-p", "-m", "gpt-5", "hi")],
    ids=" ".join,
)
@pytest.mark.process  # `doctor` looks for programs
def test_a_command_that_is_named_can_be_pasted(weft: WeftProgram, words: tuple[str, ...]) -> None:
    done = weft.call(*words)
    said = done.stdout + done.stderr
    named = re.findall(r"`(weft auth login[^`]*|-m [^`]*)`", said)
    assert any(each.startswith("weft auth login ") for each in named), said
    for each in named:
        *_, last = each.split()
        assert last in key_variables() or last in ("ollama:qwen3", "local:smollm2"), each


def test_nothing_is_stored_of_a_run_that_nothing_could_answer(weft: WeftProgram) -> None:
    weft.call("-p", "hi")
    assert "[]" in weft.call("session", "list", "--json").stdout


def test_a_program_gets_the_same_as_a_result(weft: WeftProgram) -> None:
    done = weft.call("-p", "hi", "--output-format", "json")
    assert done.returncode == 3
    result = json.loads(done.stdout)
    assert result["is_error"]
    assert any("no API key was found" in str(value) for value in result.values())


@pytest.mark.parametrize("model", ["local:smollm2", "local/smollm2"])
def test_an_embedded_model_that_is_named_is_not_fetched_where_nothing_can_run_it(
    weft: WeftProgram, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = weft.call("-p", "-m", model, "hi")
    assert done.returncode == 2
    assert "local models need llama.cpp: run `pip install 'weft[local]'`" in done.stderr
    assert "downloading" not in done.stderr


def test_a_model_in_the_settings_needs_no_key_to_be_looked_for(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    model = weft.script("hello")
    (weft.config / "config.toml").write_text(f'[model]\ndefault = "{model}"\n')
    done = weft.call("-p", "hi")
    assert (done.returncode, done.stdout) == (0, "hello\n")


# --- the chat --------------------------------------------------------------------------


@asynccontextmanager
async def chat_without_key(root: Path, **environ: str) -> AsyncIterator[ChatDriver]:
    """A chat whose user has nothing; servers on this machine are not reached unless named."""
    (root / "p").mkdir()
    nothing = {"OLLAMA_HOST": "http://127.0.0.1:9"}
    config = root / "home" / ".config" / "weft"
    config.mkdir(parents=True)
    server = environ.pop("LMSTUDIO", "http://127.0.0.1:9")
    (config / "config.toml").write_text(
        f'[providers.lmstudio]\nbase_url = "{server}/v1"\n'
        f'[providers.openrouter]\nbase_url = "{environ.pop("ROUTER", "http://127.0.0.1:9")}/api/v1"\n'
    )
    environ = {"HOME": str(root / "home"), **nothing, **environ}
    app = weft.open(root / "p", "memory", environ=environ)
    screen = RecordingScreen()
    async with app, anyio.create_task_group() as group:
        chat = Chat(app, screen, session_options_of(parse([]), headless=False))
        group.start_soon(chat.run)
        yield ChatDriver(chat, screen)
        screen.typed(ChatClosed())


def saved(root: Path) -> dict[str, str]:
    return KeyFile(root / "home" / ".config" / "weft").keys()


pytestmark = pytest.mark.anyio


async def test_the_chat_offers_every_way_to_a_model(tmp_path: Path) -> None:
    async with chat_without_key(tmp_path) as driver:
        question = await driver.screen.choice()
        assert "No API key was found" in question.title
        assert [row.label for row in question.rows] == [
            "Paste an API key",
            "Get a key from OpenRouter",
            "Use the small embedded model",
        ]
        assert driver.screen.live.model == "no model"
        driver.screen.answer(None)


@pytest.mark.parametrize(
    ("key", "provider", "model"),
    [
        ("sk-ant-api03-abc", "anthropic", "anthropic:claude-sonnet-5-5"),
        ("AIzaSyabc", "google", "google:gemini-3.8-flash"),
        ("sk-or-v1-abc", "openrouter", "openrouter:anthropic/claude-sonnet-5.5"),
        ("sk-proj-abc", "openai", "openai:gpt-6.1-sol"),
        ("gsk_abc", "groq", "groq:openai/gpt-oss-120b"),
    ],
)
async def test_a_pasted_key_is_saved_for_the_provider_that_it_shows(
    tmp_path: Path, key: str, provider: str, model: str
) -> None:
    async with chat_without_key(tmp_path) as driver:
        await driver.screen.pick("Paste")
        assert "Paste the key" in str(await driver.screen.asked())
        driver.screen.answer(f" {key}\n")
        await driver.screen.noted(f"the model is {model}")
        assert saved(tmp_path) == {provider: key}
        assert driver.screen.live.model == model
        assert not any(key in str(block) for block in driver.screen.blocks)


async def test_a_key_that_could_be_of_several_is_asked_about(tmp_path: Path) -> None:
    async with chat_without_key(tmp_path) as driver:
        await driver.screen.pick("Paste")
        await driver.screen.asked()
        driver.screen.answer("sk-0123456789")
        question = await driver.screen.pick("DeepSeek")
        assert question.title == "Whose key is it?"
        await driver.screen.noted("the model is deepseek:deepseek-v4-pro")
        assert saved(tmp_path) == {"deepseek": "sk-0123456789"}


async def test_what_can_be_no_key_is_refused_and_asked_again(tmp_path: Path) -> None:
    async with chat_without_key(tmp_path) as driver:
        await driver.screen.pick("Paste")
        await driver.screen.asked()
        driver.screen.answer("my key is secret")
        assert await driver.screen.noted("invalid key")
        assert "No API key" in (await driver.screen.choice()).title
        driver.screen.answer(None)
        assert saved(tmp_path) == {}


async def test_a_server_on_this_machine_is_found_and_used(tmp_path: Path) -> None:
    async def ollama(line: LoopbackConnection) -> None:
        while asked := await line.request():
            if asked.path == "/api/tags":
                models = [{"name": "qwen3:8b"}, {"name": "nomic-embed-text"}]
                await line.reply(json.dumps({"models": models}).encode())
            else:
                plan = ScriptedAnswer(steps=(SayText(text="hello"),))
                await send_plan(line, VENDOR_WIRES["ollama"](), plan)

    async with (
        serving(ollama) as server,
        chat_without_key(tmp_path, OLLAMA_HOST=server.url) as driver,
    ):
        question = await driver.screen.pick("Use Ollama")
        assert "runs on this machine: qwen3:8b" in question.rows[2].detail
        await driver.screen.noted("the model is ollama:qwen3:8b")
        await driver.say("hi")
        assert driver.screen.words() == "hello"


async def test_of_several_models_of_a_server_one_is_picked(tmp_path: Path) -> None:
    async def studio(line: LoopbackConnection) -> None:
        while await line.request():
            await line.reply(b'{"data": [{"id": "a-1"}, {"id": "b-2"}]}')

    async with serving(studio) as server, chat_without_key(tmp_path, LMSTUDIO=server.url) as driver:
        await driver.screen.pick("Use LM Studio")
        await driver.screen.pick("b-2")
        await driver.screen.noted("the model is lmstudio:b-2")


async def test_a_silent_server_does_not_hold_the_question_back(tmp_path: Path) -> None:
    async def silent(line: LoopbackConnection) -> None:
        await line.request()
        await line.until_gone()

    async with (
        serving(silent) as server,
        chat_without_key(tmp_path, OLLAMA_HOST=server.url) as driver,
    ):
        question = await driver.screen.choice()
        assert len(question.rows) == 3
        driver.screen.answer(None)


# --- OpenRouter ------------------------------------------------------------------------


class Router:
    """OpenRouter's side of the key flow."""

    def __init__(self) -> None:
        self.challenge = ""
        self.key = "sk-or-v1-from-the-flow"

    async def __call__(self, line: LoopbackConnection) -> None:
        while asked := await line.request():
            given = json.loads(asked.body)
            verified = sha256(given["code_verifier"].encode()).digest().hex()
            is_right = given["code"] == "code-1" and verified == self.challenge
            body = {"key": self.key} if is_right else {"error": {"message": "no"}}
            assert asked.path == "/api/v1/auth/keys"
            await line.reply(json.dumps(body).encode(), status=200 if is_right else 403)


async def address_shown(driver: ChatDriver, router: Router, server: LoopbackServer) -> str:
    """The callback of the address that the chat shows, as the browser would learn it."""
    from base64 import urlsafe_b64decode

    note = await driver.screen.noted("/auth?")
    url = note.split()[-1]
    assert url.startswith(f"{server.url}/auth?")
    query = parse_qs(urlsplit(url).query)
    assert query["code_challenge_method"] == ["S256"]
    router.challenge = urlsafe_b64decode(query["code_challenge"][0] + "=").hex()
    return query["callback_url"][0]


async def test_openrouter_gives_a_key_through_the_browser(tmp_path: Path) -> None:
    router = Router()
    async with serving(router) as server, chat_without_key(tmp_path, ROUTER=server.url) as driver:
        await driver.screen.pick("Get a key from OpenRouter")
        callback = await address_shown(driver, router, server)
        browser = HttpClient()
        # Another page guesses the port, and not the path.
        place = callback.rpartition("/")[0]
        assert b"Not found" in await fetch(browser, f"{place}/x?code=code-1", method="GET")
        short = (await driver.screen.noted("/auth?")).split()[1]
        async with browser.send(HttpRequest(url=short, method="GET")) as reply:
            assert reply.status == 302
            assert reply.headers["location"].startswith(f"{server.url}/auth?")
        page = await fetch(browser, f"{callback}?code=code-1", method="GET")
        assert b"go back to the terminal" in page
        await browser.aclose()
        await driver.screen.noted("the model is openrouter:anthropic/claude-sonnet-5.5")
        assert saved(tmp_path) == {"openrouter": router.key}


async def test_the_address_at_which_a_browser_elsewhere_ended_can_be_pasted(
    tmp_path: Path,
) -> None:
    router = Router()
    async with serving(router) as server, chat_without_key(tmp_path, ROUTER=server.url) as driver:
        await driver.screen.pick("Get a key from OpenRouter")
        callback = await address_shown(driver, router, server)
        await driver.screen.asked()
        driver.screen.answer(f"{callback}?code=code-1")
        await driver.screen.noted("the model is openrouter:")
        assert saved(tmp_path) == {"openrouter": router.key}


async def test_a_code_that_openrouter_refuses_saves_nothing_and_asks_again(tmp_path: Path) -> None:
    router = Router()
    async with serving(router) as server, chat_without_key(tmp_path, ROUTER=server.url) as driver:
        await driver.screen.pick("Get a key from OpenRouter")
        await address_shown(driver, router, server)
        await driver.screen.asked()
        driver.screen.answer("another-code")
        await driver.screen.noted("OpenRouter gave no key (status 403)")
        await driver.screen.choice()
        driver.screen.answer(None)
        assert saved(tmp_path) == {}


# --- going on without ------------------------------------------------------------------


async def test_a_message_without_a_model_is_refused_and_not_lost(tmp_path: Path) -> None:
    async with chat_without_key(tmp_path) as driver:
        await driver.screen.choice()
        driver.screen.answer(None)
        driver.screen.typed("fix the bug")
        await driver.screen.choice()
        driver.screen.answer(None)
        await driver.screen.noted("there is no model yet: /login")
        assert driver.screen.line == "fix the bug"
        assert await driver.chat.conversation.app.sessions.list_saved() == []


async def test_login_asks_again_and_takes_a_provider(tmp_path: Path) -> None:
    async with chat_without_key(tmp_path) as driver:
        await driver.screen.choice()
        driver.screen.answer(None)
        driver.screen.typed("/login")
        asked = await driver.screen.choice()
        assert (asked.title, asked.is_own) == ("What should answer?", True)
        assert "Esc goes on without" in asked.hint
        driver.screen.answer(None)
        driver.screen.typed("/login xai")
        assert "Paste the key for xAI" in str(await driver.screen.asked())
        driver.screen.answer("0123456789")
        await driver.screen.noted("the model is xai:grok-4.7")
        driver.screen.typed("/login nobody")
        await driver.screen.noted("no provider 'nobody' takes a key")
        driver.screen.typed("/login")
        assert "Esc keeps xai:grok-4.7" in (await driver.screen.choice()).hint
        driver.screen.answer(None)


async def test_a_key_that_was_just_saved_is_used_and_masked(tmp_path: Path) -> None:
    async def anthropic(line: LoopbackConnection) -> None:
        while await line.request():
            plan = ScriptedAnswer(steps=(SayText(text="hello"),))
            await send_plan(line, VENDOR_WIRES["anthropic"](), plan)

    async with (
        serving(anthropic) as server,
        chat_without_key(tmp_path, ANTHROPIC_BASE_URL=server.url) as driver,
    ):
        await driver.screen.pick("Paste")
        await driver.screen.asked()
        driver.screen.answer("sk-ant-0123456789")
        await driver.screen.noted("the model is anthropic")
        await driver.say("hi")
        assert driver.screen.words() == "hello"
        assert server.asked[0].headers["x-api-key"] == "sk-ant-0123456789"


async def test_a_pasted_key_takes_the_place_of_a_refused_one_of_the_environment(
    tmp_path: Path,
) -> None:
    async def anthropic(line: LoopbackConnection) -> None:
        while asked := await line.request():
            if asked.headers["x-api-key"] == "sk-ant-refused":
                error = b'{"type":"error","error":{"type":"e","message":"invalid x-api-key"}}'
                await line.reply(error, status=401)
            else:
                plan = ScriptedAnswer(steps=(SayText(text="hello"),))
                await send_plan(line, VENDOR_WIRES["anthropic"](), plan)

    environ = {"ANTHROPIC_API_KEY": "sk-ant-refused"}
    async with (
        serving(anthropic) as server,
        chat_without_key(tmp_path, ANTHROPIC_BASE_URL=server.url, **environ) as driver,
    ):
        await driver.say("hi")
        driver.screen.typed("/login anthropic")
        await driver.screen.asked()
        driver.screen.answer("sk-ant-0123456789")
        await driver.screen.noted("saved the key for Anthropic")
        note = await driver.screen.noted("at the next start")
        assert "unset it" in note
        assert "the next message uses it" in await driver.screen.noted("the next message")
        await driver.say("hi again")
        assert driver.screen.words().endswith("hello")
        assert server.asked[-1].headers["x-api-key"] == "sk-ant-0123456789"


# --- names and settings that are wrong -------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-m", ""], 2, "unknown model ''"),
        (["-m", "sonnet:ultra"], 2, "no thinking level 'ultra' in 'sonnet:ultra'; there are"),
        (["-m", "azure:x"], 1, "azure has no address; set AZURE_OPENAI_ENDPOINT"),
        (["-m", "vertex"], 1, "set GOOGLE_CLOUD_PROJECT"),
        (["-m", "bedrock:sonnet"], 1, "`weft auth login bedrock`"),
        (["--fallback-model", "nonsense", "-m", "opus"], 2, "unknown model 'nonsense'"),
        (["--fallback-model", "nobody:x", "-m", "opus"], 2, "no provider 'nobody'"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(
    weft: WeftProgram, arguments: list[str], code: int, said: str
) -> None:
    done = weft.call("-p", *arguments, "hi")
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert "crashed" not in done.stderr
    assert done.stderr.count("weft auth login") <= 1


def test_a_proxy_of_a_kind_that_cannot_be_used_ends_a_run_with_its_sentence(
    weft: WeftProgram,
) -> None:
    environ = {"HTTPS_PROXY": "socks4://u:secret@127.0.0.1:1", "ANTHROPIC_API_KEY": "k"}
    done = weft.call("-p", "hi", env=environ)
    assert done.returncode == 1
    assert "HTTPS_PROXY is not right: the scheme 'socks4' is not supported" in done.stderr
    assert "crashed" not in done.stderr
    assert "secret" not in done.stderr


def test_a_provider_that_is_no_table_is_said_without_the_parsers_signs(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text("[providers]\nx = 5\n")
    done = weft.call("-p", "hi")
    assert done.returncode == 2
    assert "$" not in done.stderr
