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
    from weft.api.branch_files import FileComparison, FileWeave
    from weft.api.decisions.project import DecisionFormat, ProjectDecisions, WhyReport
    from weft.api.evidence.exclusions import MessageExclusion
    from weft.api.evidence.sent_requests import RequestChange, SentRequest
    from weft.api.fan import Fan, FanSummary
    from weft.api.fan.handle import FanCandidate
    from weft.api.file_changes import FileDifference, HunkOutcome, NetChange
    from weft.api.file_changes.kept_contents import KeptContents, LostState, NextContent
    from weft.api.imports.agent_import import AgentImport, ForeignSessionRow
    from weft.api.imports.foreign_setup import SetupItem
    from weft.api.model_query import Answer, AnswerStream, Delta, query, stream
    from weft.api.pages import Page
    from weft.api.permissions.effect_log import AuditEntry
    from weft.api.permissions.rule_simulation import RuleSimulation
    from weft.api.permissions.standing_rules import PermissionExplanation, StandingRule
    from weft.api.reports import CompactionReport
    from weft.api.unattended.coming_back import ComingBack
    from weft.api.unattended.goals import Goal, GoalRound
    from weft.api.unattended.told_asides import SideQuestion
    from weft.api.unattended.waits import SessionWait
    from weft.decisions.pulse import PulseReport
    from weft.project.agent_definitions import AgentDefinition
    from weft.project.markdown_commands import ExpandedCommand, MarkdownCommand
    from weft.project.memory import MemoryNote
    from weft.project.skills import SkillFile
    from weft.project.trust import TrustQuestion
    from weft.providers import ModelInfo
    from weft.repo.definitions import Definition
    from weft.repo.project_index import IndexStatus, Symbol
    from weft.runtime.daily_usage import DailyUsage
    from weft.runtime.fan.kept_candidate import KeepOutcome
    from weft.runtime.session_topic import SessionsChanged
    from weft.runtime.workspaces.file_view import ProjectFile
    from weft.runtime.workspaces.language_status import ServerStatus
    from weft.session import AbortReceipt, Accepted, Subscription
    from weft.store import Draft, SessionRow

__all__ = [
    "AbortReceipt",
    "Accepted",
    "AgentDefinition",
    "AgentImport",
    "Answer",
    "AnswerStream",
    "AuditEntry",
    "BackgroundWork",
    "Branch",
    "ChildInfo",
    "ComingBack",
    "CompactionReport",
    "ContextZone",
    "DailyUsage",
    "DecisionFormat",
    "Definition",
    "Delta",
    "Draft",
    "EditorSnapshot",
    "ExpandedCommand",
    "ExportFormat",
    "Fan",
    "FanCandidate",
    "FanSummary",
    "FileComparison",
    "FileDifference",
    "FileWeave",
    "ForeignSessionRow",
    "Goal",
    "GoalRound",
    "HistoryMessage",
    "HunkOutcome",
    "ImportReport",
    "IndexStatus",
    "Joined",
    "KeepOutcome",
    "KeptContents",
    "LostState",
    "MarkdownCommand",
    "MemoryNote",
    "MessageExclusion",
    "MessageOptions",
    "ModelInfo",
    "NetChange",
    "NextContent",
    "Page",
    "PermissionExplanation",
    "PlanProgress",
    "ProjectDecisions",
    "ProjectFile",
    "PulseReport",
    "QueryOptions",
    "Reply",
    "RequestChange",
    "Result",
    "RewindItem",
    "RewindPlan",
    "RuleSimulation",
    "SavedSessions",
    "SentRequest",
    "ServerStatus",
    "Session",
    "SessionDefaults",
    "SessionInfo",
    "SessionManager",
    "SessionMetadata",
    "SessionRecord",
    "SessionRow",
    "SessionWait",
    "SessionsChanged",
    "SetupItem",
    "SideQuestion",
    "SkillFile",
    "StandingRule",
    "Subscription",
    "Symbol",
    "TrustQuestion",
    "UsageReport",
    "WhyReport",
    "query",
    "stream",
]


_HOMES = {
    "AbortReceipt": "weft.session",
    "Accepted": "weft.session",
    "AgentDefinition": "weft.project.agent_definitions",
    "Answer": "weft.api.model_query",
    "AnswerStream": "weft.api.model_query",
    "AuditEntry": "weft.api.permissions.effect_log",
    "CompactionReport": "weft.api.reports",
    "KeptContents": "weft.api.file_changes.kept_contents",
    "LostState": "weft.api.file_changes.kept_contents",
    "NextContent": "weft.api.file_changes.kept_contents",
    "AgentImport": "weft.api.imports.agent_import",
    "ForeignSessionRow": "weft.api.imports.agent_import",
    "SetupItem": "weft.api.imports.foreign_setup",
    "DailyUsage": "weft.runtime.daily_usage",
    "DecisionFormat": "weft.api.decisions.project",
    "Definition": "weft.repo.definitions",
    "Delta": "weft.api.model_query",
    "Draft": "weft.store",
    "ExpandedCommand": "weft.project.markdown_commands",
    "Fan": "weft.api.fan",
    "FanCandidate": "weft.api.fan.handle",
    "FanSummary": "weft.api.fan",
    "FileComparison": "weft.api.branch_files",
    "ComingBack": "weft.api.unattended.coming_back",
    "SideQuestion": "weft.api.unattended.told_asides",
    "FileDifference": "weft.api.file_changes",
    "FileWeave": "weft.api.branch_files",
    "HunkOutcome": "weft.api.file_changes",
    "IndexStatus": "weft.repo.project_index",
    "KeepOutcome": "weft.runtime.fan.kept_candidate",
    "MarkdownCommand": "weft.project.markdown_commands",
    "MemoryNote": "weft.project.memory",
    "MessageExclusion": "weft.api.evidence.exclusions",
    "ModelInfo": "weft.providers",
    "RequestChange": "weft.api.evidence.sent_requests",
    "SentRequest": "weft.api.evidence.sent_requests",
    "NetChange": "weft.api.file_changes",
    "Page": "weft.api.pages",
    "PermissionExplanation": "weft.api.permissions.standing_rules",
    "ProjectDecisions": "weft.api.decisions.project",
    "ProjectFile": "weft.runtime.workspaces.file_view",
    "PulseReport": "weft.decisions.pulse",
    "RuleSimulation": "weft.api.permissions.rule_simulation",
    "ServerStatus": "weft.runtime.workspaces.language_status",
    "SessionRow": "weft.store",
    "SessionsChanged": "weft.runtime.session_topic",
    "SkillFile": "weft.project.skills",
    "StandingRule": "weft.api.permissions.standing_rules",
    "Subscription": "weft.session",
    "Symbol": "weft.repo.project_index",
    "TrustQuestion": "weft.project.trust",
    "Goal": "weft.api.unattended.goals",
    "GoalRound": "weft.api.unattended.goals",
    "SessionWait": "weft.api.unattended.waits",
    "WhyReport": "weft.api.decisions.project",
    "query": "weft.api.model_query",
    "stream": "weft.api.model_query",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
