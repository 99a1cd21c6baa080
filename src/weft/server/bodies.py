"""Bodies of requests and answers that the API itself has no type for."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from weft.api import EditorSnapshot, HistoryMessage, SessionRow, SideQuestion
from weft.events import PermissionAction
from weft.ids import SessionId
from weft.messages import File, Image, Text
from weft.server.operation import ChangeBody, QueryFields
from weft.state import QueueEntry
from weft.thinking_levels import ThinkingLevel

MessageContent: TypeAlias = str | list[Text | Image | File]
"""Text, or parts: text, pictures and files."""

# --- conversation ------------------------------------------------------------------------


class TurnOptions(ChangeBody, frozen=True, kw_only=True):
    """What may be set for one turn."""

    model: str | None = None
    tools: str | list[str] | None = None
    max_turns: int | None = None
    max_seconds: float | None = None
    max_tool_calls: int | None = None
    max_budget_usd: float | None = None
    max_tokens: int | None = None
    thinking: ThinkingLevel | None = None
    schema: dict[str, Any] | None = None
    """A JSON Schema: the reply then has a checked `deliverable`."""
    mode: Literal["normal", "architect"] | None = None
    plan_model: str | None = None
    edit_model: str | None = None
    retries: int | None = None


class PromptBody(TurnOptions, frozen=True, kw_only=True):
    """A message to a session."""

    content: MessageContent


class MessageBody(PromptBody, frozen=True, kw_only=True):
    """A message whose turn is waited for."""

    queue: bool = True
    """False: a busy session refuses it instead of queueing it."""


class ContentBody(ChangeBody, frozen=True, kw_only=True):
    """A message without options of its own."""

    content: MessageContent


class StopAfterStepBody(ChangeBody, frozen=True, kw_only=True):
    """Whether the turn that runs is to end after its present step."""

    is_wanted: bool = True


class AbortBody(ChangeBody, frozen=True, kw_only=True):
    """An abort."""

    reason: str = ""


class OrderBody(ChangeBody, frozen=True, kw_only=True):
    """The ids of queued messages, in their new order."""

    ids: list[str]


class QueuedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Both queues, next one first."""

    steering: tuple[QueueEntry, ...]
    follow_up: tuple[QueueEntry, ...]


class AnswerBody(ChangeBody, frozen=True, kw_only=True):
    """The answer to a request: to a permission request with `action` (or `decision`), to a
    question with `answer`.
    """

    action: PermissionAction | None = None
    decision: Literal["approve", "reject", "approve_all"] | None = None
    """The other spelling of `action`."""
    reason: str | None = None
    save: bool = False
    """Keep `allow_always` as a rule."""
    answer: str | None = None


class ReasonBody(ChangeBody, frozen=True, kw_only=True):
    """A reason."""

    reason: str = ""


class PlanBody(ChangeBody, frozen=True, kw_only=True):
    """A plan in the place of the one that waits."""

    plan: dict[str, Any]


class NoteBody(ChangeBody, frozen=True, kw_only=True):
    """A note that is shown and kept."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    to_model: bool = False


class BudgetBody(ChangeBody, frozen=True, kw_only=True):
    """What a session may cost."""

    usd: float | None = None
    tokens: int | None = None


class ClientBody(ChangeBody, frozen=True, kw_only=True):
    """A client that comes."""

    role: Literal["viewer", "driver"] = "viewer"
    name: str = ""
    """What others see it as."""


class AttachedClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client of a session; send its id in the header `Weft-Client`."""

    client: str
    role: Literal["viewer", "driver"]
    driver: str = ""
    """The client that drives; empty when none does."""


# --- sessions ----------------------------------------------------------------------------


class StartBody(ChangeBody, frozen=True, kw_only=True):
    """What a session is started with; all of it may be left out."""

    session_id: str | None = None
    """A stored session: it is resumed."""
    model: str | None = None
    project_path: str | None = None
    title: str | None = None
    tools: str | list[str] | None = None
    auto_approve: bool | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    permission_mode: str | None = None
    messages: list[dict[str, Any]] | None = None
    resume: Literal["ask", "auto", "never"] | None = None
    max_turns: int | None = None
    max_seconds: float | None = None
    max_tool_calls: int | None = None
    thinking: ThinkingLevel | None = None
    budget: dict[str, float] | None = None
    mode: Literal["normal", "architect"] | None = None
    plan_model: str | None = None
    edit_model: str | None = None


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a screen draws it; events after `snapshot.seq` bring it on."""

    id: SessionId
    project: str
    """The name of its project in paths."""
    project_path: str
    snapshot: EditorSnapshot


class SessionListQuery(QueryFields, frozen=True, kw_only=True):
    """Which stored sessions."""

    q: str | None = None
    """Words in titles and messages."""
    project: str | None = None
    """The name of a project in paths, or `main`."""
    archived: bool = False
    after: str | None = None
    """The `next` of an earlier page."""
    limit: int = 100


class SessionList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list of stored sessions, last active first."""

    rows: list[SessionRow]
    next: str | None
    working: list[str]
    """Those whose turn is at work."""


class ExcerptQuery(QueryFields, frozen=True, kw_only=True):
    """Words that were said in sessions."""

    q: str
    limit: int = 100
    """Places that are looked at, the best first."""


