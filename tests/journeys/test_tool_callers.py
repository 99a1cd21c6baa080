"""One way to run a tool: a call of the model, an architect's check and the shell line of a Markdown
command pass the same hooks, rules, limits and records.

Each test runs one command line by every caller.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec
import pytest

from tests.support.hook_project import decides, says
from tests.support.role_models import role_model
from tests.support.sandboxed_session import skip_without_sandbox
from tests.support.source_code import ROOT
from tests.support.world import World, crash, facts, request_lines
from weft.api.session import Session
from weft.app import App
from weft.errors import NoPendingRequest, UsageError
from weft.events import (
    ArchitectPlan,
    ErrorRaised,
    PermissionRequest,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    UsageRecorded,
)
from weft.messages import Text
from weft.permissions import ToolAction
from weft.project.markdown_commands import ShellRequest
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel
from weft.tools import PreparedCall, Tool, ToolContext, ToolOutcome, builtin_tools

pytestmark = pytest.mark.anyio

STEP = {"action": "create", "file": "1.txt", "description": "make 1", "details": "It holds 1."}
WRITE = CallTool(name="write", args={"path": "1.txt", "content": "1\n"})
ALLOWED: dict[str, Any] = {"auto_approve": True}


class Attempt(msgspec.Struct, kw_only=True):
    """A command line that a caller was given to run."""

    app: App
    session: Session
    models: tuple[ScriptedModel, ...]
    text: str = ""
    """What the caller reads of it."""

    async def intents(self) -> list[ToolExecuting]:
        """The intents of the command."""
        return await facts(self.session, ToolExecuting)

    async def result(self) -> ToolComplete:
        """How the command's call ended."""
        found = await facts(self.session, ToolComplete)
        return [each for each in found if each.result.text != "Submitted."][-1]


class User:
    """Approves plans, and gives every request for permission the same answer."""

    def __init__(self, *, allows: bool = True, answers: bool = True) -> None:
        self._allows = allows
        self._answers = answers
        self.asked: list[str] = []

    async def __call__(self, request: ShellRequest) -> bool:
        self.asked.append(request.command)
        if not self._answers:
            await anyio.sleep_forever()
        return self._allows

    async def attend(self, session: Session) -> None:
        """Answer what the session asks by its events."""
        async with await session.subscribe(after=0) as events:
            async for event in events:
                if isinstance(event, ArchitectPlan):
                    with suppress(NoPendingRequest):  # the settings have approved it already
                        await session.approve_plan()
                elif isinstance(event, PermissionRequest):
                    self.asked.append(event.tool_path)
                    if self._answers:
                        await session.respond_to_permission(
                            "allow_once" if self._allows else "deny"
                        )


async def send(session: Session, prompt: str, user: User) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(user.attend, session)
        await session.send_message(prompt)
        group.cancel_scope.cancel()


@asynccontextmanager
async def by_model(
    world: World, command: str, config: dict[str, Any], user: User, settings: dict[str, Any]
) -> AsyncGenerator[Attempt]:
    call = CallTool(name="shell", args={"command": command})
    model = ScriptedModel([[call], "ok", "ok"])
    async with world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s", **settings)
        attempt = Attempt(app=app, session=session, models=(model,))
        await send(session, "go", user)
        attempt.text = (await attempt.result()).result.text
        yield attempt


@asynccontextmanager
async def by_check(
    world: World, command: str, config: dict[str, Any], user: User, settings: dict[str, Any]
) -> AsyncGenerator[Attempt]:
    plan = {"summary": "Make it.", "steps": [{**STEP, "check": command}]}
    plans: list[dict[str, Any]] = [plan, {"summary": "No more.", "steps": []}]
    strong = role_model({"go": [CallTool(name="submit", args=each) for each in plans] + ["ok"]})
    fast = role_model({"make 1": [WRITE, "Made."]}, "fast")
    async with world.open(strong, fast, config={"model.editor": "scripted:fast", **config}) as app:
        session = await app.sessions.start_session(session_id="s", **settings)
        await session.set_mode("architect")
        attempt = Attempt(app=app, session=session, models=(strong, fast))
        await send(session, "go", user)
        await session.set_mode("normal")
        attempt.text = request_lines(strong.last_request)[-1]
        if "result: " in attempt.text or len(strong.requests) == 1:
            attempt.text = (await attempt.result()).result.text
        yield attempt


