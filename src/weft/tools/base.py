"""Tool protocol: what a tool is, what it is given, and what a call comes to.

A call is taken in two steps.  `prepare` checks the arguments and works out, without any effect,
what would happen: the action for the policy, the preview for the user, the hashes for the intent
record.  `PreparedCall.run` then does exactly that.  Between the two stand policy, hooks, the user
and the durable intent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from weft.events import Effect, Fact, FactBase, Todo, WaitSubject
from weft.ids import BlobId, CallUid, NodeId
from weft.messages import Image
from weft.permissions import ToolAction
from weft.workspace import ChangedFile, ProcessCommand, Runner, RunResult, Workspace

if TYPE_CHECKING:  # loaded where a project has an index or a language server
    from weft.lsp import CodeQueries
    from weft.repo import ProjectIndex
if TYPE_CHECKING:  # loaded with the first decision: it costs start-up time
    from weft.decisions import DecisionAccess


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to."""

    text: str
    """What the model reads."""
    is_error: bool = False
    images: tuple[Image, ...] = ()
    touched: tuple[ChangedFile, ...] = ()
    full_text: bytes | None = None
    """The whole output, where `text` was cut; kept as a blob."""
    data: dict[str, Any] = {}
    """For programs and screens; never sent to the model."""
    todos: tuple[Todo, ...] | None = None
    """The new task list, when the tool changed it."""
    notes: tuple[str, ...] = ()
    """What the user should know besides, a sentence each."""
    facts: tuple[Fact, ...] = ()
    """What else becomes durable with the result."""
    project_facts: tuple[FactBase, ...] = ()
    """What becomes durable in the same instant on the stream of the project."""


def as_outcome(result: Any) -> ToolOutcome:
    """What a function returned, as the model reads it: text as it is, everything else as JSON."""
    if isinstance(result, ToolOutcome):
        return result
    if result is None:
        return ToolOutcome(text="(done)")
    if isinstance(result, str):
        return ToolOutcome(text=result)
    try:
        return ToolOutcome(text=msgspec.json.encode(result).decode())
    except (TypeError, ValueError, msgspec.MsgspecError):
        return ToolOutcome(text=str(result))


class UserQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something only the user can answer."""

    text: str
    options: tuple[str, ...] = ()


WaitLook: TypeAlias = Callable[[WaitSubject], Awaitable[bool]]
"""Looks whether what a call waits for has come, from what it was when the wait began.

Raises `ToolError` where that cannot be found out now."""


class WaitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a call waits for: a time, the end of a background command or agent, something that is
    looked at, or one of these within a time.

    The turn waits, not the tool: `PreparedCall.run` is called when the wait is over.
    """

    command: str = ""
    """A background command that runs."""
    title: str = ""
    """Its command line, for display."""
    agent: str = ""
    """A background agent that works: its session."""
    on: WaitSubject | None = None
    """What is looked at, as it is now."""
    look: WaitLook | None = None
    """How it is looked at; the wait may have begun in another process."""
    pace: float = 1.0
    """Seconds between two looks."""
    keeps_permission: bool = False
    """What was allowed for this wait holds for its looks in other processes too."""
    seconds: float | None = None
    """At most so long."""
    until: float | None = None
    """Until this wall-clock time, at most."""


class PreparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is ready to run, and all that must be known before it may."""

    action: ToolAction
    run: Callable[[], Awaitable[ToolOutcome]]
    """Do it.  Raises `ToolError` with a sentence for the model.

    A cancel leaves the file whole and no process behind.
    """
    preview: str = ""
    """What the user is shown: the command, the diff."""
    question: UserQuestion | None = None
    """Put to the user; the answer is the result, and `run` is only for when there is no
    one to ask.
    """
    wait: WaitRequest | None = None
    """What the turn waits for before `run`."""
    pre_hashes: dict[str, str] = {}
    post_hashes: dict[str, str] = {}
    pre_modes: dict[str, int] = {}
    """Modes of the files that it deletes; a file that is written keeps its own."""
    keeps: dict[BlobId, bytes] = {}
    """Contents that become durable with the intent: what is about to be replaced must be known
    before it is.
    """
    facts: tuple[Fact, ...] = ()
    """What becomes durable with the intent, so that recovery finds either both or none."""


class BackgroundOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A background command, looked at."""

    id: str
    output: str = ""
    """What it printed since the last look; secrets are masked."""
    result: RunResult | None = None
    """How it ended; None while it runs, and where that is not known."""
    is_running: bool = True
    was_stopped: bool = False
    """It was stopped from outside."""


class BackgroundCommands(Protocol):
    """The background commands of a session."""

    def refuse_more(self) -> None:
        """Say now that no more can be started, so that the user is not asked for nothing.

        Raises:
            FinalToolError: too many run.
        """
        ...

    async def start(self, command: ProcessCommand, title: str, runner: Runner) -> BackgroundOutput:
        """Start one, and look at it for a moment: one that fails at once has ended in what is
        returned, and is not known any more.

        A cancel leaves no process behind.

        Raises:
            ToolError: it could not be started.
        """
        ...

    def title_of(self, name: str) -> str | None:
        """The command line of one that runs; None for one that is over, or was never there."""
        ...

    async def look(self, name: str, wait_seconds: float) -> BackgroundOutput:
        """What one printed since the last look; waits so long for something new, or its end.

        Raises:
            FinalToolError: there is none of this name.
        """
        ...

    async def stop(self, name: str) -> BackgroundOutput:
        """End one, with all that it started, and look at it a last time.

        Raises:
            FinalToolError: there is none of this name.
        """
        ...


