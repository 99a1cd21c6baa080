"""What tools answer: failures, floods, files and secrets."""

from __future__ import annotations

import base64
import sys
from typing import Any

import anyio
import pytest

import weft
from tests.support.image_samples import picture
from tests.support.world import World, facts, request_lines, running
from weft.errors import FinalToolError, RetryableToolError
from weft.events import FileTouched, ToolComplete, ToolOutput
from weft.messages import Image, ToolResult
from weft.permissions import ToolAction
from weft.providers import CallResults
from weft.providers.script import CallTogether, CallTool
from weft.providers.scripted import ScriptedModel
from weft.tools import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.workspace import ChangedFile

pytestmark = pytest.mark.anyio


async def result_of(world: World, tool: Any, name: str, **args: Any) -> ToolResult:
    """What a call of this tool comes to; the session must be well afterwards."""
    model = ScriptedModel([CallTool(name=name, args=args), "Done.", "Fine."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[tool], auto_approve=True)
        with anyio.fail_after(5):
            assert (await session.send_message("go")).text == "Done."
            assert (await session.send_message("well?")).text == "Fine."
        [complete] = await facts(session, ToolComplete)
        assert complete.is_error == complete.result.is_error
        return complete.result


class Odd(Tool):
    """A tool that is handed what it answers."""

    name = "odd"
    description = "Odd."
    schema = {"type": "object", "properties": {}}
    timeout_seconds = 5.0

    def __init__(self, answer: Any, effect: Any = "unknown") -> None:
        self._answer = answer
        self.effect = effect

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        async def run() -> ToolOutcome:
            return self._answer() if callable(self._answer) else self._answer  # type: ignore[no-any-return]

        action = ToolAction(tool=self.name, kind="other", has_effect=self.effect != "pure")
        return PreparedCall(action=action, run=run)


# --- failures ------------------------------------------------------------------------------


@pytest.mark.requirement("fault:tool-nonsense")
@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (FinalToolError("there is no such table"), "there is no such table"),
        (RetryableToolError("the server is busy"), "the server is busy"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (TimeoutError("the database timed out"), "the database timed out"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup"),
        (SystemExit(3), "SystemExit"),
    ],
)
async def test_what_goes_wrong_in_a_tool_is_its_result(
    plain_world: World, error: BaseException, shown: str
) -> None:
    async def fail() -> None:
        raise error

    result = await result_of(plain_world, fail, "fail")
    assert result.is_error
    assert shown in result.text


async def test_a_plain_function_that_ends_the_program_ends_only_its_call(
    plain_world: World,
) -> None:
    def leave() -> None:
        sys.exit("usage: leave")

    result = await result_of(plain_world, leave, "leave")
    assert result.is_error


async def test_a_tool_that_fails_while_preparing_fails_alone(plain_world: World) -> None:
    class Unready(Odd):
        async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
            raise RuntimeError("not ready")

    result = await result_of(plain_world, Unready(None), "odd")
    assert "not ready" in result.text


async def test_a_tool_that_takes_too_long_is_stopped(plain_world: World) -> None:
    @weft.tool(timeout_seconds=0.01)
    async def dawdle() -> None:
        await anyio.sleep_forever()

    result = await result_of(plain_world, dawdle, "dawdle")
    assert result.is_error
    assert "ran longer than 0.01 seconds" in result.text


@pytest.mark.requirement("fault:tool-nonsense")
@pytest.mark.parametrize("effect", ["unknown", "pure"])
@pytest.mark.parametrize(
    "answer",
    [
        None,
        "just text",
        42,
        ToolOutcome(text="ok", data={"what": object()}),
        ToolOutcome(text="ok", data={"what": "\ud800"}),
        ToolOutcome(text=7),  # type: ignore[arg-type]
        ToolOutcome(text="ok", touched=(ChangedFile(path="a", action="renamed"),)),  # type: ignore[arg-type]
    ],
    ids=["none", "text", "number", "object", "surrogate", "no text", "no action"],
)
async def test_a_tool_that_answers_nonsense_hurts_itself_alone(
    plain_world: World, answer: Any, effect: str
) -> None:
    """Nothing gets into the log that could not be read again: the session is reopened to see."""
    result = await result_of(plain_world, Odd(answer, effect), "odd")
    assert result.status == "done"
    async with plain_world.open() as app:
        [row] = await app.sessions.list_saved()
        assert len((await app.sessions.read_session(row.id)).messages) == 6


async def test_lone_surrogates_and_nul_in_output_are_cleaned_before_they_are_shown(
    world: World,
) -> None:
    async def odd() -> str:
        return "a\ud800b\x00c"

    result = await result_of(world, odd, "odd")
    assert result.text.encode()
    assert result.text.startswith("a")


# --- floods --------------------------------------------------------------------------------


@pytest.mark.requirement("fault:flood")
async def test_a_flood_is_cut_for_the_model_and_kept_whole_beside_it(world: World) -> None:
    whole = "".join(f"line {i}\n" for i in range(50_000))

    async def flood() -> str:
        return whole

    model = ScriptedModel([CallTool(name="flood"), "Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(tools=[flood], auto_approve=True)
        await session.send_message("go")
        [complete] = await facts(session, ToolComplete)
        assert complete.result.full_text is not None
        assert await app.store.blob(complete.result.full_text) == whole.encode()
    heard = request_lines(model.last_request)[-1]
    assert len(heard) < 40_000
    assert "line 0\n" in heard
    assert "line 49999" in heard
    assert "characters left out" in heard


@pytest.mark.process
async def test_output_of_a_running_command_can_be_watched(world: World) -> None:
    call = CallTool(name="shell", args={"command": "echo one; echo two"})
    async with world.open(ScriptedModel([call, "Done."])) as app:
        session = await app.sessions.start_session(auto_approve=True)
        seen = ""
        async with await session.subscribe() as events, running():
            await session.send_message("go")
            while not isinstance(event := await anext(events), ToolComplete):
                if isinstance(event, ToolOutput):
                    seen += event.chunk
        assert "one\ntwo" in seen


async def test_pictures_that_a_tool_answers_reach_the_model_and_survive(world: World) -> None:
    picture = Image(media_type="image/png", data="iVBORw0KGgo=", name="shot.png")
    model = ScriptedModel([CallTool(name="odd"), "A cat.", "Still a cat."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            session_id="s",
            tools=[Odd(ToolOutcome(text="see", images=(picture,)))],
            auto_approve=True,
        )
        await session.send_message("look")
    async with world.open(model) as app:
        await (await app.sessions.get("s")).send_message("and now?", tools="all")
    for request in model.requests[1:]:
        [results] = [m for m in request.messages if hasattr(m, "results")]
        assert results.results[0].images == (picture,)


# --- files ---------------------------------------------------------------------------------


@pytest.mark.requirement("session:touched_files")
async def test_touched_files_name_what_differs_from_before_newest_first(world: World) -> None:
    world.write("old.txt", "old\n")

    def touched(path: str, action: Any) -> CallTool:
        return CallTool(name="touch", args={"path": path, "action": action})

    async def touch(path: str, action: str) -> ToolOutcome:
        return ToolOutcome(text="ok", touched=(ChangedFile(path=path, action=action),))  # type: ignore[arg-type]

    model = ScriptedModel(
        [
            CallTogether(
                calls=(
                    CallTool(name="read", args={"path": "old.txt"}),
                    CallTool(name="write", args={"path": "new.txt", "content": "1\n"}),
                    CallTool(
                        name="edit",
                        args={"path": "old.txt", "old_string": "old", "new_string": "newer"},
                    ),
                )
            ),
            CallTogether(
                calls=(
                    CallTool(name="write", args={"path": "new.txt", "content": "2\n"}),
                    touched("gone.txt", "deleted"),
                    touched("brief.txt", "created"),
                    touched("brief.txt", "deleted"),
                )
            ),
            "Done.",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            session_id="s", tools=["read", "write", "edit", touch], auto_approve=True
        )
        await session.send_message("go")
        found = [(each.path, each.action) for each in await session.touched_files()]
        assert found == [
            ("brief.txt", "deleted"),
            ("gone.txt", "deleted"),
            ("new.txt", "created"),
            ("old.txt", "modified"),
        ]
        assert all(each.at > 0 for each in await session.touched_files())
        changed = next(each for each in await facts(session, FileTouched) if each.path == "old.txt")
        assert changed.before is not None
        assert await app.store.blob(changed.before) == b"old\n"
    async with world.open() as app:
        session = await app.sessions.get("s")
        assert [(each.path, each.action) for each in await session.touched_files()] == found


# --- secrets -------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.requirement("fault:secrets")
async def test_secrets_in_tool_output_reach_neither_model_nor_log_nor_watchers(
    world: World,
) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 10
    world.write("env", f"ANTHROPIC_API_KEY={key}\n")
    model = ScriptedModel(
        [
            CallTool(name="read", args={"path": "env"}),
            CallTool(name="shell", args={"command": "cat env"}),
            "Done.",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        seen: list[str] = []
        async with await session.subscribe(after=0) as events, running():
            await session.send_message("look")
            end = (await session.editor_snapshot()).seq
            while events.cursor < end:
                seen.append(repr(await anext(events)))
        assert key not in "".join(seen)
        stored = await app.store.read(session.id)
        assert key.encode() not in b"".join(record.body for record in stored)
        for each in await facts(session, ToolComplete):
            assert "ANTHROPIC_API_KEY" in each.result.text
    assert key not in repr(model.requests)


async def test_a_picture_that_was_read_is_shown_in_every_later_request(world: World) -> None:
    """However large: the log keeps only its name, and each request has it whole, also in a new
    process.
    """
    data = picture("PNG", 200, 170, noisy=True)
    (world.project / "shot.png").write_bytes(data)
    model = ScriptedModel(
        [CallTool(name="read", args={"path": "shot.png"}), "A wall.", "Still.", "And still."]
    )

    def seen() -> list[bytes]:
        results = [m for m in model.last_request.messages if isinstance(m, CallResults)]
        return [base64.b64decode(i.data) for m in results for r in m.results for i in r.images]

    async with world.open(model) as app:
        session = await app.sessions.start_session()
        for words in ("A wall.", "Still."):
            assert (await session.send_message("what is it?")).text == words
            assert seen() == [data]
        [complete] = await facts(session, ToolComplete)
        assert [(i.data, bool(i.blob)) for i in complete.result.images] == [("", True)]
    async with world.open(model) as app:
        again = await app.sessions.get(session.id)
        assert (await again.send_message("sure?")).text == "And still."
        assert seen() == [data]


async def test_a_turn_that_failed_does_not_give_the_answer_of_the_turn_before(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("a")).text == "one"
        failed = await session.send_message("b")
        assert (failed.finish_reason, failed.text) == ("provider_error", "")
