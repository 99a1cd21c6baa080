"""The attack corpus: cases as data (`tests/attacks/data`), and the decision for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from weft.permissions import (
    Mode,
    PermissionRule,
    PolicyDecision,
    ToolAction,
    Verdict,
    decide,
    is_protected,
    read_rule,
    rule_problem,
)
from weft.permissions.domains import plain_host
from weft.permissions.network_rules import NetworkRules
from weft.workspace.egress.request_head import BadRequest, read_request

DATA = Path(__file__).parents[1] / "attacks" / "data"
BENIGN = "benign"
KINDS = ("config", "files", "network", "path", "rule", "shell", "terminal", "url")
ROOT = "/p"
"""The folder of the project that the cases speak of."""


class AttackCase(NamedTuple):
    """One line, address or path, under some rules."""

    kind: str
    why: str
    text: str
    rules: tuple[str, ...]
    mode: Mode
    tool: str
    expected: Verdict | None
    """Of a control; of an attack None, which is anything but an allow."""


def cases(kind: str) -> Iterator[AttackCase]:
    """The cases of one kind."""
    for group in json.loads((DATA / f"{kind}.json").read_text("utf-8")):
        yield from _cases_of(kind, group)


def _cases_of(kind: str, group: dict[str, Any]) -> Iterator[AttackCase]:
    for text in group["lines"]:
        yield AttackCase(
            kind,
            group.get("why", ""),
            text,
            tuple(group["rules"]),
            group.get("mode", "default"),
            group.get("tool", "shell"),
            group.get("expect"),
        )


@cache
def rules_of(texts: tuple[str, ...]) -> tuple[PermissionRule, ...]:
    """Rules as they are written: `deny shell(rm *)`."""
    found: list[PermissionRule] = []
    for text in texts:
        verdict, _, rule = text.partition(" ")
        assert verdict in ("allow", "ask", "deny"), text
        assert rule_problem(rule) == "", text
        found += read_rule(verdict, rule)  # type: ignore[arg-type]  # one of the three
    return tuple(found)


def action_of(tool: str, text: str, *, sandboxed: bool = True) -> ToolAction:
    """What a tool is about to do."""
    if tool == "shell":
        return ToolAction(
            tool=tool, kind="run", target=text, line=text, sandboxed=sandboxed, root=ROOT
        )
    if tool == "fetch":
        return ToolAction(tool=tool, kind="other", target=text)
    return ToolAction(
        tool=tool,
        kind="edit",
        target=text,
        place=f"{ROOT}/{text}",
        protected=is_protected(text),
    )


def decision_of(case: AttackCase, *more: str) -> PolicyDecision:
    """What the policy says of a case, with further rules besides its own."""
    rules = rules_of((*case.rules, *more))
    if case.tool == "network":
        return _of_host(case.text, rules)
    return decide(action_of(case.tool, case.text), mode=case.mode, rules=rules)


def _of_host(text: str, rules: tuple[PermissionRule, ...]) -> PolicyDecision:
    """What a command that connects to `host:port` is told, as the proxy reads it; behind `=`, where
    the host leads."""
    where, _, number = text.partition("=")
    try:
        request = read_request(f"CONNECT {where} HTTP/1.1".encode(), plain_host)
    except BadRequest as error:
        return PolicyDecision("deny", str(error))
    network = NetworkRules(rules)
    found = network.decide(request.host, request.port)
    if found.verdict == "allow" and number:
        found = network.decide_address(request.host, number, request.port)
    return PolicyDecision(found.verdict, found.reason)
