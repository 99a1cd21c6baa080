"""Facts of the project's files as a whole: which tree of files stood there at the end of a turn."""

from __future__ import annotations

import msgspec

from weft.events.base import FactBase
from weft.ids import BlobId, NodeId, TurnId


class SnapshotChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A path that is not what it was at the snapshot before."""

    path: str
    """Relative to the project, with forward slashes."""
    mode: int = 0
    """Kind and permissions, as git has them; 0 where nothing is any more."""
    content: BlobId | None = None
    """Content, or a link's target; None for a folder, where nothing is, and where it is not
    known."""
    # An open word: an older program reads a later one as text, and not as damage.
    by: str = "session"
    """`session` (as one of its tools left it), `outside` (nothing of this session did it: the
    user, another session or another program) or `unknown` (a command of the session ran meanwhile
    that may have)."""


class LeftOutFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file whose content a snapshot does not have."""

    path: str
    why: str
    """`too large`, `quota`, …; open."""
    content: BlobId | None = None
    """Hash of the content, under which the session stores nothing; None where it is not known."""


# The folders of a tree are blobs under their hash, as the contents are: what did not change since
# an earlier snapshot is named again and never stored again.
class WorkspaceSnapshot(FactBase, frozen=True, tag="workspace_snapshot"):
    """The project's files at the end of a turn that had an effect."""

    turn_id: TurnId | None = None
    node: NodeId | None = None
    """The last node of the turn."""
    tree: BlobId | None = None
    """The tree hash: the hash of the listing of the project's folder, which is stored as a blob;
    None where the files are not known."""
    after: BlobId | None = None
    """The tree of the snapshot before; None for the first."""
    changes: tuple[SnapshotChange, ...] = ()
    """What differs from `after`; nothing for the first."""
    more_changes: int = 0
    """Changes that are in `tree` and too many to be listed."""
    left_out: tuple[LeftOutFile, ...] = ()
    """Files that are in `tree`, and whose content a limit kept out of the store."""
    more_left_out: int = 0
    """Files that were left out, too, and are too many to be listed."""
    why: str = ""
    """Why the files are not known: `unreadable`, `failed` (the program's own log says more), or why
    they are not watched; empty where they are known."""


class IncludedFile(msgspec.Struct, frozen=True, array_like=True):
    """An ignored file that the project wants wherever it is worked on."""

    path: str
    mode: int
    content: BlobId


# A snapshot is what stood there at the end of a turn.  This is what another host works on from here
# on, in the middle of a turn, too; only stores that hosts share have it.
class WorkspaceSaved(FactBase, frozen=True, tag="workspace_saved"):
    """The project's files and its repository, as another host finds them here."""

    tree: BlobId | None = None
    """The tree hash, as of a snapshot."""
    repository: BlobId | None = None
    """A record of the repository: its refs, its index and the packs that have its objects; None
    where there is none."""
    included: BlobId | None = None
    """A list of the ignored files that go along, because `.worktreeinclude` names them."""
    left_behind: tuple[LeftOutFile, ...] = ()
    """What stays on the host: ignored files and secrets, and what a limit kept out of the store."""
    more_left_behind: int = 0
    """What is left behind, too, and is too much to be listed."""
    folder: str = ""
    """What tells the folder from all others of that path; empty where it is not known."""
    why: str = ""
    """Why the repository is not in it; empty where it is, or where there is none."""
