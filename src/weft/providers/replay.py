"""Recorded model streams: written to a file, and replayed from it.

`RecordingModel` wraps any model and appends one line for each stream: the request, its fingerprint,
and the events with the milliseconds since the request.  `ReplayModel` answers from such a file
without any network.

The fingerprint ignores what differs from run to run without meaning: session ids, our own call ids
(they are numbered in order of appearance), the provider that made a part.  The same request
recorded several times is played in the order of recording; past the last one, the last is played
again.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel
import msgspec

from weft import errors
from weft.clock import Clock, SystemClock
from weft.errors import ProviderError, ProviderUnavailable, RequestRefused, UsageError
from weft.file_io import write_all
from weft.providers.base import (
    EncodingModel,
    Model,
    ModelInfo,
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinished,
)
from weft.providers.logprobs import ScoredPiece
from weft.sha256 import sha256


class RecordedFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error that ended a recorded stream."""

    error: str
    message: str
    status: int | None = None
    retry_after_seconds: float | None = None

    def as_error(self) -> ProviderError:
        """The error again."""
        kind = getattr(errors, self.error, ProviderError)
        if not (isinstance(kind, type) and issubclass(kind, ProviderError)):
            kind = ProviderError
        return kind(self.message, status=self.status, retry_after_seconds=self.retry_after_seconds)


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the file: one request and what came back."""

    fingerprint: str
    request: ModelRequest
    events: tuple[tuple[int, StreamEvent | ScoredPiece], ...]
    """Milliseconds since the request was sent, and what came then."""
    info: ModelInfo | None = None
    failure: RecordedFailure | None = None
    cut: bool = False
    """The reader left before the end, so there may have been more."""


# --- recording -------------------------------------------------------------------------


class RecordingModel(EncodingModel):
    """Passes everything through to `model`, and keeps it in the file at `path` (made with mode
    0600).
    """

    def __init__(self, model: Model, path: Path, *, clock: Clock | None = None) -> None:
        self._model = model
        self._path = path
        self._clock = clock or SystemClock()
        self.info = model.info

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Stream from the wrapped model; the line is written when the stream is left."""
        return self._open(request)

    def body(self, request: ModelRequest, form: Mapping[str, Any]) -> bytes | None:
        model = self._model
        return model.body(request, form) if isinstance(model, EncodingModel) else None

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        take = _Take(request, self._clock)
        try:
            async with (
                self._model.stream(request) as inner,
                aclosing(take.pass_through(inner)) as events,
            ):
                yield events
        except ProviderError as error:
            take.failed(error)
            raise
        finally:
            # In `finally`: a stream that was cancelled is recorded, too, as cut.
            _append(self._path, take.recording(self.info))


class _Take:
    """One recording in the making."""

    def __init__(self, request: ModelRequest, clock: Clock) -> None:
        # The scratch holds live objects of the running process, no data.
        self._request = msgspec.structs.replace(request, scratch={})
        self._clock = clock
        self._began = clock.monotonic()
        self._events: list[tuple[int, StreamEvent]] = []
        self._failure: RecordedFailure | None = None
        self._ended = False

    async def pass_through(self, inner: AsyncIterator[StreamEvent]) -> AsyncGenerator[StreamEvent]:
        async for event in inner:
            self._events.append((int((self._clock.monotonic() - self._began) * 1000), event))
            yield event
        self._ended = True

    def failed(self, error: ProviderError) -> None:
        self._failure = RecordedFailure(
            error=type(error).__name__,
            message=str(error),
            status=error.status,
            retry_after_seconds=error.retry_after_seconds,
        )

    def recording(self, info: ModelInfo) -> RecordedCall:
        finished = bool(self._events) and isinstance(self._events[-1][1], StreamFinished)
        return RecordedCall(
            fingerprint=fingerprint(self._request),
            request=self._request,
            events=tuple(self._events),
            info=info,
            failure=self._failure,
            cut=not (self._ended or finished or self._failure),
        )


def _append(path: Path, recording: RecordedCall) -> None:
    line = msgspec.json.encode(recording) + b"\n"
    # One write with O_APPEND keeps the lines of several processes apart. For the owner alone: a
    # request holds the whole conversation.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        write_all(handle, line)
    finally:
        os.close(handle)


# --- replaying -------------------------------------------------------------------------


