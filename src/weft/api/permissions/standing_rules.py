"""The permission rules of the application's project and of its user, as programs use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from anyio.to_thread import run_sync

from weft.api.permissions.effect_log import AuditEntry, read_audit
from weft.api.permissions.rule_import import ImportedRule, read_foreign_rules, usual_files
from weft.api.permissions.rule_simulation import PastCalls, RuleSimulation, simulated
from weft.config.paths import WeftPaths
from weft.config.settings import Config
from weft.config.settings_file import SettingsFile
from weft.errors import UsageError
from weft.permissions import (
    MODES,
    Mode,
    PermissionRule,
    ToolAction,
    Verdict,
    decide,
    example_problem,
    is_protected,
    judge_line,
    our_tool_name,
    read_rule,
    rule_problem,
)
from weft.permissions.shell import PartJudgement
from weft.project.saved_rules import SavedRules
from weft.runtime.registry import SessionRegistry
from weft.store import Store
from weft.tools.shell_syntax import why_no_bash
from weft.workspace import Runner

_VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")
# `list` is a method here.
Texts: TypeAlias = list[str]
ListEdit: TypeAlias = Callable[[Texts], Texts]


class StandingRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that counts in this project."""

    verdict: Verdict
    rule: str
    """As it is written: `shell(git diff *)`."""
    source: str
    """The file that has it, or `caller`."""


class PermissionExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What would be decided of an action, and why."""

    decision: Verdict
    parts: tuple[PartJudgement, ...] = ()
    """Of a command line: each of its commands."""
    rule: str = ""
    """The rule that decided; empty where none did."""
    why: str = ""
    mode: Mode = "default"
    sandboxed: bool = False
    """Whether it would run in the sandbox; without one, a command that only reads asks."""


class AppPermissions:
    """Standing rules: listed, added, removed; and what they say of an action.

    Rules are kept in the user's own settings; sessions that are open here heed them from their next
    decision on.
    """

    def __init__(
        self,
        *,
        project: str,
        config: Config,
        places: WeftPaths,
        rules: Callable[[], tuple[PermissionRule, ...]],
        runner: Callable[[], Runner],
        is_sandboxed: Callable[[], Awaitable[bool]],
        history: Callable[[], tuple[Store, SessionRegistry]],
        changed: Callable[[], None],
    ) -> None:
        """`rules` are those that count here; the `history` can be read while the application is
        open; `changed` is told when the settings are others."""
        self._project = project
        self._config = config
        self._settings = SettingsFile(places.config)
        self._saved = SavedRules(places.config)
        self._home = str(places.user)
        self._rules = rules
        self._runner = runner
        self._is_sandboxed = is_sandboxed
        self._history = history
        self._changed = changed

    def list(self) -> list[StandingRule]:
        """Every rule that counts in this project, those that deny first."""
        found = [
            StandingRule(verdict=verdict, rule=text, source=layer.source)
            for verdict in _VERDICTS
            for layer in self._config.layers(f"permissions.{verdict}")
            for text in layer.value
        ]
        saved = [
            StandingRule(verdict="allow", rule=f"{rule.tool}({rule.pattern})", source=rule.source)
            for rule in self._saved.of(self._project)
        ]
        return [*found, *saved]

    async def add(
        self,
        verdict: Verdict,
        rule: str,
        *,
        match: Sequence[str] = (),
        not_match: Sequence[str] = (),
    ) -> StandingRule:
        """Keep a rule in the user's settings, for every project; `match` and `not_match` are
        examples of what it has to cover, and what it must not.

        Raises:
            UsageError: it could cover nothing, an example is otherwise, or the file cannot be
                changed.
        """
        _check_verdict(verdict)
        why = rule_problem(rule)
        if why := why or example_problem(verdict, rule, match, not_match, home=self._home):
            raise UsageError(why)
        await self._edit(verdict, lambda own: own if rule in own else [*own, rule])
        return StandingRule(verdict=verdict, rule=rule, source=str(self._settings.path))

    def reread(self) -> None:
        """Heed the rules as the settings have them now: another program may have changed them."""
        self._changed()

    async def import_rules(
        self, files: Sequence[str] = (), *, keep: bool = True
    ) -> Sequence[ImportedRule]:
        """Take over the rules of other agents from these files, or from the user's own ones: Claude
        Code's `settings.json`, and `*.rules` of codex.  With `keep=False` it is only said what
        would be taken.

        Raises:
            UsageError: a file cannot be read, or is none of these.
        """
        paths = [Path(self._project, each) for each in files] or usual_files(Path(self._home))
        if not paths:
            raise UsageError("there is no file with rules in ~/.claude or ~/.codex/rules; name one")
        read = [rule for path in paths for rule in await run_sync(read_foreign_rules, path)]
        found = [self._known(rule) for rule in read]
        for rule in found if keep else ():
            if rule.state == "new":
                await self.add(rule.verdict, rule.rule)
        return found

    def _known(self, rule: ImportedRule) -> ImportedRule:
        is_there = rule.state == "new" and rule.rule in self._own(rule.verdict)
        return msgspec.structs.replace(rule, state="there") if is_there else rule

    async def remove(self, verdict: Verdict, rule: str) -> None:
        """Take a rule out of the user's settings.

        Raises:
            UsageError: it is not there, or the file cannot be changed.
        """
        _check_verdict(verdict)

        def without(own: Texts) -> Texts:
            if rule not in own:
                raise UsageError(f"{self._settings.path} has no rule `{verdict} {rule}`")
            return [each for each in own if each != rule]

        await self._edit(verdict, without)

    async def _edit(self, verdict: Verdict, edit: ListEdit) -> None:
        await run_sync(self._settings.edit_list, f"permissions.{verdict}", edit)
        self._changed()

    async def explain(
        self, text: str, *, tool: str = "shell", mode: Mode = "default"
    ) -> PermissionExplanation:
        """What would be decided of a command line, or of a path or address that another tool is
        given.  Nothing is run and nothing is asked.

        Raises:
            UsageError: there is no such mode.
        """
        _check_mode(mode)
        name = our_tool_name(tool)
        action = await self._line(text) if name == "shell" else self._file(name, text)
        rules = self._rules()
        decision = decide(action, mode=mode, rules=rules)
        line = judge_line(action, rules)
        parts = line.parts if line is not None else ()
        if action.refused or (line is not None and line.refused):
            # What no shell runs has no commands; the line itself is what is denied.
            parts = (PartJudgement(text, (), "deny", decision.reason),)
        asking = next((part for part in parts if part.decision != "allow"), None)
        doubt = line.doubt if line is not None else ""
        reason = decision.reason or doubt or (asking.reason if asking is not None else "")
        return PermissionExplanation(
            decision=decision.verdict,
            parts=parts,
            rule=decision.text,
            why=reason,
            mode=mode,
            sandboxed=action.sandboxed,
        )

    async def simulate(
        self, verdict: Verdict, rule: str, *, mode: Mode = "default", everywhere: bool = False
    ) -> RuleSimulation:
        """What a rule would have changed in the sessions of this project, or of all: which calls
        would have been asked about, allowed or denied, now and with it.  It is not kept, and
        nothing is run.  The application must be open.

        Raises:
            UsageError: it could cover nothing.
        """
        _check_verdict(verdict)
        if why := rule_problem(rule):
            raise UsageError(why)
        _check_mode(mode)
        past = PastCalls()
        store, _ = self._history()
        await past.read(store, None if everywhere else self._project)
        is_sandboxed = await self._is_sandboxed()

        def action_of(tool: str, text: str) -> ToolAction:
            return self._command(text, is_sandboxed) if tool == "shell" else self._file(tool, text)

        def judged() -> RuleSimulation:
            return simulated(
                past,
                verdict,
                rule,
                action_of=action_of,
                rules=self._rules(),
                added=read_rule(verdict, rule, home=self._home),
                mode=mode,
            )

        # Thousands of lines take seconds, and others wait for the loop.
        return await run_sync(judged)

    async def audit(self, session_id: str) -> Sequence[AuditEntry]:
        """Every effect of a stored session and of its agents, with who allowed it and why; nothing
        is started.  The application must be open.

        Raises:
            SessionNotFound, AmbiguousId: no session, or several, have this id.
        """
        _, registry = self._history()
        resolved = await registry.resolved(session_id)
        async with registry.reading(resolved) as store:
            return await read_audit(store, resolved)

    async def _line(self, line: str) -> ToolAction:
        refused = await why_no_bash(line, self._runner(), self._project)
        return self._command(line, await self._is_sandboxed(), refused)

    def _command(self, line: str, is_sandboxed: bool, refused: str = "") -> ToolAction:
        return ToolAction(
            tool="shell",
            kind="run",
            target=line,
            line=line,
            root=self._project,
            sandboxed=is_sandboxed,
            refused=refused,
        )

    def _file(self, tool: str, path: str) -> ToolAction:
        root = self._project.rstrip("/")
        whole = path if path.startswith("/") else f"{root}/{path}"
        is_inside = whole.startswith(f"{root}/") and ".." not in path.split("/")
        reads = tool in ("read", "grep", "find", "list", "lsp")
        if tool == "fetch":
            return ToolAction(tool=tool, kind="other", target=path)
        return ToolAction(
            tool=tool,
            kind="read" if reads else "edit",
            target=whole.removeprefix(f"{root}/") if is_inside else path,
            place=whole,
            has_effect=not reads,
            outside=not is_inside,
            protected=is_protected(path),
        )

    def _own(self, verdict: Verdict) -> Sequence[str]:
        """The rules in the user's own file."""
        own = str(self._settings.path)
        layers = self._config.layers(f"permissions.{verdict}")
        return [text for layer in layers if layer.source == own for text in layer.value]


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise UsageError(f"there is no mode {mode!r}; there are {', '.join(MODES)}")


def _check_verdict(verdict: str) -> None:
    if verdict not in _VERDICTS:
        raise UsageError(f"a rule allows, asks or denies (allow, ask, deny), not {verdict!r}")
