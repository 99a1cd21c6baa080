"""What screens show: events folded into blocks, the outline of the tree, sentences about results.

Pure: no I/O, no clock, no terminal, no markup.  Names are loaded when they are first used, because
a run without a screen needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.view.blocks import (
        AgentEnd,
        AgentsCard,
        AnswerBlock,
        AnyBlock,
        LookupCard,
        NoteBlock,
        PermissionBlock,
        PlanBlock,
        QuestionBlock,
        TableBlock,
        ThinkingBlock,
        TodoBlock,
        ToolCard,
        TurnEndBlock,
        UserBlock,
        ViewBlock,
    )
    from weft.view.difference_text import difference_rows, difference_summary
    from weft.view.goal_line import GOAL_PAUSES, GoalRow, goal_row
    from weft.view.goal_text import GOAL_ENDS, checked_text, goal_note
    from weft.view.history import history_blocks, open_calls
    from weft.view.kept.import_text import (
        import_problems,
        import_rows,
        import_summary,
        setup_rows,
    )
    from weft.view.kept.store_text import next_rows, size_text, store_lines
    from weft.view.live_area import (
        LiveArea,
        OpenRequest,
        PlanRequest,
        QueuedInput,
        RetryNotice,
        RunningTool,
        TaskRow,
        WaitNotice,
        command_row,
        live_of,
    )
    from weft.view.markdown import finished_length
    from weft.view.outline import OutlineRow, agent_status, outline_rows
    from weft.view.past.bisection_text import bisection_rows, check_line
    from weft.view.past.blame_text import blame_rows
    from weft.view.plan_steps import step_title, steps_of
    from weft.view.receipt_text import receipt_note, receipt_rows, receipt_summary
    from weft.view.rewind_text import changed_paths, file_rows, rewind_summary
    from weft.view.sentences import (
        SUCCESSFUL,
        TURN_LIMITS,
        chat_sentence,
        compaction_sentence,
        count_of,
        describe_call,
        finish_sentence,
        thousands,
        verb_of,
    )
    from weft.view.session_view import SessionView, take_task_event
    from weft.view.session_words import coming_back_text
    from weft.view.snapshot import (
        ChildInfo,
        ContextZone,
        EditorSnapshot,
        HistoryMessage,
        PlanProgress,
    )
    from weft.view.tree import CheckpointInfo, TreeMessage, TreeView

__all__ = [
    "GOAL_ENDS",
    "GOAL_PAUSES",
    "SUCCESSFUL",
    "TURN_LIMITS",
    "AgentEnd",
    "AgentsCard",
    "AnswerBlock",
    "AnyBlock",
    "CheckpointInfo",
    "ChildInfo",
    "ContextZone",
    "EditorSnapshot",
    "GoalRow",
    "HistoryMessage",
    "LiveArea",
    "LookupCard",
    "NoteBlock",
    "OpenRequest",
    "OutlineRow",
    "PermissionBlock",
    "PlanBlock",
    "PlanProgress",
    "PlanRequest",
    "QuestionBlock",
    "QueuedInput",
    "RetryNotice",
    "RunningTool",
    "SessionView",
    "TableBlock",
    "TaskRow",
    "ThinkingBlock",
    "TodoBlock",
    "ToolCard",
    "TreeMessage",
    "TreeView",
    "TurnEndBlock",
    "UserBlock",
    "ViewBlock",
    "WaitNotice",
    "agent_status",
    "bisection_rows",
    "blame_rows",
    "changed_paths",
    "chat_sentence",
    "check_line",
    "checked_text",
    "coming_back_text",
    "command_row",
    "compaction_sentence",
    "count_of",
    "describe_call",
    "difference_rows",
    "difference_summary",
    "file_rows",
    "finish_sentence",
    "finished_length",
    "goal_note",
    "goal_row",
    "history_blocks",
    "import_problems",
    "import_rows",
    "import_summary",
    "live_of",
    "next_rows",
    "open_calls",
    "outline_rows",
    "receipt_note",
    "receipt_rows",
    "receipt_summary",
    "rewind_summary",
    "setup_rows",
    "size_text",
    "step_title",
    "steps_of",
    "store_lines",
    "take_task_event",
    "thousands",
    "verb_of",
]

_HOMES = {
    "GOAL_ENDS": "goal_text",
    "GOAL_PAUSES": "goal_line",
    "GoalRow": "goal_line",
    "checked_text": "goal_text",
    "goal_note": "goal_text",
    "goal_row": "goal_line",
    "AgentEnd": "blocks",
    "AgentsCard": "blocks",
    "LookupCard": "blocks",
    "TodoBlock": "blocks",
    "TurnEndBlock": "blocks",
    "AnswerBlock": "blocks",
    "AnyBlock": "blocks",
    "NoteBlock": "blocks",
    "PermissionBlock": "blocks",
    "PlanBlock": "blocks",
    "QuestionBlock": "blocks",
    "TableBlock": "blocks",
    "ThinkingBlock": "blocks",
    "ToolCard": "blocks",
    "UserBlock": "blocks",
    "ViewBlock": "blocks",
    "history_blocks": "history",
    "open_calls": "history",
    "LiveArea": "live_area",
    "OpenRequest": "live_area",
    "PlanRequest": "live_area",
    "QueuedInput": "live_area",
    "RetryNotice": "live_area",
    "WaitNotice": "live_area",
    "RunningTool": "live_area",
    "TaskRow": "live_area",
    "command_row": "live_area",
    "live_of": "live_area",
    "finished_length": "markdown",
    "OutlineRow": "outline",
    "agent_status": "outline",
    "outline_rows": "outline",
    "step_title": "plan_steps",
    "steps_of": "plan_steps",
    "changed_paths": "rewind_text",
    "bisection_rows": "past.bisection_text",
    "blame_rows": "past.blame_text",
    "check_line": "past.bisection_text",
    "import_problems": "kept.import_text",
    "import_rows": "kept.import_text",
    "import_summary": "kept.import_text",
    "setup_rows": "kept.import_text",
    "next_rows": "kept.store_text",
    "size_text": "kept.store_text",
    "store_lines": "kept.store_text",
    "receipt_note": "receipt_text",
    "receipt_rows": "receipt_text",
    "receipt_summary": "receipt_text",
    "coming_back_text": "session_words",
    "difference_rows": "difference_text",
    "difference_summary": "difference_text",
    "file_rows": "rewind_text",
    "rewind_summary": "rewind_text",
    "SUCCESSFUL": "sentences",
    "TURN_LIMITS": "sentences",
    "chat_sentence": "sentences",
    "compaction_sentence": "sentences",
    "count_of": "sentences",
    "describe_call": "sentences",
    "finish_sentence": "sentences",
    "thousands": "sentences",
    "verb_of": "sentences",
    "SessionView": "session_view",
    "take_task_event": "session_view",
    "ChildInfo": "snapshot",
    "ContextZone": "snapshot",
    "EditorSnapshot": "snapshot",
    "HistoryMessage": "snapshot",
    "PlanProgress": "snapshot",
    "CheckpointInfo": "tree",
    "TreeMessage": "tree",
    "TreeView": "tree",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
