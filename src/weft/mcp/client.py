"""MCP client: the handshake of three eras, lists, calls, and what a server may ask of us.

Servers of 2024-11-05 and 2025-11-25 are greeted by `initialize` and may then ask us questions of
their own.  Those of 2026-07-28 have no handshake: every request says who asks, and a server that
needs an answer ends the call with what it wants to know, for the call to be made again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import msgspec

from weft.errors import WeftError
from weft.jsonrpc import ErrorAnswer
from weft.mcp.connection import AnswerLost, McpConnection
from weft.mcp.elicitation import (
    DECLINED,
    AskProgram,
    AskUser,
    ElicitationAnswer,
    answer_elicitation,
)
from weft.mcp.param_headers import ArgumentPath, argument_headers, declared_headers
from weft.mcp.tool_pins import MOST_NAME, without_hidden
from weft.version import __version__

logger = logging.getLogger(__name__)

MODERN: Final = "2026-07-28"
HANDSHAKE: Final = "2025-11-25"
HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
UNSUPPORTED_VERSION: Final = -32022
MOST_PAGES: Final = 100
MOST_ROUNDS: Final = 8
"""How often one call may come back with questions."""
MOST_QUESTIONS: Final = 16
"""How often the user is asked in one call; all that come later are answered with a no."""
MOST_LISTED: Final = 5_000
MOST_LISTED_BYTES: Final = 16 * 1024 * 1024
"""Of all pages of a list together."""
PROGRESS_SECONDS: Final = 0.1
"""Between two lines of progress that are told."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds before a stream of changes is asked for again."""
_META: Final = "io.modelcontextprotocol/"
_OFFERED: Final[dict[str, Any]] = {"roots": {}, "elicitation": {"form": {}, "url": {}}}
_CLIENT: Final = {"name": "weft", "version": __version__}


class CallTimeout(WeftError):
    """A server took too long; the sentence says for what."""


class WrongAnswer(WeftError):
    """A server answered something that is none of MCP."""


