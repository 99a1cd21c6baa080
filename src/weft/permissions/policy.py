"""One function decides: an action, the mode, the rules and the grants in; allow, ask or deny out.

Deny beats ask beats allow, whatever the order; a rule or a mode that asks is never overruled by one that allows, but a grant, which a
person gave after seeing the request, answers an ask.  There is no string matching on shell commands: a rule or grant with a
pattern covers a command only when it is the very same text.  Shell commands therefore ask until a parser can judge them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

import msgspec

Mode: TypeAlias = Literal["plan", "default", "accept_edits", "auto", "bypass"]
MODES: tuple[Mode, ...] = ("plan", "default", "accept_edits", "auto", "bypass")
Verdict: TypeAlias = Literal["allow", "ask", "deny"]
ActionKind: TypeAlias = Literal["read", "edit", "run", "other"]

_SEVERITY: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is about to do."""

    tool: str
    kind: ActionKind
    target: str = ""
    """The path (relative to the project, forward slashes) or the exact command."""
    has_effect: bool = True
    outside: bool = False
    """The target lies outside the folders the session may work in."""
    protected: bool = False
    """The target is a file that programs obey or run by themselves (`is_protected`): a rule that allows the tool does not cover it."""
    sandboxed: bool = False
    """A command that runs where nothing it does reaches the project before it is judged."""
    escapes: bool = False
    """A command that is to run outside the sandbox that there is: only a person can allow that."""

    @property
    def is_delicate(self) -> bool:
        """True when leave has to be meant for exactly this."""
        return self.escapes or (self.protected and self.has_effect)


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A standing answer: `Tool` or `Tool(pattern)`."""

    verdict: Verdict
    tool: str
    pattern: str = ""
    """Empty: every use of the tool."""
    source: str = ""
    """Where it was written: user, project, session."""
    is_exact: bool = False
    """The pattern is the one target that is meant, and no pattern: what a person was shown and wanted kept."""

    def covers(self, action: Action) -> bool:
        """True when the rule speaks of this action."""
        if self.is_exact:
            return (action.tool, action.target) == (self.tool, self.pattern)
        return fnmatchcase(action.tool, self.tool) and (
            not self.pattern or _target_fits(action, self.pattern)
        )


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Leave that a person gave in this process, for the turn or the session."""

    pattern: str
    """As `grant_pattern` makes it: `tool(target)`."""
    scope: Literal["turn", "session"]


class Decision(msgspec.Struct, frozen=True):
    """The verdict, and the sentence that explains it."""

    verdict: Verdict
    reason: str = ""
    is_firm: bool = False
    """Of an ask: only a person can answer it, because a rule of theirs asks, or the target is protected."""


def grant_pattern(action: Action) -> str:
    """What "always" grants: exactly the target that was shown, for this tool."""
    return f"{action.tool}({action.target})"


def decide(
    action: Action, *, mode: Mode, rules: Iterable[Rule] = (), grants: Iterable[Grant] = ()
) -> Decision:
    """Judge one action; the strictest voice wins."""
    rules = tuple(rules)
    voices = [_by_mode(action, mode)]
    voices += [Decision(rule.verdict, _because_of(rule)) for rule in rules if rule.covers(action)]
    strictest = max(voices, key=lambda voice: _SEVERITY[voice.verdict])
    if strictest.verdict != "ask":
        return strictest
    verdicts = {rule.verdict for rule in rules if _speaks_of(rule, action)}
    if "allow" in verdicts and "ask" not in verdicts:
        return Decision("allow", "a rule allows it")
    if any(grant.pattern == grant_pattern(action) for grant in grants):
        return Decision("allow", "you allowed it before")
    is_firm = "ask" in verdicts or action.is_delicate
    return Decision("ask", strictest.reason, is_firm)


def with_hook(decision: Decision, verdict: Verdict | None, reason: str) -> Decision:
    """The decision when a hook has spoken too: it may be stricter, or answer what only the mode asks.

    It can lift neither a deny nor an ask that is firm: a hook is a program, and those are for the person to say.
    """
    if verdict is None:
        return decision
    if verdict == "allow":
        is_answered = decision.verdict == "ask" and not decision.is_firm
        return Decision("allow", reason) if is_answered else decision
    if _SEVERITY[verdict] > _SEVERITY[decision.verdict]:
        return Decision(verdict, reason, is_firm=True)
    return decision


def _by_mode(action: Action, mode: Mode) -> Decision:
    """What the mode alone says."""
    if mode == "plan" and action.has_effect:
        return Decision("deny", "plan mode changes nothing; leave it to act")
    if mode == "bypass" and action.escapes:
        return Decision("deny", "bypass mode asks nobody, so nothing is let out of the sandbox")
    if mode == "bypass":
        return Decision("allow", "bypass mode asks nothing")
    if action.escapes:
        return Decision("ask", "it is to run outside the sandbox")
    if action.outside:
        return Decision("ask", f"{action.target} is outside the project")
    if action.protected and action.has_effect:
        return Decision("ask", f"programs obey {action.target} or run it by themselves")
    if not action.has_effect:
        return Decision("allow", "it changes nothing")
    if action.kind == "edit" and mode in ("accept_edits", "auto"):
        return Decision("allow", f"{mode} mode lets files be edited")
    if action.kind == "run" and action.sandboxed and mode == "auto":
        return Decision("allow", "auto mode runs commands in the sandbox")
    return Decision("ask", "")


def _speaks_of(rule: Rule, action: Action) -> bool:
    """Does the rule mean this action?  One that allows must name a delicate target itself, not sweep it up with others."""
    if rule.verdict == "allow" and action.is_delicate:
        return rule.tool == action.tool and rule.pattern == action.target
    return rule.covers(action)


def _because_of(rule: Rule) -> str:
    shown = f"{rule.tool}({rule.pattern})" if rule.pattern else rule.tool
    return f"the rule `{rule.verdict} {shown}` says so"


def _target_fits(action: Action, pattern: str) -> bool:
    if action.kind == "run":
        return action.target == pattern
    return fnmatchcase(action.target, pattern)
