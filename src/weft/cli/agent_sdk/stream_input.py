"""A program drives us: messages and control requests come in as lines, one turn after the other.

What the session asks the program (hooks, permissions, plans, questions) is answered on the same
lines, so reading them never waits for a turn.  Once the input has ended no request can be answered
any more, and whatever is asked is a no.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from weft.api.session import Session
from weft.app import App
from weft.cli import stdio as output
from weft.cli.agent_sdk.control import ControlRequests
from weft.cli.agent_sdk.control_channel import ControlChannel
from weft.cli.agent_sdk.hook_channel import HookChannel
from weft.cli.agent_sdk.program import ProgramAsker
from weft.cli.agent_sdk.server_requests import SLOW, ServerRequests
from weft.cli.exit_codes import FAILED, OK, USAGE, code_of
from weft.cli.headless.json_output import StreamSink
from weft.cli.headless.output_formats import OutputSink
from weft.cli.headless.slash_prompt import expanded
from weft.cli.headless.turn_driver import TurnDriver
from weft.cli.line_reader import LineReader
from weft.cli.prompt_input import PromptParts
from weft.errors import SessionInterrupted, UsageError, WeftError
from weft.hooks.config import HookTable
from weft.messages import Content, Text
from weft.protocol.stream_json import IncomingLine, answered, parts_of, read_line, refused
from weft.view import SUCCESSFUL

WAITING = 1000
"""Messages that may wait for their turn; then reading stops until one is done."""


class ProgramMessage(NamedTuple):
    """A message of the program, as it came and as it is sent."""

    incoming: IncomingLine
    parts: PromptParts


class StreamInputSession:
    """Lines in, turns out, until the input ends."""

    def __init__(
        self,
        app: App,
        session: Session,
        sink: OutputSink,
        options: dict[str, Any],
        *,
        hooks: HookTable,
        asks: bool,
        answers_servers: bool,
    ) -> None:
        """`hooks` are those of the program, which it may hand over; with `asks`, it also answers
        requests for permission, and with `answers_servers` what MCP servers ask of the user."""
        assert isinstance(sink, StreamSink)
        self._app = app
        self._session = session
        self._sink = sink
        self._options = options
        self._hooks = hooks
        self._asks = asks
        self._is_misread = False
        """A line of the input was not understood."""
        self._took_messages = False
        self._channel = ControlChannel()
        self._asker = ProgramAsker(session, sink)
        self._talk = TurnDriver(app, session, sink, self._asker if asks else None)
        self._sending, self._receiving = anyio.create_memory_object_stream[ProgramMessage](WAITING)
        # In our own dialect nothing was promised to be asked of it.
        answers = answers_servers and not sink.dialect.is_ours
        self._servers = ServerRequests(app, self._channel, answers=answers)
        self._work: anyio.abc.TaskGroup | None = None
        self._control = ControlRequests(
            app,
            session,
            options,
            hooks=hooks,
            channel=HookChannel(self._channel, sink.dialect, session.id),
            servers=self._servers,
            dialect=sink.dialect,
            set_mode=self._asker.set_mode,
            drop_waiting=self._drop_waiting,
            named=sink.named,
        )

    async def run(self) -> int:
        """Talk until the input ends; the exit code is that of the last turn, or says that no line
        of the input was understood.
        """
        code = OK
        async with anyio.create_task_group() as group:
            self._work = group
            await group.start(self._talk.follow)
            group.start_soon(self._read, self._sending)
            code = await self._answer_all(self._receiving)
            group.cancel_scope.cancel()
        if self._talk.unread is not None:
            return code_of(self._talk.unread)
        # The program hears of a wrong line at once and may go on; where nothing else came, nothing
        # was done, and that is no success.
        return USAGE if self._is_misread and not self._took_messages else code

    async def _answer_all(self, receiving: MemoryObjectReceiveStream[ProgramMessage]) -> int:
        code = OK
        async with receiving:
            async for said in receiving:
                code = await self._answer(said)
                if not receiving.statistics().current_buffer_used:
                    self._sink.tell_state("idle")
                if self._talk.unread is not None:
                    break
        return code

    async def _answer(self, said: ProgramMessage) -> int:
        self._took_messages = True
        try:
            if self._control.refusal:
                raise UsageError(f"the message was not sent: {self._control.refusal}")
            self._sink.tell_state("running")
            # Before the first request, which names their tools.
            await self._servers.ready()
            content, more = await self._content(said)
            self._sink.sent(said.incoming)
            result = await self._talk.send(
                lambda: self._session.send_message(content, **{**self._options, **more})
            )
        except WeftError as error:
            self._sink.fail(str(error), started=isinstance(error, SessionInterrupted))
            return FAILED
        if self._talk.unread is None:
            self._sink.finish(result)
        return OK if result.finish_reason in SUCCESSFUL else FAILED

    async def _content(self, said: ProgramMessage) -> tuple[Content, dict[str, Any]]:
        if said.incoming.client_composed:
            return said.parts, {}
        words = [part.text for part in said.parts if isinstance(part, Text)]
        ask_read = self._ask_read if self._asks else None
        return await expanded(self._app, self._session, said.parts, words, ask_read)

    async def _ask_read(self, path: str) -> bool:
        """Ask the program whether a file outside the project may be read.

        Only a clear yes is one.
        """
        dialect = self._sink.dialect
        answer = await self._channel.ask(
            subtype="can_use_tool",
            tool_name=dialect.tool("read"),
            input=dialect.input("read", {"path": path}),
        )
        return isinstance(answer, Mapping) and answer.get("behavior") == "allow"

    async def _read(self, sending: MemoryObjectSendStream[ProgramMessage]) -> None:
        lines = LineReader(0)
        async with sending:
            while (line := await lines.next_line()) is not None:
                if line.strip():
                    await self._take(line, sending)
        # End of input: first the hooks and then the requests. A turn that waits for either is
        # released with a denial; it would wait for ever otherwise.
        self._channel.hang_up()
        await self._asker.hang_up()

    async def _take(self, line: bytes, sending: MemoryObjectSendStream[ProgramMessage]) -> None:
        try:
            incoming = read_line(line)
            match incoming.type:
                case "user":
                    await self._queue(ProgramMessage(incoming, parts_of(incoming)), sending)
                case "control_request" if str(incoming.request.get("subtype")) in SLOW:
                    # It waits for lines that come behind this one.
                    assert self._work is not None
                    self._work.start_soon(self._carry_out, incoming)
                case "control_request":
                    await self._carry_out(incoming)
                case "control_response":
                    await self._take_response(incoming.response)
                # A request of the program is answered before the next line is read, so there is
                # never one left to cancel; a keep-alive asks for no answer.
                case "control_cancel_request" | "keep_alive":
                    pass
                case kind:
                    raise UsageError(f"a line of the input has the unknown type {kind!r}")
        except UsageError as error:
            self._sink.complain(str(error))
            output.complain(str(error))
            self._is_misread = True

    async def _queue(
        self, said: ProgramMessage, sending: MemoryObjectSendStream[ProgramMessage]
    ) -> None:
        # Without hooks, servers and requests nothing in the turn waits for this reader, so it may
        # wait for room.
        if not self._asks and not self._hooks and self._app.mcp_servers is None:
            await sending.send(said)
            return
        # The turn may wait for an answer that stands behind this line: then there would never be
        # room.
        try:
            sending.send_nowait(said)
        except anyio.WouldBlock:
            raise UsageError(f"{WAITING} messages wait already; this one was not taken") from None

    async def _carry_out(self, incoming: IncomingLine) -> None:
        request_id = incoming.request_id
        try:
            answer = await self._control.carry_out(incoming.request)
        except WeftError as error:
            output.write_json(refused(request_id, str(error)))
        else:
            output.write_json(answered(request_id, answer))

    async def _take_response(self, response: Mapping[str, Any]) -> None:
        # Requests of the channel and of the session share the field for ids; the channel knows its
        # own.
        if not self._channel.take(response):
            await self._asker.take(response)

    def _drop_waiting(self) -> None:
        """Forget the messages that wait for their turn."""
        while True:
            try:
                self._receiving.receive_nowait()
            except (anyio.WouldBlock, anyio.EndOfStream):
                return
