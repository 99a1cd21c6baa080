"""The line protocol that programs already speak: one JSON object a line, in and out.

Out: `system`/`init` first, `assistant` and `user` (tool results) as they become durable,
    `stream_event` for text in flight when asked for,
`system` notes in between, and one `result` a turn.  In: `user` messages and `control_request`s.
`docs/cli.md` describes each field. This module only translates; it reads and writes nothing.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from weft.api import Result
from weft.errors import UsageError
from weft.events import (
    AnswerRestarted,
    ArchitectPlan,
    ArchitectStep,
    ChildFinished,
    ChildStarted,
    Compacted,
    ErrorRaised,
    Event,
    LlmRetry,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    PlanEdited,
    QuestionAsked,
    SystemNote,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    ToolComplete,
    TurnWaiting,
    TurnWoken,
)
from weft.messages import PDF_TYPE, File, Image, Node, Part, Text, Thinking, ToolCall, Usage
from weft.protocol.agent_sdk_dialect import ToolDialect
from weft.sha256 import sha256

PLAN_TOOL = "plan"
"""What a plan is asked about as, where a program approves it."""

SUBTYPES: dict[str, str] = {
    "stop": "success",
    "submitted": "success",
    "max_turns": "error_max_turns",
    "max_budget": "error_max_budget_usd",
    "schema_failed": "error_max_structured_output_retries",
}
"""Why a turn ended, in the protocol's words; every other reason is `error_during_execution`."""