@asynccontextmanager
async def by_slash_command(
    world: World, command: str, config: dict[str, Any], user: User, settings: dict[str, Any]
) -> AsyncGenerator[Attempt]:
    commands = world.base / ".config" / "weft" / "commands"
    commands.mkdir(parents=True)
    (commands / "run.md").write_text(f"!`{command}`")
    model = ScriptedModel(["ok", "ok"])
    async with world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s", **settings)
        await session.send_message("go")
        attempt = Attempt(app=app, session=session, models=(model,))
        try:
            expanded = await session.expand_command("/run", ask=user)
        except UsageError as error:
            attempt.text = str(error)
        else:
            [part] = expanded.content
            assert isinstance(part, Text)
            attempt.text = part.text
        yield attempt


Caller: TypeAlias = Callable[
    [World, str, dict[str, Any], User, dict[str, Any]], AbstractAsyncContextManager[Attempt]
]
CALLERS: list[Caller] = [by_model, by_check, by_slash_command]


@pytest.fixture(params=CALLERS, ids=lambda caller: caller.__name__)
def caller(request: pytest.FixtureRequest) -> Caller:
    found: Caller = request.param
    return found


def on(event: str, command: str, **more: Any) -> dict[str, Any]:
    """Settings with one hook around commands."""
    return {"hooks": {event: [{"command": command, "matcher": "shell", **more}]}}


def names(world: World) -> set[str]:
    """The files of the project."""
    return {each.name for each in world.project.iterdir()}


async def until_read(fifo: Path) -> None:
    """Wait until a command has opened a fifo to read it: it runs in a process of its own."""
    with anyio.fail_after(20):
        while True:
            try:
                os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                await anyio.sleep(0.01)
            else:
                return


# --- hooks ---------------------------------------------------------------------------------


async def test_a_hook_that_says_no_is_obeyed(plain_world: World, caller: Caller) -> None:
    config = on("PreToolUse", "echo hands off >&2; exit 2")
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        assert "hands off" in attempt.text
        assert (await attempt.result()).result.status == "denied"
        assert "made" not in names(plain_world)


async def test_a_hook_may_have_the_user_asked(plain_world: World, caller: Caller) -> None:
    user = User(allows=False)
    config = on("PreToolUse", decides("ask", "better ask"))
    settings = {"permission_mode": "bypass"}
    async with caller(plain_world, "touch made", config, user, settings) as attempt:
        assert user.asked == ["touch made"]
        assert "Denied by the user" in attempt.text
        assert "made" not in names(plain_world)


async def test_the_input_that_a_hook_wants_is_run_in_place_of_the_other(
    plain_world: World, caller: Caller
) -> None:
    config = on("PreToolUse", decides("allow", updatedInput={"command": "touch other"}))
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        assert {"made", "other"} & names(plain_world) == {"other"}
        [intent] = [each for each in await attempt.intents() if "touch" in each.target]
        assert (intent.target, intent.args) == ("touch other", {"command": "touch other"})
        notes = [note.text for note in await facts(attempt.session, SystemNote) if note.to_model]
        assert any("A hook changed the input" in note for note in notes)


async def test_the_input_that_a_hook_wants_is_judged_by_the_rules(
    plain_world: World, caller: Caller
) -> None:
    config = on("PreToolUse", decides("allow", updatedInput={"command": "touch other"}))
    config["permissions.deny"] = ["shell(touch other)"]
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        assert "touch other" in attempt.text
        assert not {"made", "other"} & names(plain_world)


async def test_a_hook_may_answer_before_the_user_is_asked(
    plain_world: World, caller: Caller
) -> None:
    user = User(allows=False)
    config = on("PermissionRequest", decides("allow", "it is harmless"))
    settings = {"permission_mode": "accept_edits"}
    async with caller(plain_world, "touch made", config, user, settings):
        assert user.asked == []
        assert "made" in names(plain_world)


