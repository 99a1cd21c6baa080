"""Decisions about settings: model, thinking level, permission mode, mode of work, skills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

from weft.errors import UsageError
from weft.events import Fact, ModeChanged, SettingChanged, SkillChanged, SystemNote
from weft.loop import tip_after
from weft.messages import ModelName, parse_model_name
from weft.permissions import MODES
from weft.session.commands import (
    ChangeSetting,
    Command,
    CycleModel,
    CycleThinking,
    SetMode,
    SwitchSkill,
)
from weft.session.decide.base import (
    DecidedCommand,
    DecisionContext,
    SettingCommand,
)
from weft.session.decide.prompts import RESUME_CHOICES
from weft.state import SessionSettings, SessionState
from weft.thinking_levels import (
    THINKING_LEVELS,
    KnownLevels,
    ThinkingLevel,
    level_note,
    nearest_level,
    thinking_level,
)

SESSION_MODES: Final = ("normal", "architect")


def decide_setting(
    command: SettingCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command about a setting does."""
    match command:
        case ChangeSetting():
            return _change(command, state, context)
        case CycleModel(rotation=rotation):
            following = next_model(rotation, state.settings)
            facts = _set_model(following, state, context)
            return DecidedCommand(facts=facts, answer=following.name)
        case CycleThinking():
            harder = next_thinking(state.settings, context.levels)
            return DecidedCommand(facts=_set_thinking(harder, state, context), answer=harder)
        case SetMode(mode=mode):
            return _set_mode(mode)
        case SwitchSkill(name=name, active=active):
            return DecidedCommand(facts=(SkillChanged(name=name, active=active),))
        case _:
            assert_never(command)


def _change(
    command: ChangeSetting, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    match command:
        case ChangeSetting(name="model", value=str(named)):
            return DecidedCommand(facts=_set_model(parse_model_name(named), state, context))
        case ChangeSetting(name="thinking", value=word) if level := thinking_level(word):
            return DecidedCommand(facts=_set_thinking(level, state, context))
        case ChangeSetting(name="title", value=title) if state.settings.get("auto_title"):
            # In one append: the end of the first turn would otherwise give it another title.
            kept = SettingChanged(name="auto_title", value=None)
            return DecidedCommand(facts=(SettingChanged(name="title", value=title), kept))
        case ChangeSetting(name=name, value=value):
            _check(name, value)
            return DecidedCommand(facts=(SettingChanged(name=name, value=value),))


def _check(name: str, value: Any) -> None:
    if name == "permission_mode" and value not in MODES:
        raise UsageError(f"no permission mode {value!r}; there are {', '.join(MODES)}")
    if name == "resume":
        _check_resume(value)
    if name == "thinking" and value not in THINKING_LEVELS:
        raise UsageError(f"no thinking level {value!r}; there are {', '.join(THINKING_LEVELS)}")


def _check_resume(value: Any) -> None:
    if value not in RESUME_CHOICES:
        known = ", ".join(RESUME_CHOICES)
        raise UsageError(f"no way to resume {value!r:.60}; there are {known}")


def _set_mode(mode: str) -> DecidedCommand:
    if mode not in SESSION_MODES:
        raise UsageError(f"no mode {mode!r}; there are {', '.join(SESSION_MODES)}")
    return DecidedCommand(facts=(ModeChanged(mode=mode),))


def _set_model(model: ModelName, state: SessionState, context: DecisionContext) -> tuple[Fact, ...]:
    """The model, and how hard it thinks where that is named with it."""
    changed = SettingChanged(name="model", value=model.name)
    if model.effort is None:
        level = state.settings.thinking
        return (changed, *_level_notes(model.name, level, state, context))
    return (changed, *_set_thinking(model.effort, state, context, model=model.name))


def _set_thinking(
    level: ThinkingLevel, state: SessionState, context: DecisionContext, *, model: str = ""
) -> tuple[Fact, ...]:
    """The level, with a note where `model` (or else the session's own) lacks it."""
    # The vendor's default is what holds where no level is set, so choosing it removes the setting.
    changed = SettingChanged(name="thinking", value=None if level == "default" else level)
    return (changed, *_level_notes(model or state.settings.model, level, state, context))


def _level_notes(
    model: str, level: ThinkingLevel, state: SessionState, context: DecisionContext
) -> tuple[Fact, ...]:
    """A note where the model lacks the level."""
    text = level_note(model, level, context.levels)
    return (SystemNote(text=text, node=tip_after(state, ())),) if text else ()


# --- the rotation of models and of thinking levels


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