class SaidExcerpts(msgspec.Struct, frozen=True, kw_only=True):
    """Where sessions have the words of a search."""

    excerpts: dict[str, str]
    """By session: the text around its best place. One whose title alone has the words is missing,
    and so may be one with many better places before its own."""


class SessionChange(ChangeBody, frozen=True, kw_only=True):
    """What may be changed of a stored session."""

    title: str | None = None
    archived: bool | None = None


class ForkBody(ChangeBody, frozen=True, kw_only=True):
    """Where a fork begins: a message's id or its number, or the end."""

    at: str | int | None = None
    title: str | None = None


class ImportBody(ChangeBody, frozen=True, kw_only=True):
    """An export as text (json or jsonl)."""

    content: str


class ImportedSession(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import."""

    session: SessionView
    dropped: dict[str, int]


class ExportQuery(QueryFields, frozen=True, kw_only=True):
    """The form of an export."""

    format: Literal["json", "jsonl", "md", "html"] = "json"
    files: bool = False


class PageQuery(QueryFields, frozen=True, kw_only=True):
    """Which part of a line."""

    before: str | None = None
    after: str | None = None
    limit: int = 100


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message with its id."""

    id: str
    message: HistoryMessage


class MessagePage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the present line, oldest first."""

    messages: list[MessageRow]
    previous: str | None
    """Hand this over as `before` for the messages before."""
    next: str | None
    """Hand this over as `after` for the messages after."""
    seq: int
    """Events after this one bring the page on."""
    asides: tuple[SideQuestion, ...] = ()
    """Side questions whose place is behind one of these messages."""


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A word, and what it is of."""

    value: str


class TextAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A text."""

    text: str
    path: str = ""
    """Where it was written, if it was."""


# --- settings ----------------------------------------------------------------------------


class ModelBody(ChangeBody, frozen=True, kw_only=True):
    """A model by its name."""

    model: str


class LevelBody(ChangeBody, frozen=True, kw_only=True):
    """A thinking level."""

    level: str


class ModeBody(ChangeBody, frozen=True, kw_only=True):
    """A mode."""

    mode: str


class ResumeChoiceBody(ChangeBody, frozen=True, kw_only=True):
    """What happens to a turn that a crash cuts off."""

    choice: Literal["ask", "auto", "never"]


class CompactBody(ChangeBody, frozen=True, kw_only=True):
    """A compaction."""

    focus: str | None = None
    queue: bool = False


class RangeBody(ChangeBody, frozen=True, kw_only=True):
    """The lines of a file that may be edited, counted from 0, the last one included."""

    first: int
    last: int


class CollapseBody(ChangeBody, frozen=True, kw_only=True):
    """The tool calls of one message, or (without it) of all."""

    message_id: str | None = None


class ToggleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How something stands after it was switched."""

    value: bool


# --- the tree ----------------------------------------------------------------------------


class BranchBody(ChangeBody, frozen=True, kw_only=True):
    """Where a branch begins: a message's id or its number."""

    at: str | int
    name: str | None = None


class NameBody(ChangeBody, frozen=True, kw_only=True):
    """A new name."""

    name: str


class LabelBody(ChangeBody, frozen=True, kw_only=True):
    """What a checkpoint is called."""

    label: str | None = None


class RewindBody(ChangeBody, frozen=True, kw_only=True):
    """Where to rewind to: a message's id or number, a checkpoint, or (null) the start."""

    to: str | int | None
    files: bool = True
    conversation: bool = True
    preview: bool = False
    overwrite: list[str] = []
    """Files that were changed outside the session, and are to be restored all the same."""


class UndoRewindBody(ChangeBody, frozen=True, kw_only=True):
    """The last rewind, undone."""

    preview: bool = False
    overwrite: list[str] = []


class RevisionBody(ChangeBody, frozen=True, kw_only=True):
    """Which of a message's texts, counted from 0."""

    n: int


class NodeBody(ChangeBody, frozen=True, kw_only=True):
    """A message."""

    node: str


class NodesQuery(QueryFields, frozen=True, kw_only=True):
    """Messages by their ids, with commas between them."""

    ids: str


class ChangesQuery(QueryFields, frozen=True, kw_only=True):
    """The messages between which files were changed; without them the whole session."""

    since: str | None = None
    until: str | None = None


class HunkBody(ChangeBody, frozen=True, kw_only=True):
    """A hunk of what was changed between two messages."""

    path: str
    hunk: str
    since: str | None = None
    until: str | None = None


class BranchesQuery(QueryFields, frozen=True, kw_only=True):
    """The ends of two branches."""

    first: str
    second: str


class TakenHunkBody(ChangeBody, frozen=True, kw_only=True):
    """A hunk of the second branch that the first is to have."""

    path: str
    hunk: str
    first: str
    second: str


class FileWeaveBody(ChangeBody, frozen=True, kw_only=True):
    """Two branches whose files are put together."""

    first: str
    second: str
    picks: dict[str, Literal["first", "second"]] = {}
    """Whose version of a file is taken where both changed the same lines."""
    overwrite: list[str] = []
    """Files that were changed outside the session, and are to be replaced all the same."""
    preview: bool = False