class ReadGuard(Protocol):
    """The rules that keep some files from being read, for tools that reach many at once."""

    @property
    def has_rules(self) -> bool:
        """False when every file may be read."""
        ...

    def forbids(self, path: str) -> str:
        """Why this file, named as the policy names it, may not be read; empty when it may be."""
        ...

    async def why_exposed(self, *, is_sandboxed: bool) -> str:
        """Why a command could read what may not be read; empty when all of it is hidden from
        it.
        """
        ...


class FormattedContent(msgspec.Struct, frozen=True, kw_only=True):
    """The new content of a file as formatters made it."""

    data: bytes
    note: str = ""
    """What the model should know; empty when nothing was changed."""


MAX_REMEMBERED = 10_000
"""How many files a `ReadLog` remembers."""


class ReadLog:
    """Which version of each file the model has seen; one a session, kept by the tools."""

    def __init__(self) -> None:
        self._seen: dict[str, BlobId] = {}

    def saw(self, path: str, digest: BlobId) -> None:
        """The model has seen (or itself written) this version."""
        # Popped first: a dict keeps the place of a key that is set again, and the order is what
        # tells the oldest.
        self._seen.pop(path, None)
        self._seen[path] = digest
        if (
            len(self._seen) > MAX_REMEMBERED
        ):  # the one seen longest ago has to be read again before it is edited
            del self._seen[next(iter(self._seen))]

    def seen(self, path: str) -> BlobId | None:
        """The version the model knows, None when it never read the file."""
        return self._seen.get(path)


class WebReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of a web server."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    is_cut: bool = False
    """There was more than may be fetched."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A page that a search service has found."""

    title: str
    url: str
    text: str = ""
    """Some of its words."""


class WebAccess(Protocol):
    """The way of a session's tools to the web."""

    async def get(self, url: str) -> WebReply:
        """The reply to one request; redirects are not followed.

        The address that is connected to is public, or one that a rule of the user names.

        Raises:
            ToolError: there is none, or the address may not be reached.
        """
        ...

    def kept(self, url: str) -> Any:
        """What was kept of a page a short time ago; None where nothing was."""
        ...

    def keep(self, url: str, page: Any, size: int) -> None:
        """Keep what a page came to, which takes so many bytes, for a short time."""
        ...

    @property
    def why_no_search(self) -> str:
        """Why nothing can be searched; empty where it can."""
        ...

    async def search(self, query: str, count: int) -> list[SearchHit]:
        """What the user's search service finds.

        Raises:
            ToolError: it gives no answer.
        """
        ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may use."""

    workspace: Workspace
    runner: Runner
    reads: ReadLog
    call_uid: CallUid
    emit: Callable[[str], None] = lambda chunk: None
    """Show output while the tool runs."""
    todos: tuple[Todo, ...] = ()
    node: NodeId | None = None
    """The answer that made the call."""
    background: Callable[[], BackgroundCommands] | None = None
    """The way to background commands; None where there can be none."""
    read_guard: ReadGuard | None = None
    """The rules about reading; None where there can be none."""
    reads_lines: bool = True
    """False when no word of a command could change whether it may run."""
    index: Callable[[], Awaitable[ProjectIndex]] | None = None
    """The index of the project, brought up to date; None where it is switched off."""
    code: Callable[[], Awaitable[CodeQueries]] | None = None
    """The way to language servers; None where there can be none."""
    format: Callable[[str, bytes], Awaitable[FormattedContent]] | None = None
    """Makes of a new content what the user's formatters make of it; None without any."""
    decisions: Callable[[], DecisionAccess] | None = None
    """The way to the project's decision graph; None where there is none."""
    masked: Callable[[str], Awaitable[str]] | None = None
    """A text without its secrets, for what is shown in another form than as text: a result's text
    is masked anyway.
    """
    ask: Callable[[UserQuestion], Awaitable[str | None]] | None = None
    """Puts a question to the user while the call runs; gives None where it is not answered.  None
    where there is nobody to ask.
    """
    web: Callable[[], WebAccess] | None = None
    """The way to the web; None where there is none."""
    watched: Callable[[Callable[[], Awaitable[ToolOutcome]]], Awaitable[ToolOutcome]] | None = None
    """Runs what may change files of the project by itself, and adds what it changed to its outcome;
    None where that is not found out.
    """


@runtime_checkable
class Tool(Protocol):
    """Something a model may call."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments: one object, no `$ref`."""
    effect: Effect
    """`pure` tools of one answer run together and may run again after a crash.

    All others run one at a time.
    """
    timeout_seconds: float

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        """Check the arguments and work out what would happen, without any effect.

        Raises:
            ToolError: with a sentence that tells the model what is wrong and what would be right.
        """
        ...


class ForwardingTool(Tool):
    """A tool that stands for others: a call of it is a call of the one that it names.

    Hooks, rules, requests and records see that one, with its own arguments.
    """

    async def forwarded(self, args: dict[str, Any]) -> tuple[Tool, dict[str, Any]]:
        """The tool that is meant, and its arguments.

        Raises:
            ToolError: none is meant.
        """
        raise NotImplementedError


class DelegateTool(Tool):
    """A tool whose work is done by a session of its own.

    Such calls, when they stand next to each other, run at the same time, each behind its intent.
    One that a crash cut short is not settled as interrupted: it is prepared again, and finds the
    session that works for it by the call's uid.
    """
