"""The Python API: `Session`, `SessionManager`, single queries, and the values that they return.

Turns calls into commands and facts into results.  Opens no store and reads no setting: `app/` hands
it what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.api.inspection import Joined
from weft.api.manager import (
    ExportFormat,
    ImportReport,
    SavedSessions,
    SessionInfo,
    SessionManager,
    SessionRecord,
)
from weft.api.options import MessageOptions, QueryOptions, SessionDefaults
from weft.api.reports import BackgroundWork, SessionMetadata, UsageReport
from weft.api.results import Reply, Result
from weft.api.session import Session
from weft.session import Branch, RewindItem, RewindPlan
from weft.view.snapshot import ChildInfo, ContextZone, EditorSnapshot, HistoryMessage, PlanProgress

if TYPE_CHECKING:  # loaded when they are first used
    from weft.api.model_query import Answer, AnswerStream, Delta, query, stream
    from weft.api.pages import Page

__all__ = [
    "Answer",
    "AnswerStream",
    "BackgroundWork",
    "Branch",
    "ChildInfo",
    "ContextZone",
    "Delta",
    "EditorSnapshot",
    "ExportFormat",
    "HistoryMessage",
    "ImportReport",
    "Joined",
    "MessageOptions",
    "Page",
    "PlanProgress",
    "QueryOptions",
    "Reply",
    "Result",
    "RewindItem",
    "RewindPlan",
    "SavedSessions",
    "Session",
    "SessionDefaults",
    "SessionInfo",
    "SessionManager",
    "SessionMetadata",
    "SessionRecord",
    "UsageReport",
    "query",
    "stream",
]


_HOMES = {
    "Answer": "model_query",
    "AnswerStream": "model_query",
    "Delta": "model_query",
    "Page": "pages",
    "query": "model_query",
    "stream": "model_query",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
