"""The composition root and the one API: settings in, a running application out.

Reads the environment, the config files and the working directory, so that nobody below has to.
"""

from weft.app.app import App, open_app
from weft.app.asking import Answer, Delta, Stream, query, stream
from weft.app.config import KEYS, Config, Key
from weft.app.manager import (
    ExportFormat,
    ImportReport,
    SessionInfo,
    SessionManager,
    SessionRecord,
)
from weft.app.oneshot import run
from weft.app.replies import HistoryMessage, Reply, Result
from weft.app.reports import (
    BackgroundWork,
    ChildInfo,
    EditorSnapshot,
    PlanProgress,
    SessionMetadata,
    UsageReport,
)
from weft.app.session import Session
from weft.session import Branch, RewindItem, RewindPlan

__all__ = [
    "KEYS",
    "Answer",
    "App",
    "BackgroundWork",
    "Branch",
    "ChildInfo",
    "Config",
    "Delta",
    "EditorSnapshot",
    "ExportFormat",
    "HistoryMessage",
    "ImportReport",
    "Key",
    "PlanProgress",
    "Reply",
    "Result",
    "RewindItem",
    "RewindPlan",
    "Session",
    "SessionInfo",
    "SessionManager",
    "SessionMetadata",
    "SessionRecord",
    "Stream",
    "UsageReport",
    "open_app",
    "query",
    "run",
    "stream",
]
