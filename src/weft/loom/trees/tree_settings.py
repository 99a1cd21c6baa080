"""The settings of a tree: its name, its plan of models, what its views show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.loom.loom_state import TreeSettings
from weft.loom.model_plan import ModelPlanEntry, checked_plan, stored_plan
from weft.loom.trees.loom_tree import LoomTree

_STORED: Final = {
    "name": "title",
    "model_plan": "model_plan",
    "show_model_names": "show_model_names",
    "logprobs": "logprobs",
    "archived": "archived",
    "metadata": "loom_metadata",
}
"""By the names of `TreeSettings`, those of the session's settings."""


def plan_of(tree: LoomTree, default: ModelPlanEntry) -> tuple[ModelPlanEntry, ...]:
    """The models of a tree; the default one where it names none."""
    return stored_plan(tree.setting("model_plan")) or (default,)


def shows_model_names(tree: LoomTree) -> bool:
    """Whether views of a tree show who wrote what."""
    return bool(tree.setting("show_model_names", tree.shows_model_names))


def settings_of(tree: LoomTree, default: ModelPlanEntry) -> TreeSettings:
    """The settings of a tree."""
    metadata = tree.setting("loom_metadata", {})
    return TreeSettings(
        # What a list calls a tree without a name is no name of it: it would be exported as one.
        name="" if tree.setting("auto_title") else tree.name,
        model_plan=plan_of(tree, default),
        show_model_names=shows_model_names(tree),
        logprobs=int(tree.setting("logprobs", 0)),
        archived=bool(tree.setting("archived", False)),
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def stored_settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of settings as the session stores them; None keeps what is there.

    Raises:
        UsageError: there is no such setting.
        InvalidPlan: the plan is wrong.
    """
    unknown = changes.keys() - _STORED.keys()
    if unknown:
        raise UsageError(
            f"a tree has no setting {sorted(unknown)[0]!r}; there are {', '.join(_STORED)}"
        )
    stored = {_STORED[name]: value for name, value in changes.items() if value is not None}
    if "model_plan" in stored:
        plan = checked_plan(stored["model_plan"])
        stored["model_plan"] = [msgspec.to_builtins(each) for each in plan]
    if "title" in stored:
        # A title that was given is not replaced by one that the first words make.
        stored["auto_title"] = None
    return stored
