"""A side question: asked with the session's prefix and line, answered beside them.

The request is the next one that a turn would send, up to the last message whose calls are settled,
with the question behind it: so the vendor's cache serves it.  Nothing of it is in a later request.
"""

from __future__ import annotations

from typing import Final

import anyio
import msgspec

from weft.api.handle import SessionBase
from weft.api.model_query import Answer, CountedUsage, answer_to
from weft.api.summaries.session_summary import RECORD_SECONDS, check_budget
from weft.context import (
    ContextTarget,
    PromptPrefix,
    estimate,
    estimate_text,
    load_prefix,
    lone_request_digest,
)
from weft.context.build import CONTINUE_PROMPT
from weft.errors import SessionError, UsageError, WeftError
from weft.events import AsideAnswered
from weft.ids import NodeId
from weft.loop import ContextLine, messages_of
from weft.messages import ChatMessage, Content, Message, Part, Text, Usage, as_parts, clean_text
from weft.providers import ModelRequest, ToolSpec
from weft.runtime.session_host import SessionHost
from weft.session import BeginCall, RecordUsage, digest
from weft.session.log.line import LineCache
from weft.state import SessionState

ASIDE: Final = "aside"
"""What model calls of side questions are called on record, beside their purpose."""
NO_TOOLS: Final = (
    "(A side question of the user's. Answer it in text from what you have read so far; call no "
    "tool. Then the work goes on as if it had not been asked.)"
)


async def ask_aside(session: SessionBase, content: Content, input_id: str | None) -> Answer:
    """`Session.ask_aside`."""
    question = _question(content)
    port = await session._port()
    if not port.lives_here:
        raise SessionError("another process has this session: ask there, or stop it first")
    state, host = port.state, session._host
    if state.tree.head is None:
        raise UsageError("there is nothing to ask about: the session is empty")
    told = AsideAnswered(call=NodeId(""), question=question, model=state.settings.model)
    wanted = RecordUsage(usage=Usage(), model="", aside=told, **session._by(input_id))
    # Before the model is asked: a repeat must not pay for a second answer.
    was_done, text = state.inputs.earlier_answer(wanted.input_id, digest(wanted))
    if was_done:
        return Answer(text=str(text), model=state.settings.model)
    model = host.model(state.settings.model)
    check_budget(session, state, state.settings.model)
    request, place = await _request(host, state, question)
    begun = BeginCall(
        model=state.settings.model,
        purpose="summary",
        exact=ASIDE,
        input_tokens=estimate(request.messages) + estimate_text(len(request.system)),
        digest=lone_request_digest(
            model=state.settings.model,
            system=request.system,
            thinking=request.thinking,
            messages=request.messages,
        ),
        client=session._client,
    )
    # On record before it is made, so that what it costs is known even if this process dies.
    call = await session._call(begun)
    counted = CountedUsage()
    try:
        answer = await answer_to(request, model=model, counted=counted)
        if not answer.text.strip():
            raise SessionError(_no_answer(answer))
    except BaseException:
        with anyio.CancelScope(shield=True), anyio.move_on_after(RECORD_SECONDS):
            await _record(session, call, counted, RecordUsage(usage=Usage(), model=told.model))
        raise
    told = msgspec.structs.replace(told, call=call, node=place, answer=clean_text(answer.text))
    used = msgspec.structs.replace(wanted, model=told.model, aside=told)
    await _record(session, call, counted, used)
    return answer


def _question(content: Content) -> tuple[Part, ...]:
    parts = as_parts(content)
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise UsageError("there is nothing to ask: the question is empty")
    return tuple(
        Text(text=clean_text(part.text)) if isinstance(part, Text) else part for part in parts
    )


def _no_answer(answer: Answer) -> str:
    if answer.finish_reason == "tool_calls":
        return "the model called a tool instead of answering; nothing was run"
    return f"the model gave no answer ({answer.finish_reason})"


async def _record(
    session: SessionBase, call: NodeId, counted: CountedUsage, used: RecordUsage
) -> None:
    whole = msgspec.structs.replace(
        used,
        usage=counted.usage,
        purpose="summary",
        exact=ASIDE,
        call=call,
        estimated=counted.is_estimated,
    )
    try:
        await session._call(whole)
    except WeftError:
        if used.aside is not None:
            raise


# -- the request


async def _request(
    host: SessionHost, state: SessionState, question: tuple[Part, ...]
) -> tuple[ModelRequest, NodeId | None]:
    """What is sent, and the last message of the line that is in it."""
    data = await host.stored_prefix(state.prefix) if state.prefix else None
    prefix = load_prefix(data) if data is not None else PromptPrefix(system="")
    named = host.model_named(state.settings.model)
    target = ContextTarget(*named.name.split(":", 1))
    line = await _settled_line(host, state)
    messages = _without_asking_on(messages_of(line, target, state))
    asked = ChatMessage(role="user", parts=(*question, Text(text=NO_TOOLS)))
    return (
        ModelRequest(
            model="",
            messages=(*messages, asked),
            system=prefix.system,
            tools=tuple(
                ToolSpec(name=tool.name, description=tool.description, schema=tool.schema)
                for tool in prefix.tools
            ),
            thinking=state.settings.thinking,
            session_id=state.session_id,
        ),
        line.entries[-1].node.id if line.entries else None,
    )


async def _settled_line(host: SessionHost, state: SessionState) -> ContextLine:
    """The line as the next call reads it, up to the last message whose calls all have a result."""
    tree = state.tree
    async with host.registry.reading(state.session_id) as store:
        line = await LineCache(store).context(tree, tree.head)
    last = line.entries[-1] if line.entries else None
    if last is None or all(call.call_uid in last.results for call in last.node.calls):
        return line
    return msgspec.structs.replace(line, entries=line.entries[:-1])


def _without_asking_on(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Behind the question no message of ours may stand that asks to go on."""
    asking = ChatMessage(role="user", parts=(Text(text=CONTINUE_PROMPT),))
    return messages[:-1] if messages and messages[-1] == asking else messages
