"""What the permission policy is about: actions, rules, grants and decisions, and which rule speaks
of which action.

There is no string matching on shell commands: a rule with a pattern is compared with the words of
each parsed command (`weft.permissions.shell`), and what is exact with the very same text.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

import msgspec

Mode: TypeAlias = Literal["plan", "default", "accept_edits", "auto", "bypass"]
MODES: tuple[Mode, ...] = ("plan", "default", "accept_edits", "auto", "bypass")
Verdict: TypeAlias = Literal["allow", "ask", "deny"]
ActionKind: TypeAlias = Literal["read", "edit", "run", "other"]

UNREACHABLE: Final = "unreachable parent"
"""The `source` of `CLOSED_RULES`."""

NOT_LOOKED_UP: Final = "a word of it may be a link that"
"""The `leads_out` of a line whose words nobody looked up, for nothing hung on them then."""

SEVERITY: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


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
    goes_on: bool = False
    """A command that goes on in the background, and whose changes are not dropped with it."""
    hosts: tuple[str, ...] = ()
    """Of a command in the sandbox: hosts that it asks to reach, `pypi.org` or `localhost:8080`."""
    line: str = ""
    """Of a command: the line for bash, which is parsed and judged command by command; empty where
    it is no line for bash, and only the very same text is known."""
    root: str = ""
    """Of a line: the folder of the project, in which absolute paths are no others."""
    folder: str = ""
    """Of a line: where it runs, relative to the project; empty for the project itself."""
    leads_out: str = ""
    """Of a line: a word of it that is a link out of the project, or `NOT_LOOKED_UP`."""
    refused: str = ""
    """Why no shell would run it; such an action is denied."""

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
        is_told = self.escapes or bool(self.exposes or self.unfamiliar or self.hosts)
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
        if not any(names_tool(self.tool, name) for name in names):
            return False
        if self.pattern and action.arguments:
            from weft.permissions.server_arguments import arguments_fit  # few rules are of these

            return arguments_fit(action.arguments, self.pattern, restricts=self.verdict != "allow")
        if self.pattern and action.line and any(letter in self.pattern for letter in "*?["):
            # Compared with words, never with the text: the line may be the very pattern, and its
            # `*` then stands for files.
            return False
        if self.pattern.startswith("domain:") and "fetch" in action.names:
            from weft.permissions.domains import domain_fits  # its expressions take milliseconds

            return domain_fits(action.target, self.pattern, restricts=self.verdict != "allow")
        if self.pattern and self._stays_inside(action):
            return False
        if not self.pattern or _target_fits(action, self.pattern):
            return True
        # A command that is forbidden does not become another one by blanks around it.
        restricts = self.verdict != "allow" and action.kind == "run"
        return restricts and action.target.strip() == self.pattern.strip()

    def _stays_inside(self, action: ToolAction) -> bool:
        """Whether it allows files of the project, and this one lies outside: `*` crosses slashes,
        but means no file of the rest of the disk."""
        is_path = action.kind in ("read", "edit") and action.outside
        return is_path and self.verdict == "allow" and not self.pattern.startswith("/")


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
    by: Literal["mode", "rule", "grant", "hook", "user", "plan", "goal"] = "mode"
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


def rule_text(rule: PermissionRule) -> str:
    """A rule as it is shown: `deny edit(src/*)`."""
    shown = f"{rule.tool}({rule.pattern})" if rule.pattern else rule.tool
    return f"{rule.verdict} {shown}"


def names_tool(rule: str, name: str) -> bool:
    """Whether a rule's tool is this one; `mcp__server` alone is every tool of that server."""
    if fnmatchcase(name, rule):
        return True
    return rule.startswith("mcp__") and "__" not in rule[5:] and fnmatchcase(name, f"{rule}__*")


def _target_fits(action: ToolAction, pattern: str) -> bool:
    # No string is matched on commands: `git *` would match `git log; curl …|sh`.
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
