"""The permission policy: an action, the mode, the rules and the grants in; allow, ask or deny out.

Deny beats ask beats allow, whatever the order; a rule or a mode that asks is never overruled by one
that allows, but a grant, which the user gave after seeing the request, answers an ask.  There is no
string matching on shell commands: a rule or grant with a pattern covers a command only when it is
the very same text.  Shell commands therefore ask until a parser can judge them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

import msgspec

Mode: TypeAlias = Literal["plan", "default", "accept_edits", "auto", "bypass"]
MODES: tuple[Mode, ...] = ("plan", "default", "accept_edits", "auto", "bypass")
Verdict: TypeAlias = Literal["allow", "ask", "deny"]
ActionKind: TypeAlias = Literal["read", "edit", "run", "other"]

UNREACHABLE: Final = "unreachable parent"
"""The `source` of `CLOSED_RULES`."""

_SEVERITY: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


class ToolAction(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is about to do."""

    tool: str
    kind: ActionKind
    target: str = ""
    """The path (relative to the project, forward slashes) or the exact command."""
    place: str = ""
    """The absolute path of a target that is a path: a rule may be written with it, too."""
    has_effect: bool = True
    outside: bool = False
    """The target lies outside the folders the session may work in."""
    protected: bool = False
    """The target is a file that programs obey or run by themselves (`is_protected`): a rule that
    allows the tool does not cover it.
    """
    sandboxed: bool = False
    """A command that runs where nothing it does reaches the project before it is judged."""
    escapes: bool = False
    """A command that is to run outside the sandbox that there is: only the user can allow that."""

    parts: tuple[ToolAction, ...] = ()
    """Of a call that changes several files: what it does to each.  Every one of them is judged, and
    the strictest verdict counts; the other fields only name the call.
    """
    exposes: str = ""
    """Of a command: why it could read what a rule keeps from being read; empty when it cannot."""
    acts_as: str = ""
    """Another tool that does the same to the target, and whose rules count as well: a patch that
    changes a file is an edit of it.
    """
    removes: bool = False
    """The target is deleted."""
    arguments: str = ""
    """Of a tool of a server: all that it is given, as JSON with sorted keys; patterns of rules are
    about this.
    """
    other_names: tuple[str, ...] = ()
    """Of a tool of a server: what else the user may call it.  Rules that restrict hold for these as
    well; one that allows means the name that was shown.
    """
    is_claimed: bool = False
    """That it changes nothing is the word of a server alone: plan mode takes it, and it asks."""
    unfamiliar: str = ""
    """Of a tool of a server: how it differs from what the user knows of it; empty when it does
    not.  Only the user can allow it then, each time anew.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The tools whose rules speak of this."""
        return (self.tool, self.acts_as) if self.acts_as else (self.tool,)

    @property
    def is_delicate(self) -> bool:
        """True when a permission has to name exactly this."""
        is_told = self.escapes or bool(self.exposes or self.unfamiliar)
        return is_told or (self.protected and self.has_effect)


class PermissionRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A standing answer: `Tool` or `Tool(pattern)`."""

    verdict: Verdict
    tool: str
    pattern: str = ""
    """Empty: every use of the tool."""
    source: str = ""
    """Where it was written: user, project, session."""
    is_exact: bool = False
    """The pattern is the one target that is meant, and no pattern: what the user was shown and
    chose to keep.
    """

    def covers(self, action: ToolAction) -> bool:
        """True when the rule speaks of this action."""
        names = action.names if self.verdict == "allow" else (*action.names, *action.other_names)
        if self.is_exact:
            return self.tool in names and action.target == self.pattern
        # `fnmatch` would ignore case on some systems; a rule means the same on all. Its `*` also
        # matches `/`, so `src/*` covers everything below `src`.
        if not any(_names_tool(self.tool, name) for name in names):
            return False
        if self.pattern and action.arguments:
            return _arguments_fit(action.arguments, self.pattern, self.verdict != "allow")
        if not self.pattern or _target_fits(action, self.pattern):
            return True
        # A command that is forbidden does not become another one by blanks around it.
        restricts = self.verdict != "allow" and action.kind == "run"
        return restricts and action.target.strip() == self.pattern.strip()


CLOSED_RULES: Final = (
    PermissionRule(verdict="deny", tool="*", source=UNREACHABLE),
    # Searches and commands are held to the rules about reading alone, which name what they mean.
    PermissionRule(verdict="deny", tool="read", pattern="*", source=UNREACHABLE),
)
"""What a session is held to while nobody can say what its parent was denied: nothing is allowed."""


class PermissionGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A permission that the user gave in this process, for the turn or the session."""

    pattern: str
    """As `grant_pattern` makes it: `tool(target)`."""
    scope: Literal["turn", "session"]


