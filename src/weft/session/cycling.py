"""Going round: the next model of a rotation, the next level of thinking."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import UsageError
from weft.state import Settings
from weft.thinking import THINKING_LEVELS


def split_thinking(name: str) -> tuple[str, str]:
    """`provider:model:thinking` as model and thinking level; the level is empty when none is named."""
    model, _, level = name.rpartition(":")
    return (model, level) if level in THINKING_LEVELS and ":" in model else (name, "")


def next_model(rotation: Sequence[str], settings: Settings) -> tuple[str, str]:
    """The model after the present one, and the thinking level it is to have (empty: as it is).

    Raises:
        UsageError: there is no rotation.
    """
    if not rotation:
        raise UsageError("no rotation is configured; set model.rotation to a list of models")
    present = [settings.model, f"{settings.model}:{settings.thinking}"]
    place = next((i for i, each in enumerate(rotation) if each in present), -1)
    return split_thinking(rotation[(place + 1) % len(rotation)])


def next_thinking(settings: Settings) -> str:
    """One level harder than the present one, and after the hardest the first."""
    place = THINKING_LEVELS.index(settings.thinking)
    return THINKING_LEVELS[(place + 1) % len(THINKING_LEVELS)]
