"""Hooks: the user's own programs at named events of a session.

Which are configured, how one is run, and what their answers come to together.  Whether a project's
hooks may run is decided by trust.
"""

__all__ = []