class ReplayModel(Model):
    """Answers from recordings.

    `match="request"` wants each request to be on record; `match="order"` plays the recordings one
    after the other, whatever is asked.  `speed` 1 keeps the recorded timing, 2 halves the waits; 0
    does not wait at all.
    """

    def __init__(
        self,
        recordings: list[RecordedCall],
        *,
        name: str = "recording",
        match: Literal["request", "order"] = "request",
        speed: float = 0.0,
    ) -> None:
        if not recordings:
            raise UsageError(f"{name} holds no recording")
        self._recordings = recordings
        self._name = name
        self._match = match
        self._speed = speed
        self._played: dict[str, int] = {}
        known = recordings[0].info or ModelInfo(provider="replay", name=name)
        self.info = msgspec.structs.replace(known, provider="replay", name=name)

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Play what is on record for `request`.

        Raises:
            RequestRefused: the request is not on record; the message says what differs from the
                nearest one.
        """
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        await anyio.lowlevel.checkpoint()
        recording = self._recording_for(request)
        # A refusal before the first event is raised where the stream is opened, as with HTTP.
        if recording.failure and not recording.events:
            raise recording.failure.as_error()
        async with aclosing(self._play(recording)) as events:
            yield events

    async def _play(self, recording: RecordedCall) -> AsyncGenerator[StreamEvent]:
        at = 0
        for milliseconds, event in recording.events:
            if self._speed and milliseconds > at:
                await anyio.sleep((milliseconds - at) / 1000 / self._speed)
                at = milliseconds
            else:
                await anyio.lowlevel.checkpoint()
            yield event
        if recording.failure:
            raise recording.failure.as_error()
        if recording.cut:
            raise ProviderUnavailable(f"{self._name} was cut off here when it was recorded")

    def _recording_for(self, request: ModelRequest) -> RecordedCall:
        mark = fingerprint(request) if self._match == "request" else ""
        fitting = [r for r in self._recordings if not mark or r.fingerprint == mark]
        if not fitting:
            raise RequestRefused(
                f"{self._name} has no answer for this request: {self._what_differs(request)}"
            )
        # In order of recording, so that a request that failed and was repeated fails once here,
        # too.
        count = self._played.get(mark, 0)
        self._played[mark] = count + 1
        if self._match == "order" and count >= len(fitting):
            raise RequestRefused(
                f"{self._name} holds {len(fitting)} recordings, and this is request {count + 1}"
            )
        return fitting[min(count, len(fitting) - 1)]

    def _what_differs(self, request: ModelRequest) -> str:
        asked = comparable(request)
        nearest: list[str] | None = None
        for recording in self._recordings:
            found = _differences(comparable(recording.request), asked)
            if nearest is None or len(found) < len(nearest):
                nearest = found
        shown = (nearest or [])[:3]
        more = len(nearest or []) - len(shown)
        return "; ".join(shown) + (f"; and {more} more differences" if more else "")


class ReplayProvider(Provider):
    """Recordings by the path of their file: `replay:/path/rec.jsonl`."""

    name = "replay"

    def __init__(self, *, speed: float = 0.0) -> None:
        self._speed = speed
        self._models: dict[str, ReplayModel] = {}

    def model(self, name: str) -> ReplayModel:
        """The model that plays the file at this path; a file is read once.

        Raises:
            UsageError: the file cannot be read, or holds no recordings.
        """
        if name not in self._models:
            recordings = read_recordings(Path(name))
            self._models[name] = ReplayModel(recordings, name=name, speed=self._speed)
        return self._models[name]

    async def models(self) -> list[ModelInfo]:
        return [model.info for model in self._models.values()]

    async def aclose(self) -> None:
        self._models.clear()


def read_recordings(path: Path) -> list[RecordedCall]:
    """Every recording in the file at `path`; a torn last line is left out.

    Raises:
        UsageError: the file cannot be read, or a line is no recording.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read the recording {str(path)!r}: {error.strerror}") from error
    lines.pop()  # empty after the last line end; what else stands here was torn
    recordings = []
    for number, line in enumerate(lines, start=1):
        try:
            recordings.append(msgspec.json.decode(line, type=RecordedCall))
        except msgspec.DecodeError as error:
            raise UsageError(f"{path} line {number} is not a recording: {error}") from error
    return recordings


# --- comparing requests ----------------------------------------------------------------


def fingerprint(request: ModelRequest) -> str:
    """A hash that is the same for requests that mean the same."""
    text = msgspec.json.encode(comparable(request), order="deterministic")
    return sha256(text).hexdigest()


def comparable(request: ModelRequest) -> dict[str, Any]:
    """The request as plain data, without what differs from run to run."""
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(request, scratch={}))
    del plain["session_id"], plain["scratch"]
    if plain["thinking"] == "default":
        plain["thinking"] = "off"  # as files have it that were recorded before there was a default
    # Left out where they ask for nothing: files that were recorded before them still fit.
    for field in ("prompt", "suffix", "prefill", "seed", "logprobs"):
        if plain[field] is None or plain[field] is False or plain[field] == "":
            del plain[field]
    numbers: dict[str, str] = {}
    for message in plain["messages"]:
        for part in (*message.get("parts", ()), *message.get("results", ())):
            if "call_uid" in part:
                uid = part["call_uid"]
                part["call_uid"] = numbers.setdefault(uid, f"call {len(numbers) + 1}")
            for field in ("provider", "provider_id", "model"):
                part.pop(field, None)
    return plain


def _differences(recorded: object, asked: object, place: str = "") -> list[str]:
    """Where two plain values differ, deepest places first found, in reading order."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        found = []
        for key in sorted({*recorded, *asked}):
            below = f"{place}.{key}" if place else str(key)
            found += _differences(recorded.get(key), asked.get(key), below)
        return found
    if isinstance(recorded, list | tuple) and isinstance(asked, list | tuple):
        found = []
        if len(recorded) != len(asked):
            found.append(f"{place}: {len(recorded)} on record, {len(asked)} asked")
        for index, (left, right) in enumerate(zip(recorded, asked, strict=False)):
            found += _differences(left, right, f"{place}[{index}]")
        return found
    if recorded == asked:
        return []
    return [f"{place}: {_short(recorded)} on record, {_short(asked)} asked"]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}"
