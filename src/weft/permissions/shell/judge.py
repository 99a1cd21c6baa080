"""Judgement of a command line by rules and tables: what each of its commands is allowed, and why.

The strictest part counts.  Nothing here knows the mode: whether a line that only reads is allowed
is decided above, for that needs the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from weft.permissions.policy import (
    PermissionRule,
    PolicyDecision,
    ToolAction,
    Verdict,
    names_tool,
    rule_text,
)
from weft.permissions.protected import is_protected
from weft.permissions.shell.file_reach import reach_of
from weft.permissions.shell.file_rules import (
    ANY,
    DESTROYS,
    FileRules,
    of_rule,
    place_of,
)
from weft.permissions.shell.parts import (
    ShellPart,
    ShellProgram,
    read_program,
    without_git_options,
)
from weft.permissions.shell.paths import why_not_readable, why_outside
from weft.permissions.shell.patterns import (
    CommandPattern,
    compile_pattern,
    restricts,
    why_not_covered,
)
from weft.permissions.shell.read_only import NotReadOnly, read_only_use, row_of
from weft.permissions.shell.syntax import ShellRedirect
from weft.permissions.shell.tables import CHANGING_PROGRAMS
from weft.permissions.shell.words import ShellWord

_REMOVE_FOLDERS: Final = frozenset({"rm", "mv", "rsync", "shred"})
_MAY_WRITE: Final = frozenset(
    {"perl", "curl", "wget", "sort", "awk", "gawk", "find", "tree", "xxd"}
)
"""Programs that write with some options: without them their words are read."""
_GIT_WRITES: Final = frozenset({"checkout", "restore", "rm", "mv", "clean"})
_MOST_FOLDERS: Final = 8
_ENTERS: Final = frozenset({"cd", "pushd", "env", "git", "make", "tar", "bsdtar"})
"""Commands that change to a folder, and programs that work in the one behind `-C`."""
_SEVERITY: Final[dict[Verdict, int]] = {"allow": 0, "ask": 1, "deny": 2}


class PartJudgement(msgspec.Struct, frozen=True):
    """What is said of one command of a line."""

    text: str
    argv: tuple[str, ...]
    """The words, without quotes; one that is known only when it runs is shown as it is written."""
    decision: Verdict
    reason: str
    rule: str = ""
    only_reads: bool = False


class LineJudgement(msgspec.Struct, frozen=True):
    """What is said of a whole line."""

    parts: tuple[PartJudgement, ...] = ()
    restrictions: tuple[PolicyDecision, ...] = ()
    """What rules ask or deny of it."""
    refused: str = ""
    """Why it is not run at all."""
    doubt: str = ""
    """Why it is allowed neither by a pattern nor as a line that only reads."""
    only_reads: bool = False
    """Every command of it changes nothing, by the table."""
    rule: str = ""
    """The rule that allows the line, together with the table; empty when none does."""


@lru_cache(maxsize=64)
def _program(line: str) -> ShellProgram:
    return read_program(line)


class LineJudge:
    """The rules of a session, as they concern one line."""

    def __init__(self, action: ToolAction, rules: Sequence[PermissionRule]) -> None:
        self._action = action
        self._root = action.root
        self._files = FileRules(rules, action.root, action.folder)
        self._judged: dict[int, tuple[list[PolicyDecision], list[PartJudgement]]] = {}
        """By part: a long line has the same command often, which is one part then."""
        own = [rule for rule in rules if any(names_tool(rule.tool, each) for each in action.names)]
        # A pattern that cannot be read restricts nothing and allows nothing: such rules are refused
        # where they are written.
        each = [(rule, _compiled(rule)) for rule in own if rule.pattern and not rule.is_exact]
        self._patterns = [(rule, pattern) for rule, pattern in each if pattern is not None]
        self._edits = [
            rule
            for rule in rules
            if rule.pattern and rule.verdict == "allow" and rule.tool in ("edit", "write")
        ]

    def judge(self) -> LineJudgement:
        """Judge the line."""
        program = _program(self._action.line)
        if program.refused:
            return LineJudgement(refused=program.refused, doubt=program.doubt or program.refused)
        self._files.enter(_folders(program))
        restrictions = list(self._line_restrictions(program))
        parts: list[PartJudgement] = []
        for part in program.parts:
            found, judged = self._part(part)
            restrictions += found
            parts += judged
        doubt = program.doubt or _mixed(program, self._action.folder)
        if not doubt and self._action.leads_out:
            doubt = f"{self._action.leads_out} leads out of the project"
        is_allowed = bool(parts) and not doubt and all(each.decision == "allow" for each in parts)
        return LineJudgement(
            parts=tuple(parts),
            restrictions=tuple(restrictions),
            doubt=doubt,
            only_reads=is_allowed and all(each.only_reads for each in parts),
            rule=next((each.rule for each in parts if each.rule), "") if is_allowed else "",
        )

    # -- what restricts

    def _line_restrictions(self, program: ShellProgram) -> Iterator[PolicyDecision]:
        if program.is_broken:
            yield from self._files.of_any(program.doubt)
        for rule, pattern in self._restricting():
            if self._action.line.strip() == rule.pattern.strip():
                yield of_rule(rule, rule.verdict)
            elif program.is_broken:
                yield of_rule(rule, "ask", program.doubt)
            elif pattern.lines and _holds_all(pattern, program):
                yield of_rule(rule, rule.verdict)

    def _restricting(self) -> list[tuple[PermissionRule, CommandPattern]]:
        return [each for each in self._patterns if each[0].verdict != "allow"]

    def _restrictions(self, part: ShellPart) -> Iterator[PolicyDecision]:
        """What rules ask or deny of one command."""
        for rule, pattern in self._restricting():
            fit = restricts(pattern, part)
            if fit == "yes":
                yield of_rule(rule, rule.verdict)
            elif fit == "maybe":
                yield of_rule(rule, "ask", part.opaque or "one of its words is not known yet")
        if self._files:
            yield from self._of_files(part)

    def _of_files(self, part: ShellPart) -> Iterator[PolicyDecision]:
        """What rules about files say of the words of a command."""
        changes = _changes_files(part, self._root)
        removes = part.name in _REMOVE_FOLDERS
        may_read = part.name in CHANGING_PROGRAMS or _reads_paths(part)
        for word in part.words[1:]:
            yield from self._files.of_word(word, "read", ANY if may_read else "")
            if changes:
                yield from self._files.of_word(word, "edit", DESTROYS if removes else "")
        yield from self._files.of_reach(reach_of(part, self._root))
        for redirect in part.command.redirects:
            if redirect.has_text or _is_descriptor(redirect):
                continue
            if redirect.operator in ("<", "<>"):
                yield from self._files.of_word(redirect.target, "read", ANY)
            if redirect.operator != "<":
                yield from self._files.of_word(redirect.target, "edit", ANY)

    # -- what allows

    def _part(self, part: ShellPart) -> tuple[list[PolicyDecision], list[PartJudgement]]:
        """What rules restrict in a part, and the judgement of it and of all in it."""
        if id(part) not in self._judged:
            self._judged[id(part)] = self._judged_part(part)
        return self._judged[id(part)]

    def _judged_part(self, part: ShellPart) -> tuple[list[PolicyDecision], list[PartJudgement]]:
        own = list(self._restrictions(part))
        restrictions = list(own)
        judged: list[PartJudgement] = []
        for inner in part.inner:
            more, of_inner = self._part(inner)
            restrictions += more
            judged += of_inner
        decision, reason, rule, only_reads = self._allowance(part, judged)
        strictest = max(own, key=lambda each: _SEVERITY[each.verdict], default=None)
        if strictest is not None:
            decision, reason, rule = strictest.verdict, strictest.reason, strictest.text
        shown = tuple(_shown(word) for word in part.words)
        mine = PartJudgement(part.command.text, shown, decision, reason, rule, only_reads)
        if decision == "allow" and not part.passes:
            # What it runs was allowed by name with it, or is in its row of the table.
            judged = [
                msgspec.structs.replace(each, decision="allow") if each.decision == "ask" else each
                for each in judged
            ]
        return restrictions, [mine, *judged]

    def _allowance(
        self, part: ShellPart, inner: Sequence[PartJudgement]
    ) -> tuple[Verdict, str, str, bool]:
        """Verdict, reason, rule, and whether it changes nothing."""
        if why := self._why_redirects(part):
            return "ask", why, "", False
        if part.command.assignments:
            return "ask", "it sets variables, which programs obey", "", False
        if not part.words:
            return "allow", "it only redirects", "", True
        if part.doubt:
            return "ask", part.doubt, "", False
        rule, why_not = self._allowing_rule(part)
        if rule is not None:
            return "allow", f"the rule `{rule_text(rule)}` allows it", rule_text(rule), False
        try:
            use = read_only_use(part.words, self._root)
        except NotReadOnly as why:
            reason = str(why)
        else:
            return self._reads(part, f"it only reads: {use.reason}")
        if part.passes and inner:
            if all(each.decision == "allow" for each in inner):
                return "allow", "it only runs what follows", "", all(x.only_reads for x in inner)
            return "ask", "what it runs asks", "", False
        return "ask", why_not or part.opaque or reason, "", False

    def _reads(self, part: ShellPart, reason: str) -> tuple[Verdict, str, str, bool]:
        """What is said of a command that changes nothing, but may be redirected into a file."""
        if not self._action.sandboxed:
            # It may run what the project configures: git has filters, hooks and pagers.
            return "ask", f"{reason}; without a sandbox it asks", "", False
        written = self._edit_rule(part)
        return "allow", reason, rule_text(written) if written is not None else "", written is None

    def _edit_rule(self, part: ShellPart) -> PermissionRule | None:
        """The rule that allows the file to be written into which a command is redirected."""
        targets = [each.target.text for each in part.command.redirects if _writes_file(each)]
        return self._rule_for_edit(targets[0]) if targets else None

    def _allowing_rule(self, part: ShellPart) -> tuple[PermissionRule | None, str]:
        """The rule that allows a command, or why the nearest one does not."""
        nearest = ""
        for rule, pattern in self._patterns:
            if rule.verdict != "allow":
                continue
            why = why_not_covered(pattern, part, self._root)
            if not why:
                return rule, ""
            if why != "-":
                nearest = f"the rule `{rule_text(rule)}` does not cover it: {why}"
        return None, nearest

    def _why_redirects(self, part: ShellPart) -> str:
        for redirect in part.command.redirects:
            if redirect.has_text:
                if redirect.target.kind == "dynamic":
                    return f"what `{redirect.target.raw}` becomes is known only when it runs"
                continue
            if redirect.operator != "<" and not _writes_file(redirect):
                continue
            if redirect.target.kind != "literal":
                return f"what `{redirect.target.raw}` becomes is known only when it runs"
            if redirect.operator == "<":
                if why := why_not_readable(redirect.target.text, self._root):
                    return why
            elif why := self._why_written(redirect.target.text):
                return why
        return ""

    def _why_written(self, path: str) -> str:
        """Why a file may not be written without asking; empty where a rule allows edits of it."""
        if why := why_outside(path, self._root):
            return why
        if is_protected(path):
            return f"programs obey {path} or run it by themselves"
        return "" if self._rule_for_edit(path) is not None else f"it writes {path}"

    def _rule_for_edit(self, path: str) -> PermissionRule | None:
        target = place_of(path, self._root, self._action.folder)
        place = target if target.startswith("/") else f"{self._root.rstrip('/')}/{target}"
        for rule in self._edits:
            action = ToolAction(tool=rule.tool, kind="edit", target=target, place=place)
            if rule.covers(action):
                return rule
        return None


def _compiled(rule: PermissionRule) -> CommandPattern | None:
    try:
        return compile_pattern(rule.pattern)
    except ValueError:
        return None


def _holds_all(pattern: CommandPattern, program: ShellProgram) -> bool:
    """True when each command of a pattern that is a whole line stands in the line."""
    there = {tuple(word.text for word in part.words) for part in program.all()}
    return all(words in there for words in pattern.lines)


def _mixed(program: ShellProgram, folder: str) -> str:
    """Why commands that are harmless alone are not so together, or elsewhere."""
    # A long line has the same part often.
    parts = {id(part): part for part in program.all()}.values()
    names = {part.name for part in parts}
    if "git" in names and ("cd" in names or folder):
        return "git obeys the repository of the folder that it runs in"
    redirects = (each for part in parts for each in part.command.redirects)
    if "cd" in names and any(_writes_file(each) for each in redirects):
        return "it writes in a folder that it changes to"
    return ""


def _folders(program: ShellProgram) -> tuple[str, ...]:
    """The folders that a line changes to: each alone, and each below those before it."""
    found: list[str] = []
    for to in (to for part in program.all() for to in _entered(part)):
        found += [to, *(f"{folder}/{to}" for folder in found[-1:])]
    return tuple(dict.fromkeys(found))[:_MOST_FOLDERS]


def _entered(part: ShellPart) -> Iterator[str]:
    """The folders in which a command, or what follows it, names its files."""
    if part.name not in _ENTERS:
        return
    words = [word.text for word in part.words[1:] if word.kind == "literal"]
    if part.name in ("cd", "pushd"):
        yield from [text for text in words if text[:1] not in ("-", "+")][:1]
        return
    for option, value in pairwise([*words, ""]):
        name, _, joined = option.partition("=")
        if name in ("-C", "--chdir", "--directory"):
            yield joined or value
        elif option.startswith("-C"):
            yield option[2:]


def _changes_files(part: ShellPart, root: str) -> bool:
    """Whether the words of a command may name files that it changes."""
    rest = [word.text for word in without_git_options(part.words)[1:]] if part.words else []
    is_git = part.name == "git" and rest[:1] != []
    if is_git and (rest[0] in _GIT_WRITES or any(text.startswith("--out") for text in rest)):
        return True
    if part.name not in CHANGING_PROGRAMS | _MAY_WRITE:
        return False
    try:
        read_only_use(part.words, root)
    except NotReadOnly:
        return True
    return False


def _reads_paths(part: ShellPart) -> bool:
    """Whether the table says that the words of a command are files that it reads."""
    row = row_of(part.words)
    return row is not None and row.words in ("paths", "path1", "pattern", "sed", "awk", "jq")


def _is_descriptor(redirect: ShellRedirect) -> bool:
    text = redirect.target.text
    return redirect.operator in (">&", "<&") and (text.isdecimal() or text == "-")


def _writes_file(redirect: ShellRedirect) -> bool:
    if redirect.has_text or redirect.operator == "<" or _is_descriptor(redirect):
        return False
    return redirect.target.text != "/dev/null" or redirect.target.kind != "literal"


def _shown(word: ShellWord) -> str:
    return word.text if word.kind == "literal" else word.raw
