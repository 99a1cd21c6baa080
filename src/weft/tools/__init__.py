"""Tools: what a model may call, the built-in ones, and functions turned into tools.

A tool works through the workspace and the runner it is handed; permission, recording and limits are
the turn's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.tools.arguments import ToolArguments, parse, schema_of
from weft.tools.base import (
    BackgroundCommands,
    BackgroundOutput,
    DelegateTool,
    FormattedContent,
    ForwardingTool,
    PreparedCall,
    ReadGuard,
    ReadLog,
    Tool,
    ToolContext,
    ToolOutcome,
    UserQuestion,
    WaitLook,
    WaitRequest,
    as_outcome,
)
from weft.tools.builtin.registry import (
    ALL,
    COMPANIONS,
    CORE,
    DECISIONS,
    EDITS,
    INDEX_TOOLS,
    BuiltinTool,
    builtin_tools,
    navigation_tools,
)
from weft.workspace import ChangedFile

if TYPE_CHECKING:  # loaded when they are first used
    from weft.tools.function import FunctionTool, tool
    from weft.tools.output_schema import OutputSchema
    from weft.tools.pictures import FittedPicture, fitted
    from weft.tools.submit import SubmitTool
    from weft.tools.waits.program_wait import prepared_wait

__all__ = [
    "ALL",
    "COMPANIONS",
    "CORE",
    "DECISIONS",
    "EDITS",
    "INDEX_TOOLS",
    "BackgroundCommands",
    "BackgroundOutput",
    "BuiltinTool",
    "ChangedFile",
    "DelegateTool",
    "FittedPicture",
    "FormattedContent",
    "ForwardingTool",
    "FunctionTool",
    "OutputSchema",
    "PreparedCall",
    "ReadGuard",
    "ReadLog",
    "SubmitTool",
    "Tool",
    "ToolArguments",
    "ToolContext",
    "ToolOutcome",
    "UserQuestion",
    "WaitLook",
    "WaitRequest",
    "as_outcome",
    "builtin_tools",
    "fitted",
    "navigation_tools",
    "parse",
    "prepared_wait",
    "schema_of",
    "tool",
]

_HOMES = {
    "FittedPicture": "pictures",
    "FunctionTool": "function",
    "OutputSchema": "output_schema",
    "SubmitTool": "submit",
    "fitted": "pictures",
    "prepared_wait": "waits.program_wait",
    "tool": "function",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
