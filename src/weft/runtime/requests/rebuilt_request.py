"""A request that was sent, made again from the log.

The log is folded up to the fact that announced the call; prefix and line are composed, and the
bytes encoded, by the code that sent them.  Two digests say how good it is: that of the words
(`model_call_started.digest`), which no protocol changes, and that of the bytes
(`usage_recorded.body`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.context import (
    ContextTarget,
    MessageDigests,
    PromptPrefix,
    load_prefix,
    render_prefix,
    request_digest,
)
from weft.errors import WeftError
from weft.loop import ContextLine, messages_of
from weft.messages import Message
from weft.providers import EncodingModel, Model, ModelRequest, ToolSpec
from weft.runtime.requests.call_log import LoggedCall
from weft.session.log.line import LineCache
from weft.sha256 import sha256
from weft.state import SessionState
from weft.store import Store
from weft.thinking_levels import THINKING_LEVELS, ThinkingLevel

RequestMatch: TypeAlias = Literal["equal", "same_words", "differs", "unknown"]

_SAID: Final[Mapping[RequestMatch, str]] = {
    "equal": "byte for byte what was sent",
    "same_words": "the words that were sent; their bytes are not on record, or this model is sent "
    "none",
    "differs": "not what was sent: another version of Weft, or other settings, make it different",
    "unknown": "what was sent is not on record: an older version wrote this part of the log",
}
_OTHER_BYTES: Final = (
    "the words that were sent, in other bytes: another version of Weft, or other settings, encode "
    "them differently"
)
_NO_PREFIX: Final = "the system prompt and the tools of this call are no longer stored"


class RebuiltRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as this program makes it now."""

    call: LoggedCall
    state: SessionState
    """The session just before it was sent."""
    line: ContextLine
    prefix: PromptPrefix
    messages: tuple[Message, ...]
    digests: tuple[bytes, ...]
    """The digest of each message."""
    thinking: ThinkingLevel
    body: bytes
    is_wire: bool
    """The body is what goes to the vendor; else it is the request in its neutral form."""
    match: RequestMatch
    said: str
    """What the match means, in a sentence."""


async def rebuilt(
    call: LoggedCall, state: SessionState, store: Store, model: Model | None
) -> RebuiltRequest:
    """The request of a call; `state` is the session once the call was on record, and `model` what
    it went to, None where that cannot be had here.
    """
    turn = state.turn.open
    tip = turn.tip if turn is not None and turn.tip is not None else state.tree.head
    line = await LineCache(store).context(state.tree, tip)
    messages = messages_of(line, _target(call, model), state)
    prefix, has_prefix = await _prefix(call, store)
    joined = MessageDigests().joined(messages)
    thinking, is_same = _thinking(call, state, joined, prefix)
    request = ModelRequest(
        model=_target(call, model).model,
        messages=messages,
        system=prefix.system,
        tools=tuple(
            ToolSpec(name=tool.name, description=tool.description, schema=tool.schema)
            for tool in prefix.tools
        ),
        thinking=thinking,
        session_id=call.place.log,
    )
    form: Mapping[str, Any] = {} if call.used is None else call.used.form
    body = _body(request, model, form)
    match, said = _match(call, body, is_same=is_same)
    return RebuiltRequest(
        call=call,
        state=state,
        line=line,
        prefix=prefix,
        messages=messages,
        digests=tuple(joined[at : at + 32] for at in range(0, len(joined), 32)),
        thinking=thinking,
        body=_neutral(request) if body is None else body,
        is_wire=body is not None,
        match=match,
        said=said if has_prefix else f"{said}; {_NO_PREFIX}",
    )


def _target(call: LoggedCall, model: Model | None) -> ContextTarget:
    if model is not None:
        return ContextTarget(model.info.provider, model.info.name)
    provider, _, name = call.started.model.partition(":")
    return ContextTarget(provider, name)


async def _prefix(call: LoggedCall, store: Store) -> tuple[PromptPrefix, bool]:
    named = call.started.prefix
    data = None if named is None else await store.blob(named)
    return (PromptPrefix(), False) if data is None else (load_prefix(data), True)


def _thinking(
    call: LoggedCall, state: SessionState, messages: bytes, prefix: PromptPrefix
) -> tuple[ThinkingLevel, bool]:
    """The level that the digest was made with, and whether there is one."""
    started = call.started
    named = started.prefix or render_prefix(prefix).id
    own = _set_level(state)
    # A level may have come with a message, a role or a model's name: the digest tells which.
    for level in dict.fromkeys((own, "default", *THINKING_LEVELS)):
        digest = request_digest(
            model=started.model, prefix=named, thinking=level, messages=messages
        )
        if digest == started.digest:
            return level, True
    return own, False


def _set_level(state: SessionState) -> ThinkingLevel:
    turn = state.turn.open
    asked = None if turn is None else turn.options.get("thinking")
    level = asked or state.settings.thinking
    return next((each for each in THINKING_LEVELS if each == level), "default")


def _body(request: ModelRequest, model: Model | None, form: Mapping[str, Any]) -> bytes | None:
    if not isinstance(model, EncodingModel):
        return None
    try:
        return model.body(request, form)
    except WeftError:
        return None  # a setting that the adapter needs is gone


def _neutral(request: ModelRequest) -> bytes:
    plain = msgspec.to_builtins(msgspec.structs.replace(request, scratch={}))
    kept = ("model", "system", "tools", "messages", "thinking")
    return msgspec.json.encode({name: plain[name] for name in kept})


def _match(call: LoggedCall, body: bytes | None, *, is_same: bool) -> tuple[RequestMatch, str]:
    sent = "" if call.used is None else call.used.body
    if sent and body is not None:
        if sha256(body).hexdigest() == sent:
            return "equal", _SAID["equal"]
        if is_same:
            return "same_words", _OTHER_BYTES
    if not call.started.digest:
        return "unknown", _SAID["unknown"]
    match: RequestMatch = "same_words" if is_same else "differs"
    return match, _SAID[match]
