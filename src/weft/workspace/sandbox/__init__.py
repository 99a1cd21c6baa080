"""The sandbox: bubblewrap, an overlay over the project, a system call filter, and committing what a
command may change.
"""

__all__ = []