class StreamJsonEncoder:
    """Turns the events of one session into lines."""

    def __init__(
        self,
        session_id: str,
        *,
        partials: bool = False,
        repeats: bool = False,
        dialect: ToolDialect | None = None,
    ) -> None:
        """`dialect` says whose names of tools and arguments are spoken; ours, if none is given.

        With `repeats`, each message of the program comes back when it is durable.
        """
        self._repeats = repeats
        self._sent: list[IncomingLine] = []
        """Messages of the program that are on their way."""
        self.named: dict[str, str] = {}
        """Ids that the program gave its messages, and ours."""
        self._session_id = session_id
        self._partials = partials
        self._dialect = dialect or ToolDialect()
        self._blocks: list[str] = []
        """The content blocks of the answer in flight: `text`, `thinking`, or the place of
        a call.
        """
        self._node = ""
        self.denials: list[dict[str, Any]] = []
        self._model, self._window = "", 0
        """The model that the session began with, and how much it reads."""
        self._cost = 0.0
        self._used: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, ToolCall] = {}

    def init(self, **fields: Any) -> dict[str, Any]:
        """The first line."""
        dialect = self._dialect
        self._model = str(fields.get("model", ""))
        self._window = int(fields.pop("context_window", 0))
        translated = {
            "tools": [dialect.tool(name) for name in fields.get("tools", ())],
            "permissionMode": dialect.mode(fields.get("permissionMode", "default")),
        }
        return self._line("system", subtype="init", **{**fields, **translated})

    def lines(self, event: Event) -> list[dict[str, Any]]:
        """What an event says, in lines; most say nothing."""
        match event:
            case NewMessage(node=node) if node.role == "assistant":
                return [*self._end_of_blocks(node), self._assistant(node)]
            case NewMessage(node=node) if node.role == "user" and self._sent:
                return self._repeated(node)
            case ToolComplete():
                return self._tool_result(event)
            case LlmRetry(attempt=attempt, wait_ms=wait_ms, reason=reason):
                return [
                    self._system("api_retry", attempt=attempt, retry_delay_ms=wait_ms, error=reason)
                ]
            case SystemNote(text=text, level=level) if not event.to_model:
                return [self._system("informational", content=text, level=level)]
            case ErrorRaised(message=message, where=where):
                return [self._system("error", content=message, where=where)]
            case Compacted(tokens_before=before):
                metadata = {"trigger": "auto", "pre_tokens": before}
                return [self._system("compact_boundary", compact_metadata=metadata)]
            case PermissionResolved(
                action="deny", instead=None, reason=reason, request_id=request_id
            ):
                return [self._system("permission_denied", request_id=request_id, reason=reason)]
            case ChildStarted() | ChildFinished():
                return [self._task(event)]
            case ArchitectPlan(plan_id=plan_id, plan=plan) | PlanEdited(plan_id=plan_id, plan=plan):
                return [self._system("plan", plan_id=plan_id, plan=plan)]
            case PlanDecided(plan_id=plan_id, approved=approved, reason=reason):
                decided = {"plan_id": plan_id, "approved": approved, "reason": reason}
                return [self._system("plan_decided", **decided)]
            case TurnWaiting() | TurnWoken():
                return [self._wait(event)]
            case ArchitectStep(plan_id=plan_id, index=index, status=status, detail=detail):
                step = {"plan_id": plan_id, "step": index, "status": status, "detail": detail}
                return [self._system("plan_step", **step)]
            case TextDelta() | ThinkingDelta() | ToolArgsDelta() | AnswerRestarted() if (
                self._partials
            ):
                return self._partial(event)
            case _:
                return []

    def _wait(self, event: TurnWaiting | TurnWoken) -> dict[str, Any]:
        if isinstance(event, TurnWoken):
            return self._system("turn_woken", wait_id=event.wait_id, by=event.by)
        on = {"on": event.on.kind, "until": event.until}
        # By the name of its kind: `command`, `agent`, `file`, `port`.
        on |= {"command": None, event.on.kind: event.on.name or event.on.place or None}
        on.pop("time", None)
        call = event.call_uid or None
        return self._system("turn_waiting", wait_id=event.wait_id, tool_use_id=call, **on)

    def _task(self, event: ChildStarted | ChildFinished) -> dict[str, Any]:
        if isinstance(event, ChildFinished):
            return self._system(
                "task_notification",
                task_id=event.child,
                status="completed"
                if event.reason in ("stop", "submitted")
                else event.finish_reason,
                summary=event.text,
                output_file="",  # there is none; readers expect the field
                usage=_usage(event.usage),
                cost_usd=event.usage.cost_usd if event.usage is not None else None,
            )
        call = self._calls.get(event.call_uid or "")
        return self._system(
            "task_started",
            task_id=event.child,
            tool_use_id=event.call_uid,
            task_type=event.purpose,
            agent=event.name,
            description=str(call.args.get("description", "")) if call is not None else "",
            is_background=event.background,
        )

    # -- whole messages

    def sent(self, incoming: IncomingLine) -> None:
        """The program's next message goes to the session."""
        self._sent = [incoming]

    def _repeated(self, node: Node) -> list[dict[str, Any]]:
        incoming, self._sent = self._sent[0], []
        name = incoming.uuid or wire_uuid(node.id)
        self.named[name] = node.id
        if not self._repeats:
            return []
        message = {"role": "user", "content": incoming.message and incoming.message.content}
        named = {"uuid": name, "isReplay": True}
        return [self._line("user", message=message, parent_tool_use_id=None, **named)]

    def _assistant(self, node: Node) -> dict[str, Any]:
        self._calls.update({call.call_uid: call for call in node.calls})
        message = {
            "id": node.id,
            "type": "message",
            "role": "assistant",
            "model": node.model,
            "content": [block for part in node.parts if (block := self._block(part)) is not None],
            "stop_reason": "tool_use" if node.calls else "end_turn",
            "stop_sequence": None,
            "usage": _usage(node.usage),
        }
        return self._line(
            "assistant", message=message, parent_tool_use_id=None, uuid=wire_uuid(node.id)
        )

    def _tool_result(self, event: ToolComplete) -> list[dict[str, Any]]:
        result = event.result
        if result.status == "denied":
            call = self._calls.get(result.call_uid)
            name, args = forwarded(call.name, call.args) if call is not None else ("", {})
            self.denials.append(
                {
                    "tool_name": self._dialect.tool(name),
                    "tool_use_id": result.call_uid,
                    "tool_input": self._dialect.input(name, args),
                }
            )
        block = {
            "type": "tool_result",
            "tool_use_id": result.call_uid,
            "content": result.text,
            "is_error": result.is_error,
        }
        message = {"role": "user", "content": [block]}
        parts = {} if self._dialect.is_ours else {"tool_use_result": self._parts(event)}
        return [self._line("user", message=message, parent_tool_use_id=None, **parts)]

    def _parts(self, event: ToolComplete) -> Any:
        """What a tool's result consists of, as readers of the SDK have it."""
        result, call = event.result, self._calls.get(event.result.call_uid)
        if call is None or result.is_error:
            return f"Error: {result.text}" if result.is_error else result.text
        name, args = forwarded(call.name, call.args)
        told = {"text": result.text, "status": result.status}
        return self._dialect.response(name, args, told)

    def _block(self, part: Part) -> dict[str, Any] | None:
        match part:
            case Text(text=text):
                return {"type": "text", "text": text}
            case Thinking(text=text, signature=signature):
                return {"type": "thinking", "thinking": text, "signature": signature}
            case ToolCall(call_uid=call_uid, name=name, args=args):
                dialect = self._dialect
                if not dialect.is_ours:
                    name, args = forwarded(name, args)
                translated = {"name": dialect.tool(name), "input": dialect.input(name, args)}
                return {"type": "tool_use", "id": call_uid, **translated}
            case Image() | File():
                return None

    # -- text in flight

    def _partial(
        self, event: TextDelta | ThinkingDelta | ToolArgsDelta | AnswerRestarted
    ) -> list[dict[str, Any]]:
        if isinstance(event, AnswerRestarted):
            self._node, self._blocks = "", []
            return [self._system("answer_restarted", message_id=event.node_id)]
        lines: list[dict[str, Any]] = []
        if self._node != event.node_id:
            self._node, self._blocks = event.node_id, []
            lines.append(self._event(self._message_start(event.node_id)))
        if isinstance(event, ToolArgsDelta) and not self._dialect.is_ours:
            # Pieces of JSON cannot be translated, and a call has its id only with the whole answer:
            # its block is sent then.
            return lines
        name, opening, delta = _delta(event)
        # A block ends where the next one begins; there is no event of our own for it.
        if not self._blocks or self._blocks[-1] != name:
            lines += self._end_block()
            self._blocks.append(name)
            lines.append(self._block_event("content_block_start", content_block=opening))
        if delta:
            lines.append(self._block_event("content_block_delta", delta=delta))
        return lines

    def _message_start(self, node_id: str) -> dict[str, Any]:
        # What is not known yet is there all the same: readers expect the fields.
        message: dict[str, Any] = {
            "id": node_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(None),
        }
        return {"type": "message_start", "message": message}

    def _end_of_blocks(self, node: Node) -> list[dict[str, Any]]:
        # A message whose pieces were never sent has no blocks to end; a stop without a start would
        # break readers that keep count.
        if not self._partials or self._node != node.id:
            return []
        ended = self._end_block()
        if not self._dialect.is_ours:
            ended += [line for call in node.calls for line in self._call_block(call)]
        self._node, self._blocks = "", []
        stop = {"stop_reason": "tool_use" if node.calls else "end_turn", "stop_sequence": None}
        return [
            *ended,
            self._event({"type": "message_delta", "delta": stop, "usage": _usage(node.usage)}),
            self._event({"type": "message_stop"}),
        ]

    def _end_block(self) -> list[dict[str, Any]]:
        return [self._block_event("content_block_stop")] if self._blocks else []

    def _call_block(self, call: ToolCall) -> list[dict[str, Any]]:
        """A call in one piece."""
        block = self._block(call) or {}
        self._blocks.append(call.call_uid)
        written = msgspec.json.encode(block.get("input", {})).decode()
        delta = {"type": "input_json_delta", "partial_json": written}
        return [
            self._block_event("content_block_start", content_block={**block, "input": {}}),
            self._block_event("content_block_delta", delta=delta),
            self._block_event("content_block_stop"),
        ]

    def _block_event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self._event({"type": kind, "index": len(self._blocks) - 1, **fields})

    def _event(self, event: dict[str, Any]) -> dict[str, Any]:
        return self._line("stream_event", event=event, parent_tool_use_id=None)

    # -- the end

    def result(self, result: Result, *, duration_api_ms: int = 0) -> dict[str, Any]:
        """The line that ends a turn."""
        subtype = SUBTYPES.get(result.finish_reason, "error_during_execution")
        is_error = subtype != "success"
        line = self._line(
            "result",
            subtype=subtype,
            is_error=is_error,
            result=result.text,
            num_turns=result.iterations,
            duration_ms=result.duration_ms,
            duration_api_ms=duration_api_ms or result.duration_ms,
            total_cost_usd=result.cost_usd,
            usage=_usage(result.usage),
            modelUsage={result.model: _usage(result.usage)} if result.model else {},
            permission_denials=self.denials,
            terminal_reason=result.finish_reason,
        )
        if not self._dialect.is_ours:
            line |= self._totals(result)
        if result.deliverable is not None:
            line["structured_output"] = result.deliverable
        if is_error:
            line["error"] = result.detail or result.finish_reason
            # Readers know one of the two fields, or the other.
            line["errors"] = [line["error"]]
        return line

    def _totals(self, result: Result) -> dict[str, Any]:
        """What was used since the program began, which readers expect of every result."""
        self._cost += result.cost_usd or 0.0
        if result.model:
            used = self._used.setdefault(result.model, dict.fromkeys(_MODEL_USAGE, 0))
            for name, value in _usage(result.usage).items():
                used[_MODEL_NAMES[name]] += value
            used["costUSD"] += result.cost_usd or 0.0
            used["contextWindow"] = self._window
        reason = "end_turn" if result.finish_reason in ("stop", "submitted") else None
        reasons = {"length": "max_tokens", "refusal": "refusal"}
        return {
            "stop_reason": reasons.get(result.finish_reason, reason),
            "total_cost_usd": self._cost,
            "modelUsage": {name: dict(used) for name, used in self._used.items()},
        }

    def failure(self, sentence: str, *, started: bool = False) -> dict[str, Any]:
        """The line that ends a run which never got as far as the end of a turn; `started` when its
        message was accepted, and its turn may still come to an end elsewhere.
        """
        return self._line(
            "result",
            subtype="error_during_execution",
            is_error=True,
            result="",
            error=sentence,
            errors=[sentence],
            num_turns=0,
            duration_ms=0,
            duration_api_ms=0,
            total_cost_usd=0.0,
            usage=_usage(None),
            modelUsage={},
            permission_denials=[],
            terminal_reason="interrupted" if started else "not_started",
        )

    def state(self, state: str, *, for_sdk_alone: bool) -> dict[str, Any]:
        """The line that says what the session does."""
        alone = {"sdk_host_only": True} if for_sdk_alone else {}
        return self._system("session_state_changed", state=state, **alone)

    def problem(self, sentence: str) -> dict[str, Any]:
        """The line about a line that could not be understood; it ends nothing."""
        return self._system("error", content=sentence, where="input")

    def args_of(self, request: PermissionRequest) -> dict[str, Any] | None:
        """The input that a request is about; None when it is not known, so that it cannot be
        judged."""
        if request.args is not None:
            return request.args
        call = self._calls.get(request.call_uid)
        return call.args if call is not None else None

    def ask(
        self, request: PermissionRequest, args: dict[str, Any], suggested: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Ask the program on the other side for permission."""
        asked = {
            "subtype": "can_use_tool",
            "tool_name": self._dialect.tool(request.tool_name),
            "input": self._dialect.input(request.tool_name, args),
            "tool_use_id": request.call_uid,
            "permission_suggestions": suggested,
            "decision_reason": request.reason,
            "preview": request.preview,
            "always": request.always_pattern,
        }
        if request.child is not None:
            asked["agent_id"] = request.child
        return {"type": "control_request", "request_id": request.request_id, "request": asked}

    def ask_question(self, event: QuestionAsked) -> dict[str, Any]:
        """Put a question of the model to the program on the other side, as the tool that asks
        it."""
        args = {"question": event.question, "options": list(event.options)}
        asked = {
            "subtype": "can_use_tool",
            "tool_name": self._dialect.tool("ask"),
            "input": self._dialect.input("ask", args),
            "tool_use_id": event.call_uid,
        }
        return {"type": "control_request", "request_id": event.request_id, "request": asked}

    def ask_plan(self, event: ArchitectPlan) -> dict[str, Any]:
        """The request to approve a plan, in the same form: the plan is the input."""
        asked = {
            "subtype": "can_use_tool",
            "tool_name": PLAN_TOOL,
            "input": {"plan": event.plan},
            "tool_use_id": event.plan_id,
            "preview": str(event.plan.get("summary", "")),
            "always": "",
        }
        return {"type": "control_request", "request_id": event.plan_id, "request": asked}

    def _system(self, subtype: str, **fields: Any) -> dict[str, Any]:
        return self._line("system", subtype=subtype, **fields)

    def _line(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {
            "type": kind,
            **fields,
            "session_id": self._session_id,
            "uuid": fields.get("uuid") or str(uuid.uuid4()),
        }


def forwarded(name: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool that a call is meant for, and its input: one that was found by a search is called
    through another, which guards do not know."""
    inner, given = args.get("name"), args.get("arguments", {})
    if name == "tool_call" and isinstance(inner, str) and isinstance(given, dict):
        return inner, given
    return name, args


def wire_uuid(node_id: str) -> str:
    """The UUID that always stands for a message in the lines about it."""
    return str(uuid.UUID(bytes=sha256(node_id.encode()).digest()[:16], version=4))


def _delta(
    event: TextDelta | ThinkingDelta | ToolArgsDelta,
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The block an event belongs to, how that block opens, and what it adds."""
    match event:
        case TextDelta(text=text):
            return "text", {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        case ThinkingDelta(text=text):
            thought = {"type": "thinking", "thinking": ""}
            return "thinking", thought, {"type": "thinking_delta", "thinking": text}
        case ToolArgsDelta(index=index, tool_name=name, text=text):
            opening: dict[str, Any] = {"type": "tool_use", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": text} if text else {}
            return f"call {index}", opening, delta


def _usage(usage: Usage | None) -> dict[str, int]:
    # Zeros instead of null: readers add these numbers up.
    usage = usage or Usage()
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


_MODEL_NAMES = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_input_tokens": "cacheReadInputTokens",
    "cache_creation_input_tokens": "cacheCreationInputTokens",
}
_MODEL_USAGE = (*_MODEL_NAMES.values(), "webSearchRequests", "costUSD", "contextWindow")
"""The fields of what a model used, as readers of the SDK have them."""


# --- what comes in ---------------------------------------------------------------------


class _IncomingMessage(msgspec.Struct):
    content: str | list[dict[str, Any]]
    role: str = "user"


class IncomingLine(msgspec.Struct):
    """One line of a program that drives us."""

    type: str
    message: _IncomingMessage | None = None
    uuid: str = ""
    client_composed: bool = False
    """The message is sent as it is written: names of files and commands in it mean nothing."""
    request_id: str = ""
    request: dict[str, Any] = {}
    response: dict[str, Any] = {}


# Unknown fields are ignored on purpose: newer SDKs add some to every line.
_incoming = msgspec.json.Decoder(IncomingLine)


def read_line(line: bytes) -> IncomingLine:
    """Understand a line.

    Raises:
        UsageError: it is not of the protocol.
    """
    try:
        return _incoming.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"a line of the input is not what was expected: {error}") from error


def parts_of(incoming: IncomingLine) -> tuple[Text | Image | File, ...]:
    """What a `user` line says.

    Raises:
        UsageError: it says nothing that we can send.
    """
    content = incoming.message.content if incoming.message is not None else ""
    if isinstance(content, str):
        return (Text(text=content),)
    return tuple(_part(block) for block in content)


def _part(block: dict[str, Any]) -> Text | Image | File:
    source = block.get("source")
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return Text(text=block["text"])
    if isinstance(source, dict) and source.get("data"):
        if block.get("type") == "image":
            return Image(
                media_type=str(source.get("media_type", "image/png")), data=str(source["data"])
            )
        if block.get("type") == "document" and source.get("media_type") == PDF_TYPE:
            name = str(block.get("title") or "document.pdf")
            return Image(media_type=PDF_TYPE, data=str(source["data"]), name=name)
    raise UsageError(
        f"a message holds a block that cannot be sent: {str(block.get('type'))!r}; it "
        "takes text, image and document (base64, application/pdf)"
    )


def answered(request_id: str, response: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer to a `control_request` that worked."""
    inner = {"subtype": "success", "request_id": request_id, "response": response or {}}
    return {"type": "control_response", "response": inner}


def refused(request_id: str, error: str) -> dict[str, Any]:
    """The answer to a `control_request` that did not."""
    inner = {"subtype": "error", "request_id": request_id, "error": error}
    return {"type": "control_response", "response": inner}
