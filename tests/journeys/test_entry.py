"""The three ways in: a run to its end, the whole application, and functions as tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from tests.support.world import World, facts, message_lines, request_lines, until, until_idle
from weft.errors import UsageError
from weft.events import Event, FactBase, PermissionRequest, TextDelta, ToolComplete, TurnFinished
from weft.providers import ModelInfo
from weft.providers.script import CallTool, Finish, SayText
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryData, MemoryStore
from weft.tools import ToolContext

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run reads the environment; here it finds an empty home."""
    for name in ("HOME", "WEFT_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


# --- run ---------------------------------------------------------------------------------------


@pytest.mark.requirement("entry:run")
async def test_a_run_goes_to_its_end_and_keeps_nothing(home: Path) -> None:
    (home / "a.txt").write_text("text of a")
    model = ScriptedModel([CallTool(name="read", args={"path": "a.txt"}), "It says text."])
    result = await weft.run("What does a.txt say?", model=model, cwd=home)
    assert (result.text, result.finish_reason) == ("It says text.", "stop")
    assert (result.iterations, result.tool_calls_made) == (2, 1)
    assert result.usage.total_tokens > 0
    assert result.duration_ms >= 0
    assert "text of a" in result.messages[2].content
    assert not (home.parent / "home" / "weft.db").exists()
    assert isinstance(result, weft.Reply)


async def test_a_run_asks_no_one(home: Path) -> None:
    model = ScriptedModel([CallTool(name="write", args={"path": "a", "content": "x"}), "Not then."])
    result = await weft.run("write", model=model, cwd=home)
    assert result.finish_reason == "stop"
    assert not (home / "a").exists()
    model = ScriptedModel([CallTool(name="write", args={"path": "a", "content": "x"}), "Done."])
    await weft.run("write", model=model, cwd=home, permission_mode="accept_edits")
    assert (home / "a").exists()


@pytest.mark.requirement("entry:run")
async def test_a_run_is_kept_where_a_store_is_given(home: Path, tmp_path: Path) -> None:
    result = await weft.run("hi", model=ScriptedModel(["Hello."]), cwd=home, store=tmp_path / "db")
    async with weft.open(home, tmp_path / "db") as app:
        record = await app.sessions.read_session(result.session_id)
        assert [message.content for message in record.messages] == ["hi", "Hello."]


@pytest.mark.requirement("entry:run:on-event")
async def test_a_run_tells_its_events_and_survives_a_callback_that_fails(home: Path) -> None:
    seen: list[Event] = []

    def watch(event: Event) -> None:
        seen.append(event)
        raise RuntimeError("a bug of the caller's")

    result = await weft.run("hi", model=ScriptedModel(["Hello."]), cwd=home, on_event=watch)
    assert result.text == "Hello."
    assert any(isinstance(event, TextDelta) for event in seen)
    assert any(isinstance(event, TurnFinished) for event in seen)
    assert [event.seq for event in seen if isinstance(event, FactBase)][:2] == [1, 2]


async def test_a_run_ends_at_its_limits(home: Path) -> None:
    model = ScriptedModel([CallTool(name="list"), "never"])
    assert (await weft.run("x", model=model, cwd=home, max_turns=1)).finish_reason == "max_turns"
    model = ScriptedModel([CallTool(name="list"), "never"])
    result = await weft.run("x", model=model, cwd=home, max_budget_usd=0.000001)
    assert result.finish_reason == "max_budget"


@pytest.mark.requirement("result:always")
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    "wrong",
    [{"prompt": ""}, {"model": "nope:x"}, {"tools": ["nope"]}, {"max_turns": 0}],
    ids=str,
)
async def test_what_keeps_a_run_from_starting_is_an_exception_with_a_sentence(
    home: Path, wrong: dict[str, Any], watched: bool
) -> None:
    given: dict[str, Any] = {"prompt": "x", "model": ScriptedModel(["y"]), "cwd": home} | wrong
    with pytest.raises(UsageError):
        await weft.run(**given, on_event=(lambda event: None) if watched else None)


@pytest.mark.requirement("result:always")
async def test_a_run_that_started_always_ends_in_a_result(home: Path) -> None:
    reply = await weft.run("x", model=ScriptedModel([]), cwd=home)
    assert reply.finish_reason == "provider_error"
    assert "the script has 0 answers" in reply.detail
    refused = ScriptedModel([(Finish(reason="refusal"),)])
    assert (await weft.run("x", model=refused, cwd=home)).finish_reason == "refusal"


# --- open --------------------------------------------------------------------------------------


@pytest.mark.requirement("app:config")
async def test_settings_come_from_files_environment_and_caller_in_this_order(
    tmp_path: Path, home: Path
) -> None:
    config = tmp_path / "home" / "weft"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[session]\nmax_turns = 1\nidle_unload = 5.0\n")
    environ = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    app = weft.open(home, "memory", environ=environ)
    assert app.config.get("session.max_turns") == 1
    app = weft.open(home, "memory", environ={**environ, "WEFT_SESSION_MAX_TURNS": "2"})
    assert app.config.get("session.max_turns") == 2
    assert app.config.get("session.idle_unload") == 5.0
    app = weft.open(home, "memory", {"session.max_turns": 3}, environ=environ)
    assert app.config.get("session.max_turns") == 3


