"""The tools that a session has at hand: the built-in ones by name, and those that programs
hand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from weft.errors import UsageError, did_you_mean
from weft.tools import Tool, builtin_tools

AGENT = "agent"
"""The tool that every session makes for itself."""
NAVIGATION = frozenset({"lsp", "rename"})
"""Tools that ask language servers; a session makes them where some are there."""
WEB = frozenset({"fetch", "web_search"})
"""Tools that reach the web; a model has them where the user wants that."""
MADE_WHERE_NEEDED = NAVIGATION | WEB | {"skill"}
"""Tools that there are only where the project, or the machine, has something for them."""


def is_mcp_name(name: str) -> bool:
    """Whether a name is one of tools of MCP servers, or a pattern of such, or finds them."""
    return name.startswith("mcp__") or name in ("tool_search", "tool_call")


class SessionTools(msgspec.Struct, frozen=True):
    """The tools of one session, by name."""

    table: Mapping[str, Tool]
    """Those that it was started with."""
    lent: Mapping[str, Tool]
    """Those that only messages that name them have."""


def tool_table(
    wanted: str | Sequence[str | Tool | Callable[..., Any]],
) -> tuple[dict[str, Tool], str | list[str]]:
    """The tools a session has at hand, and how its log names the selection: "all", or a list of
    names ("all" in it: every built-in).

    Raises:
        UsageError: a name is not a tool's.
    """
    table = builtin_tools()
    if isinstance(wanted, str):
        if wanted != "all":
            raise UsageError(f'tools is "all" or a list, not {wanted!r}')
        return table, "all"
    names: list[str] = []
    for each in wanted:
        if each == "all":
            names += [*table, *(() if AGENT in table else (AGENT,))]
            continue
        if isinstance(each, str):
            known = {*table, AGENT, *MADE_WHERE_NEEDED}
            if each not in known and not is_mcp_name(each):
                raise _no_tool(each, known)
            names.append(each)
            continue
        made = as_tool(each)
        table[made.name] = made
        names.append(made.name)
    return table, names


def named_tools(wanted: Any, known: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools of these names.

    Raises:
        UsageError: it is no list of names, or one of them is no tool's.
    """
    if isinstance(wanted, str) or not all(isinstance(name, str) for name in wanted):
        raise UsageError(f'tools is "all" or a list of tools, not {wanted!r}')
    if any(name not in known for name in wanted):
        from weft.permissions import tool_named_now  # few name what there is not

        wanted = [name if name in known else tool_named_now(name) for name in wanted]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise _no_tool(unknown[0], known)
    return {name: known[name] for name in wanted}


def _no_tool(name: str, known: Iterable[str]) -> UsageError:
    names = sorted(known)
    near = did_you_mean(name, names) or f"; there are {', '.join(names)}"
    return UsageError(f"no tool {name!r}{near}")


def as_tool(given: Tool | Callable[..., Any]) -> Tool:
    if isinstance(given, Tool):
        return given
    if hasattr(given, "prepare"):
        wanted = (*Tool.__annotations__, "prepare")
        missing = ", ".join(name for name in wanted if not hasattr(given, name))
        raise UsageError(f"{given!r} is not a Tool yet: it has no {missing}")
    if callable(given):
        from weft.tools import FunctionTool  # only for functions

        return FunctionTool(given)
    raise UsageError(f"{given!r} is not a tool: give a name, a function or a Tool")
