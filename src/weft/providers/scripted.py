"""A model that plays a script: for tests, demos and proofs.

It is a product and held to the same contract as the vendors' adapters.  Which answer a request gets
is decided in this order: the first answer whose `when` fits; else, of the answers without one, the
next (`by="position"`) or the one whose number is the count of assistant messages in the request
(`by="content"`).  The latter needs no memory, so a new process goes on at the right answer after a
crash.

A stall can be watched and ended: `await model.gate("name").reached.wait()`,
`model.gate("name").opened.set()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from operator import attrgetter
from pathlib import Path
from typing import Final, assert_never

import anyio
import anyio.lowlevel
import msgspec

from weft import errors
from weft.errors import ProviderError, ProviderUnavailable, RequestRefused, UsageError
from weft.messages import Text, Usage
from weft.providers.base import (
    CallArgs,
    CallResults,
    CallStarted,
    ChatMessage,
    Model,
    ModelInfo,
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.script import (
    Break,
    CallRaw,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    FaultBase,
    Finish,
    Garbage,
    Pause,
    SayText,
    Script,
    ScriptedAnswer,
    Spend,
    Stall,
    Step,
    Think,
    When,
    Written,
    as_answer,
    parse_script,
)

KEEP_REQUESTS = 1_000
"""How many of the newest requests a model remembers."""

CATCH_UP_SECONDS: Final = 0.25
"""How much of a delay a paced script makes good; what is older is left behind."""
_PAUSE_EVERY = 16
"""Events between two turns of the event loop, so that a long script can be cancelled and starves no
other task.
"""

Chooser = Callable[[ModelRequest], "ScriptedAnswer | Sequence[Step] | Step | str | None"]
"""Picks the answer to a request in Python; None leaves it to the script."""


class StreamLatch:
    """A place in a script where a stream waits.

    `reached` is set by the first stream that comes to it.
    """

    def __init__(self, opened: anyio.Event | None = None) -> None:
        self.reached = anyio.Event()
        self.opened = anyio.Event() if opened is None else opened


class ScriptedModel(Model):
    """A model that answers from a script.

    `requests` holds the newest requests it got, oldest first.
    """

    def __init__(
        self,
        script: Script | Sequence[Written | Step | Sequence[Step]],
        *,
        choose: Chooser | None = None,
        gates: Mapping[str, anyio.Event] | None = None,
        info: ModelInfo | None = None,
        keep_requests: int = KEEP_REQUESTS,
    ) -> None:
        if not isinstance(script, Script):
            script = Script(answers=tuple(as_answer(written) for written in script))
        answers = [as_answer(written) for written in script.answers]
        self._script = script
        self._matched = [answer for answer in answers if answer.when is not None]
        self._listed = [answer for answer in answers if answer.when is None]
        self._choose = choose
        self._gates = {name: StreamLatch(event) for name, event in (gates or {}).items()}
        self._keep = keep_requests
        self._next = 0
        self._faults: Counter[tuple[int, int]] = Counter()
        self.info = info or script.info or _INFO
        self.requests: list[ModelRequest] = []
        self.request_count = 0

    @property
    def last_request(self) -> ModelRequest:
        """The newest request."""
        return self.requests[-1]

    def gate(self, name: str = "") -> StreamLatch:
        """The gate of this name; a `stall` without a name waits at the one called ""."""
        return self._gates.setdefault(name, StreamLatch())

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Play the answer to `request`."""
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        # As a vendor does: a caller that counts on not being suspended here would fail only in use.
        await anyio.lowlevel.checkpoint()
        self._remember(request)
        answer = self._answer_to(request)
        if answer.steps and isinstance(answer.steps[0], Fail) and self._fails_now(answer, 0):
            raise _error(answer.steps[0])
        player = _Player(self, answer, request)
        async with aclosing(player.events()) as events:
            yield events

    def _remember(self, request: ModelRequest) -> None:
        self.request_count += 1
        self.requests.append(request)
        if len(self.requests) > self._keep:
            del self.requests[0]

    def _answer_to(self, request: ModelRequest) -> ScriptedAnswer:
        chosen = self._choose(request) if self._choose else None
        if chosen is not None:
            return as_answer(chosen)
        for answer in self._matched:
            if answer.when is not None and fits(answer.when, request):
                return answer
        if self._script.by == "content":
            # From the request alone: a process that was killed between two requests needs no count.
            number = assistant_turns(request)
        else:
            number = self._next
            self._next += 1
        if self._script.loop and self._listed:
            number %= len(self._listed)
        if number >= len(self._listed):
            raise RequestRefused(
                f"the script has {len(self._listed)} answers and this request asks for "
                f"number {number + 1}; "
                'add answers, or set "loop"'
            )
        return self._listed[number]

    def _fails_now(self, answer: ScriptedAnswer, place: int) -> bool:
        """Whether the fault at this place of the answer is to be played this time.

        Counts the play.
        """
        step = answer.steps[place]
        if not isinstance(step, FaultBase) or step.times == 0:
            return True
        if not any(answer is known for known in (*self._matched, *self._listed)):
            return True  # made by `choose`, which decides for itself how often it fails
        # The answers live as long as the model, so their ids are not given to others.
        key = (id(answer), place)
        self._faults[key] += 1
        return self._faults[key] <= step.times