class PolicyDecision(msgspec.Struct, frozen=True):
    """The verdict, and the sentence that explains it."""

    verdict: Verdict
    reason: str = ""
    is_firm: bool = False
    """Of an ask: only the user can answer it, because a rule of theirs asks, or the target is
    protected.
    """
    rule: str = ""
    """Of an allow that a rule gave: what the rule covers."""
    by: Literal["mode", "rule", "grant", "hook", "user", "plan"] = "mode"
    """Who or what decided."""
    text: str = ""
    """The rule or grant itself, where one decided."""


def grant_pattern(action: ToolAction) -> str:
    """What "always" grants: exactly the target that was shown, for this tool.

    Empty for several files at once: no grant can name them.  Empty for a file that is deleted, too:
    a grant says nothing of what is done to its target, and would also cover a new file there.  And
    empty for a tool that is not what the user knows: it may be another again the next time.
    """
    if action.parts or action.removes or action.unfamiliar:
        return ""
    return f"{action.names[-1]}({action.target})"


def decide(
    action: ToolAction,
    *,
    mode: Mode,
    rules: Iterable[PermissionRule] = (),
    grants: Iterable[PermissionGrant] = (),
) -> PolicyDecision:
    """Judge one action; the strictest voice wins."""
    rules = tuple(rules)
    if action.parts:
        grants = tuple(grants)
        judged = [decide(part, mode=mode, rules=rules, grants=grants) for part in action.parts]
        # Of two that ask, the one that only the user can answer counts.
        return max(judged, key=lambda each: (_SEVERITY[each.verdict], each.is_firm))
    # The order counts: of equally strict voices `max` takes the first, and its reason is shown.
    # What a command could read is a voice of its own, for no mode is freer than a rule.
    voices = [PolicyDecision("ask", action.exposes)] if action.exposes else []
    if action.unfamiliar:
        voices.append(PolicyDecision("ask", action.unfamiliar))
    voices.append(_by_mode(action, mode))
    voices += [
        PolicyDecision(rule.verdict, _because_of(rule), by="rule", text=_rule_text(rule))
        for rule in rules
        if rule.covers(action)
    ]
    strictest = max(voices, key=lambda voice: _SEVERITY[voice.verdict])
    # A deny ends here: no rule that allows and no grant is even looked at.
    if strictest.verdict != "ask":
        return strictest
    # Not `covers`: a rule that allows many targets does not reach a delicate one.
    speaking = [rule for rule in rules if _speaks_of(rule, action)]
    verdicts = {rule.verdict for rule in speaking}
    if "allow" in verdicts and "ask" not in verdicts:
        allows = next(rule for rule in speaking if rule.verdict == "allow")
        return PolicyDecision(
            "allow",
            "a rule allows it",
            rule=allows.pattern or allows.tool,
            by="rule",
            text=_rule_text(allows),
        )
    # The whole text, never a prefix: a grant for `git status` is none for `git status; rm -r .`.
    exactly = grant_pattern(action)
    if exactly and any(grant.pattern == exactly for grant in grants):
        return PolicyDecision("allow", "you allowed it before", by="grant", text=exactly)
    is_firm = "ask" in verdicts or action.is_delicate
    return PolicyDecision("ask", strictest.reason, is_firm)


def with_hook(decision: PolicyDecision, verdict: Verdict | None, reason: str) -> PolicyDecision:
    """The decision when a hook has spoken too: it may be stricter, or answer what only the mode
    asks.

    It can lift neither a deny nor an ask that is firm: a hook is a program, and those are for the
    user to decide.
    """
    if verdict is None:
        return decision
    if verdict == "allow":
        is_answered = decision.verdict == "ask" and not decision.is_firm
        return PolicyDecision("allow", reason, by="hook") if is_answered else decision
    if _SEVERITY[verdict] > _SEVERITY[decision.verdict]:
        # Firm: no hook that is heard after this one can lift it.
        return PolicyDecision(verdict, reason, is_firm=True, by="hook")
    if verdict == decision.verdict == "ask":
        # The mode asks as well; an "allow" of the next hook must not answer for this one.
        return msgspec.structs.replace(decision, is_firm=True)
    return decision