class ServerGreeting(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself."""

    era: str
    title: str = ""
    instructions: str = ""
    has_tools: bool = True


class _ServerInfo(msgspec.Struct):
    name: str = ""
    version: str = ""


class _Initialized(msgspec.Struct):
    protocol_version: str = msgspec.field(default="", name="protocolVersion")
    capabilities: dict[str, Any] = {}
    server_info: _ServerInfo = msgspec.field(default_factory=_ServerInfo, name="serverInfo")
    instructions: str | None = None


class _Discovered(msgspec.Struct):
    versions: list[str] = msgspec.field(default_factory=list, name="supportedVersions")
    capabilities: dict[str, Any] = {}
    instructions: str | None = None
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="_meta")


class _ToolPage(msgspec.Struct):
    tools: list[Any]
    next: str | None = msgspec.field(default=None, name="nextCursor")


class _CallEnd(msgspec.Struct):
    kind: str = msgspec.field(default="complete", name="resultType")
    requests: dict[str, Any] | None = msgspec.field(default=None, name="inputRequests")
    state: str | None = msgspec.field(default=None, name="requestState")


class CallTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How one call is made."""

    idle_seconds: float
    """It may be silent for so long; progress counts as a word."""
    total_seconds: float
    """It may take so long in all, without the time that the user takes for answers."""
    ask: AskUser | None = None
    """The way to the user; None: nobody can be asked."""
    ask_program: AskProgram | None = None
    """The way to the program that drives us, where that is asked in the place of the user."""
    progress: Callable[[str], None] = lambda line: None


class _Deadline:
    """The limits of one call; a question to the user stops both clocks."""

    def __init__(self, terms: CallTerms, scope: anyio.CancelScope) -> None:
        self.terms = terms
        self._scope = scope
        self._ends = anyio.current_time() + terms.total_seconds
        self._paused_at: float | None = None
        self._told_at = -math.inf
        self.questions: set[anyio.CancelScope] = set()
        """Those that are put to the user; they end with the call."""
        self.asked = 0
        """How many there were."""
        self.one_at_a_time = anyio.Lock()
        self.heard()

    def may_ask(self) -> bool:
        """Count a question to the user; False where there were too many."""
        self.asked += 1
        return self.asked <= MOST_QUESTIONS

    def heard(self) -> None:
        """The server has said something."""
        if self._paused_at is None:
            idle = anyio.current_time() + self.terms.idle_seconds
            self._scope.deadline = min(idle, self._ends)

    @property
    def is_over(self) -> bool:
        """The whole time is over, and not only the patience with silence."""
        return anyio.current_time() >= self._ends

    def tell(self, line: str) -> None:
        """Tell of progress, unless something was told a moment ago."""
        now = anyio.current_time()
        if now - self._told_at >= PROGRESS_SECONDS:
            self._told_at = now
            self.terms.progress(line)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The time does not count meanwhile."""
        self._paused_at = anyio.current_time()
        self._scope.deadline = math.inf
        try:
            yield
        finally:
            self._ends += anyio.current_time() - self._paused_at
            self._paused_at = None
            self.heard()


class McpClient:
    """Speaks to one server over one connection."""

    def __init__(self, name: str, root: str, list_changed: Callable[[], None]) -> None:
        """`root` is the project; `list_changed` is called when the list of tools is another."""
        self._name = name
        self._root = root
        self._connection: McpConnection | None = None
        self._era = ""
        self._calls: dict[int, _Deadline] = {}
        """By the token of their progress."""
        self._last_token = 0
        self._mirrored: dict[str, dict[ArgumentPath, str]] = {}
        """By tool, the arguments that are repeated in headers."""
        self.refused: list[str] = []
        """Tools of the last list that this connection cannot carry, and why."""
        self._list_changed = list_changed
        self.handlers: dict[str, Callable[[msgspec.Raw], Any]] = {
            "ping": lambda params: {},
            "roots/list": lambda params: {"roots": [{"uri": f"file://{root}"}]},
            "elicitation/create": self._elicit,
            "notifications/progress": self._take_progress,
            "notifications/tools/list_changed": lambda params: list_changed(),
        }

    def use(self, connection: McpConnection) -> None:
        """Speak over this connection."""
        self._connection = connection

    @property
    def _line(self) -> McpConnection:
        assert self._connection is not None, "not connected"
        return self._connection

    # -- the handshake

    async def greet(self, known_era: str = "") -> ServerGreeting:
        """Find out what the server speaks, and what it says of itself; one whose era is known is
        not asked for it again.

        Raises:
            ErrorAnswer: it refuses.
            PeerClosed: it is gone.
            WrongAnswer: it is not understood.
        """
        if known_era not in HANDSHAKES:
            found = await self._discovered()
            if found is not None:
                return found
        return await self._initialized()

    async def _discovered(self) -> ServerGreeting | None:
        """None when it is no modern server: anything but a proof counts as that."""
        self._era = MODERN
        self._line.use_version(MODERN)
        for _ in range(2):
            try:
                raw = await self._line.request("server/discover", self._params({}))
                found = msgspec.json.decode(raw, type=_Discovered)
                break
            except ErrorAnswer as error:
                if not _offers_modern(error):
                    return None
            except msgspec.MsgspecError:
                return None
        else:
            return None
        if MODERN not in found.versions:
            return None
        info = found.meta.get(f"{_META}serverInfo")
        named = info if isinstance(info, dict) else {}
        return ServerGreeting(
            era=MODERN,
            title=f"{named.get('name', '')} {named.get('version', '')}".strip()[:200],
            instructions=found.instructions or "",
            has_tools="tools" in found.capabilities,
        )

    async def _initialized(self) -> ServerGreeting:
        self._era = HANDSHAKE
        self._line.use_version("")
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": _OFFERED if self._line.takes_requests else {},
            "clientInfo": _CLIENT,
        }
        raw = await self._line.request("initialize", params)
        found = _decoded(raw, _Initialized)
        if found.protocol_version not in HANDSHAKES:
            raise WrongAnswer(f"speaks version {found.protocol_version[:40]!r}, which is not known")
        self._era = found.protocol_version
        self._line.use_version(found.protocol_version)
        self._line.notify("notifications/initialized", {})
        info = found.server_info
        return ServerGreeting(
            era=found.protocol_version,
            title=f"{info.name} {info.version}".strip()[:200],
            instructions=found.instructions or "",
            # The first servers did not always say so.
            has_tools="tools" in found.capabilities or not found.capabilities,
        )

    def _params(self, params: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = dict(meta or {})
        if self._era == MODERN:
            meta |= {
                f"{_META}protocolVersion": MODERN,
                f"{_META}clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
                f"{_META}clientInfo": _CLIENT,
            }
        return {**params, "_meta": meta} if meta else params

    # -- lists

    async def list_tools(self) -> list[Any]:
        """All tools as the server describes them, as far as a bound on their number goes.

        Raises:
            ErrorAnswer: it refuses.
            PeerClosed: it is gone.
            WrongAnswer: it is not understood.
        """
        found: list[Any] = []
        seen: set[str] = set()
        cursor: str | None = None
        left = MOST_LISTED_BYTES
        for _ in range(MOST_PAGES):
            asked = {} if cursor is None else {"cursor": cursor}
            raw = await self._line.request("tools/list", self._params(asked))
            page = _decoded(raw, _ToolPage)
            found += page.tools
            cursor = page.next
            left -= len(bytes(raw))
            # One that hands out the same place again would be asked for ever.
            if not cursor or cursor in seen or len(found) > MOST_LISTED or left < 0:
                break
            seen.add(cursor)
        return self._carriable(found[:MOST_LISTED])

    def _carriable(self, listed: list[Any]) -> list[Any]:
        """The tools whose arguments can be sent as their schemas ask for."""
        self.refused, self._mirrored = [], {}
        if not self._line.mirrors_arguments or self._era != MODERN:
            return listed
        kept = []
        for raw in listed:
            schema = raw.get("inputSchema") if isinstance(raw, dict) else None
            try:
                declared = declared_headers(schema) if isinstance(schema, dict) else {}
            except ValueError as error:
                self.refused.append(f"{without_hidden(str(raw.get('name')))[:MOST_NAME]}: {error}")
                continue
            if declared:
                self._mirrored[str(raw.get("name"))] = declared
            kept.append(raw)
        return kept

    async def listen(self) -> None:
        """Ask a modern server to tell of changes; returns where it does not, or when it stops."""
        if self._era != MODERN:
            return
        wanted = self._params({"notifications": {"toolsListChanged": True}})
        pause = FIRST_PAUSE
        while True:
            begun = anyio.current_time()
            try:
                await self._line.request("subscriptions/listen", wanted)
                return
            except ErrorAnswer:
                return
            except AnswerLost:
                # Machines on the way cut what is silent for long.
                is_young = anyio.current_time() - begun < LONGEST_PAUSE
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE) if is_young else FIRST_PAUSE
            # What changed meanwhile was told to nobody.
            self._list_changed()

    # -- calls

    async def call_tool(self, name: str, args: dict[str, Any], terms: CallTerms) -> msgspec.Raw:
        """The result of a call, as it came.

        Raises:
            ErrorAnswer: it is an error.
            PeerClosed: the server is gone.
            CallTimeout: it took too long; the server was told.
            WrongAnswer: it is not understood.
        """
        self._last_token += 1
        token = self._last_token
        with anyio.CancelScope() as scope:
            deadline = self._calls[token] = _Deadline(terms, scope)
            try:
                return await self._answered({"name": name, "arguments": args}, token, deadline)
            finally:
                del self._calls[token]
                for question in tuple(deadline.questions):
                    question.cancel()
        if deadline.is_over:
            raise CallTimeout(f"it took longer than {terms.total_seconds:g} seconds")
        raise CallTimeout(f"it said nothing for {terms.idle_seconds:g} seconds")

    async def _answered(
        self, params: dict[str, Any], token: int, deadline: _Deadline
    ) -> msgspec.Raw:
        more: dict[str, Any] = {}
        for _ in range(MOST_ROUNDS):
            asked = self._params({**params, **more}, {"progressToken": token})
            headers = argument_headers(self._mirrored.get(params["name"], {}), params["arguments"])
            raw = await self._line.request("tools/call", asked, headers)
            end = _decoded(raw, _CallEnd)
            if end.kind != "input_required":
                return raw
            with deadline.paused():
                answers = await self._answers(end.requests or {}, deadline)
            more = {"inputResponses": answers}
            if end.state is not None:
                more["requestState"] = end.state
        raise WrongAnswer(f"asked for input more than {MOST_ROUNDS} times")

    async def _answers(self, requests: dict[str, Any], deadline: _Deadline) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for key, request in requests.items():
            asked = request if isinstance(request, dict) else {}
            if asked.get("method") == "roots/list":
                answers[key] = {"roots": [{"uri": f"file://{self._root}"}]}
            elif asked.get("method") == "elicitation/create":
                answer = DECLINED
                if deadline.may_ask():
                    answer = await self._answer(asked.get("params"), deadline.terms)
                answers[key] = msgspec.to_builtins(answer)
            else:
                raise WrongAnswer(f"asks for {str(asked.get('method'))[:80]!r}, which is not known")
        return answers

    async def _answer(self, params: Any, terms: CallTerms) -> ElicitationAnswer:
        return await answer_elicitation(params, self._name, terms.ask, terms.ask_program)

    # -- what the server asks and tells

    async def _elicit(self, raw: msgspec.Raw) -> Any:
        # It does not say for which call it asks.  Where several run, none of their users can be
        # told from the others, so nobody is asked.
        if len(self._calls) != 1:
            return {"action": "decline"}
        deadline = next(iter(self._calls.values()))
        if not deadline.may_ask():
            return {"action": "decline"}
        answer: ElicitationAnswer | None = None
        with anyio.CancelScope() as scope:
            deadline.questions.add(scope)
            try:
                params = msgspec.json.decode(raw)
                async with deadline.one_at_a_time:
                    with deadline.paused():
                        answer = await self._answer(params, deadline.terms)
            finally:
                deadline.questions.discard(scope)
        return {"action": "cancel"} if answer is None else msgspec.to_builtins(answer)

    def _take_progress(self, raw: msgspec.Raw) -> None:
        told = msgspec.json.decode(raw, type=_Progress)
        deadline = self._calls.get(told.token) if isinstance(told.token, int) else None
        if deadline is None:
            return
        deadline.heard()
        deadline.tell(told.line)


class _Progress(msgspec.Struct):
    token: int | str = msgspec.field(default=0, name="progressToken")
    progress: float = 0.0
    total: float | None = None
    message: str | None = None

    @property
    def line(self) -> str:
        of = f"/{self.total:g}" if self.total else ""
        said = " ".join(without_hidden((self.message or "")[:500]).split())
        return f"{self.progress:g}{of} {said}".strip()


def _offers_modern(error: ErrorAnswer) -> bool:
    """Whether a server refused our version and names it among its own: then it is asked again."""
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    return error.code == UNSUPPORTED_VERSION and isinstance(supported, list) and MODERN in supported


def _decoded(raw: msgspec.Raw, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WrongAnswer(f"is not understood: {error}") from error
