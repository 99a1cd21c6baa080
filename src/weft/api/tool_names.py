"""The names of the built-in tools, for edges that list them or take one away."""

from __future__ import annotations

from weft.runtime.tool_table import AGENT, tool_table


def builtin_tool_names(*, has_skills: bool = False, has_agents: bool = False) -> list[str]:
    """Every tool of a session that was given no list."""
    more = [*([AGENT] if has_agents else []), *(["skill"] if has_skills else [])]
    return [*tool_table("all")[0], *more]
