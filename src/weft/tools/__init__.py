"""Tools: what a model may call, the built-in ones, and functions turned into tools.

A tool works through the workspace and the runner it is handed; leave, recording and limits are the turn's.
"""

from weft.tools.arguments import Arguments, parse, schema_of
from weft.tools.base import (
    BackgroundCommands,
    Delegate,
    Look,
    Outcome,
    Prepared,
    Question,
    ReadLog,
    Tool,
    ToolContext,
)
from weft.tools.builtin.registry import ALL, COMPANIONS, CORE, builtin_tools
from weft.tools.function import FunctionTool, as_outcome, tool
from weft.tools.output_schema import Shape
from weft.tools.submit import SubmitTool
from weft.workspace import Touched

__all__ = [
    "ALL",
    "COMPANIONS",
    "CORE",
    "Arguments",
    "BackgroundCommands",
    "Delegate",
    "FunctionTool",
    "Look",
    "Outcome",
    "Prepared",
    "Question",
    "ReadLog",
    "Shape",
    "SubmitTool",
    "Tool",
    "ToolContext",
    "Touched",
    "as_outcome",
    "builtin_tools",
    "parse",
    "schema_of",
    "tool",
]