@pytest.mark.requirement("app:config")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"session.max_turn": 3}, "session.max_turns"),
        ({"session.max_turns": "many"}, "session.max_turns"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_wrong_setting_is_named_with_the_nearest_right_one(
    home: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        weft.open(home, "memory", given)


@pytest.mark.process
async def test_a_project_may_not_widen_what_is_allowed(home: Path) -> None:
    (home / ".weft").mkdir()
    (home / ".weft" / "config.toml").write_text(
        '[permissions]\nmode = "bypass"\nallow = ["shell"]\ndeny = ["write"]\n'
    )
    call = CallTool(name="shell", args={"command": "touch made"})
    write = CallTool(name="write", args={"path": "b", "content": "x"})
    model = ScriptedModel([call, "ok", write, "ok"])
    async with weft.open(home, "memory") as app:
        session = await app.sessions.start_session(model=model, asking="no")
        await session.send_message("go")
        assert not (home / "made").exists()
        free = await app.sessions.start_session(model=model, permission_mode="bypass")
        await free.send_message("go")
        assert not (home / "b").exists()


@pytest.mark.requirement("entry:open:store")
@pytest.mark.parametrize("kind", ["memory", "jsonl", "sqlite", "a store of one's own"])
async def test_any_store_serves(home: Path, tmp_path: Path, kind: str) -> None:
    own = MemoryData()
    stores: dict[str, Any] = {
        "memory": lambda: "memory",
        "jsonl": lambda: f"jsonl:{tmp_path / 'logs'}",
        "sqlite": lambda: tmp_path / "weft.db",
        "a store of one's own": lambda: MemoryStore(data=own),
    }
    async with weft.open(home, stores[kind]()) as app:
        session = await app.sessions.start_session(session_id="s", model=ScriptedModel(["Hello."]))
        assert (await session.send_message("hi")).text == "Hello."
    if kind != "memory":
        async with weft.open(home, stores[kind]()) as app:
            assert await message_lines(await app.sessions.get("s")) == [
                "user: hi",
                "assistant: Hello.",
            ]


# --- tools -------------------------------------------------------------------------------------


@pytest.mark.requirement("entry:tool")
async def test_a_typed_function_becomes_a_tool(plain_world: World) -> None:
    @weft.tool
    def weather(city: str, days: int = 1, units: list[str] | None = None) -> dict[str, Any]:
        """Tell the weather.

        Args:
            city: Where.
            days: For how many days.
        """
        return {"city": city, "days": days, "sun": True}

    model = ScriptedModel([CallTool(name="weather", args={"city": "Bern", "days": 2}), "Sunny."])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(tools=[weather], permission_mode="bypass")
        await session.send_message("How is it?")
    [spec] = model.requests[0].tools
    assert (spec.name, spec.description) == ("weather", "Tell the weather.")
    assert spec.schema["properties"]["city"]["description"] == "Where."
    assert spec.schema["required"] == ["city"]
    assert request_lines(model.last_request)[-1] == 'result: {"city":"Bern","days":2,"sun":true}'
    assert weather("Bern") == {"city": "Bern", "days": 1, "sun": True}


@pytest.mark.requirement("entry:tool")
async def test_a_tool_shows_its_preview_and_may_use_its_context(plain_world: World) -> None:
    plain_world.write("a.txt", "content")

    @weft.tool(effect="unknown", preview=lambda path: f"will look at {path}")
    async def look(path: str, context: ToolContext) -> str:
        """Look at a file."""
        context.emit("looking…")
        return (await context.workspace.read(path)).data.decode()

    model = ScriptedModel([CallTool(name="look", args={"path": "a.txt"}), "ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(tools=[look])
        await session.send_prompt("go")
        request = await until(session, PermissionRequest)
        assert request.preview == "will look at a.txt"
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        [complete] = await facts(session, ToolComplete)
        assert complete.result.text == "content"


async def test_one_s_own_tools_may_stand_beside_all_of_ours(plain_world: World) -> None:
    async def mine() -> str:
        return "mine"

    model = ScriptedModel(["ok"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(tools=["all", mine])
        await session.send_message("hi")
    assert {"read", "write", "mine"} <= {tool.name for tool in model.last_request.tools}


async def test_a_model_object_is_a_model(plain_world: World) -> None:
    model = ScriptedModel(
        [SayText(text="mine")], info=ModelInfo(provider="mine", name="v1", price_input=1.0)
    )
    async with plain_world.open() as app:
        session = await app.sessions.start_session(model=model)
        reply = await session.send_message("hi")
        assert (reply.text, reply.model) == ("mine", "mine:v1")
        assert await session.get_provider() == "mine"
