"""The permission rules of the application's project and of its user, as programs use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio.to_thread
import msgspec

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
    is_protected,
    judge_line,
    our_tool_name,
    rule_problem,
)
from weft.permissions.shell import PartJudgement
from weft.project.saved_rules import SavedRules
from weft.tools.shell_syntax import why_no_bash
from weft.workspace import Runner

_VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")


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

    Rules are kept in the user's own settings; sessions that are open have them with the next turn
    at which they read their settings.
    """

    def __init__(
        self,
        project: str,
        config: Config,
        folder: Path,
        rules: Callable[[], tuple[PermissionRule, ...]],
        runner: Callable[[], Runner],
        is_sandboxed: Callable[[], Awaitable[bool]],
    ) -> None:
        """`folder` holds the user's settings; `rules` are those that count here."""
        self._project = project
        self._config = config
        self._settings = SettingsFile(folder)
        self._saved = SavedRules(folder)
        self._rules = rules
        self._runner = runner
        self._is_sandboxed = is_sandboxed

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

    async def add(self, verdict: Verdict, rule: str) -> StandingRule:
        """Keep a rule in the user's settings, for every project.

        Raises:
            UsageError: it could cover nothing, or the file cannot be changed.
        """
        _check_verdict(verdict)
        if why := rule_problem(rule):
            raise UsageError(why)
        own = self._own(verdict)
        if rule not in own:
            await anyio.to_thread.run_sync(
                self._settings.put, f"permissions.{verdict}", [*own, rule]
            )
        return StandingRule(verdict=verdict, rule=rule, source=str(self._settings.path))

    async def remove(self, verdict: Verdict, rule: str) -> None:
        """Take a rule out of the user's settings.

        Raises:
            UsageError: it is not there, or the file cannot be changed.
        """
        _check_verdict(verdict)
        own = self._own(verdict)
        if rule not in own:
            raise UsageError(f"{self._settings.path} has no rule `{verdict} {rule}`")
        rest = [each for each in own if each != rule]
        await anyio.to_thread.run_sync(self._settings.put, f"permissions.{verdict}", rest)

    async def explain(
        self, text: str, *, tool: str = "shell", mode: Mode = "default"
    ) -> PermissionExplanation:
        """What would be decided of a command line, or of a path or address that another tool is
        given.  Nothing is run and nothing is asked.

        Raises:
            UsageError: there is no such mode.
        """
        if mode not in MODES:
            raise UsageError(f"there is no mode {mode!r}; there are {', '.join(MODES)}")
        name = our_tool_name(tool)
        action = await self._line(text) if name == "shell" else self._file(name, text)
        rules = self._rules()
        decision = decide(action, mode=mode, rules=rules)
        line = judge_line(action, rules)
        parts = line.parts if line is not None else ()
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

    async def _line(self, line: str) -> ToolAction:
        return ToolAction(
            tool="shell",
            kind="run",
            target=line,
            line=line,
            root=self._project,
            sandboxed=await self._is_sandboxed(),
            refused=await why_no_bash(line, self._runner(), self._project),
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


def _check_verdict(verdict: str) -> None:
    if verdict not in _VERDICTS:
        raise UsageError(f"a rule allows, asks or denies (allow, ask, deny), not {verdict!r}")
