"""What a session changed in files as one difference for each, and hunks of it put back or taken."""

from weft.api.file_changes.hunk_turn import HunkOutcome
from weft.api.file_changes.hunks import FileHunk
from weft.api.file_changes.net_changes import NetChange

__all__ = ["FileHunk", "HunkOutcome", "NetChange"]
