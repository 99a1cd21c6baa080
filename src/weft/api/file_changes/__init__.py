"""What a session changed in files as one difference for each, hunks of it put back or taken, and
what is on the disk that the log does not tell of.
"""

from weft.api.file_changes.differences import FileDifference
from weft.api.file_changes.hunk_turn import HunkOutcome
from weft.api.file_changes.hunks import FileHunk
from weft.api.file_changes.net_changes import NetChange

__all__ = ["FileDifference", "FileHunk", "HunkOutcome", "NetChange"]
