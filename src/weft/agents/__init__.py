"""Sessions that drive sessions: sub-agents and architect mode.

Owns what a child session may be and do (its privileges, its place in the family, its share of the money), the tool that starts one, and the
plan that is carried out step by step.  Knows sessions through the small `Household` it is handed; how they are opened is the application's.
"""

from weft.agents.frontmatter import split_front_matter

__all__ = ["split_front_matter"]
