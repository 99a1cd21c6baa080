"""What was sent to the model: the request of a call, what differs from the one before, what the
vendor had in its cache, and what each part cost.

Computed from the log, never stored; no model is asked.  Headers and addresses are not a part of it,
so that no key can be.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

import msgspec

from weft.api.handle import SessionBase
from weft.api.reports import may_be_count
from weft.context import estimate, estimate_text
from weft.errors import UsageError, WeftError
from weft.evidence.cache_causes import (
    CacheReport,
    RequestShape,
    cache_report,
    prompt_tokens,
    shared_messages,
)
from weft.evidence.request_parts import Pricing, RequestPart, RequestPiece, request_parts
from weft.ids import NodeId
from weft.messages import (
    CallResults,
    ChatMessage,
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from weft.providers import Model
from weft.runtime.requests.call_log import LoggedCall, calls_of_turn, logged_calls
from weft.runtime.requests.rebuilt_request import RebuiltRequest, RequestMatch, rebuilt
from weft.session.log.load import load_state_at
from weft.state import SessionState
from weft.store import Store

MOST_DIFF_LINES: Final = 20_000
"""Lines that two requests may differ in to be compared line by line."""
_OF_CACHE: Final = ("cache_read_tokens", "cache_write_tokens")


class RequestChange(msgspec.Struct, frozen=True, kw_only=True):
    """How a request differs from the one before."""

    kept_messages: int
    """With how many of its messages it begins."""
    removed_messages: int
    added_messages: int
    tokens: int
    """Tokens more than that one had, or less."""


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of one call."""

    session: str
    turn: str
    call: int
    """Its number in the turn, from 0 on."""
    calls: int
    """How many the turn has."""
    node: str
    """The message that the answer became."""
    at: float
    model: str
    thinking: str
    match: RequestMatch
    """How it compares to what was sent: `equal`, byte for byte; `same_words`; `differs`; `unknown`.
    """
    said: str
    """The same in a sentence."""
    is_wire: bool
    """`body` is what the vendor gets; else the request in a neutral form."""
    body: str
    size: int
    """Bytes of it."""
    digest: str
    """What the log has of its words."""
    parts: tuple[RequestPart, ...]
    usage: Usage | None
    cache: CacheReport
    change: RequestChange | None
    """None for the first request of a session."""
    excluded: tuple[str, ...] = ()
    """Messages of its line that had been taken out."""
    diff: str = ""
    """What changed since the one before, line by line, where that was asked for."""


async def sent_request(
    session: SessionBase, node: NodeId | None, call: int, *, diff: bool
) -> SentRequest:
    """The request of the turn that a message belongs to.

    Raises:
        UsageError: no model was asked for it, or the turn has no such call.
    """
    host = session._host
    state = (await session._port()).state
    async with host.registry.reading(session.id) as store:
        calls = await logged_calls(session.id, store)
        turn = calls_of_turn(calls, state.tree, node)
        if not -len(turn) <= call < len(turn):
            raise UsageError(f"the turn has no call {call}: it made {len(turn)}")
        chosen = turn[call]
        earlier = [each for each in calls[: calls.index(chosen)] if each.used is not None]
        wanted = [*earlier[-1:], chosen]
        requests = await _rebuilt_all(session, wanted, store)
    now, before = requests[-1], requests[0] if earlier else None
    found = _described(now, before, _reports(calls, chosen), _model(session, chosen))
    return msgspec.structs.replace(
        found,
        session=session.id,
        call=turn.index(chosen),
        calls=len(turn),
        diff=_diff(before, now) if diff else "",
    )


async def _rebuilt_all(
    session: SessionBase, calls: list[LoggedCall], store: Store
) -> list[RebuiltRequest]:
    found = []
    for call in calls:
        state = await load_state_at(call.place, store)
        found.append(await rebuilt(call, state, store, _model(session, call)))
    return found


def _model(session: SessionBase, call: LoggedCall) -> Model | None:
    try:
        return session._host.model(call.started.model)
    except WeftError:
        return None  # its provider is gone; the words are still known


def _reports(calls: list[LoggedCall], chosen: LoggedCall) -> bool:
    """Whether the vendor of a call has ever said what it had in its cache."""
    provider = chosen.started.model.partition(":")[0]
    return any(
        each.used is not None
        and each.used.model.partition(":")[0] == provider
        and any(getattr(each.used.usage, name) for name in _OF_CACHE)
        for each in calls
    )


def _described(
    now: RebuiltRequest, before: RebuiltRequest | None, reports: bool, model: Model | None
) -> SentRequest:
    started, usage = now.call.started, _usage(now.call)
    price = (lambda used: None) if model is None else model.info.cost
    parts = _parts(now, price)
    old = [] if before is None else _parts(before, price)
    shape, earlier = _shape(now), None if before is None else _shape(before)
    return SentRequest(
        session="",
        turn=started.turn_id,
        call=0,
        calls=0,
        node=started.node,
        at=started.at,
        model=started.model,
        thinking=now.thinking,
        match=now.match,
        said=now.said,
        is_wire=now.is_wire,
        body=now.body.decode("utf-8", "replace"),
        size=len(now.body),
        digest=started.digest,
        parts=_beside(parts, old),
        usage=None if now.call.used is None else now.call.used.usage,
        cache=cache_report(
            shape,
            usage,
            earlier,
            None if before is None else _usage(before.call),
            reports=reports,
        ),
        change=None if before is None else _change(now, before, parts, old),
        excluded=tuple(now.line.excluded),
    )


