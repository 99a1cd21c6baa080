"""States in the middle of a turn, made by the facts that lead there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import msgspec

from weft.events import (
    Fact,
    InputQueued,
    ModelCallStarted,
    NewMessage,
    PermissionRequest,
    SessionCreated,
    ToolExecuting,
    TurnStarted,
    UsageRecorded,
)
from weft.ids import CallUid, EntryId, NodeId, RequestId, SessionId, TurnId
from weft.messages import Node, Part, Text, ToolCall, Usage
from weft.state import SessionState

SESSION = SessionId("ses_1")
TURN = TurnId("trn_1")
NODE = NodeId("nod_calls")
"""The answer that made calls."""


class TurnScene:
    """A session's state, and how it came about."""

    def __init__(self) -> None:
        self.state = SessionState(session_id=SESSION)
        self._nodes = 0
        self.in_flight = NodeId("nod_in_flight")
        self.take([SessionCreated(model="m:m")])

    def take(self, facts: Iterable[Fact]) -> Self:
        """Let these facts happen."""
        for fact in facts:
            self.state.apply(
                msgspec.structs.replace(fact, session_id=SESSION, seq=self.state.seq + 1, at=1.0)
            )
        return self

    def prompt(self, text: str) -> Self:
        """The user sends a prompt, and a turn starts."""
        node = self._node("user", text)
        return self.take([NewMessage(node=node), TurnStarted(turn_id=TURN, node=node.id)])

    def called_model(self) -> Self:
        """A request is on its way."""
        return self.take([ModelCallStarted(turn_id=TURN, node=self.in_flight, model="m:m")])

    def answered(self, text: str, *, calls: Sequence[CallUid] = (), tokens: int = 0) -> Self:
        """The model answers."""
        node = self._node("assistant", text, calls, id=NODE if calls else None)
        used = UsageRecorded(usage=Usage(input_tokens=tokens), model="m:m", turn_id=TURN)
        return self.take([NewMessage(node=node), used])

    def intended(
        self,
        call: CallUid,
        *,
        effect: Any,
        pre: dict[str, str] | None = None,
        post: dict[str, str] | None = None,
        modes: dict[str, int] | None = None,
    ) -> Self:
        """An effect is about to take place."""
        return self.take(
            [
                ToolExecuting(
                    call_uid=call,
                    node=NODE,
                    tool_name="act",
                    effect=effect,
                    pre_hashes=pre or {},
                    post_hashes=post or {},
                    pre_modes=modes or {},
                )
            ]
        )

    def asked(self, call: CallUid, request: str = "req_1") -> Self:
        """The user is asked for permission."""
        return self.take(
            [
                PermissionRequest(
                    request_id=RequestId(request),
                    call_uid=call,
                    node=NODE,
                    tool_name="act",
                    always_pattern="act(x)",
                )
            ]
        )

    def queued(self, entry: str, delivery: Any, text: str = "queued") -> Self:
        """The user sends a message while the turn runs."""
        parts = (Text(text=text),)
        return self.take([InputQueued(entry_id=EntryId(entry), delivery=delivery, parts=parts)])

    def _node(
        self, role: Any, text: str, calls: Sequence[CallUid] = (), id: NodeId | None = None
    ) -> Node:
        self._nodes += 1
        parts: list[Part] = [Text(text=text)] if text else []
        parts += [ToolCall(call_uid=call, name="act") for call in calls]
        return Node(
            id=id or NodeId(f"nod_{self._nodes}"),
            role=role,
            parts=tuple(parts),
            parent=self.state.tree.head,
        )
