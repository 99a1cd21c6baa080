"""Blame of a line: what wrote it, told by the log of the sessions that worked on the file.

Values only.  `weft.runtime.blame` finds them out; nothing of them is stored.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.ids import CallUid, NodeId, SessionId, TurnId

LineWriter: TypeAlias = Literal["session", "user", "unknown"]
"""`user`: nothing that a session ran wrote it, so the user did, or a program of theirs."""


class LineCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that a line, or a file, was last changed in."""

    commit: str
    author: str = ""
    at: float = 0.0
    summary: str = ""


class LineTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that changed a file."""

    session_id: SessionId
    turn_id: TurnId
    node: NodeId | None = None
    at: float = 0.0
    prompt: str = ""
    """What the user had asked for."""


class BlamedCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call of a tool that wrote a line."""

    tool_name: str
    target: str = ""
    """The path, or the command."""
    call_uid: CallUid | None = None
    node: NodeId | None = None
    """The message with the call."""
    reason: str = ""
    """What the model said when it made the call."""
    allowed_by: str = ""
    """`user`, `grant`, `rule`, `mode`, `hook`, `plan`, `goal` or `auto_approve`; `not recorded` in
    a log that is older than the record of it."""
    allowed_why: str = ""
    """The rule or grant itself; else the reason in one sentence."""


class BlamedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The first test, build or check that a session ran after a line was written.

    It says nothing of whether that command looks at the line.
    """

    command: str
    exit_code: int | None
    """None where it did not come to its end."""
    tree: str
    """The hash of the project's files behind it; empty where that is not known."""
    at: float
    session_id: SessionId


class BlamedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided where a line was written, with what was rejected."""

    id: str
    title: str
    reason: str = ""
    status: str = ""
    rejected: tuple[str, ...] = ()


class Blame(msgspec.Struct, frozen=True, kw_only=True):
    """Who or what wrote a line, and why."""

    path: str
    line: int
    text: str
    """The line as it is; empty where a rule keeps the file from being shown."""
    made_by: LineWriter
    sentence: str
    """All of it in one sentence."""
    turn: LineTurn | None = None
    """The turn that wrote it; of a line that no session wrote, None."""
    call: BlamedCall | None = None
    candidate: int | None = None
    """Of a line that came with a candidate of a fan-out: which one."""
    check: BlamedCheck | None = None
    """The first check that its session ran after it."""
    commit: LineCommit | None = None
    """The commit that has it; None for what is not committed, or in no repository."""
    committed_by: LineTurn | None = None
    """The turn that made this commit, where a session did."""
    git_error: str = ""
    """Why git could not tell the commit; empty where it could."""
    decisions: tuple[BlamedDecision, ...] = ()
    since: float | None = None
    """Of a line of the user's: when the file was last known without it."""
    until: float | None = None
    """When it was first known with it; None where that is only now."""
    steps: tuple[str, ...] = ()
    """What lies between the line as it is and its origin, newest first: renames, candidates."""
    notes: tuple[str, ...] = ()
    """What could not be told: contents that are gone, sessions that cannot be read."""

    open_session: SessionId | None = None
    """The session whose tree, and the project's files, can be opened as they were then."""
    open_node: NodeId | None = None
    """The message at which they can."""

    @property
    def can_open(self) -> bool:
        """Whether there is a message at which the tree and the files can be opened."""
        return self.open_node is not None
