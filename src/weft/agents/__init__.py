"""Sessions that drive sessions: sub-agents and architect mode.

Owns what a child session may be and do (its privileges, its place in the tree of agents, its share
of the money), the tool that starts one, and the plan that is carried out step by step.  Knows
sessions through the small `AgentHost` it is handed; how they are opened is the application's. Names
are loaded when they are first used, because most starts of the program need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.architect import ArchitectRun, StepEditor
    from weft.agents.host import AgentHost, ChildRequest
    from weft.agents.lazy_tool import AgentEntry
    from weft.agents.limits import AgentLimits, AgentTree
    from weft.agents.plan import (
        PLANNER,
        PlanStep,
        StepBoundary,
        WorkPlan,
        as_plan,
        next_of,
        plain,
        shown,
    )
    from weft.agents.tool import AgentTool, depth_of

__all__ = [
    "PLANNER",
    "AgentEntry",
    "AgentHost",
    "AgentLimits",
    "AgentTool",
    "AgentTree",
    "ArchitectRun",
    "ChildRequest",
    "PlanStep",
    "StepBoundary",
    "StepEditor",
    "WorkPlan",
    "as_plan",
    "depth_of",
    "next_of",
    "plain",
    "shown",
]

_HOMES = {
    "PLANNER": "plan",
    "AgentEntry": "lazy_tool",
    "AgentTool": "tool",
    "ArchitectRun": "architect",
    "StepBoundary": "plan",
    "AgentLimits": "limits",
    "StepEditor": "architect",
    "AgentTree": "limits",
    "AgentHost": "host",
    "WorkPlan": "plan",
    "PlanStep": "plan",
    "ChildRequest": "host",
    "as_plan": "plan",
    "depth_of": "tool",
    "next_of": "plan",
    "plain": "plan",
    "shown": "plan",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
