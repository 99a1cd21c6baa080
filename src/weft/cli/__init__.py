"""The command line: arguments, the chat in a terminal, runs without a terminal, and small commands
around them.

Talks to the application only; it knows no store, no provider and no tool.
"""

from weft.cli.entry_point import main, run

__all__ = ["main", "run"]
