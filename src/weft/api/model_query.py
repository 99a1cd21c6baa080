"""One question to a model: no tools, no history, nothing kept.

`query` waits for the whole answer; `stream` hands it out as it comes.  Both ask again where that
can help (a broken connection, a rate limit) and, with a schema, have an answer that does not fit
repaired.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, Self, Unpack

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from weft.actors import Supervisor
from weft.api.options import QueryOptions, refuse_unknown
from weft.clock import SystemClock
from weft.context import estimate, estimate_text
from weft.errors import BadArguments, ProviderError, ProviderUnavailable, SchemaFailed, UsageError
from weft.loop import (
    AnswerBuilder,
    ModelAnswer,
    TurnLimits,
    wait_before_retry,
    with_retry_time,
)
from weft.messages import NOTHING_USED, ChatMessage, Content, Text, Thinking, Usage, as_parts
from weft.providers import (
    Model,
    ModelRequest,
    StopReason,
    StreamEvent,
    TextPiece,
    ThinkingLevel,
    ThinkingPiece,
)
from weft.tools import OutputSchema

REPAIRS: Final = 2
"""How often an answer that does not fit its schema may be made again."""
BUFFERED: Final = 256
"""Pieces of an answer that wait for a slow reader; then the model waits too."""

AS_JSON = "Answer with one JSON value that fits this JSON Schema, and with nothing else:\n"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str
    value: Any = None
    """With a schema: the checked value, of the type that was given."""
    model: str = ""
    """`provider:model`."""
    finish_reason: StopReason = "stop"
    """`stop`, `length` (cut off), `refusal`, `content_filter`, `safety`, `malformed_call` or
    `other`.
    """
    thinking: str = ""
    usage: Usage = NOTHING_USED
    """Of all calls together, repairs and attempts that broke off included.

    Estimated where the vendor did not say.
    """
    cost_usd: float | None = None
    """None: the price is not known."""
    duration_ms: int = 0
    repairs: int = 0
    """How often the answer had to be made again to fit the schema."""


class Delta(msgspec.Struct, frozen=True):
    """A piece of an answer on its way."""

    kind: Literal["text", "thinking", "restart"]
    """`restart`: what came before is void, for the answer is made again; `text` says why."""
    text: str


async def query(
    prompt: Content,
    *,
    model: str | Model,
    system: str | None = None,
    schema: Any = None,
    **options: Unpack[QueryOptions],
) -> Answer:
    """Ask a model once.  `schema` (a JSON Schema or a type) asks for a structured answer, which is
    then in `Answer.value`.

    `options` are max_output_tokens, temperature, thinking, stop and retries.  A cancel closes the
    connection; nothing is left behind.

    Raises:
        SchemaFailed: the answer does not fit, after two repairs.
        ProviderError: the model could not be made to answer.
        UsageError: the model's name, the schema or an option is wrong.
    """
    question = _question(prompt, system, schema, options)
    async with _resolved(model) as (found, effort):
        return await _Asking(found, question.at(effort), _silent).answer()


class CountedUsage:
    """What a question used so far, whatever becomes of it."""

    def __init__(self) -> None:
        self.usage = NOTHING_USED
        self.is_estimated = False

    def add(self, usage: Usage, *, estimated: bool) -> None:
        """One more attempt."""
        self.usage = self.usage + usage
        self.is_estimated = self.is_estimated or estimated


async def ask(text: str, *, model: Model, system: str, counted: CountedUsage) -> Answer:
    """`query` for those who keep a ledger: `counted` holds what was used also when it fails or is
    cancelled.
    """
    question = _question(text, system, None, {"thinking": "off"})  # as for a compaction
    return await _Asking(model, question, _silent, counted).answer()


async def answer_to(request: ModelRequest, *, model: Model, counted: CountedUsage) -> Answer:
    """The answer to a whole request; `counted` as in `ask`."""
    question = _Question(request=request, shape=None, limits=TurnLimits())
    return await _Asking(model, question, _silent, counted).answer()


def stream(
    prompt: Content,
    *,
    model: str | Model,
    system: str | None = None,
    schema: Any = None,
    **options: Unpack[QueryOptions],
) -> AnswerStream:
    """`query` as an async iterator of `Delta`s; when it has ended, `answer` holds the whole.
    Leaving the loop at any point is safe.

    Raises:
        UsageError: the schema or an option is wrong; all else is raised while iterating, as by
            `query`.
    """
    return AnswerStream(model, _question(prompt, system, schema, options))


# --- the question ------------------------------------------------------------------------


class _Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    max_output_tokens: int | None = None
    temperature: float | None = None
    thinking: ThinkingLevel | None = None
    stop: tuple[str, ...] = ()
    retries: int = TurnLimits().retries


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    request: ModelRequest
    shape: OutputSchema | None
    limits: TurnLimits
    has_effort: bool = False
    """The call itself says how hard to think."""

    def at(self, effort: ThinkingLevel | None) -> _Question:
        """The same question with the effort of the model's name, unless the call has its own."""
        if self.has_effort or effort is None:
            return self
        request = msgspec.structs.replace(self.request, thinking=effort)
        return msgspec.structs.replace(self, request=request)


