"""Read guard of a session: the rules that keep files from being read, for searches and commands.

A rule names patterns; a search is handed only the files that no rule forbids, and a command in the
sandbox does not see those that one does.  Where that cannot be promised, `why_exposed` says why,
and the command asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from weft.errors import FinalToolError, RetryableToolError
from weft.loop import PermissionGate
from weft.permissions import PermissionRule, PolicyDecision, ToolAction, decide
from weft.tools import ReadGuard
from weft.workspace.disk_threads import DiskThreads

if TYPE_CHECKING:  # loaded where there are such rules: it costs start-up time
    from weft.workspace.concealed import ConcealedFiles


class SessionReadGuard(ReadGuard):
    """The rules about reading of one session."""

    def __init__(self, root: str, added: Sequence[str] = ()) -> None:
        self._root = root.rstrip("/")
        self._added = added
        self._gate: PermissionGate | None = None
        self._files: ConcealedFiles | None = None
        self._threads = DiskThreads.of(root)
        self._is_exposed = False
        """The user was told, with the last command, that not everything can be hidden."""

    def follow(self, gate: PermissionGate) -> None:
        """Hold to the rules of this gate, from now on."""
        self._gate = gate

    @property
    def _rules(self) -> tuple[PermissionRule, ...]:
        return () if self._gate is None else self._gate.read_rules

    @property
    def has_rules(self) -> bool:
        return bool(self._rules)

    def forbids(self, path: str) -> str:
        if self._gate is None:
            return ""
        place = path if path.startswith("/") else f"{self._root}/{path}"
        action = ToolAction(tool="read", kind="read", target=path, place=place, has_effect=False)
        # Most files are in no rule: only those that are get the whole judgement, with its grants.
        if not any(rule.covers(action) for rule in self._rules):
            return ""
        decision = self._gate.decide(action)
        return "" if decision.verdict == "allow" else decision.reason

    def may_show(self, place: str) -> bool:
        """Whether what stands in a file may be shown, by its absolute path."""
        return not (self.has_rules and self.forbids(self._named(place)))

    def forbidden_among(self, paths: Iterable[str]) -> set[str]:
        """Those of these paths that a rule forbids; nearly nothing where there is no rule."""
        return {path for path in paths if self.forbids(path)} if self.has_rules else set()

    async def why_exposed(self, *, is_sandboxed: bool) -> str:
        rules = self._rules
        if not rules:
            return ""
        self._is_exposed = not is_sandboxed
        if not is_sandboxed:
            return (
                f"{_shown(rules[0])} keeps files from being read, and without a sandbox nothing "
                "hides them from a command"
            )
        try:
            await self.concealed()
        except RetryableToolError:
            self._is_exposed = True
            return f"the project is too large to hide all that {_shown(rules[0])} means"
        return ""

    async def concealed(self) -> tuple[str, ...]:
        """The absolute paths that a command must not see.

        Raises:
            RetryableToolError: not all of them can be found, or hidden, and the user was not asked
                about that.
        """
        found = await self._found()
        if found is not None:
            return found
        if self._is_exposed:
            return ()
        raise RetryableToolError(
            "the files that a rule keeps from being read cannot all be hidden; try again"
        )

    async def hidden_files(self) -> tuple[str, ...]:
        """The same, for programs that the user is never asked about.

        Raises:
            FinalToolError: not all of them can be found, or hidden.
        """
        found = await self._found()
        if found is None:
            raise FinalToolError("the files that a rule keeps from being read cannot all be hidden")
        return found

    async def _found(self) -> tuple[str, ...] | None:
        """What the rules mean now; None where that is too much."""
        rules = self._rules
        if not rules:
            return ()
        from weft.workspace.concealed import ConcealedFiles, TooManyFiles

        files = self._files = self._files or ConcealedFiles(self._root, self._added)
        patterns = {rule.pattern for rule in rules}
        try:
            found = await self._threads.run(lambda: files.find(patterns))
        except TooManyFiles:
            return None
        return tuple(path for path in found if self._is_forbidden(self._named(path)))

    def _is_forbidden(self, name: str) -> bool:
        """True also for a folder of which a rule means only what is in it."""
        return bool(self.forbids(name) or self.forbids(f"{name}/x"))

    def _named(self, path: str) -> str:
        """As the policy names it: relative in the project, else absolute."""
        return path.removeprefix(f"{self._root}/")


def read_judge(rules: Sequence[PermissionRule], root: str) -> Callable[[str], PolicyDecision]:
    """Says what rules say of reading a file, by its absolute path, where there is no session to
    judge it.
    """
    restricts = [rule for rule in rules if rule.verdict != "allow" and rule.pattern]

    def judge(path: str) -> PolicyDecision:
        target = path.removeprefix(f"{root.rstrip('/')}/")
        action = ToolAction(tool="read", kind="read", target=target, place=path, has_effect=False)
        return decide(action, mode="default", rules=restricts)

    return judge


def _shown(rule: PermissionRule) -> str:
    return f"the rule `{rule.verdict} read({rule.pattern})`"
