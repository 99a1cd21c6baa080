"""Sessions that drive sessions: sub-agents and architect mode.

Owns what a child session may be and do (its privileges, its place in the family, its share of the money), the tool that starts one, and the
plan that is carried out step by step.  Knows sessions through the small `Household` it is handed; how they are opened is the application's.
Names are loaded when they are first used, because most starts of the program need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.architect import Architect, Editor
    from weft.agents.host import Handle, Household, Wanted
    from weft.agents.lazy_tool import AgentEntry
    from weft.agents.limits import Bounds, Family
    from weft.agents.plan import PLANNER, Boundary, Plan, Step, as_plan, next_of, plain, shown
    from weft.agents.tool import AgentTool, depth_of

__all__ = [
    "PLANNER",
    "AgentEntry",
    "AgentTool",
    "Architect",
    "Boundary",
    "Bounds",
    "Editor",
    "Family",
    "Handle",
    "Household",
    "Plan",
    "Step",
    "Wanted",
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
    "Architect": "architect",
    "Boundary": "plan",
    "Bounds": "limits",
    "Editor": "architect",
    "Family": "limits",
    "Handle": "host",
    "Household": "host",
    "Plan": "plan",
    "Step": "plan",
    "Wanted": "host",
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
