"""Errors of models that a program brings: their kind, by what the SDKs of vendors put on them.

Only numbers and types are read.  What such an error says was not written for users.
"""

from __future__ import annotations

from weft.loom.branches.generation_events import FailureCategory


def foreign_status(error: object) -> int | None:
    """The HTTP status that an error carries; None where it carries none."""
    for name in ("status", "status_code"):
        found = getattr(error, name, None)
        if type(found) is int:
            return found
    return None


def foreign_category(error: Exception) -> FailureCategory:
    """What kind of failure an error is that is none of ours."""
    status = foreign_status(error)
    if status in (401, 403):
        return "authentication"
    if status == 429:
        return "rate_limit"
    if status in (408, 504) or isinstance(error, TimeoutError):
        return "timeout"
    if status is None:
        return "network" if isinstance(error, ConnectionError) else "provider_error"
    if status >= 500:
        return "provider_unavailable"
    return "invalid_request" if status >= 400 else "provider_error"
