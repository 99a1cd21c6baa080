"""Sessions that drive sessions: sub-agents and architect mode.

Owns what a child session may be and do (its privileges, its place in the family, its share of the money), the tool that starts one, and the
plan that is carried out step by step.  Knows sessions through the small `Household` it is handed; how they are opened is the application's.
"""

from weft.agents.architect import Architect, Editor
from weft.agents.base import Handle, Household, Wanted
from weft.agents.definitions import Definition, Definitions, find_definitions
from weft.agents.family import Bounds, Family
from weft.agents.frontmatter import split_front_matter
from weft.agents.plan import PLANNER, Boundary, Plan, Step, as_plan, next_of, plain
from weft.agents.tool import AgentTool, depth_of

__all__ = [
    "PLANNER",
    "AgentTool",
    "Architect",
    "Boundary",
    "Bounds",
    "Definition",
    "Definitions",
    "Editor",
    "Family",
    "Handle",
    "Household",
    "Plan",
    "Step",
    "Wanted",
    "as_plan",
    "depth_of",
    "find_definitions",
    "next_of",
    "plain",
    "split_front_matter",
]
