"""The settings of a session: a map of names to values, each changed by one fact."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.events import AnyFact, ModeChanged, SessionCreated, SettingChanged
from weft.permissions import MODES, Mode
from weft.thinking_levels import ThinkingLevel, thinking_level


class SessionSettings(msgspec.Struct):
    """The settings in force, by name."""

    values: dict[str, Any] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case SessionCreated():
                self.values.update(fact.settings)
                if fact.model:
                    self.values["model"] = fact.model
                if fact.title:
                    self.values["title"] = fact.title
            case SettingChanged(name=name, value=value):
                # None takes a setting away, so that the configured default counts again.
                if value is None:
                    self.values.pop(name, None)
                else:
                    self.values[name] = value
            case ModeChanged(mode=mode):
                # Normal or architect; what may be done without asking is `permission_mode`.
                self.values["mode"] = mode
            case _:
                pass

    @property
    def model(self) -> str:
        """`provider:model`."""
        return str(self.values.get("model", ""))

    @property
    def title(self) -> str:
        return str(self.values.get("title", ""))

    @property
    def mode(self) -> str:
        """`normal` or `architect`."""
        return str(self.values.get("mode", "normal"))

    @property
    def thinking(self) -> ThinkingLevel:
        """What was set; `default` where nothing was, or only a newer program knows the word."""
        return thinking_level(self.values.get("thinking")) or "default"

    @property
    def permission_mode(self) -> Mode:
        """What was set; a value from a newer program counts as `default`."""
        # Unknown words must not loosen anything: `default` asks before every effect.
        value = self.values.get("permission_mode", "default")
        return MODES[MODES.index(value)] if value in MODES else "default"

    def get(self, name: str, default: Any = None) -> Any:
        """Any other setting."""
        return self.values.get(name, default)
