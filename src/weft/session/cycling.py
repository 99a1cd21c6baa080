"""Going round: the next model of a rotation, the next level of thinking."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import UsageError
from weft.messages import ModelName, parse_model_name
from weft.state import Settings
from weft.thinking import THINKING_LEVELS


def next_model(rotation: Sequence[str], settings: Settings) -> ModelName:
    """The model after the present one; without an effort, it thinks as hard as the present one.

    Raises:
        UsageError: there is no rotation.
    """
    if not rotation:
        raise UsageError("no rotation is configured; set model.rotation to a list of models")
    models = [parse_model_name(each) for each in rotation]
    place = next((i for i, each in enumerate(models) if _is_present(each, settings)), -1)
    return models[(place + 1) % len(models)]


def _is_present(model: ModelName, settings: Settings) -> bool:
    return model.name == settings.model and model.effort in (None, settings.thinking)


def next_thinking(settings: Settings) -> str:
    """One level harder than the present one, and after the hardest the first."""
    place = THINKING_LEVELS.index(settings.thinking)
    return THINKING_LEVELS[(place + 1) % len(THINKING_LEVELS)]