def _question(prompt: Content, system: str | None, schema: Any, options: QueryOptions) -> _Question:
    parts = as_parts(prompt)
    if not parts:
        raise UsageError("there is nothing to ask: the prompt is empty")
    refuse_unknown(options, QueryOptions, "a query")
    try:
        given = msgspec.convert(options, _Options)
    except msgspec.ValidationError as error:
        raise UsageError(f"an option of the query is not right: {error}") from error
    shape = OutputSchema(schema) if schema is not None else None
    request = ModelRequest(
        model="",
        messages=(ChatMessage(role="user", parts=parts),),
        system=_system(system or "", shape),
        # Vendors' strict modes refuse objects with free keys; those are checked here alone.
        schema=shape.arguments if shape is not None and not shape.has_open_maps else None,
        max_output_tokens=given.max_output_tokens,
        temperature=given.temperature,
        thinking=given.thinking or "default",
        stop=given.stop,
    )
    return _Question(
        request=request,
        shape=shape,
        limits=TurnLimits(retries=given.retries),
        has_effort=given.thinking is not None,
    )


def _system(system: str, shape: OutputSchema | None) -> str:
    """The system prompt; it has the schema in words too, for models without structured output."""
    if shape is None:
        return system
    asked = AS_JSON + msgspec.json.encode(shape.arguments).decode()
    return f"{system}\n\n{asked}" if system else asked


@asynccontextmanager
async def _resolved(model: str | Model) -> AsyncIterator[tuple[Model, ThinkingLevel | None]]:
    """The model and the effort named with it; its provider is closed afterwards.

    A model object stays its owner's.
    """
    if not isinstance(model, str):
        yield model, None
        return
    from weft.config.models import environment_models  # the vendors' code, only where one is named

    models = environment_models()
    try:
        named = models.named(model)
        yield models.resolve(named.name), named.effort
    finally:
        # Also after a cancel: a connection can only be closed while the loop still runs.
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await models.aclose()


# --- asking ------------------------------------------------------------------------------


async def _silent(delta: Delta) -> None:
    """For a caller that wants only the whole answer."""


class _Asking:
    """One question on its way: retries, repairs, and the sum of what they use."""

    def __init__(
        self,
        model: Model,
        question: _Question,
        show: Callable[[Delta], Awaitable[None]],
        counted: CountedUsage | None = None,
    ) -> None:
        self._model = model
        self._request = msgspec.structs.replace(question.request, model=model.info.name)
        self._shape = question.shape
        self._limits = question.limits
        self._show = show
        self._clock = SystemClock()
        self._counted = counted or CountedUsage()

    async def answer(self) -> Answer:
        """The answer that fits."""
        started = self._clock.monotonic()
        for repairs in range(REPAIRS + 1):
            found = await self._ask()
            text = _text(found)
            try:
                value = self._shape.read(text) if self._shape is not None else None
            except BadArguments as problem:
                await self._have_repaired(text, problem, is_last=repairs == REPAIRS)
                continue
            return Answer(
                text=text,
                value=value,
                model=f"{self._model.info.provider}:{self._model.info.name}",
                finish_reason=found.stop or "other",
                thinking="".join(p.text for p in found.parts if isinstance(p, Thinking)),
                usage=self._counted.usage,
                cost_usd=self._counted.usage.cost_usd,
                duration_ms=int((self._clock.monotonic() - started) * 1000),
                repairs=repairs,
            )
        raise AssertionError("the last repair ends in an answer or an error")

    async def _have_repaired(self, text: str, problem: BadArguments, *, is_last: bool) -> None:
        if is_last:
            raise SchemaFailed(str(problem), text) from problem
        await self._show(Delta("restart", f"it does not fit the schema: {problem}"))
        asked = f"That does not fit: {problem}. Answer again with the whole JSON value, corrected."
        self._request = msgspec.structs.replace(
            self._request,
            messages=(
                *self._request.messages,
                ChatMessage(
                    # Vendors refuse a message without text.
                    role="assistant",
                    parts=(Text(text=text if text.strip() else "(nothing)"),),
                ),
                ChatMessage(role="user", parts=(Text(text=asked),)),
            ),
        )

    async def _ask(self) -> ModelAnswer:
        """One answer, asked for again as often as that can help."""
        retries, waited = 0, 0.0
        while True:
            builder = AnswerBuilder(self._model.info.provider, self._model.info.name)
            try:
                return await self._attempt(builder)
            except ProviderError as error:
                wait = wait_before_retry(error, retries=retries, waited=waited, limits=self._limits)
                if wait is None:
                    raise with_retry_time(error, self._clock.now()) from error
                # The reader has shown pieces of an answer that is now thrown away.
                if builder.text_length or builder.thinking_length:
                    await self._show(Delta("restart", str(error)))
            retries, waited = retries + 1, waited + wait
            await anyio.sleep(wait)

    async def _attempt(self, builder: AnswerBuilder) -> ModelAnswer:
        is_out = True
        try:
            async with self._model.stream(self._request) as events:
                async for event in events:
                    builder.add(event)
                    if (delta := _delta(event)) is not None:
                        await self._show(delta)
            is_out = False
        except ProviderError:
            is_out = False
            raise
        finally:
            self._count(builder, is_out=is_out)
        # A connection that is cut looks like the end of the stream; only the vendor's own last
        # event tells that the answer is whole.
        if builder.finished is None:
            raise ProviderUnavailable("the model's answer broke off before it was finished")
        return builder.answer(self._clock.now())

    def _count(self, builder: AnswerBuilder, *, is_out: bool) -> None:
        """Count what an attempt used, also one that broke off or was cancelled (`is_out`): the
        vendor bills it all the same.
        """
        # Refused before anything was generated (no key, overloaded): vendors do not bill that.
        if builder.finished is None and not builder.has_begun and not is_out:
            return
        usage = builder.usage
        if usage is None:
            sent = estimate(self._request.messages) + estimate_text(len(self._request.system))
            usage = Usage(input_tokens=sent, output_tokens=estimate_text(builder.text_length))
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=self._model.info.cost(usage))
        self._counted.add(usage, estimated=builder.usage is None)


