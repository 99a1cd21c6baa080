"""Files of two branches of a coding session: compared, and put together as one child of both."""

from weft.api.branch_files.comparison import BranchFile, FileComparison, compare_files
from weft.api.branch_files.weave import FileWeave, weave_files

__all__ = ["BranchFile", "FileComparison", "FileWeave", "compare_files", "weave_files"]
