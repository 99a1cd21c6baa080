"""Fallback models of a turn: those that answer while the one that was named cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.config.models import ModelRegistry
from weft.errors import WeftError
from weft.loop import ModelFallback


class FallbackModels(ModelFallback):
    """The fallbacks of one turn, each taken once; the next turn begins with the named model."""

    def __init__(
        self, options: Mapping[str, Any], names: Sequence[str], models: ModelRegistry
    ) -> None:
        """`options` are those of the turn's message, `names` the configured fallbacks."""
        self.options = options
        """The options with which the turn goes on."""
        self._names = list(names)
        self._models = models

    @property
    def has_next(self) -> bool:
        return bool(self._names)

    def take_next(self, failed: str) -> str:
        while self._names:
            try:
                named = self._models.named(self._names.pop(0))
                self._models.resolve(named.name)
            except WeftError:
                continue  # one that cannot be had must not hide the failure of the one before
            if named.name == failed:
                continue
            effort = {} if named.effort is None else {"thinking": named.effort}
            self.options = {**self.options, "model": named.name, **effort}
            return named.name
        return ""
