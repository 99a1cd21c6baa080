"""Ends that are no success: every vendor's words for them, over real sockets, up to what the user
is shown.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weft
from tests.support.vendor_ends import CUT_IN_CALL, GOOD_ENDS, HELLO, VENDOR_ENDS
from tests.support.vendor_replies import PLACES, VENDOR_MODELS, environment, replying, vendor_app
from tests.support.weft_program import WeftProgram
from weft.events import TurnFinished, decode, encode, finish_words
from weft.ids import TurnId
from weft.loop.answer import CUT_CALL, GO_ON, MOST_CONTINUATIONS
from weft.messages import Text
from weft.providers import ModelRequest, StreamFinished
from weft.providers.base import ChatMessage
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.vendors import make_provider
from weft.transport import HttpClient
from weft.view import finish_sentence

pytestmark = pytest.mark.anyio
ENDS = [pytest.param(*key, id=f"{key[0]}: {key[1]}") for key in VENDOR_ENDS]
CUT = [key for key, end in VENDOR_ENDS.items() if end.stop == "length"]


@pytest.mark.parametrize(("provider", "word"), ENDS)
async def test_a_vendors_word_has_a_reason_of_its_own(provider: str, word: str) -> None:
    end = VENDOR_ENDS[provider, word]
    async with replying([end.reply]) as server:
        client = HttpClient()
        access = ProviderAccess(key="k", base_url=server.url)
        model = make_provider(provider, access, client, shipped()).model(
            VENDOR_MODELS[provider].partition(":")[2]
        )
        said = ModelRequest(
            model=model.info.name,
            messages=(ChatMessage(role="user", parts=(Text(text="hi"),)),),
        )
        async with model.stream(said) as events:
            last = [event async for event in events][-1]
        await client.aclose()
    assert isinstance(last, StreamFinished)
    assert last.reason == end.stop


@pytest.mark.parametrize(("provider", "word"), ENDS)
async def test_a_turn_ends_with_that_reason_and_a_sentence(
    provider: str, word: str, tmp_path: Path
) -> None:
    end = VENDOR_ENDS[provider, word]
    async with vendor_app(provider, [end.reply], tmp_path) as (app, _):
        session = await app.sessions.start_session(tools=[])
        result = await session.send_message("hi")
    assert result.finish_reason == end.finish
    assert end.says in finish_sentence(result.finish_reason, result.detail)


@pytest.mark.parametrize(("provider", "word"), CUT)
async def test_an_answer_that_was_cut_off_goes_on_by_itself(
    provider: str, word: str, tmp_path: Path
) -> None:
    replies = [VENDOR_ENDS[provider, word].reply, GOOD_ENDS[provider]]
    async with vendor_app(provider, replies, tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[])
        result = await session.send_message("hi")
    assert result.finish_reason == "stop"
    assert result.text == f"{HELLO}, and the rest."
    assert len(server.asked) == 2
    # The model reads what it had said, and that it is to go on.
    assert HELLO in (again := server.asked[1].body.decode())
    assert GO_ON[:40] in again


@pytest.mark.parametrize(("provider", "word"), CUT)
async def test_a_model_that_is_cut_off_every_time_is_not_asked_for_ever(
    provider: str, word: str, tmp_path: Path
) -> None:
    async with vendor_app(provider, [VENDOR_ENDS[provider, word].reply], tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[])
        result = await session.send_message("hi")
    assert len(server.asked) == MOST_CONTINUATIONS + 1
    assert result.text == HELLO * (MOST_CONTINUATIONS + 1)


async def test_a_paused_answer_is_continued(tmp_path: Path) -> None:
    paused = VENDOR_ENDS["anthropic", "pause_turn"].reply
    async with vendor_app("anthropic", [paused, GOOD_ENDS["anthropic"]], tmp_path) as (app, _):
        session = await app.sessions.start_session(tools=[])
        result = await session.send_message("hi")
    assert result.finish_reason == "stop"
    assert result.text == ", and the rest."


@pytest.mark.parametrize("provider", CUT_IN_CALL)
async def test_a_call_that_was_cut_off_before_its_arguments_is_not_run(
    provider: str, tmp_path: Path
) -> None:
    ran = []

    @weft.tool(effect="pure")
    async def look(where: str = "here") -> str:
        """Look somewhere."""
        ran.append(where)
        return "nothing"

    replies = [CUT_IN_CALL[provider], GOOD_ENDS[provider]]
    async with vendor_app(provider, replies, tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[look])
        result = await session.send_message("hi")
    assert ran == []
    assert result.finish_reason == "stop"
    assert CUT_CALL[:40] in server.asked[1].body.decode()


async def test_the_calls_of_a_refused_answer_are_not_run(tmp_path: Path) -> None:
    ran = []

    @weft.tool(effect="pure")
    async def look(where: str = "here") -> str:
        """Look somewhere."""
        ran.append(where)
        return "nothing"

    cut = CUT_IN_CALL["anthropic"]
    refused = cut._replace(body=cut.body.replace(b"max_tokens", b"refusal"))
    replies = [refused, GOOD_ENDS["anthropic"]]
    async with vendor_app("anthropic", replies, tmp_path) as (app, server):
        session = await app.sessions.start_session(tools=[look])
        result = await session.send_message("hi")
        assert (ran, result.finish_reason) == ([], "refusal")
        # The session is not stuck: the call has a result, and the next message is answered.
        assert (await session.send_message("then what?")).finish_reason == "stop"
        asked = json.loads(server.asked[1].body)["messages"]
    results = [
        block["tool_use_id"]
        for message in asked
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert results == ["toolu_1"]


@pytest.mark.process
@pytest.mark.parametrize("provider", PLACES)
async def test_a_run_says_why_it_ended_in_every_output_format(
    provider: str, tmp_path: Path
) -> None:
    found = [end for (name, _), end in VENDOR_ENDS.items() if name == provider]
    end = next((end for end in found if end.stop != "length"), found[0])
    program = WeftProgram(tmp_path)
    async with replying([end.reply]) as server:
        env = {**environment(provider, server.url, program.home), "HOME": str(program.home)}
        said = ["-p", "hi", "-m", VENDOR_MODELS[provider]]
        text = await weft_run(program, *said, env=env)
        whole = await weft_run(program, *said, "--output-format", "json", env=env)
        lined = await weft_run(program, *said, "--output-format", "stream-json", env=env)
    assert [text[0], whole[0], lined[0]] == [1, 1, 1]
    assert end.says in text[2]
    for line in (json.loads(whole[1]), json.loads(lined[1].splitlines()[-1])):
        assert line["is_error"] is True
        assert line["terminal_reason"] == end.finish
        assert line["subtype"] == "error_during_execution"
        assert line["error"]


async def weft_run(
    program: WeftProgram, *arguments: str, env: dict[str, str]
) -> tuple[int, str, str]:
    """Run in a thread: the server that it asks is in this loop."""
    import anyio.to_thread

    done = await anyio.to_thread.run_sync(lambda: program.run(*arguments, env=env))
    return done.returncode, done.stdout, done.stderr


def test_an_older_program_reads_a_failure_and_a_newer_word_does_no_damage() -> None:
    finished = TurnFinished(turn_id=TurnId("trn_1"), **finish_words("refusal"))
    assert (finished.reason, finished.finish_reason) == ("provider_error", "refusal")
    later = encode(finished).replace(b'"exact":"refusal"', b'"exact":"bored"')
    read = decode(later)
    assert isinstance(read, TurnFinished)
    assert read.finish_reason == "provider_error"
