"""The calls of a turn as steps of its files, each told by what it changed: which of them broke a
check, and what the model said when it made it.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import msgspec

from weft.errors import SessionNotFound
from weft.events import AnyFact, FileTouched, Rewound, ToolExecuting, decode
from weft.evidence.bisection import BreakingCall
from weft.ids import BlobId, CallUid, NodeId
from weft.messages import Text
from weft.runtime.bisect.line_states import LineState
from weft.runtime.user_shell import PRIVATE_SHELL, USER_SHELL
from weft.session.log.stored_line import load_nodes, read_places
from weft.state import SessionState
from weft.store import Store
from weft.tree import LogPosition

LONGEST_TARGET: Final = 120
LONGEST_REASON: Final = 400
MOST_PATHS: Final = 20
LARGEST_COMPARED: Final = 1_000_000
_PAGE: Final = 1_000


class TurnStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call, or one rewind, with the changes that it made."""

    call_uid: CallUid | None
    facts: tuple[AnyFact, ...]
    count: int
    """How many changes there are up to its end, those of earlier steps too."""

    @property
    def paths(self) -> tuple[str, ...]:
        """What it changed."""
        found: dict[str, None] = {}
        for fact in self.facts:
            if isinstance(fact, FileTouched):
                found[fact.path] = None
            elif isinstance(fact, Rewound):
                found.update(dict.fromkeys(change.path for change in fact.files))
        return tuple(found)


async def steps_of(reached: LineState, store: Store) -> list[TurnStep]:
    """The steps that lead to a state, in order."""
    facts = await read_places(reached.steps, store)
    steps: list[TurnStep] = []
    for number, place in enumerate(reached.steps, start=1):
        fact = facts[place]
        uid = fact.call_uid if isinstance(fact, FileTouched) else None
        if steps and uid is not None and steps[-1].call_uid == uid:
            done = (*steps[-1].facts, fact)
            steps[-1] = TurnStep(call_uid=uid, facts=done, count=number)
        else:
            steps.append(TurnStep(call_uid=uid, facts=(fact,), count=number))
    return steps


class CallWords:
    """Says what calls did, from the log."""

    def __init__(self, state: SessionState, store: Store, places: Sequence[LogPosition]) -> None:
        self._state = state
        self._store = store
        self._places = places

    async def of(self, step: TurnStep) -> BreakingCall:
        """One step in words."""
        paths = step.paths[:MOST_PATHS]
        if step.call_uid is None:
            is_rewind = isinstance(step.facts[0], Rewound)
            name = "rewind" if is_rewind else "change"
            target = f"{name} of {', '.join(paths[:3])}"
            return BreakingCall(tool_name=name, target=target, paths=paths, is_by_user=is_rewind)
        intent = await self._intent(step.call_uid)
        name = "" if intent is None else intent.tool_name
        is_by_user = name in (USER_SHELL, PRIVATE_SHELL)
        node, reason = await self._said(step.call_uid)
        return BreakingCall(
            tool_name="shell" if is_by_user else name or "a tool",
            target=await self._target(step, intent),
            paths=paths,
            call_uid=step.call_uid,
            node=node or (None if intent is None else intent.node),
            reason=reason,
            is_by_user=is_by_user,
        )

    async def _intent(self, call_uid: CallUid) -> ToolExecuting | None:
        """What was written down when the call began."""
        for log in {place.log for place in self._places}:
            first = min(place.seq for place in self._places if place.log == log)
            # A call is written down before what it changes: not long before.
            after, last = max(0, first - _PAGE), max(each.seq for each in self._places)
            try:
                records = await self._store.read(log, after=after, limit=last - after + 1)
            except SessionNotFound:
                continue
            for record in records:
                if record.kind == "tool_executing":
                    fact = decode(record.body)
                    if isinstance(fact, ToolExecuting) and fact.call_uid == call_uid:
                        return fact
        return None

    async def _said(self, call_uid: CallUid) -> tuple[NodeId | None, str]:
        """The message with the call, and its words."""
        tree = self._state.tree
        for node in tree.ancestors(tree.head):
            if call_uid in tree.nodes[node].calls:
                [entry] = await load_nodes(tree, [node], self._store)
                words = " ".join(part.text for part in entry.node.parts if isinstance(part, Text))
                return node, _short(words, LONGEST_REASON)
        return None, ""

    async def _target(self, step: TurnStep, intent: ToolExecuting | None) -> str:
        """`edit auth.py:41`, or a command with the files that it changed."""
        paths = step.paths
        name = "change" if intent is None else intent.tool_name
        is_shell = name in ("shell", USER_SHELL, PRIVATE_SHELL)
        if is_shell and intent is not None:
            return _short(intent.target or str(intent.args.get("command", name)), LONGEST_TARGET)
        fact = next((each for each in step.facts if isinstance(each, FileTouched)), None)
        if fact is None or not paths:
            return _short(f"{name} {intent.target if intent else ''}", LONGEST_TARGET)
        line = await self._line(fact)
        place = f"{fact.path}:{line}" if line else fact.path
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return _short(f"{name} {place}{more}", LONGEST_TARGET)

    async def _line(self, fact: FileTouched) -> int:
        """The first line that is other than before; 0 where it cannot be told."""
        if fact.action != "modified":
            return 1 if fact.action == "created" else 0
        before, after = await self._lines(fact.before), await self._lines(fact.after)
        if before is None or after is None:
            return 0
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        changed = (each for each in matcher.get_opcodes() if each[0] != "equal")
        return next((start + 1 for _, _, _, start, _ in changed), 0)

    async def _lines(self, content: BlobId | None) -> list[bytes] | None:
        data = None if content is None else await self._store.blob(content)
        return None if data is None or len(data) > LARGEST_COMPARED else data.splitlines()


def _short(words: str, most: int) -> str:
    line = " ".join(words.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