class _Player:
    """Plays one answer once."""

    def __init__(self, model: ScriptedModel, answer: ScriptedAnswer, request: ModelRequest) -> None:
        self._model = model
        self._answer = answer
        self._request = request
        self._pace = model._script.pace_seconds
        self._calls = 0
        self._written = 0
        self._spent = False
        self._since_pause = 0
        self._due = 0.0
        """When the last piece was to come; 0 before the first."""

    async def events(self) -> AsyncGenerator[StreamEvent]:
        first_was_passed = bool(self._answer.steps) and isinstance(self._answer.steps[0], Fail)
        for place, step in enumerate(self._answer.steps):
            if isinstance(step, FaultBase):
                # The first step's error was already decided on when the stream was opened.
                passed = first_was_passed and place == 0
                if passed or not self._model._fails_now(self._answer, place):
                    continue
                if isinstance(step, EndEarly):
                    return
            if isinstance(step, Finish):
                break
            async for event in self._step(step):
                yield event
        if not self._spent:
            yield UsageSeen(Usage(input_tokens=100, output_tokens=1 + self._written // 4))
        yield self._end()

    def _end(self) -> StreamFinished:
        for step in self._answer.steps:
            if isinstance(step, Finish):
                return StreamFinished(reason=step.reason, detail=step.detail)
        return StreamFinished(reason="tool_calls" if self._calls else "stop")

    async def _step(self, step: Step) -> AsyncGenerator[StreamEvent]:
        match step:
            case SayText() if step.tokens and self._request.logprobs is not None:
                for scored in _scored(step):
                    await self._pause_if_due(scored.text)
                    yield scored
            case SayText():
                for piece in _pieces(step.text, step.chunk):
                    await self._pause_if_due(piece)
                    yield TextPiece(piece)
            case Think():
                for piece in _pieces(step.text, step.chunk):
                    await self._pause_if_due(piece)
                    yield ThinkingPiece(piece)
                yield ThinkingDone(signature=step.signature, redacted=step.redacted)
            case CallTool() | CallRaw():
                async for event in self._call((step,)):
                    yield event
            case CallTogether():
                async for event in self._call(step.calls):
                    yield event
            case Spend():
                self._spent = True
                yield UsageSeen(step.usage)
            case Garbage():
                for event in self._garbage(step):
                    yield event
            case Pause() | Stall() | Break() | Fail():
                await self._fault(step)
            case EndEarly() | Finish():
                pass
            case _:
                assert_never(step)

    async def _fault(self, step: Pause | Stall | Break | Fail) -> None:
        match step:
            case Pause():
                await anyio.sleep(step.seconds)
            case Stall():
                gate = self._model.gate(step.gate)
                gate.reached.set()
                await gate.opened.wait()
            case Break():
                raise ProviderUnavailable(step.message)
            case Fail():
                raise _error(step)
            case _:
                assert_never(step)

    async def _call(self, calls: Sequence[CallTool | CallRaw]) -> AsyncGenerator[StreamEvent]:
        waiting: list[tuple[int, list[str]]] = []
        for call in calls:
            raw = isinstance(call, CallRaw)
            signature = "" if isinstance(call, CallRaw) else call.signature
            yield self._begin(call.name, call.id, signature)
            text = call.args_text if isinstance(call, CallRaw) else _json(call.args)
            pieces = list(_pieces(text, call.chunk)) if text or raw else []
            waiting.append((self._calls - 1, pieces))
        # Round by round, as vendors interleave parallel calls.
        while waiting:
            for index, pieces in waiting:
                if pieces:
                    await self._pause_if_due(pieces[0])
                    yield CallArgs(index, pieces.pop(0))
            waiting = [left for left in waiting if left[1]]

    def _begin(self, name: str, given_id: str, signature: str = "") -> CallStarted:
        index = self._calls
        self._calls += 1
        # The number of the answer makes the id another one in each: vendors repeat none.
        provider_id = given_id or f"call_{assistant_turns(self._request)}_{index}"
        return CallStarted(index=index, name=name, provider_id=provider_id, signature=signature)

    def _garbage(self, step: Garbage) -> list[StreamEvent]:
        match step.kind:
            case "control_text":
                return [TextPiece("\x00\x1b[2J\x1b]0;owned\x07\u202e\ufffd\ufeff\x7f")]
            case "orphan_args":
                return [CallArgs(self._calls + 7, '{"a":1}')]
            case "same_id":
                pair = [self._begin("read", "same"), self._begin("read", "same")]
                return [*pair, CallArgs(self._calls - 2, "{}"), CallArgs(self._calls - 1, "{}")]
            case "unknown_tool":
                return [self._begin("no_such_tool", ""), CallArgs(self._calls - 1, "{}")]
            case "deep_args":
                # Deeper than Python's recursion limit: what decodes it must refuse, not crash.
                deep = '{"a":' * 5_000 + "1" + "}" * 5_000
                return [self._begin("read", ""), CallArgs(self._calls - 1, deep)]
            case "not_an_object":
                return [self._begin("read", ""), CallArgs(self._calls - 1, "[1, 2]")]
            case "empty":
                return [TextPiece("")]
            case _:
                assert_never(step.kind)

    async def _pause_if_due(self, piece: str) -> None:
        self._written += len(piece)
        self._since_pause += 1
        if self._pace:
            now = anyio.current_time()
            # By the clock, as tokens come from a vendor: what a busy machine takes to hand a piece
            # on is no part of the wait for the next one.
            self._due = max((self._due or now) + self._pace, now - CATCH_UP_SECONDS)
            await anyio.sleep(max(0.0, self._due - now))
        elif self._since_pause >= _PAUSE_EVERY:
            self._since_pause = 0
            await anyio.lowlevel.checkpoint()


class ScriptedProvider(Provider):
    """Scripts by name, or by the path of a JSON file: `scripted:/path/script.json`."""

    name = "scripted"

    def __init__(self, models: Mapping[str, ScriptedModel] | None = None) -> None:
        self._models = dict(models or {})

    def model(self, name: str) -> ScriptedModel:
        """The model of this name, or the one that plays the file at this path; a file is read once.

        Raises:
            UsageError: there is neither, or the file is no script.
        """
        if name not in self._models:
            self._models[name] = load_scripted(Path(name))
        return self._models[name]

    async def models(self) -> list[ModelInfo]:
        return [model.info for model in self._models.values()]

    async def aclose(self) -> None:
        self._models.clear()


def load_scripted(path: Path) -> ScriptedModel:
    """A model that plays the script in the file at `path`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the script {str(path)!r}: {error.strerror}") from error
    script = parse_script(text, name=str(path))
    info = script.info or msgspec.structs.replace(_INFO, name=str(path))
    return ScriptedModel(script, info=info)


def fits(when: When, request: ModelRequest) -> bool:
    """Whether every condition that `when` names holds for the request."""
    messages = request.messages
    if when.user_says is not None and when.user_says not in _newest_user_text(request):
        return False
    if when.system_says is not None and when.system_says not in request.system:
        return False
    if when.turns is not None and when.turns != assistant_turns(request):
        return False
    if when.results is not None:
        count = sum(len(m.results) for m in messages if isinstance(m, CallResults))
        if count != when.results:
            return False
    start = 0
    if when.since is not None:
        said = [i for i, m in enumerate(messages) if when.since in _user_text(m)]
        if not said:
            return False
        start = said[-1]
    rounds = sum(isinstance(message, CallResults) for message in messages[start:])
    return when.rounds is None or when.rounds == rounds


_ROLE: Final = attrgetter("role")


def assistant_turns(request: ModelRequest) -> int:
    """How many messages of the model are in the request."""
    # Without a step of Python for each message: there are thousands in a long turn.
    return list(map(_ROLE, request.messages)).count("assistant")


def _user_text(message: ChatMessage | CallResults) -> str:
    if not isinstance(message, ChatMessage) or message.role != "user":
        return ""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def _newest_user_text(request: ModelRequest) -> str:
    if request.prompt is not None:
        return request.prompt
    for message in reversed(request.messages):
        if isinstance(message, ChatMessage) and message.role == "user":
            # What Weft says of the environment stands behind what the user said.
            if (text := _user_text(message)).startswith("<environment>"):
                continue
            return text
    return ""


def _scored(step: SayText) -> list[TextPiece]:
    from weft.providers.logprobs import ScoredPiece, TokenLogprob  # only the loom asks for them

    return [ScoredPiece(token[0], (TokenLogprob(*token),)) for token in step.tokens]


def _pieces(text: str, chunk: int) -> list[str]:
    if chunk <= 0:
        return [text] if text else []
    return [text[at : at + chunk] for at in range(0, len(text), chunk)]


def _json(args: object) -> str:
    return msgspec.json.encode(args).decode()


def _error(step: Fail) -> ProviderError:
    kind: type[ProviderError] = getattr(errors, step.error)
    return kind(step.message, status=step.status, retry_after_seconds=step.retry_after_seconds)


_INFO = ModelInfo(
    provider="scripted",
    name="script",
    context_window=200_000,
    max_output_tokens=16_384,
    price_input=3.0,
    price_output=15.0,
    price_cache_read=0.3,
    price_cache_write=3.75,
    thinks=True,
    sees_images=True,
)
