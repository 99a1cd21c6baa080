"""Simulation of a rule: what it would have changed in the sessions of the past.

The calls of tools are taken from the logs, as the model made them; each is judged with the rules
that count now, and once more with the new one.  Nothing is run, and no session is started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

import msgspec

from weft.api.permissions.effect_log import facts_of
from weft.events import NewMessage
from weft.messages import ToolCall
from weft.permissions import (
    Mode,
    PermissionRule,
    ToolAction,
    Verdict,
    decide,
    our_tool_name,
    rules_mean,
)
from weft.store import SessionRow, Store

PAGE: Final = 1_000
MOST_CALLS: Final = 50_000
"""Different calls that are judged, of the newest sessions."""
_TEXTS: Final = {"shell": ("command",), "fetch": ("url",)}
_PATHS: Final = ("path", "file_path")
_PATH_TOOLS: Final = frozenset({"read", "edit", "write", "multi_edit", "list", "grep", "find"})


class SimulatedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that the rule would have decided otherwise."""

    tool: str
    text: str
    """The command, the path or the address."""
    times: int
    before: Verdict
    after: Verdict


class VerdictCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls get which verdict."""

    allow: int = 0
    ask: int = 0
    deny: int = 0


class RuleSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule would have changed."""

    verdict: Verdict
    rule: str
    sessions: int
    """Sessions that were read, agents included."""
    calls: int
    """Calls in them that rules can be about."""
    covered: int
    """Calls that the rule means, whether or not it changes what is decided."""
    before: VerdictCount
    after: VerdictCount
    changed: tuple[SimulatedCall, ...] = ()
    """The most frequent first."""


class PastCalls:
    """The calls of the tools that rules can name, in stored sessions."""

    def __init__(self) -> None:
        self.sessions = 0
        self.times: Counter[tuple[str, str]] = Counter()

    async def read(self, store: Store, project: str | None) -> None:
        """Count the calls of a project's sessions, or of all."""
        async for row in _rows(store, project):
            self.sessions += 1
            async for fact in facts_of(store, row.id):
                if isinstance(fact, NewMessage):
                    self._take(part for part in fact.node.parts if isinstance(part, ToolCall))
            if len(self.times) > MOST_CALLS:
                return

    def _take(self, calls: Iterable[ToolCall]) -> None:
        for call in calls:
            tool = our_tool_name(call.name)
            names = _TEXTS.get(tool, _PATHS if tool in _PATH_TOOLS else ())
            text = next((call.args[name] for name in names if name in call.args), None)
            if isinstance(text, str) and text:
                self.times[tool, text] += 1
            hosts = call.args.get("hosts") if tool == "shell" else None
            for host in hosts if isinstance(hosts, list) else ():
                # What a command asked to reach is what a rule about addresses would allow it.
                self.times["fetch", f"https://{host}/"] += 1


def simulated(
    past: PastCalls,
    verdict: Verdict,
    rule: str,
    *,
    action_of: Callable[[str, str], ToolAction],
    rules: tuple[PermissionRule, ...],
    added: tuple[PermissionRule, ...],
    mode: Mode,
) -> RuleSimulation:
    """Judge every call as it would be now, and with the rule."""
    before: Counter[Verdict] = Counter()
    after: Counter[Verdict] = Counter()
    changed: list[SimulatedCall] = []
    covered = 0
    for (tool, text), times in past.times.most_common():
        action = action_of(tool, text)
        now = decide(action, mode=mode, rules=rules).verdict
        then = decide(action, mode=mode, rules=(*rules, *added)).verdict
        before[now] += times
        after[then] += times
        covered += times if rules_mean(added, action) else 0
        if now != then:
            found = SimulatedCall(tool=tool, text=text, times=times, before=now, after=then)
            changed.append(found)
    return RuleSimulation(
        verdict=verdict,
        rule=rule,
        sessions=past.sessions,
        calls=past.times.total(),
        covered=covered,
        before=_count(before),
        after=_count(after),
        changed=tuple(changed),
    )


def _count(found: Counter[Verdict]) -> VerdictCount:
    return VerdictCount(allow=found["allow"], ask=found["ask"], deny=found["deny"])


async def _rows(store: Store, project: str | None) -> AsyncIterator[SessionRow]:
    place = None
    while page := await store.rows(
        project_path=project, limit=PAGE, archived=True, children=True, after=place
    ):
        for row in page:
            if not row.damaged:
                yield row
        place = page[-1].last_active, page[-1].id
        if len(page) < PAGE:
            return
