"""The Python API: `Session`, `SessionManager`, single queries, and the values that they return.

Turns calls into commands and facts into results.  Opens no store and reads no setting: `app/` hands
it what it needs.
"""

from typing import TYPE_CHECKING, Any

from weft.api.manager import (
    ExportFormat,
    ImportReport,
    SessionInfo,
    SessionManager,
    SessionRecord,
)
from weft.api.options import MessageOptions, QueryOptions, SessionDefaults
from weft.api.pages import Page
from weft.api.reports import BackgroundWork, SessionMetadata, UsageReport
from weft.api.results import Reply, Result
from weft.api.session import Session
from weft.session import Branch, RewindItem, RewindPlan
from weft.view.snapshot import ChildInfo, EditorSnapshot, HistoryMessage, PlanProgress

if TYPE_CHECKING:
    from weft.api.model_query import Answer, AnswerStream, Delta, query, stream

__all__ = [
    "Answer",
    "AnswerStream",
    "BackgroundWork",
    "Branch",
    "ChildInfo",
    "Delta",
    "EditorSnapshot",
    "ExportFormat",
    "HistoryMessage",
    "ImportReport",
    "MessageOptions",
    "Page",
    "PlanProgress",
    "QueryOptions",
    "Reply",
    "Result",
    "RewindItem",
    "RewindPlan",
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


def __getattr__(name: str) -> Any:
    """The single queries, which most programs never load."""
    if name not in ("Answer", "AnswerStream", "Delta", "query", "stream"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from weft.api import model_query

    return getattr(model_query, name)
