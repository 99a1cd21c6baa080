"""The neutral conversation: what was said, with each call's result right behind it.

This is the neutral form that `context` makes and `providers` encode.  It is always legal: every
call of an assistant message is answered exactly once by the `CallResults` that follow it, in call
order; no message is empty; the first one is the user's.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from weft.messages.parts import Image, Part


# Recorded requests hold these tags, so they outlive the names of the classes.
class ChatMessage(msgspec.Struct, frozen=True, kw_only=True, tag="said", gc=False):
    """A message of the user or the model.

    An assistant's parts may hold tool calls; results follow at once.
    """

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]
    model: str = ""
    """`provider:model` that said it; empty where it is the user's, or not known."""


class CallResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to one call of the message before."""

    call_uid: str
    provider_id: str
    """The vendor's id of the call; empty when another provider made it."""
    tool_name: str
    text: str
    images: tuple[Image, ...] = ()
    is_error: bool = False


class CallResults(msgspec.Struct, frozen=True, kw_only=True, tag="results", gc=False):
    """The answers to all calls of the assistant message before, in call order."""

    role: ClassVar[str] = "tool"
    results: tuple[CallResult, ...]


Message: TypeAlias = ChatMessage | CallResults