def _parts(request: RebuiltRequest, price: Pricing) -> list[RequestPart]:
    pieces, usage = list(_pieces(request)), _usage(request.call)
    # Some servers leave out what they had in a cache: laid over that, the parts would be nothing.
    estimated = sum(piece.tokens for piece in pieces)
    if usage is not None and not may_be_count(prompt_tokens(usage), estimated):
        usage = None
    return request_parts(pieces, usage, price)


def _usage(call: LoggedCall) -> Usage | None:
    """What the vendor counted; None where it did not."""
    used = call.used
    return None if used is None or used.estimated else used.usage


def _beside(parts: list[RequestPart], old: list[RequestPart]) -> tuple[RequestPart, ...]:
    sizes = {each.name: each.tokens for each in old}
    names = {each.name for each in parts}
    gone = [RequestPart(name=name, tokens=0) for name in sizes if name not in names]
    return tuple(
        msgspec.structs.replace(each, before_tokens=sizes.get(each.name, 0))
        for each in (*parts, *gone)
    )


def _change(
    now: RebuiltRequest,
    before: RebuiltRequest,
    parts: list[RequestPart],
    old: list[RequestPart],
) -> RequestChange:
    kept = shared_messages(before.digests, now.digests)
    return RequestChange(
        kept_messages=kept,
        removed_messages=len(before.digests) - kept,
        added_messages=len(now.digests) - kept,
        tokens=sum(each.tokens for each in parts) - sum(each.tokens for each in old),
    )


# --- the parts ---------------------------------------------------------------------------


def _shape(request: RebuiltRequest) -> RequestShape:
    call, settings = request.call, request.state.settings
    form = {} if call.used is None else call.used.form
    return RequestShape(
        model=call.started.model,
        thinking=request.thinking,
        mode=settings.permission_mode,
        system=dict(_system_zones(request)),
        tools={tool.name: msgspec.json.encode(tool).decode() for tool in request.prefix.tools},
        summary=request.line.summary,
        cleared=len(request.line.cleared),
        messages=request.digests,
        began=call.started.at,
        ended=call.started.at if call.used is None else call.used.at,
        is_kept_for_long=form.get("cache") == "1h",
    )


def _system_zones(request: RebuiltRequest) -> Iterator[tuple[str, str]]:
    """The zones of the system prompt; what belongs to none is the prompt itself."""
    prefix = request.prefix
    zones = prefix.zones if isinstance(prefix.zones, dict) else {}
    places = dict(zones)
    if prefix.instructions[1]:
        places["instructions"] = prefix.instructions
    rest, at = [], 0
    for start, end in sorted(places.values()):
        rest.append(prefix.system[at:start])
        at = max(at, end)
    yield "system", "".join((*rest, prefix.system[at:]))
    for name, (start, end) in sorted(places.items(), key=lambda each: each[1]):
        yield name, prefix.system[start:end]


def _pieces(request: RebuiltRequest) -> Iterator[RequestPiece]:
    """The pieces of a request in the order in which vendors read them: tools, system, messages."""
    tools = len(msgspec.json.encode(request.prefix.tools)) if request.prefix.tools else 0
    yield RequestPiece("tools", estimate_text(tools))
    for name, text in _system_zones(request):
        yield RequestPiece(name, estimate_text(len(text)))
    told = _told(request.state)
    for message in request.messages:
        for name, part in _labelled(message, request.line.summary, told):
            yield RequestPiece(name, _tokens(part))


def _told(state: SessionState) -> frozenset[str]:
    """What Weft told the model beside the conversation."""
    return frozenset(
        note.text for note in (*state.tree.notes, *state.tree.environments) if note.to_model
    )


def _labelled(
    message: Message, summary: str, told: frozenset[str]
) -> Iterator[tuple[str, Part | CallResults]]:
    if isinstance(message, CallResults):
        yield "results", message
        return
    for part in message.parts:
        yield _label(message, part, summary, told), part


def _label(message: ChatMessage, part: Part, summary: str, told: frozenset[str]) -> str:
    if isinstance(part, Text) and message.role == "user":
        if summary and part.text == summary:
            return "summary"
        return "notes" if part.text in told else "user"
    match part:
        case Thinking():
            return "reasoning"
        case ToolCall():
            return "calls"
        case File() | Image():
            return "files"
        case _:
            return "answers"


def _tokens(part: Part | CallResults) -> int:
    if isinstance(part, CallResults):
        return estimate([part])
    return estimate([ChatMessage(role="user", parts=(part,))])


# --- the difference ----------------------------------------------------------------------


def _diff(before: RebuiltRequest | None, now: RebuiltRequest) -> str:
    """The lines that differ between two requests, each written as indented JSON."""
    old = [] if before is None else _lines(before.body)
    new = _lines(now.body)
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if same is None:
        same = min(len(old), len(new))
    # Requests mostly grow at their end: what they begin with alike need not be compared.
    first = max(0, same - 3)
    old, new = old[first:], new[first:]
    if len(old) + len(new) > MOST_DIFF_LINES:
        old, new = old[:MOST_DIFF_LINES], new[:MOST_DIFF_LINES]
    lines = difflib.unified_diff(old, new, "the request before", "this request", lineterm="")
    return "\n".join(lines)


def _lines(body: bytes) -> list[str]:
    return msgspec.json.format(body, indent=2).decode("utf-8", "replace").splitlines()
