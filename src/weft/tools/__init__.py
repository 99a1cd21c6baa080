"""Tools: what a model may call, the built-in ones, and functions turned into tools.

A tool works through the workspace and the runner it is handed; leave, recording and limits are the turn's.
"""

from weft.tools.base import Outcome, Prepared, ReadLog, Tool, ToolContext

__all__ = ["Outcome", "Prepared", "ReadLog", "Tool", "ToolContext"]
