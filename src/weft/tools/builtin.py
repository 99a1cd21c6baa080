"""The tools that come with Weft, by name."""

from __future__ import annotations

from weft.tools.base import Tool

CORE = frozenset({"read", "write", "edit", "shell"})
"""Enough to work with."""
ALL = CORE | {"multi_edit", "list", "find", "grep", "todo"}
"""Every built-in tool."""


def builtin_tools() -> dict[str, Tool]:
    """A fresh set of all built-in tools, in the order in which models are told of them."""
    # Read here, so that importing `weft.tools` for its types costs nothing more.
    from weft.tools.edit import EditTool, MultiEditTool
    from weft.tools.find import FindTool
    from weft.tools.grep import GrepTool
    from weft.tools.list import ListTool
    from weft.tools.read import ReadTool
    from weft.tools.shell import ShellTool
    from weft.tools.todo import TodoTool
    from weft.tools.write import WriteTool

    tools: list[Tool] = [
        ReadTool(),
        WriteTool(),
        EditTool(),
        MultiEditTool(),
        ListTool(),
        FindTool(),
        GrepTool(),
        ShellTool(),
        TodoTool(),
    ]
    return {tool.name: tool for tool in tools}
