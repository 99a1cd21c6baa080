"""`weft -p`: one prompt (or a program's stream of them) in, an answer out, no questions.

A call that needs approval is denied with a reason, so a run never waits for a user.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from weft.api.results import Result
from weft.api.session import Session
from weft.app import App
from weft.cli import stdio as output
from weft.cli.exit_codes import FAILED, NO_KEY, OK, CommandExit, code_of, first_of, sentence_of
from weft.cli.gc import collect_garbage_again
from weft.cli.headless.answers import answer_text, check_file, read_schema, write_file
from weft.cli.headless.output_formats import OutputSink, ProgressNarrator, TextSink
from weft.cli.headless.own_turn import OwnTurn
from weft.cli.headless.turn_driver import TurnDriver
from weft.cli.parse import ParsedArguments
from weft.cli.prompt_input import PromptParts, attached, compose, read_piped
from weft.cli.session_options import (
    chosen_id,
    make_app,
    note_of_level,
    options_of_agent,
    session_options_of,
)
from weft.cli.signals import StopSignal
from weft.errors import SessionInterrupted, UsageError, WeftError
from weft.ids import new_id
from weft.messages import Content, Text
from weft.protocol.session_options import SPOKEN_VERSION, message_options, open_session
from weft.view import SUCCESSFUL, count_of

if TYPE_CHECKING:  # loaded where a program drives us: it costs start-up time
    from weft.hooks.config import HookTable


def run_print(arguments: ParsedArguments) -> int:
    """Answer, and return the exit code."""
    path = arguments.text("output_last_message")
    output.check_output(has_file=path is not None)
    if path is not None:
        check_file(path)
    streams_in = arguments.text("input_format") == "stream-json"
    if streams_in and arguments.text("output_format") != "stream-json":
        raise UsageError("--input-format stream-json needs --output-format stream-json")
    if streams_in:
        from weft.cli.agent_sdk.sdk_options import carry_over  # only where a program drives us

        for said in carry_over(arguments):
            output.complain(said)
    if arguments.text("resume") == "":
        raise UsageError(
            "there is no terminal to pick from a list: give --resume an id, or use --continue"
        )
    schema = arguments.text("json_schema")
    # Handed to the application empty: `initialize` arrives after it is open, and hooks added later
    # must reach sessions that exist already.
    hooks = _hooks_to_come() if streams_in else None
    app = make_app(arguments, hooks)
    run = _Run(
        arguments,
        app,
        () if streams_in else _prompt_parts(arguments),
        read_schema(schema) if schema is not None else None,
        hooks,
    )
    return anyio.run(run.main)


def _hooks_to_come() -> HookTable:
    """Where the hooks go that a program may hand over."""
    from weft.hooks.config import HookTable  # only where a program drives us

    return HookTable()


def _prompt_parts(arguments: ParsedArguments) -> PromptParts:
    piped = read_piped(has_prompt=bool(arguments.words))
    said = compose(arguments.words, piped=piped)
    begins = not (arguments.flag("continue") or arguments.text("resume"))
    if not said and not arguments.many("image") and begins:
        raise UsageError(
            'there is no prompt; give one (weft -p "What does this do?"), or pipe it in'
        )
    return said


class _Run:
    """One run from beginning to end."""

    def __init__(
        self,
        arguments: ParsedArguments,
        app: App,
        prompt: PromptParts,
        schema: dict[str, Any] | None,
        hooks: HookTable | None,
    ) -> None:
        self._arguments = arguments
        self._app = app
        self._prompt = prompt
        self._schema = schema
        self._hooks = hooks
        asks = arguments.text("permission_prompt_tool") is not None
        self._options = session_options_of(arguments, headless=not asks)
        self._sink = _make_sink(arguments, app.project_path)
        self._stop = StopSignal()
        self._session: Session | None = None
        self._talk: TurnDriver | None = None
        self._is_new = True

    async def main(self) -> int:
        """Run; returns the exit code."""
        code = FAILED
        try:
            async with anyio.create_task_group() as group:
                # Handlers are in place before anything is stored: a Ctrl-C in between would
                # otherwise kill the process while a session is being made.
                await group.start(self._watch_signals, group.cancel_scope)
                # Before the app opens: a prompt that is refused leaves nothing behind.
                self._prompt += await self._attached()
                async with self._app:
                    # The application is open: what the start has made stays for good and is never
                    # searched for garbage.
                    collect_garbage_again()
                    # While the session is stored, which is a wait for the disk.
                    group.start_soon(self._app.host.prepare_index, self._prompt)
                    code = await self._in_app(await self._open())
                    await self._finish_for_guests()
                group.cancel_scope.cancel()
        except* (WeftError, CommandExit, OSError) as errors:
            # After a signal the errors come from the cancellation; they are not what went wrong.
            if not self._stop.signal:
                self._fail(first_of(errors))
        return self._stop.code or code

    async def _finish_for_guests(self) -> None:
        """Another command line's turn may run here by now: let it end before we do."""
        session, self._session = self._session, None
        if session is not None:
            await self._app.host.finish_for_guests(session.id)

    def _is_slash(self) -> bool:
        """True for what may be a command from a file, which only an open session knows."""
        first = self._prompt[0] if self._prompt else None
        return isinstance(first, Text) and first.text.startswith("/")

    async def _attached(self) -> PromptParts:
        """The files of the prompt; those of a slash command are attached when it is expanded."""
        if self._hooks is not None:
            return ()
        words = () if self._is_slash() else self._arguments.words
        images = self._arguments.many("image")
        return await attached(self._app, words, images=images, tell=output.complain)

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, BrokenPipeError):
            # A program that reads JSON gets the failure as a result line, too: it must not have to
            # read standard error.
            self._sink.fail(sentence_of(error), started=isinstance(error, SessionInterrupted))
        raise error

    async def _give_up(self) -> bool:
        """Settle what is ours; False when there is nothing, yet or any more: then cancelling is
        enough.
        """
        if self._session is None:
            return False
        if self._talk is not None:
            return await self._talk.give_up(self._stop.reason)
        # A turn that runs before we have said something is another's; a program that drives us
        # says what it likes.
        if self._hooks is not None:
            await self._session.abort(self._stop.reason)
        return self._hooks is not None

    async def _watch_signals(
        self, scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async def settle() -> None:
            if not await self._give_up():
                scope.cancel()

        await self._stop.watch(settle, task_status=task_status)

    async def _open(self) -> Session:
        await self._report_ignored_files()
        # Before a model is looked for: a resumed session has one of its own.
        existing = await chosen_id(self._app, self._arguments)
        if self._arguments.text("agent") is not None:
            self._options = await options_of_agent(self._app, self._options, self._arguments)
        if existing is None or self._options.model is not None:
            await self._check_model()
        session = await open_session(
            self._app.sessions,
            self._options,
            existing=existing,
            fork=self._arguments.flag("fork"),
            new_id=self._arguments.text("session_id"),
        )
        self._is_new = existing is None
        if (at := self._arguments.text("resume_session_at")) is not None:
            from weft.cli.agent_sdk.message_ids import message_id  # only where a program drives us

            await session.branch_at(await message_id(session, at))
        try:
            await self._say_what_begins(session)
        except (WeftError, CommandExit, OSError):
            # The first line may find its reader gone (`weft -p … | true`).
            await self._delete_empty_session(session)
            raise
        # Only now: a signal from here on aborts the turn and lets it settle; before, it cancels
        # everything.
        self._session = session
        return session

    async def _say_what_begins(self, session: Session) -> None:
        snapshot = await session.editor_snapshot()
        model, level = snapshot.model, snapshot.thinking
        if said := note_of_level(self._app, self._options, model, level, begins=self._is_new):
            output.complain(said)
        brought = await self._brought(session, model)
        self._sink.start(session.id, lambda: {**describe(self._app, snapshot), **brought})

    async def _brought(self, session: Session, model: str) -> dict[str, Any]:
        """Tools, commands, skills and agents of the session, for the first line of a stream."""
        if self._arguments.text("output_format") != "stream-json":
            return {}
        skills, _ = await session.list_skills()
        tools = self._options.tools
        return {
            "tools": tools if tools is not None else self._all_tools(model, bool(skills)),
            "slash_commands": [name.removeprefix("/") for name in await session.get_commands()],
            "skills": [skill.name for skill in skills],
            "agents": [agent.name for agent in await session.list_agents()],
        }

    def _all_tools(self, model: str, has_skills: bool) -> list[str]:
        """Every tool of a session that was given no list, as its model is told of them."""
        from weft.api.options import builtin_tool_names  # only for those who ask

        hidden = self._app.host.unused_edits(model)
        has_servers = self._app.host.services.workspaces.has_servers()
        names = builtin_tool_names(
            has_skills=has_skills,
            has_agents=True,
            has_servers=has_servers,
            has_web=bool(self._app.config.get("web.tools")),
        )
        return [name for name in names if name not in hidden]

    def _may_act(self) -> bool:
        """One look, so that folders without settings of their own cost nothing."""
        return os.path.lexists(os.path.join(self._app.project_path, ".weft"))

    async def _report_ignored_files(self) -> None:
        """Say what of this folder is left out, and that it is not trusted.

        Nothing is asked here.
        """
        if problems := await self._app.project_problems():
            from weft.cli.chat.trust_text import left_out  # only where there is something to say

            for line in left_out(problems):
                output.complain(line)
        if (servers := self._app.mcp_servers) is not None:
            for named in servers.questions():
                output.complain(
                    "this project names an MCP server that you have not allowed: "
                    f"{named.name}; `weft mcp allow {named.name}` lets it be started"
                )
        if not self._may_act():
            return
        question = await self._app.trust_question()
        if question is not None:
            from weft.cli.chat.trust_text import warning

            output.complain(warning(question))

    async def _check_model(self) -> None:
        """Refuse to begin where nothing can answer; fetch what an embedded model needs.

        Raises:
            CommandExit: there is no key for the model, or none at all.
        """
        named = self._options.model
        if named is None and not self._app.host.has_default_model():
            from weft.cli.local_model import NO_KEY_LINES  # only for those who have no key

            raise CommandExit(NO_KEY, NO_KEY_LINES)
        host = self._app.host
        for role in ("plan_model", "edit_model"):
            if (given := self._arguments.text(role)) is not None:
                host.check_model(given)
        model = host.default_model() if named is None else host.normal_model(named)
        # Before there is a session: one that could only fail would be the next that `-c` takes.
        if missing := host.missing_key(model):
            raise CommandExit(NO_KEY, missing)
        if model.startswith("local:"):
            from weft.cli.local_model import make_ready  # only for embedded models

            await make_ready(model, output.complain)

    async def _in_app(self, session: Session) -> int:
        options = message_options(self._options, existing=not self._is_new)
        if self._schema is not None:
            options["schema"] = self._schema
        if self._hooks is not None:
            # Only where a program drives us.
            from weft.cli.agent_sdk.stream_input import StreamInputSession

            asks = self._arguments.text("permission_prompt_tool") is not None
            dialogue = StreamInputSession(
                self._app,
                session,
                self._sink,
                options,
                hooks=self._hooks,
                asks=asks,
                answers_servers=self._arguments.text("permission_prompts") != "none",
            )
            return await dialogue.run()
        return await self._one_turn(session, options)

    async def _one_turn(self, session: Session, options: dict[str, Any]) -> int:
        own = await self._own_turn(session)
        talk = self._talk = TurnDriver(self._app, session, self._sink, own=own)
        async with anyio.create_task_group() as group:
            # Subscribed before the message is sent, or the first events of the turn would be
            # missed.
            await group.start(talk.follow)
            try:
                result = await talk.send(lambda: self._send(session, own.input_id, options))
            except WeftError:
                await self._delete_empty_session(session)
                raise
            finally:
                group.cancel_scope.cancel()
        return code_of(talk.unread) if talk.unread else self._finish(result, talk.denied)

    async def _own_turn(self, session: Session) -> OwnTurn:
        turn = (await self._app.host.port(session.id)).state.turn.open
        made = new_id("inp", self._app.host.now())
        running = turn.turn_id if turn is not None else None
        return OwnTurn(made, running, continues=not self._prompt)

    async def _send(self, session: Session, input_id: str, options: dict[str, Any]) -> Result:
        if self._prompt:
            content: Content = self._prompt
            if self._is_slash():
                # Only where it may be a command.
                from weft.cli.headless.slash_prompt import expanded

                words = self._arguments.words
                content, more = await expanded(
                    self._app, session, self._prompt, words, tell=output.complain
                )
                options = {**options, **more}
            return await session.send_message(content, input_id=input_id, **options)
        if await session.get_status() not in ("interrupted", "waiting"):
            raise UsageError(
                "there is nothing to continue: the last turn has finished; give a prompt"
            )
        return await session.continue_and_wait(input_id=input_id, **options)

    async def _delete_empty_session(self, session: Session) -> None:
        """A new session whose first message could not even be sent is no session."""
        # `-c` would resume the empty session next time, and lists would show it.
        if self._is_new and not (await session.metadata()).message_count:
            await self._app.sessions.delete_session(session.id)

    def _finish(self, result: Result, denied: int) -> int:
        if (path := self._arguments.text("output_last_message")) is not None:
            write_file(path, answer_text(result, as_json=self._schema is not None))
        self._sink.finish(result)
        # The reason is the only place that tells a rejected plan from other halts.
        if result.finish_reason == "halted" and "plan was turned down" in result.detail:
            output.complain("--permission-mode bypass approves plans beforehand")
        if denied:
            calls, was, it = count_of(denied, "tool call"), "were", "them"
            if denied == 1:
                was, it = "was", "it"
            output.complain(
                f"{calls} {was} denied: no one to approve {it} in -p mode; --allowedTools or "
                "--permission-mode accept_edits (for tools of MCP servers: bypass) approves "
                f"{it} beforehand"
            )
        return OK if result.finish_reason in SUCCESSFUL else FAILED


def describe(app: App, snapshot: Any) -> dict[str, Any]:
    """What the first line of a stream says of the session."""
    return {
        "cwd": app.project_path,
        "model": snapshot.model,
        "permissionMode": snapshot.permission_mode,
        "context_window": snapshot.context_window,
        "mcp_servers": _mcp_servers(app),
        "claude_code_version": SPOKEN_VERSION,
        "apiKeySource": "none",
        # Empty, but present: readers of the Agent SDK expect these fields.
        "plugins": [],
        "output_style": "default",
        "capabilities": [
            *("interrupt", "set_model", "set_permission_mode", "can_use_tool"),
            *("rewind_files", "stop_task", "plan", "hook_callback"),
        ],
    }


def _mcp_servers(app: App) -> list[dict[str, str]]:
    """The MCP servers as readers of the Agent SDK know them."""
    servers = app.mcp_servers
    words = {"ready": "connected", "failed": "failed", "needs_login": "needs-auth"}
    rows = [] if servers is None else servers.status()
    return [{"name": row.name, "status": words.get(row.state, "pending")} for row in rows]


def _make_sink(arguments: ParsedArguments, root: str) -> OutputSink:
    """The sink that the arguments ask for; `root` is the folder that relative paths are below."""
    format_ = arguments.text("output_format") or "text"
    # With stream-json every step is a line already.
    narrator = ProgressNarrator(is_verbose=arguments.flag("verbose"))
    if format_ == "text":
        return TextSink(narrator, as_json=arguments.text("json_schema") is not None)
    # Only where JSON is spoken: start-up time.
    from weft.cli.headless.json_output import JsonSink, StreamSink
    from weft.protocol.agent_sdk_dialect import dialect_of

    dialect = dialect_of(_dialect_name(arguments), root)
    if format_ == "json":
        return JsonSink(narrator, dialect)
    return StreamSink(
        partials=arguments.flag("include_partial_messages"),
        repeats=arguments.flag("replay_user_messages"),
        dialect=dialect,
    )


def _dialect_name(arguments: ParsedArguments) -> str:
    """Whose names are spoken: the SDK's to a program that drives us as it does, without `-p`."""
    if (given := arguments.text("dialect")) is not None:
        return given
    streams_in = arguments.text("input_format") == "stream-json"
    return "claude" if streams_in and not arguments.flag("print") and not arguments.verb else "weft"