async def test_a_hook_after_the_call_may_say_something_to_the_model(
    plain_world: World, caller: Caller
) -> None:
    added = {"hookSpecificOutput": {"additionalContext": "run the formatter"}}
    config = on("PostToolUse", says({**added, "decision": "block", "reason": "too wide"}))
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        assert "made" in names(plain_world)
        await attempt.session.send_message("and then?")
        heard = "\n".join(request_lines(attempt.models[0].last_request))
        assert "run the formatter" in heard
        assert "too wide" in heard


async def test_a_hook_after_the_call_finds_its_result_on_record(
    world: World, caller: Caller
) -> None:
    reads = f"{sys.executable} -c 'import sys; sys.stdout.write(sys.stdin.read())' > heard"
    async with caller(world, "echo printed", on("PostToolUse", reads), User(), ALLOWED) as attempt:
        heard = msgspec.json.decode((world.project / "heard").read_bytes())
        assert heard["tool_input"]["command"] == "echo printed"
        assert heard["tool_response"]["text"] == "printed"
        assert (await attempt.result()).result.text == "printed"


async def test_a_hook_that_breaks_is_told_once_on_record(
    plain_world: World, caller: Caller
) -> None:
    config = on("PreToolUse", "kill -9 $$")
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        [raised] = await facts(attempt.session, ErrorRaised)
        assert raised.where == "hook"
        assert "made" not in names(plain_world)


@pytest.mark.parametrize(("event", "ran"), [("PreToolUse", False), ("PostToolUse", True)])
async def test_a_hook_may_end_it_all(
    plain_world: World, caller: Caller, event: str, ran: bool
) -> None:
    config = on(event, says({"continue": False, "stopReason": "enough for today"}))
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        ended = [end for end in await facts(attempt.session, TurnFinished) if end.reason != "stop"]
        if caller is by_slash_command:
            assert "enough for today" in attempt.text
        else:
            assert [(end.reason, "enough for today" in end.detail) for end in ended] == [
                ("halted", True)
            ]
        assert ("made" in names(plain_world)) is ran


# --- what it changes -----------------------------------------------------------------------


@pytest.mark.parametrize("sandbox", ["off", "on"])
async def test_what_it_changes_is_known_and_goes_back_with_a_rewind(
    plain_world: World, caller: Caller, sandbox: str
) -> None:
    world = plain_world
    world.write("notes", "remember\n")
    config = {"sandbox.mode": sandbox}
    line = "echo changed > notes; echo made > new"
    async with caller(world, line, config, User(), ALLOWED) as attempt:
        if sandbox == "on":
            await skip_without_sandbox(attempt.app, world)
        assert (world.read("notes"), world.read("new")) == ("changed\n", "made\n")
        touched = {(each.path, each.action) for each in await attempt.session.touched_files()}
        assert {("notes", "modified"), ("new", "created")} <= touched
        await attempt.session.rewind(0)
        assert world.read("notes") == "remember\n"
        assert "new" not in names(world)


async def test_what_a_stopped_command_changed_is_known(plain_world: World, caller: Caller) -> None:
    world = plain_world
    os.mkfifo(world.project / "started")

    async def stop_it(session: Session, scope: anyio.CancelScope) -> None:
        await until_read(world.project / "started")
        await session.abort()
        scope.cancel()

    class Impatient(User):
        async def attend(self, session: Session) -> None:
            await stop_it(session, anyio.CancelScope())

    line = "echo made > new; cat started > /dev/null; exec sleep 1000"
    if caller is by_slash_command:
        commands = world.base / ".config" / "weft" / "commands"
        commands.mkdir(parents=True)
        (commands / "run.md").write_text(f"!`{line}`")
        async with world.open(ScriptedModel(["ok"])) as app:
            session = await app.sessions.start_session(session_id="s", **ALLOWED)
            async with anyio.create_task_group() as group:
                group.start_soon(stop_it, session, group.cancel_scope)
                await session.expand_command("/run")
            await _is_stopped(session)
        return
    async with caller(world, line, {}, Impatient(), ALLOWED) as attempt:
        await _is_stopped(attempt.session)


async def _is_stopped(session: Session) -> None:
    assert ("new", "created") in {
        (each.path, each.action) for each in await session.touched_files()
    }
    [intent] = [each for each in await facts(session, ToolExecuting) if "sleep" in each.target]
    [end] = [e for e in await facts(session, ToolComplete) if e.call_uid == intent.call_uid]
    assert end.result.status == "aborted"


