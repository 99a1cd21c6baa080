"""What the model sees: messages built from a line of the tree, the prefix, and estimates of their
size.

Pure functions of what they are given.  Knows no provider: vendors' words are theirs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.context.build import (
    CONTINUE_PROMPT,
    CUT_OFF,
    NO_RESULT,
    ComposedMessages,
    ContextTarget,
    LineEntry,
    MessageComposer,
    RenderedLine,
    build,
    notes_for_model,
    pictures_of,
    render,
    without_words,
)
from weft.context.digest import (
    MessageDigests,
    RequestDigests,
    lone_request_digest,
    message_digest,
    request_digest,
)
from weft.context.environment import (
    DECISION_SUBJECT,
    INSTRUCTIONS_VERSION,
    MEMORY_VERSION,
    environment_text,
    told_on,
)
from weft.context.prefix import (
    PrefixTool,
    PromptPrefix,
    RenderedPrefix,
    is_same_prefix,
    load_prefix,
    render_prefix,
)
from weft.context.sizes import (
    CHARACTERS_PER_TOKEN,
    HARD_SHARE,
    SOFT_SHARE,
    ZONE_SHARES,
    RoomLevel,
    estimate,
    estimate_text,
    fitted,
    is_cut,
    room,
    room_level,
    zone_budget,
)

if TYPE_CHECKING:  # loaded when they are first used
    from weft.context.carried_record import finished_tasks, gather, kept_blocks, tasks_on
    from weft.context.cleared_results import (
        cleared_entry,
        cleared_tokens,
        results_to_clear,
        results_to_shorten,
    )
    from weft.context.compaction import (
        INSTRUCTIONS,
        KEPT_SHARE,
        RECORD_HEADING,
        STEPS,
        STEPS_SHARE,
        as_message,
        carried,
        choose_cut,
        compacted_message,
        cut_middle,
        first_of_steps,
        framed,
        pin_block,
        pinned,
        transcript,
    )
    from weft.context.excluded_words import without_excluded
    from weft.context.summary_check import bounded_summary, checked, step_list

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "CONTINUE_PROMPT",
    "CUT_OFF",
    "DECISION_SUBJECT",
    "HARD_SHARE",
    "INSTRUCTIONS",
    "INSTRUCTIONS_VERSION",
    "KEPT_SHARE",
    "MEMORY_VERSION",
    "NO_RESULT",
    "RECORD_HEADING",
    "SOFT_SHARE",
    "STEPS",
    "STEPS_SHARE",
    "ZONE_SHARES",
    "ComposedMessages",
    "ContextTarget",
    "LineEntry",
    "MessageComposer",
    "MessageDigests",
    "PrefixTool",
    "PromptPrefix",
    "RenderedLine",
    "RenderedPrefix",
    "RequestDigests",
    "RoomLevel",
    "as_message",
    "bounded_summary",
    "build",
    "carried",
    "checked",
    "choose_cut",
    "cleared_entry",
    "cleared_tokens",
    "compacted_message",
    "cut_middle",
    "environment_text",
    "estimate",
    "estimate_text",
    "finished_tasks",
    "first_of_steps",
    "fitted",
    "framed",
    "gather",
    "is_cut",
    "is_same_prefix",
    "kept_blocks",
    "load_prefix",
    "lone_request_digest",
    "message_digest",
    "notes_for_model",
    "pictures_of",
    "pin_block",
    "pinned",
    "render",
    "render_prefix",
    "request_digest",
    "results_to_clear",
    "results_to_shorten",
    "room",
    "room_level",
    "step_list",
    "tasks_on",
    "told_on",
    "transcript",
    "without_excluded",
    "without_words",
    "zone_budget",
]

_HOMES = {
    "INSTRUCTIONS": "compaction",
    "KEPT_SHARE": "compaction",
    "RECORD_HEADING": "compaction",
    "STEPS": "compaction",
    "STEPS_SHARE": "compaction",
    "as_message": "compaction",
    "bounded_summary": "summary_check",
    "checked": "summary_check",
    "carried": "compaction",
    "choose_cut": "compaction",
    "cleared_entry": "cleared_results",
    "cleared_tokens": "cleared_results",
    "compacted_message": "compaction",
    "cut_middle": "compaction",
    "first_of_steps": "compaction",
    "results_to_clear": "cleared_results",
    "results_to_shorten": "cleared_results",
    "finished_tasks": "carried_record",
    "framed": "compaction",
    "gather": "carried_record",
    "kept_blocks": "carried_record",
    "pin_block": "compaction",
    "pinned": "compaction",
    "step_list": "summary_check",
    "tasks_on": "carried_record",
    "transcript": "compaction",
    "without_excluded": "excluded_words",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
