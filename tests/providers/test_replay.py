"""Recording a model's streams and playing them again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from weft.clock import ManualClock
from weft.errors import ProviderUnavailable, RateLimited, RequestRefused, UsageError
from weft.ids import CallUid
from weft.messages import Text, ToolCall
from weft.providers.base import (
    CallResult,
    CallResults,
    ChatMessage,
    Model,
    ModelRequest,
    StreamEvent,
    TextPiece,
)
from weft.providers.replay import (
    RecordingModel,
    ReplayModel,
    ReplayProvider,
    fingerprint,
    read_recordings,
)
from weft.providers.script import Break, CallTool, Fail, SayText, Script, Think
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def asked(text: str, *, uid: str = "cal_1", session: str = "s") -> ModelRequest:
    call = ToolCall(call_uid=CallUid(uid), name="read", provider_id="x", provider="scripted")
    result = CallResult(call_uid=uid, provider_id="x", tool_name="read", text="ok")
    messages = (
        ChatMessage(role="user", parts=(Text(text=text),)),
        ChatMessage(role="assistant", parts=(call,)),
        CallResults(results=(result,)),
    )
    return ModelRequest(model="m", messages=messages, session_id=session)


async def play(model: Model, request: ModelRequest) -> list[StreamEvent]:
    async with model.stream(request) as events:
        return [event async for event in events]


async def test_a_replay_streams_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "rec.jsonl"
    model = ScriptedModel(
        [[Think(text="t", signature="s"), SayText(text="a" * 9, chunk=2), CallTool(name="read")]]
    )
    recorder = RecordingModel(model, path, clock=ManualClock())
    lived = await play(recorder, asked("go"))
    replay = ReplayProvider().model(str(path))
    assert await play(replay, asked("go")) == lived
    assert replay.info.context_window == model.info.context_window
    assert path.stat().st_mode & 0o777 == 0o600


async def test_ids_that_differ_from_run_to_run_do_not_matter(tmp_path: Path) -> None:
    one = asked("go", uid="cal_1", session="a")
    two = asked("go", uid="cal_2", session="b")
    assert fingerprint(one) == fingerprint(two)
    assert fingerprint(one) != fingerprint(asked("stop"))


async def test_a_recording_from_before_there_was_a_default_of_thinking_still_plays() -> None:
    """What was not told how hard to think was recorded as `off` then."""
    then = msgspec.structs.replace(asked("go"), thinking="off")
    known = "429826d638c64977060980cab95d53178ada15afcf3414b7e4975e2da6928d3b"
    assert fingerprint(then) == known
    assert fingerprint(asked("go")) == known
    assert fingerprint(msgspec.structs.replace(then, thinking="low")) != known


async def test_an_unknown_request_is_refused_with_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "rec.jsonl"
    await play(RecordingModel(ScriptedModel(["a"]), path), asked("go"))
    replay = ReplayModel(read_recordings(path))
    with pytest.raises(RequestRefused, match=r"messages\[0\].parts\[0\].text: 'go' on record, 'no"):
        await play(replay, asked("no"))
    with pytest.raises(RequestRefused, match="messages: 3 on record, 2 asked"):
        await play(replay, msgspec.structs.replace(asked("go"), messages=asked("go").messages[:2]))


async def test_errors_before_and_in_the_stream_come_again(tmp_path: Path) -> None:
    path = tmp_path / "rec.jsonl"
    model = ScriptedModel(
        [Fail(error="RateLimited", status=429, retry_after_seconds=3), [SayText(text="a"), Break()]]
    )
    recorder = RecordingModel(model, path)
    with pytest.raises(RateLimited):
        await play(recorder, asked("one"))
    with pytest.raises(ProviderUnavailable):
        await play(recorder, asked("two"))
    replay = ReplayModel(read_recordings(path))
    with pytest.raises(RateLimited) as caught:
        await play(replay, asked("one"))
    assert caught.value.retry_after_seconds == 3
    async with replay.stream(asked("two")) as events:
        assert await anext(events) == TextPiece("a")
        with pytest.raises(ProviderUnavailable, match="broke off"):
            await anext(events)


async def test_a_stream_left_early_is_recorded_as_cut(tmp_path: Path) -> None:
    path = tmp_path / "rec.jsonl"
    recorder = RecordingModel(ScriptedModel([SayText(text="ab", chunk=1)]), path)
    async with recorder.stream(asked("go")) as events:
        await anext(events)
    replay = ReplayModel(read_recordings(path))
    async with replay.stream(asked("go")) as events:
        assert await anext(events) == TextPiece("a")
        with pytest.raises(ProviderUnavailable, match="cut off"):
            await anext(events)


async def test_the_same_request_plays_its_recordings_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rec.jsonl"
    recorder = RecordingModel(ScriptedModel(["one", "two"]), path)
    lived = [await play(recorder, asked("go")) for _ in range(2)]
    replay = ReplayModel(read_recordings(path))
    again = [await play(replay, asked("go")) for _ in range(3)]
    assert again == [*lived, lived[1]]


async def test_by_order_anything_may_be_asked_until_the_recordings_are_used_up(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rec.jsonl"
    recorder = RecordingModel(ScriptedModel(Script(answers=("one",))), path)
    lived = await play(recorder, asked("go"))
    replay = ReplayModel(read_recordings(path), match="order")
    assert await play(replay, asked("something else")) == lived
    with pytest.raises(RequestRefused, match="holds 1 recordings, and this is request 2"):
        await play(replay, asked("go"))


async def test_a_torn_last_line_is_left_out_and_a_bad_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rec.jsonl"
    await play(RecordingModel(ScriptedModel(["a"]), path), asked("go"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert len(read_recordings(path)) == 1
    path.write_bytes(b"{}\n" + whole)
    with pytest.raises(UsageError, match="line 1 is not a recording"):
        read_recordings(path)


def test_a_missing_or_empty_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        ReplayProvider().model(str(tmp_path / "none"))
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="holds no recording"):
        ReplayProvider().model(str(tmp_path / "empty"))
