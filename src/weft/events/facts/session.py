"""Facts of a session as a whole: its creation, settings, notes, errors and restarts."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.events.base import FactBase
from weft.ids import CallUid, NodeId, SessionId, TreeHash
from weft.permissions import PermissionGrant, PermissionRule


class CallOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The call a child session works for."""

    session_id: SessionId
    node: NodeId | None = None
    call_uid: CallUid | None = None


# By reference: facts of the other log are never copied, so they keep its `session_id` and `seq`.
class ForkPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a fork shares another log: everything up to and including `seq`, cut at `node`."""

    session_id: SessionId
    seq: int
    node: NodeId | None = None


class SessionCreated(FactBase, frozen=True, tag="session_created"):
    """First fact of every session."""

    project_path: str = ""
    project_id: str = ""
    title: str = ""
    model: str = ""
    settings: dict[str, Any] = {}
    """Settings the session starts with, by name."""
    parent: CallOrigin | None = None
    fork: ForkPoint | None = None
    imported: bool = False


class SettingChanged(FactBase, frozen=True, tag="setting_changed"):
    """One setting has a new value: model, thinking, permission_mode, title, archived, budget, …"""

    name: str
    # None takes the setting away, so it cannot be a value itself.
    value: Any = None


class ModeChanged(FactBase, frozen=True, tag="mode_changed"):
    """The session works in another mode: `normal` or `architect`."""

    mode: str


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a background command ended."""

    id: str
    """The name under which it ran, `bg_1`."""
    exit_code: int | None = None
    """Negative: ended by that signal; None when its end was not seen."""
    why: Literal["exited", "stopped", "lost"] = "exited"
    """`lost`: the program that ran it died first."""
    tree: TreeHash | None = None
    """The tree hash of the project's files at its end, to be compared with those of snapshots; None
    where it is not known."""


class SystemNote(FactBase, frozen=True, tag="system_note"):
    """A line for everyone who watches the session; with `to_model`, for the model too."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    to_model: bool = False
    node: NodeId | None = None
    """The head when it was added: the model sees it after that node."""
    background: CommandEnd | None = None
    """The end of a background command, which this note reports."""
    environment: dict[str, str] = {}
    """What the model knows of its environment from here on, by subject."""


class ErrorRaised(FactBase, frozen=True, tag="error_raised"):
    """Something of the session failed; published once."""

    message: str
    where: str = ""
    """Which part: turn, tool, hook, store, …"""
    error: str = ""
    """Class name, for programs."""


class SessionRestarted(FactBase, frozen=True, tag="session_restarted"):
    """The session came back from its log: brought by its supervisor, or by a later process."""

    reason: str = ""


# What the user granted counts in the process that was asked.  The servers of one database count as
# one, as long as no other process had the session in between: the fences tell.
class SessionHosted(FactBase, frozen=True, tag="session_hosted"):
    """A server of several has the session from here on, with what its user granted it so far."""

    host: str = ""
    """Where that server is reached."""
    fence: int = 0
    """The fence of its lease: the next server goes on from here only with the next higher one."""
    moved: bool = False
    """Another server had it before."""
    trusted_mode: bool = False
    """The permission mode was set there, so that `auto` counts."""
    asks: bool = True
    """What needs a permission waits for the user; else it is refused."""
    grants: tuple[PermissionGrant, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    folder: str = ""
    """What tells the folder that it works in from all others of that path; empty where that is not
    known."""
