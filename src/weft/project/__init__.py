"""Project and user files: instructions, skills, agents, Markdown commands,
mentions, trust.

Reads files and checks them; runs nothing.  Names are loaded when they are first used, because most
starts of the program need none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.project.agent_definitions import (
        GENERAL,
        AgentDefinition,
        AgentDefinitions,
        find_definitions,
    )

__all__ = ["GENERAL", "AgentDefinition", "AgentDefinitions", "find_definitions"]

_HOMES = {
    "GENERAL": "agent_definitions",
    "AgentDefinition": "agent_definitions",
    "AgentDefinitions": "agent_definitions",
    "find_definitions": "agent_definitions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
