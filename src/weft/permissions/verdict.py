"""The permission policy: an action, the mode, the rules and the grants in; allow, ask or deny out.

Deny beats ask beats allow, whatever the order; a rule or a mode that asks is never overruled by one
that allows, but a grant, which the user gave after seeing the request, answers an ask.  Commands
are judged word by word (`weft.permissions.shell`): the strictest of their parts counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from weft.permissions.policy import (
    SEVERITY,
    UNREACHABLE,
    Mode,
    PermissionGrant,
    PermissionRule,
    PolicyDecision,
    ToolAction,
    Verdict,
    grant_pattern,
    rule_text,
)

if TYPE_CHECKING:
    from weft.permissions.shell import LineJudgement


MOST_NAMED: Final = 200
"""Words of a line that are looked up on the disk."""


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
        return max(judged, key=lambda each: (SEVERITY[each.verdict], each.is_firm))
    names_hosts = bool(action.hosts)
    if names_hosts:
        action = _with_hosts_to_ask(action, rules)
    # Reading a line takes longer than all the rest, and nothing is said of it here.
    is_read = bool(rules) or mode != "bypass"
    line = judge_line(action, rules) if is_read else None
    # With a way out it does more than read, whoever allowed the hosts.
    only_reads = not names_hosts and _only_reads(action, mode, line)
    voices = _voices(action, mode, rules, line, only_reads=only_reads)
    # Of those that are as strict, the first that says why.
    strictest = max(voices, key=lambda voice: (SEVERITY[voice.verdict], bool(voice.reason)))
    # A deny ends here: no rule that allows and no grant is even looked at.
    if strictest.verdict != "ask":
        return strictest
    # Not `covers`: a rule that allows many targets does not reach a delicate one.
    speaking = [rule for rule in rules if _speaks_of(rule, action)]
    verdicts = {rule.verdict for rule in speaking}
    if line is not None:
        verdicts |= {each.verdict for each in line.restrictions}
    if line is not None and line.rule and "ask" not in verdicts and not _leaves(action):
        return PolicyDecision(
            "allow", "a rule allows it", rule=_pattern_in(line.rule), by="rule", text=line.rule
        )
    if "allow" in verdicts and "ask" not in verdicts:
        allows = next(rule for rule in speaking if rule.verdict == "allow")
        return PolicyDecision(
            "allow",
            "a rule allows it",
            rule=allows.pattern or allows.tool,
            by="rule",
            text=rule_text(allows),
        )
    # The whole text, never a prefix: a grant for `git status` is none for `git status; rm -r .`.
    exactly = grant_pattern(action)
    if exactly and any(grant.pattern == exactly for grant in grants):
        return PolicyDecision("allow", "you allowed it before", by="grant", text=exactly)
    is_firm = "ask" in verdicts or action.is_delicate
    return PolicyDecision("ask", strictest.reason, is_firm)


def _with_hosts_to_ask(action: ToolAction, rules: tuple[PermissionRule, ...]) -> ToolAction:
    """The action with only those of its hosts that no rule allows; denied for one that a rule
    denies."""
    from weft.permissions.network_rules import NetworkRules, read_host  # few commands name any

    network, asked = NetworkRules(rules), []
    for text in action.hosts:
        named = read_host(text)
        found = network.decide_named(named) if named is not None else None
        if found is None or found.verdict == "deny":
            why = "it is no host" if found is None else found.reason
            return msgspec.structs.replace(action, refused=f"it would reach {text}, and {why}")
        if found.verdict == "ask":
            asked.append(text)
    return msgspec.structs.replace(action, hosts=tuple(asked))


def judge_line(action: ToolAction, rules: Iterable[PermissionRule]) -> LineJudgement | None:
    """What is said of each command of a line; None for an action that is none."""
    if action.kind != "run" or not action.line:
        return None
    from weft.permissions.shell import LineJudge  # the grammar is loaded with the first command

    return LineJudge(action, tuple(rules)).judge()


def is_broken_line(line: str) -> bool:
    """True when a line does not parse, so that which commands it has is not known."""
    from weft.permissions.shell import parse_line  # as above

    return parse_line(line).is_broken


def words_in_line(line: str) -> tuple[str, ...]:
    """What of the literal words of a line may name files; one more than `MOST_NAMED` at most."""
    from weft.permissions.shell import read_program  # as above

    parts = read_program(line).all()
    words = (word for part in parts for word in (*part.words[1:], *part.opened))
    found = (word.text for word in words if word.kind == "literal" and word.text.isprintable())
    named = (name for text in found if (name := _named_by(text)))
    return tuple(dict.fromkeys(named))[: MOST_NAMED + 1]


def _named_by(word: str) -> str:
    """A word, or the value that an option has in the same word."""
    if not word.startswith("-"):
        return word
    return word.partition("=")[2] if word.startswith("--") else word[2:]


def _voices(
    action: ToolAction,
    mode: Mode,
    rules: Iterable[PermissionRule],
    line: LineJudgement | None,
    *,
    only_reads: bool,
) -> list[PolicyDecision]:
    """All that speak of an action.

    The order counts: of equally strict voices `max` takes the first, and its reason is shown.
    """
    voices = []
    if refused := action.refused or (line.refused if line is not None else ""):
        voices.append(PolicyDecision("deny", refused))
    # What a command could read is a voice of its own, for no mode is freer than a rule.
    voices += [PolicyDecision("ask", why) for why in (action.exposes, action.unfamiliar) if why]
    voices.append(_by_mode(action, mode, only_reads=only_reads))
    voices += [
        PolicyDecision(rule.verdict, _because_of(rule), by="rule", text=rule_text(rule))
        for rule in rules
        if rule.covers(action)
    ]
    if line is not None:
        voices += line.restrictions
    return voices


def _only_reads(action: ToolAction, mode: Mode, line: LineJudgement | None) -> bool:
    """Whether every command of a line changes nothing, by the table."""
    if line is None or line.only_reads or mode != "plan":
        return line is not None and line.only_reads
    # A rule may allow it for more than that; what plan mode may run, the table says alone.
    by_table = judge_line(action, ())
    return by_table is not None and by_table.only_reads


def _leaves(action: ToolAction) -> bool:
    """Whether a pattern does not reach it: it would run where only the user can allow it."""
    return action.is_delicate or action.outside


def _pattern_in(rule: str) -> str:
    return rule.partition("(")[2].removesuffix(")")


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
    if SEVERITY[verdict] > SEVERITY[decision.verdict]:
        # Firm: no hook that is heard after this one can lift it.
        return PolicyDecision(verdict, reason, is_firm=True, by="hook")
    if verdict == decision.verdict == "ask":
        # The mode asks as well; an "allow" of the next hook must not answer for this one.
        return msgspec.structs.replace(decision, is_firm=True)
    return decision


def _by_mode(action: ToolAction, mode: Mode, *, only_reads: bool = False) -> PolicyDecision:
    """What the mode alone says."""
    if mode == "plan" and action.has_effect:
        if only_reads and not action.outside and not action.hosts and _drops_changes(action):
            return PolicyDecision("allow", "it only reads, in the sandbox")
        return PolicyDecision("deny", "plan mode changes nothing; switch to another mode to act")
    # The order of these checks is the policy. What leaves the sandbox comes before bypass, which
    # would allow it, and a target outside before the reads, which change nothing but may show a key
    # to the model.
    if mode == "bypass" and action.escapes:
        return PolicyDecision("deny", "bypass mode never asks, so no command may leave the sandbox")
    if mode == "bypass" and action.hosts:
        return PolicyDecision("deny", f"bypass mode never asks: {_needed_rules(action)}")
    if mode == "bypass":
        return PolicyDecision("allow", "bypass mode never asks")
    if action.escapes:
        return PolicyDecision("ask", "it would run outside the sandbox")
    if action.hosts:
        return PolicyDecision("ask", f"it would reach {', '.join(action.hosts)}")
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
    # In the sandbox all the same: a command that only reads may run what the project configures.
    if only_reads and _drops_changes(action):
        return PolicyDecision("allow", "it only reads, in the sandbox")
    return PolicyDecision("ask", "")


def _needed_rules(action: ToolAction) -> str:
    rules = " and ".join(f"`fetch(domain:{host})`" for host in action.hosts)
    return f"to reach {', '.join(action.hosts)} takes the rule {rules}"


def _drops_changes(action: ToolAction) -> bool:
    """Whether nothing that a command changes is carried over, should it change something."""
    is_inside = action.sandboxed and not action.escapes
    return action.kind == "run" and is_inside and not action.goes_on


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
    return f"the rule `{rule_text(rule)}` says so"
