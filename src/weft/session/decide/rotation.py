"""The rotation of models and of thinking levels: which comes next, and whose levels are meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import UsageError
from weft.messages import ModelName, parse_model_name
from weft.session.commands import ChangeSetting, Command, CycleModel, CycleThinking
from weft.state import SessionSettings, SessionState
from weft.thinking import THINKING_LEVELS, KnownLevels, ThinkingLevel, nearest_level


def next_model(rotation: Sequence[str], settings: SessionSettings) -> ModelName:
    """The model after the present one; without an effort, it thinks as hard as the present one.

    Raises:
        UsageError: there is no rotation.
    """
    if not rotation:
        raise UsageError("no rotation is configured; set model.rotation to a list of models")
    models = [parse_model_name(each) for each in rotation]
    place = next((i for i, each in enumerate(models) if _is_present(each, settings)), -1)
    return models[(place + 1) % len(models)]


def _is_present(model: ModelName, settings: SessionSettings) -> bool:
    return model.name == settings.model and model.effort in (None, settings.thinking)


def next_thinking(settings: SessionSettings, levels: KnownLevels) -> ThinkingLevel:
    """The model's next harder level, and after its hardest the vendor's default.

    Where the model has none, or they are not known, all levels are gone through: they count with
    another model.
    """
    if not levels:
        place = THINKING_LEVELS.index(settings.thinking)
        return THINKING_LEVELS[(place + 1) % len(THINKING_LEVELS)]
    round_: tuple[ThinkingLevel, ...] = ("default", *levels)
    place = round_.index(nearest_level(settings.thinking, levels))
    return round_[(place + 1) % len(round_)]


def model_after(command: Command[Any], state: SessionState) -> str | None:
    """The model whose thinking levels a command is about; None for one that is not about them."""
    match command:
        case CycleThinking() | ChangeSetting(name="thinking"):
            return state.settings.model
        case ChangeSetting(name="model", value=str(named)):
            return parse_model_name(named).name
        case CycleModel(rotation=rotation) if rotation:
            return next_model(rotation, state.settings).name
        case _:
            return None
