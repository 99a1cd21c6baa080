"""A program drives us: messages and control requests come in as lines, one turn after the other."""

from __future__ import annotations

from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from weft.app import App, Session
from weft.cli import output
from weft.cli.answers import GOOD
from weft.cli.exits import FAILED, NOBODY_READS, OK
from weft.cli.expanding import expanded
from weft.cli.lines import LineReader
from weft.cli.prompts import Said
from weft.cli.rewinds import acting
from weft.cli.sinks import Sink, StreamSink
from weft.cli.stream_json import Incoming, answered, parts_of, read_line, refused
from weft.cli.talk import DENIED, Talk
from weft.errors import NoPendingRequest, UsageError, WeftError
from weft.events import ArchitectPlan, PermissionRequest

WAITING = 1000
"""Messages that may wait for their turn; then reading stops until one is done."""

_MODES = {"acceptEdits": "accept_edits", "bypassPermissions": "bypass", "dontAsk": "default"}


class Dialogue:
    """Lines in, turns out, until the input ends."""

    def __init__(
        self, app: App, session: Session, sink: Sink, options: dict[str, Any], *, asks: bool
    ) -> None:
        assert isinstance(sink, StreamSink)
        self._session = session
        self._sink = sink
        self._options = options
        self._talk = Talk(
            app,
            session,
            sink,
            self._ask if asks else None,
            self._ask_plan if asks else None,
        )
        self._plans: set[str] = set()
        """Requests that are about a plan."""
        self._asked: set[str] = set()
        self._input_ended = False

    async def run(self) -> int:
        """Talk until the input ends; the exit code is that of the last turn."""
        sending, receiving = anyio.create_memory_object_stream[Said](WAITING)
        code = OK
        async with anyio.create_task_group() as group:
            await group.start(self._talk.follow)
            group.start_soon(self._read, sending)
            code = await self._answer_all(receiving)
            group.cancel_scope.cancel()
        return NOBODY_READS if self._talk.is_unread else code

    async def _answer_all(self, receiving: MemoryObjectReceiveStream[Said]) -> int:
        code = OK
        async with receiving:
            async for said in receiving:
                code = await self._answer(said)
                if self._talk.is_unread:
                    break
        return code

    async def _answer(self, said: Said) -> int:
        try:
            content, more = await expanded(self._session, said)
            result = await self._talk.send(
                lambda: self._session.send_message(content, **{**self._options, **more})
            )
        except WeftError as error:
            self._sink.fail(str(error))
            return FAILED
        if not self._talk.is_unread:
            self._sink.finish(result)
        return OK if result.finish_reason in GOOD else FAILED

    async def _read(self, sending: MemoryObjectSendStream[Said]) -> None:
        lines = LineReader(0)
        async with sending:
            while (line := await lines.next_line()) is not None:
                if line.strip():
                    await self._take(line, sending)
        self._input_ended = True
        for request_id in list(self._asked):
            await self._resolve(request_id, {"behavior": "deny", "message": DENIED})

    async def _take(self, line: bytes, sending: MemoryObjectSendStream[Said]) -> None:
        try:
            incoming = read_line(line)
            match incoming.type:
                case "user":
                    await sending.send(parts_of(incoming))
                case "control_request":
                    await self._control(incoming)
                case "control_response":
                    response = incoming.response
                    await self._resolve(
                        str(response.get("request_id", "")), response.get("response") or {}
                    )
                case "control_cancel_request" | "keep_alive":
                    pass
                case kind:
                    raise UsageError(f"a line of the input has the unknown type {kind!r}")
        except UsageError as error:
            self._sink.complain(str(error))

    # -- control

    async def _control(self, incoming: Incoming) -> None:
        request_id = incoming.request_id
        try:
            answer = await self._carry_out(incoming.request)
        except WeftError as error:
            output.write_json(refused(request_id, str(error)))
        else:
            output.write_json(answered(request_id, answer))

    async def _carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        session = self._session
        match request.get("subtype"):
            case "initialize":
                return {"commands": await self._commands(), "output_style": "default"}
            case "interrupt":
                await session.abort("interrupted by the program that drives the session")
            case "set_model":
                await session.update_model(str(request.get("model", "")))
            case "set_permission_mode":
                mode = str(request.get("mode", ""))
                await session.set_permission_mode(_MODES.get(mode, mode))
            case "rewind_files":
                return await self._rewind_files(request)
            case "stop_task":
                await session.kill_background(str(request.get("task_id", "")))
            case "get_context_usage":
                return {"used": (await session.editor_snapshot()).context_used}
            case kind:
                raise UsageError(f"there is no control request {kind!r}")
        return {}

    async def _commands(self) -> list[dict[str, str]]:
        """The commands that a message may name: those from files."""
        return [
            {
                "name": command.name,
                "description": command.description,
                "argumentHint": command.argument_hint,
            }
            for command in await self._session.list_commands()
        ]

    async def _rewind_files(self, request: dict[str, Any]) -> dict[str, Any]:
        """Files go back to what they were when a message was said; with `dry_run` it is only told."""
        plan = await self._session.rewind(
            str(request.get("user_message_id", "")),
            conversation=False,
            preview=bool(request.get("dry_run")),
        )
        return {
            "canRewind": True,
            "filesChanged": [item.path for item in acting(plan)],
            "conflicts": list(plan.conflicts),
        }

    async def _ask_plan(self, event: ArchitectPlan) -> None:
        if (await self._session.editor_snapshot()).permission_mode == "bypass":
            return  # approved already
        self._plans.add(event.plan_id)
        if self._input_ended:
            await self._decide_plan(event.plan_id, {"message": DENIED})
            return
        self._asked.add(event.plan_id)
        assert isinstance(self._sink, StreamSink)
        self._sink.ask_plan(event)

    async def _decide_plan(self, plan_id: str, response: dict[str, Any]) -> None:
        """What is not a clear yes is a no; a plan that comes back changed takes the place of the one that was asked about."""
        self._plans.discard(plan_id)
        if not str(response.get("behavior", "")).startswith("allow"):
            await self._session.reject_plan(str(response.get("message") or ""))
            return
        changed = (response.get("updatedInput") or {}).get("plan")
        if changed is not None:
            await self._session.edit_plan(changed)
        await self._session.approve_plan()

    async def _ask(self, request: PermissionRequest) -> None:
        if self._input_ended:
            await self._talk.answer(request.request_id, "deny", DENIED)
            return
        self._asked.add(request.request_id)
        self._sink.ask(request)

    async def _resolve(self, request_id: str, response: dict[str, Any]) -> None:
        """Take the other side's answer; what is not a clear yes is a no."""
        if request_id not in self._asked:
            return
        self._asked.discard(request_id)
        if request_id in self._plans:
            try:
                await self._decide_plan(request_id, response)
            except NoPendingRequest:
                return
            except UsageError as error:
                # It is no plan, so it is no yes either.
                await self._session.reject_plan(str(error))
            return
        actions = {
            "allow": "allow_once",
            "allow_turn": "allow_turn",
            "allow_always": "allow_always",
        }
        action = actions.get(str(response.get("behavior")), "deny")
        try:
            await self._talk.answer(request_id, action, str(response.get("message") or ""))
        except NoPendingRequest:
            return