def _delta(event: StreamEvent) -> Delta | None:
    match event:
        case TextPiece(text=text) if text:
            return Delta("text", text)
        case ThinkingPiece(text=text) if text:
            return Delta("thinking", text)
        case _:
            return None


def _text(answer: ModelAnswer) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Text))


# --- streaming ---------------------------------------------------------------------------


class _Outcome:
    """What a stream came to; shared by its two ends, so that neither keeps the other alive."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.error: Exception | None = None


class AnswerStream:
    """An answer on its way: an async iterator of `Delta`s.  An object, not a generator: leaving the
    loop at any point is safe.

    The question is asked when the first piece is wanted.  Dropping the stream, `aclose` or leaving
    `async with` closes the connection.
    """

    def __init__(self, model: str | Model, question: _Question) -> None:
        self._model = model
        self._question = question
        self._outcome = _Outcome()
        self._send, self._pieces = anyio.create_memory_object_stream[Delta](BUFFERED)
        self._supervisor: Supervisor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where the answer arrives, once it was asked for."""

    @property
    def answer(self) -> Answer:
        """The whole answer.

        Raises:
            UsageError: the stream has not come to its end.
        """
        if self._outcome.answer is None:
            raise UsageError("the answer is not complete: read the stream to its end first")
        return self._outcome.answer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        if self._supervisor is None:
            await self._start()
        try:
            return await self._pieces.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            await self.aclose()
            if self._outcome.error is not None:
                raise self._outcome.error from None
            raise StopAsyncIteration from None

    async def _start(self) -> None:
        self._supervisor = Supervisor()
        self._loop = asyncio.get_running_loop()
        await self._supervisor.open()
        # Not `self`: the task would keep the stream alive, and dropping it would never end the
        # task.
        model, question, send, outcome = self._model, self._question, self._send, self._outcome
        self._supervisor.start(lambda: _produce(model, question, send, outcome), "weft.stream")

    async def aclose(self) -> None:
        """Close the connection, if it is still open, and wait until it is."""
        self._pieces.close()
        self._send.close()
        if self._supervisor is not None:
            await self._supervisor.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5):
            await self.aclose()

    def __del__(self) -> None:
        # The collector calls this in whichever thread it happens to run: the loop's own things are
        # ended by the loop.  A loop that is closed has nothing left to end.
        pieces, send, supervisor = self._pieces, self._send, self._supervisor
        if self._loop is None or supervisor is None:
            _abandon(pieces, send)
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_abandon, pieces, send, supervisor)


def _abandon(
    pieces: MemoryObjectReceiveStream[Delta],
    send: MemoryObjectSendStream[Delta],
    supervisor: Supervisor | None = None,
) -> None:
    """Close a stream that has lost its reader; its task is cancelled, and ends by itself."""
    pieces.close()
    send.close()
    if supervisor is not None:
        supervisor.close_soon()


async def _produce(
    model: str | Model,
    question: _Question,
    send: anyio.abc.ObjectSendStream[Delta],
    outcome: _Outcome,
) -> None:
    """Ask, and hand out the pieces; a reader that has gone ends it."""
    async with send:
        try:
            async with _resolved(model) as (found, effort):
                outcome.answer = await _Asking(found, question.at(effort), send.send).answer()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        except Exception as error:
            # The reader of the stream gets it; here nothing could act on it.
            outcome.error = error
