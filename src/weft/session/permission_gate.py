"""The permission gate of a session: the policy with its mode, rules and grants.

Grants live here and nowhere else: they count only in the process in which the user gave them.  For
the same reason `auto` and `bypass` fall back to `default` when a session comes back, until they are
set again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from weft.events import Fact, GoalSet, InputScheduled, PermissionResolved, UnattendedPermission
from weft.loop import PermissionGate
from weft.permissions import (
    MODES,
    Mode,
    PermissionGrant,
    PermissionRule,
    PolicyDecision,
    ToolAction,
    decide,
    names_tool,
)
from weft.session.unattended_seal import (
    goal_words,
    is_sealed_by,
    schedule_words,
    seal_words,
)
from weft.state import SessionState


class GrantedPermissions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user granted a session in this process.

    Outlives the session's unloading, not the process.
    """

    trusted_mode: bool = False
    """The permission mode was set here, so `auto` and `bypass` hold."""
    is_woken: bool = False
    """It was opened because its wait was over, and by no user: until one sets the mode here,
    nothing is changed without asking."""
    grants: tuple[PermissionGrant, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    """What answers have allowed and denied besides their own request."""

    @property
    def restrictions(self) -> tuple[PermissionRule, ...]:
        """The rules that allow nothing; they hold for the session's agents, too."""
        return tuple(rule for rule in self.rules if rule.verdict != "allow")


class SessionPermissionGate(PermissionGate):
    """Judges the actions of one session."""

    def __init__(
        self,
        state: SessionState,
        *,
        rules: tuple[PermissionRule, ...],
        asking: Literal["wait", "yes", "no"],
        granted: GrantedPermissions,
        ceiling: Callable[[], Mode] | None = None,
        inherited: Callable[[], tuple[PermissionRule, ...]] = lambda: (),
        protects: Callable[[str], bool] = lambda place: False,
        seal: Callable[[Sequence[str]], str] | None = None,
    ) -> None:
        self.state = state
        self.rules = rules
        """The standing rules; replaced when the settings are others."""
        self._asking = asking
        self._trusted_mode = granted.trusted_mode
        self._is_woken = granted.is_woken
        self._grants = list(granted.grants)
        self._given = granted.rules
        self._ceiling = ceiling
        self._inherited = inherited
        self._protects = protects
        self._seal = seal
        self._sealed: set[tuple[str, str, str, tuple[str, ...], str]] = set()
        """Permissions that were found to be sealed by this user."""
        self._round: tuple[InputScheduled | GoalSet, str] | None = None
        """Whose round was asked about last, and what its seal has to be over."""

    @property
    def granted(self) -> GrantedPermissions:
        """What has been granted so far, for when the session comes back in this process."""
        return GrantedPermissions(
            trusted_mode=self._trusted_mode,
            is_woken=self._is_woken,
            grants=tuple(self._grants),
            rules=self._given,
        )

    @property
    def restrictions(self) -> tuple[PermissionRule, ...]:
        """What the session's agents are held to besides their own rules."""
        return (*self.granted.restrictions, *self._inherited())

    @property
    def mode(self) -> Mode:
        """The permission mode that is in force."""
        return self._mode_in(self._running)

    def mode_after(self, facts: Sequence[Fact]) -> Mode:
        """The mode that is in force once these facts hold, which may begin a round."""
        return self._mode_in(_running_after(self.state, facts))

    def _mode_in(self, running: InputScheduled | GoalSet | None) -> Mode:
        mode = self.state.settings.permission_mode
        # The mode is in the log, and a log may come from elsewhere: an import or a copied store
        # must not bring along the right to act without asking.
        is_free = mode in ("auto", "bypass") or (self._is_woken and mode == "accept_edits")
        lent = self._lent_to(running)
        # A round of a goal runs while its user is there, too, who may give it more by the mode.
        if lent is not None and not (self._trusted_mode and isinstance(running, GoalSet)):
            # What was given to the round, and no more than the session has by now.
            mode = min(_known_mode(lent.mode), mode, key=MODES.index)
        elif is_free and not self._trusted_mode:
            mode = "default"
        if self._ceiling is None:
            return mode
        # `MODES` is ordered from strict to free. The parent's mode is looked up each time: when the
        # user tightens it, agents that already run are held to it at once.
        return min(mode, self._ceiling(), key=MODES.index)

    @property
    def when_asking(self) -> Literal["wait", "yes", "no"]:
        return self._asking

    @property
    def read_rules(self) -> tuple[PermissionRule, ...]:
        return tuple(
            rule
            for rule in self._all_rules
            if rule.verdict != "allow" and rule.pattern and rule.tool == "read"
        )

    @property
    def network_rules(self) -> tuple[PermissionRule, ...]:
        # Of tools, too, whose names have a `*`: `deny *` denies this.
        return tuple(rule for rule in self._all_rules if names_tool(rule.tool, "fetch"))

    @property
    def reads_lines(self) -> bool:
        return self.mode != "bypass" or bool(self._all_rules)

    @property
    def _all_rules(self) -> tuple[PermissionRule, ...]:
        # The order does not matter: `decide` lets the strictest rule win.
        return (*self.rules, *self._given, *self._inherited())

    def decide(self, action: ToolAction) -> PolicyDecision:
        judged = self._marked(action)
        grants, lent = self._grants, self._lent_to(self._running)
        if lent is not None:
            grants = [*grants, *(PermissionGrant(pattern=p, scope="turn") for p in lent.grants)]
        return decide(judged, mode=self.mode, rules=self._all_rules, grants=grants)

    # -- what is given to rounds that begin with no user there

    @property
    def _running(self) -> InputScheduled | GoalSet | None:
        """Whose round the open turn is."""
        return self.state.schedules.running or self.state.goal.round_at_work

    def _lent_to(self, running: InputScheduled | GoalSet | None) -> UnattendedPermission | None:
        """What was given to a round; None where none runs, or its seal is not ours."""
        if running is None:
            return None
        if self._round is None or self._round[0] is not running:
            self._round = (running, _said_by(running))
        name = running.goal_id if isinstance(running, GoalSet) else running.schedule_id
        is_given = self.is_sealed(name, running.permission, self._round[1])
        return running.permission if is_given else None

    def sealed(
        self,
        name: str,
        said: str,
        besides: UnattendedPermission | None = None,
        *,
        is_plain: bool = False,
    ) -> UnattendedPermission | None:
        """What the session may do now, and what is given besides, for what has this id and says
        this."""
        if self._seal is None:
            return None
        given = UnattendedPermission() if is_plain else self._given_now
        if besides is not None:
            modes = (_known_mode(given.mode), _known_mode(besides.mode))
            grants = tuple(dict.fromkeys((*given.grants, *besides.grants)))
            given = UnattendedPermission(mode=max(modes, key=MODES.index), grants=grants)
        words = seal_words(self.state, name, given, said)
        return msgspec.structs.replace(given, seal=self._seal(words))

    @property
    def _given_now(self) -> UnattendedPermission:
        # What asks for nothing at all is given by a user who is there, each time.
        mode = "default" if self.mode == "bypass" else self.mode
        grants = tuple(each.pattern for each in self._grants if each.scope == "session")
        return UnattendedPermission(mode=mode, grants=grants)

    def is_sealed(self, name: str, given: UnattendedPermission | None, said: str) -> bool:
        """Whether the user of this machine gave this to what has this id and says this."""
        if self._seal is None or given is None:
            return False
        # Each call of a round asks: a yes is kept, and of another permission is another.  A no may
        # be for want of a key, which can come back.
        key = (name, said, given.mode, given.grants, given.seal)
        if key not in self._sealed:
            if not is_sealed_by(self._seal, self.state, name, given, said):
                return False
            self._sealed.add(key)
        return True

    def _marked(self, action: ToolAction) -> ToolAction:
        """The action, protected also where that is not for the name of its target."""
        if action.parts:
            parts = tuple(map(self._marked, action.parts))
            return msgspec.structs.replace(action, parts=parts)
        is_known = action.protected or not action.has_effect or not action.place
        if is_known or not self._protects(action.place):
            return action
        return msgspec.structs.replace(action, protected=True)

    def mode_was_set(self) -> None:
        """The mode was set in this process, so it holds whatever it is."""
        self._trusted_mode = True

    def take_answer(self, resolved: PermissionResolved) -> None:
        """Remember what an answer grants, and what it rules, beyond its own request."""
        self._given = (*self._given, *resolved.rules)
        if resolved.pattern and resolved.action == "allow_turn":
            self._grants.append(PermissionGrant(pattern=resolved.pattern, scope="turn"))
        if resolved.pattern and resolved.action == "allow_always":
            self._grants.append(PermissionGrant(pattern=resolved.pattern, scope="session"))

    def turn_ended(self) -> None:
        """Grants for the turn end with it."""
        self._grants = [grant for grant in self._grants if grant.scope == "session"]


def _running_after(state: SessionState, facts: Sequence[Fact]) -> InputScheduled | GoalSet | None:
    is_told = any(isinstance(fact, GoalSet) for fact in facts)
    if not (is_told or state.goal.is_open or state.schedules.open or state.schedules.queued):
        return None
    goal, schedules = copy.deepcopy(state.goal), copy.deepcopy(state.schedules)
    for fact in facts:
        goal.apply(fact)
        schedules.apply(fact)
    return schedules.running or goal.round_at_work


def _said_by(running: InputScheduled | GoalSet) -> str:
    return goal_words(running) if isinstance(running, GoalSet) else schedule_words(running)


def _known_mode(word: str) -> Mode:
    """The mode of this name; a later program's is as strict as can be asked for."""
    return next((mode for mode in MODES if mode == word), "default")