# --- intents and crashes -------------------------------------------------------------------


async def test_an_effect_is_intended_before_it_runs_and_settled_after(
    world: World, caller: Caller
) -> None:
    async with caller(world, "echo done > made", {}, User(), ALLOWED) as attempt:
        [intent] = [each for each in await attempt.intents() if "made" in each.target]
        end = await attempt.result()
        assert intent.call_uid == end.call_uid
        assert intent.seq < end.seq
        assert (intent.effect, intent.args["command"]) == ("unknown", "echo done > made")


@pytest.mark.parametrize("is_beside_turn", [False, True])
async def test_a_shell_line_that_a_crash_cut_short_is_reported_and_never_repeated(
    world: World, is_beside_turn: bool
) -> None:
    commands = world.base / ".config" / "weft" / "commands"
    commands.mkdir(parents=True)
    (commands / "run.md").write_text("!`echo run >> runs; cat started; exec sleep 1000`")
    os.mkfifo(world.project / "started")
    app = await world.open(ScriptedModel(["ok", "ok"])).__aenter__()
    session = await app.sessions.start_session(session_id="s", **ALLOWED)
    await session.send_message("hi")
    async with anyio.create_task_group() as group:
        group.start_soon(session.expand_command, "/run")
        await until_read(world.project / "started")
        if is_beside_turn:
            await session.send_message("a turn that begins and ends meanwhile")
        await crash(app)
        group.cancel_scope.cancel()
    model = ScriptedModel(["ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        assert len(await facts(session, ToolComplete)) == 0, "opening a session only reads"
        await session.send_message("what happened?")
        [end] = await facts(session, ToolComplete)
        assert end.result.status == "interrupted"
        [note] = [each for each in await facts(session, SystemNote) if each.level == "warning"]
        assert "was interrupted, and was not run again" in note.text
        assert "was interrupted" in "\n".join(request_lines(model.last_request))
        assert world.read("runs") == "run\n"
        await session.send_message("again")
        assert len(await facts(session, ToolComplete)) == 1, "it is reported once"


async def test_a_lost_shell_line_does_not_count_a_lost_answer_twice(world: World) -> None:
    commands = world.base / ".config" / "weft" / "commands"
    commands.mkdir(parents=True)
    (commands / "run.md").write_text("!`cat started; exec sleep 1000`")
    os.mkfifo(world.project / "started")
    app = await world.open(ScriptedModel(["ok", Stall()])).__aenter__()
    session = await app.sessions.start_session(session_id="s", **ALLOWED)
    await session.send_message("hi")
    await session.send_prompt("an answer that a crash cuts short")
    async with anyio.create_task_group() as group:
        group.start_soon(session.expand_command, "/run")
        await until_read(world.project / "started")
        await crash(app)
        group.cancel_scope.cancel()
    async with world.open(ScriptedModel(["done"])) as app:
        session = await app.sessions.start_session(session_id="s")
        assert (await session.continue_and_wait()).text == "done"
        assert len(await facts(session, ToolComplete)) == 1
        lost = [each for each in await facts(session, UsageRecorded) if each.estimated]
        assert len(lost) == 1, "one call was lost, and is counted once"


KILLED = """
import anyio, sys, weft
from weft.providers.scripted import ScriptedModel

async def main(project, store, home, path):
    environ = {"HOME": home, "WEFT_HOME": home, "PATH": path}
    async with weft.open(project, store, {"sandbox.mode": "off"}, environ=environ) as app:
        session = await app.sessions.start_session(
            session_id="s", model=ScriptedModel(["ok"]), auto_approve=True
        )
        await session.send_message("hi")
        await session.expand_command("/run")

anyio.run(main, *sys.argv[1:5])
"""


async def test_killed_in_a_shell_line_what_it_changed_is_found_and_can_be_taken_back(
    shared_world: World,
) -> None:
    world = shared_world
    commands = world.base / ".config" / "weft" / "commands"
    commands.mkdir(parents=True)
    (commands / "run.md").write_text("!`echo made > new; cat started; exec sleep 1000`")
    os.mkfifo(world.project / "started")
    arguments = [str(world.project), str(world.base / "weft.db"), str(world.base)]
    line = [sys.executable, "-c", KILLED, *arguments, os.environ["PATH"]]
    async with await anyio.open_process(line, cwd=ROOT) as process:
        await until_read(world.project / "started")
        process.send_signal(signal.SIGKILL)
    async with world.open(ScriptedModel(["ok"])) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("what happened?")
        [end] = await facts(session, ToolComplete)
        assert end.result.status == "interrupted"
        assert "new" in {each.path for each in await session.touched_files()}
        await session.rewind(0, overwrite=["new"])
        assert "new" not in names(world)


# --- limits --------------------------------------------------------------------------------


async def test_a_long_output_is_cut_for_the_reader_and_kept_whole(
    plain_world: World, caller: Caller
) -> None:
    line = "for n in $(seq 9000); do echo line $n; done; exit 3"
    async with caller(plain_world, line, {}, User(), ALLOWED) as attempt:
        result = (await attempt.result()).result
        assert "characters left out" in result.text
        assert result.full_text is not None
        assert len(attempt.text) < 40_000


async def test_secrets_are_masked_for_the_reader_and_in_the_log(
    plain_world: World, caller: Caller
) -> None:
    key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    plain_world.write("key", key)
    async with caller(plain_world, "cat key; exit 3", {}, User(), ALLOWED) as attempt:
        assert key not in attempt.text
        assert key not in (await attempt.result()).result.text


async def test_a_request_without_an_answer_counts_as_denied_in_the_end(
    plain_world: World, caller: Caller
) -> None:
    user = User(answers=False)
    config = {"permissions.ask_timeout": 5}
    settings = {"permission_mode": "accept_edits"}
    with anyio.fail_after(10):
        async with caller(plain_world, "touch made", config, user, settings) as attempt:
            assert user.asked == ["touch made"]
            assert "5 seconds" in attempt.text
            assert "made" not in names(plain_world)


async def test_yes_to_everything_lets_nothing_out_of_the_sandbox(
    plain_world: World, caller: Caller
) -> None:
    wider = {"command": "touch made", "outside_sandbox": True}
    config = {**on("PreToolUse", decides("allow", updatedInput=wider)), "sandbox.mode": "on"}
    async with caller(plain_world, "touch made", config, User(), ALLOWED) as attempt:
        await skip_without_sandbox(attempt.app, plain_world)
        assert "out of the sandbox" in attempt.text
        assert "made" not in names(plain_world)


class OwnShell(Tool):
    """A program's own tool in the place of the built-in shell; it breaks."""

    name = "shell"
    description = "Runs a command elsewhere."
    schema = builtin_tools()["shell"].schema
    effect = builtin_tools()["shell"].effect
    timeout_seconds = 5.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        action = ToolAction(tool=self.name, kind="run", target=args["command"])

        async def run() -> ToolOutcome:
            raise RuntimeError("it fell over")

        return PreparedCall(action=action, run=run)


async def test_a_programs_own_shell_is_used_and_its_failure_is_a_result(
    plain_world: World, caller: Caller
) -> None:
    settings = {**ALLOWED, "tools": ["write", "read", OwnShell()]}
    async with caller(plain_world, "touch made", {}, User(), settings) as attempt:
        assert "The tool failed: RuntimeError: it fell over" in attempt.text
        assert "made" not in names(plain_world)


class SlowShell(OwnShell):
    """One that takes longer than it may."""

    timeout_seconds = 0.05

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        prepared = await super().prepare(args, context)
        return msgspec.structs.replace(prepared, run=anyio.sleep_forever)


async def test_a_tool_is_stopped_after_its_time(plain_world: World, caller: Caller) -> None:
    settings = {**ALLOWED, "tools": ["write", "read", SlowShell()]}
    async with caller(plain_world, "touch made", {}, User(), settings) as attempt:
        assert "longer than 0.05 seconds" in attempt.text


def test_a_tool_is_run_in_one_place() -> None:
    """Code that prepares or runs a tool elsewhere has gone round hooks, rules and records."""
    source = Path(ROOT, "src", "weft")
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if "prepare(args" in path.read_text().replace("def prepare(self, args", "")
        or "prepare(call.args" in path.read_text()
        or "prepared.run" in path.read_text()
    }
    loaders = {"agents/lazy_tool.py", "tools/builtin/registry.py"}
    assert found == {"loop/tool_calls.py", *loaders}
