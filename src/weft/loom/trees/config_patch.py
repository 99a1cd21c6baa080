"""Several settings of a tree changed at once: checked as a whole, written and undone as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from weft.errors import InvalidPlan
from weft.events import Fact, NodeMarked, SettingChanged
from weft.loom.model_plan import (
    ModelPlanEntry,
    clamped_branches,
    clamped_temperature,
    clamped_tokens,
)
from weft.loom.node import CONTEXT

if TYPE_CHECKING:
    from weft.ids import NodeId
    from weft.loom.tree_store import TreeStore
    from weft.loom.trees.loom_tree import LoomTree

_MOST_LOGPROBS: Final = 20
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "model_plan": (list, tuple),
    "model": (str,),
    "max_tokens": (int,),
    "temperature": (int, float),
    "n_branches": (int,),
    "show_model_names": (bool,),
    "logprobs": (int,),
    "name": (str,),
    "context": (str,),
}


class PatchedView(Protocol):
    """The view whose tree is changed."""

    @property
    def store(self) -> TreeStore: ...

    @property
    def loom_tree(self) -> LoomTree: ...

    @property
    def current_node_id(self) -> NodeId: ...

    @property
    def model_plan(self) -> Sequence[ModelPlanEntry]: ...


def apply_patch(view: PatchedView, patch: Mapping[str, Any]) -> None:
    """Change what a patch names.

    Raises:
        InvalidPlan: fields of it are wrong; nothing is changed.
    """
    _check(patch)
    plan = tuple(view.model_plan)
    if "model_plan" in patch:
        plan = view.store.checked_plan(patch["model_plan"])
    changed = _with_fields(view, plan, patch)
    settings: dict[str, Any] = {}
    if changed != tuple(view.model_plan):
        settings["model_plan"] = [msgspec.to_builtins(each) for each in changed]
    if "show_model_names" in patch:
        settings["show_model_names"] = patch["show_model_names"]
    if "logprobs" in patch:
        settings["logprobs"] = max(0, min(patch["logprobs"], _MOST_LOGPROBS)) or None
    if "name" in patch:
        settings |= {"title": patch["name"], "auto_title": None}
    _write(view, settings, patch)


def _check(patch: Mapping[str, Any]) -> None:
    wrong: dict[str, str] = {}
    for name, value in patch.items():
        kinds = _KINDS.get(name)
        if kinds is None:
            wrong[name] = f"no such setting; there are {', '.join(_KINDS)}"
        elif not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wrong[name] = f"expected {' or '.join(kind.__name__ for kind in kinds)}"
        elif name in ("model", "name") and not str(value).strip():
            wrong[name] = "it is empty"
    if wrong:
        raise InvalidPlan(wrong)


def _with_fields(
    view: PatchedView, plan: tuple[ModelPlanEntry, ...], patch: Mapping[str, Any]
) -> tuple[ModelPlanEntry, ...]:
    """The plan with what the setters of single fields would change."""
    clamps: dict[str, Callable[[Any], Any]] = {
        "model": view.store.model_name,
        "max_tokens": clamped_tokens,
        "temperature": clamped_temperature,
    }
    first = next((at for at, each in enumerate(plan) if each.enabled), 0)
    own = {name: clamp(patch[name]) for name, clamp in clamps.items() if name in patch}
    found = list(plan)
    found[first] = msgspec.structs.replace(found[first], **own)
    if "n_branches" in patch:
        number = clamped_branches(patch["n_branches"])
        found = [
            msgspec.structs.replace(each, n_branches=number) if each.enabled else each
            for each in found
        ]
    return tuple(found)


def _write(view: PatchedView, settings: Mapping[str, Any], patch: Mapping[str, Any]) -> None:
    tree = view.loom_tree
    node = tree.resolve(view.current_node_id)
    before = {name: tree.setting(name) for name in settings}
    marks = {CONTEXT: patch["context"]} if "context" in patch else {}
    marked = {name: tree.marks(node).get(name) for name in marks}

    def facts(values: Mapping[str, Any], own: Mapping[str, Any]) -> list[Fact]:
        return [
            *(SettingChanged(name=name, value=value) for name, value in values.items()),
            *(NodeMarked(node=node, mark=name, value=value) for name, value in own.items()),
        ]

    if settings or marks:
        tree.write(facts(settings, marks), undo=lambda: facts(before, marked))
