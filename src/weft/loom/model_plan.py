"""The plan of a generation: which models, how many branches of each, with which settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from weft.errors import InvalidPlan

TOKENS: Final = (10, 8_000)
BRANCHES: Final = (1, 64)
"""Of one model."""
TEMPERATURE: Final = (0.0, 2.0)
MOST_BRANCHES: Final = 64
"""Of one generation."""


class ModelPlanEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One model of a plan."""

    model: str = ""
    """`provider:model`; empty for the configured default."""
    n_branches: int = 1
    max_tokens: int = 200
    temperature: float = 0.9
    enabled: bool = True
    strategy: str = ""
    """How it is made to continue a text; empty for the one that fits the model."""


def configured_entry(model: str, *layers: Mapping[str, Any]) -> ModelPlanEntry:
    """A model as settings say that it is to be used, those of the last layer first; wrong values
    are left out, others clamped.
    """
    clamps = {
        "n_branches": clamped_branches,
        "max_tokens": clamped_tokens,
        "temperature": clamped_temperature,
    }
    found: dict[str, Any] = {}
    for fields in layers:
        for name, value in fields.items():
            if name in clamps and type(value) in (int, float):
                found[name] = clamps[name](value)
            elif name == "strategy" and isinstance(value, str):
                found[name] = value
    return ModelPlanEntry(model=model, **found)


def clamped_tokens(given: int) -> int:
    """The nearest number of tokens that a branch may have."""
    return min(max(int(given), TOKENS[0]), TOKENS[1])


def clamped_branches(given: int) -> int:
    """The nearest number of branches that a model may have."""
    return min(max(int(given), BRANCHES[0]), BRANCHES[1])


def clamped_temperature(given: float) -> float:
    """The nearest temperature."""
    wanted = float(given)
    # Not a number fits no limit, and would be stored as something that is no JSON.
    return TEMPERATURE[0] if math.isnan(wanted) else min(max(wanted, TEMPERATURE[0]), 2.0)


def checked_plan(given: Any) -> tuple[ModelPlanEntry, ...]:
    """A plan as a program gave it.

    Raises:
        InvalidPlan: fields of it are wrong; it names all of them.
    """
    wrong: dict[str, str] = {}
    found: list[ModelPlanEntry] = []
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidPlan({"model_plan": "expected a list of models"})
    for number, each in enumerate(given):
        entry = _entry(each, f"{number}", wrong)
        if entry is not None:
            found.append(entry)
    if not given:
        wrong["model_plan"] = "it is empty"
    if sum(each.n_branches for each in found if each.enabled) > MOST_BRANCHES:
        wrong["n_branches"] = f"more than {MOST_BRANCHES} branches in all"
    if wrong:
        raise InvalidPlan(wrong)
    return tuple(found)


def stored_plan(stored: Any) -> tuple[ModelPlanEntry, ...]:
    """A plan as a log has it; what is wrong in it is left out, for a tree must always open."""
    found: list[ModelPlanEntry] = []
    for each in stored if isinstance(stored, list | tuple) else ():
        entry = _entry(each, "", {})
        if entry is not None:
            found.append(entry)
    return tuple(found)


def _entry(given: Any, name: str, wrong: dict[str, str]) -> ModelPlanEntry | None:
    fields = msgspec.to_builtins(given) if isinstance(given, ModelPlanEntry) else given
    before = len(wrong)
    if not isinstance(fields, Mapping):
        wrong[name] = "expected a map with a model"
        return None
    known = set(ModelPlanEntry.__struct_fields__)
    for field in fields.keys() - known:
        wrong[f"{name}.{field}"] = f"no such field; there are {', '.join(sorted(known))}"
    _check_text(fields, name, wrong)
    _check_number(fields, "n_branches", BRANCHES, name, wrong)
    _check_number(fields, "max_tokens", TOKENS, name, wrong)
    _check_number(fields, "temperature", TEMPERATURE, name, wrong)
    if len(wrong) > before:
        return None
    return msgspec.convert(dict(fields), ModelPlanEntry)


def _check_text(fields: Mapping[str, Any], name: str, wrong: dict[str, str]) -> None:
    model = fields.get("model", "")
    if not isinstance(model, str) or not model.strip():
        wrong[f"{name}.model"] = "expected the name of a model"
    if not isinstance(fields.get("enabled", True), bool):
        wrong[f"{name}.enabled"] = "expected true or false"
    if not isinstance(fields.get("strategy", ""), str):
        wrong[f"{name}.strategy"] = "expected the name of a strategy"


def _check_number(
    fields: Mapping[str, Any],
    field: str,
    limits: tuple[float, float],
    name: str,
    wrong: dict[str, str],
) -> None:
    if field not in fields:
        return
    value, whole = fields[field], field != "temperature"
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        wrong[f"{name}.{field}"] = "expected a whole number" if whole else "expected a number"
    # Not a number is on neither side of a limit.
    elif not limits[0] <= value <= limits[1]:
        wrong[f"{name}.{field}"] = f"expected {limits[0]:g} to {limits[1]:g}"
