"""Sessions of other agents, read as exports of ours.

Owns what the files of Claude Code, codex, pi and opencode mean.  Takes records that were read
elsewhere, one after the other, and trusts none of them: only what was said, called and answered is
taken, in bounds.  Touches no file.
"""

from weft.export.agents.claude import ClaudeReader
from weft.export.agents.codex import CodexReader
from weft.export.agents.foreign_tree import ForeignReader, ForeignSession
from weft.export.agents.opencode import OpencodeReader
from weft.export.agents.pi import PiReader

__all__ = [
    "READERS",
    "ClaudeReader",
    "CodexReader",
    "ForeignReader",
    "ForeignSession",
    "OpencodeReader",
    "PiReader",
]

READERS: dict[str, type[ForeignReader]] = {
    "claude": ClaudeReader,
    "codex": CodexReader,
    "pi": PiReader,
    "opencode": OpencodeReader,
}
"""Agent → what reads the records of one of its sessions."""
