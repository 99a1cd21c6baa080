"""Command lines: read by the bash grammar, taken apart into commands, and judged word by word.

Knows no mode, no session and no sandbox, and runs nothing: a line goes in, and what is known of
each of its commands comes out.  Loaded with the first command that is judged.
"""

from __future__ import annotations

from weft.permissions.shell.judge import LineJudge, LineJudgement, PartJudgement
from weft.permissions.shell.parts import ShellPart, ShellProgram, read_program
from weft.permissions.shell.patterns import compile_pattern
from weft.permissions.shell.syntax import CommandLine, SimpleCommand, parse_line

__all__ = [
    "CommandLine",
    "LineJudge",
    "LineJudgement",
    "PartJudgement",
    "ShellPart",
    "ShellProgram",
    "SimpleCommand",
    "compile_pattern",
    "parse_line",
    "read_program",
]