def _by_mode(action: ToolAction, mode: Mode) -> PolicyDecision:
    """What the mode alone says."""
    if mode == "plan" and action.has_effect:
        return PolicyDecision("deny", "plan mode changes nothing; switch to another mode to act")
    # The order of these checks is the policy. What leaves the sandbox comes before bypass, which
    # would allow it, and a target outside before the reads, which change nothing but may show a key
    # to the model.
    if mode == "bypass" and action.escapes:
        return PolicyDecision("deny", "bypass mode never asks, so no command may leave the sandbox")
    if mode == "bypass":
        return PolicyDecision("allow", "bypass mode never asks")
    if action.escapes:
        return PolicyDecision("ask", "it would run outside the sandbox")
    if action.outside:
        return PolicyDecision("ask", f"{action.target} is outside the project")
    if action.protected and action.has_effect:
        return PolicyDecision("ask", f"programs obey {action.target} or run it by themselves")
    if not action.has_effect and not action.is_claimed:
        return PolicyDecision("allow", "it changes nothing")
    if action.kind == "edit" and mode in ("accept_edits", "auto"):
        return PolicyDecision("allow", f"{mode} mode allows edits")
    if action.kind == "run" and action.sandboxed and mode == "auto":
        return PolicyDecision("allow", "auto mode runs commands in the sandbox")
    return PolicyDecision("ask", "")


def _speaks_of(rule: PermissionRule, action: ToolAction) -> bool:
    """Does the rule mean this action?  One that allows must name a delicate target itself, not
    sweep it up with others.
    """
    if rule.verdict == "allow" and action.unfamiliar:
        return False  # it allows what was known when it was written
    if rule.verdict == "allow" and action.is_delicate:
        return rule.tool in action.names and rule.pattern == action.target
    return rule.covers(action)


def _because_of(rule: PermissionRule) -> str:
    if rule.source == UNREACHABLE:
        return "the session that it works for cannot be asked for its rules; try again later"
    return f"the rule `{_rule_text(rule)}` says so"


def _rule_text(rule: PermissionRule) -> str:
    shown = f"{rule.tool}({rule.pattern})" if rule.pattern else rule.tool
    return f"{rule.verdict} {shown}"


def _names_tool(rule: str, name: str) -> bool:
    """Whether a rule's tool is this one; `mcp__server` alone is every tool of that server."""
    if fnmatchcase(name, rule):
        return True
    return rule.startswith("mcp__") and "__" not in rule[5:] and fnmatchcase(name, f"{rule}__*")


def _arguments_fit(arguments: str, pattern: str, restricts: bool) -> bool:
    """Whether a pattern covers the arguments of a server's tool: all of them as JSON, or with
    `key:pattern` those of one name.

    A rule that restricts is read widely: a name counts at every depth, and so does each text in a
    list.  One that allows counts for a name at the top with one plain value, and for no path that
    leads up where the rule has none: `src/*` does not mean `src/../..`.
    """
    key, has_key, wanted = pattern.partition(":")
    if not has_key or not key.replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        return _fits(arguments, pattern)
    given = msgspec.json.decode(arguments)
    if not restricts:
        value = given.get(key)
        is_plain = isinstance(value, str | int | float) or value is None
        if key not in given or not is_plain:
            return False
        text = _plain_text(value)
        return _fits(text, wanted) and _leads_up(text) <= _leads_up(wanted)
    found = [text for value in _values_of(key, given) for text in _texts_in(value)]
    return any(_fits(text, wanted) for text in found)


def _leads_up(path: str) -> bool:
    """Whether a path has a part `..`."""
    return ".." in path.replace("\\", "/").split("/")


def _plain_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="deterministic").decode()


def _values_of(key: str, value: object) -> list[object]:
    """The values of a name, at every depth."""
    if isinstance(value, list):
        return [each for item in value for each in _values_of(key, item)]
    if not isinstance(value, dict):
        return []
    own = [value[key]] if key in value else []
    return [*own, *(each for item in value.values() for each in _values_of(key, item))]


def _texts_in(value: object) -> list[str]:
    """A value as text, and each value in it."""
    if isinstance(value, dict):
        parts = [text for item in value.values() for text in _texts_in(item)]
    elif isinstance(value, list):
        parts = [text for item in value for text in _texts_in(item)]
    else:
        parts = []
    return [_plain_text(value), *parts]


def _target_fits(action: ToolAction, pattern: str) -> bool:
    # A shell command has no safe pattern: `git *` would match `git log; curl …|sh`.
    if action.kind == "run":
        return action.target == pattern
    if _fits(action.target, pattern):
        return True
    # Only for a pattern that is absolute itself: `*/x` means x in a folder of the project, and
    # every path from the root of the disk on would fit it.
    return bool(action.place) and pattern.startswith("/") and _fits(action.place, pattern)


def _fits(path: str, pattern: str) -> bool:
    # Equal first: a folder may be called `[id]`, which a pattern takes for one letter.
    return path == pattern or fnmatchcase(path, pattern)
