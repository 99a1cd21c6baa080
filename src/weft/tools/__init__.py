"""Tools: what a model may call, the built-in ones, and functions turned into tools.

A tool works through the workspace and the runner it is handed; permission, recording and limits are
the turn's.
"""

from weft.tools.arguments import ToolArguments, parse, schema_of
from weft.tools.base import (
    BackgroundCommands,
    BackgroundOutput,
    DelegateTool,
    PreparedCall,
    ReadGuard,
    ReadLog,
    Tool,
    ToolContext,
    ToolOutcome,
    UserQuestion,
)
from weft.tools.builtin.registry import ALL, COMPANIONS, CORE, BuiltinTool, builtin_tools
from weft.tools.function import FunctionTool, as_outcome, tool
from weft.tools.output_schema import OutputSchema
from weft.tools.submit import SubmitTool
from weft.workspace import ChangedFile

__all__ = [
    "ALL",
    "COMPANIONS",
    "CORE",
    "BackgroundCommands",
    "BackgroundOutput",
    "BuiltinTool",
    "ChangedFile",
    "DelegateTool",
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
    "as_outcome",
    "builtin_tools",
    "parse",
    "schema_of",
    "tool",
]
