"""Botocore's own model of Bedrock as the judge of Converse: what we send, and what we read.

Runs with `make oracles`, which brings botocore; without it it is skipped.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.cloud_servers import converse_answer
from tests.support.example_count import examples
from tests.support.legality.conversations import requests
from tests.support.legality.vendor_requests import info
from tests.support.oracles.converse_shapes import (
    as_botocore_has_it,
    converse_misfits,
    converse_operation,
)
from weft.providers.base import ModelRequest
from weft.providers.bedrock.converse_decode import ConverseDecoder
from weft.providers.bedrock.converse_encode import encode
from weft.providers.bedrock.stream import MessageFrames

pytestmark = pytest.mark.oracle
MODELS = ["amazon.nova-pro-v1:0", "openai.gpt-oss-120b-1:0", "meta.llama4-scout-17b-instruct-v1:0"]
some = settings(max_examples=examples(300), deadline=None)
Json = dict[str, Any]


def misfits(body: Json) -> str:
    """What botocore has against a request."""
    pytest.importorskip("botocore")
    return converse_misfits(body)


@some
@given(request=requests("bedrock", MODELS))
def test_botocore_takes_every_request(request: ModelRequest) -> None:
    body = encode(request, info("bedrock", request))
    assert misfits(json.loads(json.dumps(body))) == ""
    # And serializes it as we do.
    serialize = pytest.importorskip("botocore.serialize")
    serializer = serialize.create_serializer("rest-json")
    made = serializer.serialize_to_request(
        {"modelId": "m", **as_botocore_has_it(body)}, converse_operation()
    )
    assert json.loads(made["body"]) == body
    assert made["url_path"] == "/model/m/converse-stream"


def _first(body: Json, kind: str) -> Json:
    blocks = (block for message in body["messages"] for block in message["content"])
    found: Json = next(block for block in blocks if kind in block)
    return found


PLANTS: dict[str, Callable[[Json], object]] = {
    "unknown field": lambda b: b.update(thinking={}),
    "no content": lambda b: b["messages"][0].pop("content"),
    "text as a list": lambda b: _first(b, "text").update(text=["x"]),
    "call without a name": lambda b: _first(b, "toolUse")["toolUse"].pop("name"),
    "result without an id": lambda b: _first(b, "toolResult")["toolResult"].pop("toolUseId"),
    "tool without a schema": lambda b: b["toolConfig"]["tools"][0]["toolSpec"].pop("inputSchema"),
    "tool without a name": lambda b: b["toolConfig"]["tools"][0]["toolSpec"].pop("name"),
    "no tools": lambda b: b["toolConfig"].update(tools=[]),
    "system as text": lambda b: b.update(system="x"),
    "limit as text": lambda b: b.update(inferenceConfig={"maxTokens": "5"}),
    "no tokens": lambda b: b.update(inferenceConfig={"maxTokens": 0}),
    "image without a source": lambda b: _first(b, "image")["image"].pop("source"),
    "document without a name": lambda b: _first(b, "document")["document"].pop("name"),
}
BODY: Json = {
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "hi"},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"document": {"format": "pdf", "name": "a", "source": {"bytes": "aGk="}}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "t", "name": "read", "input": {}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "x"}]}}],
        },
    ],
    "toolConfig": {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]},
}


@pytest.mark.parametrize("name", PLANTS)
def test_botocore_finds_a_planted_fault(name: str) -> None:
    assert misfits(BODY) == ""
    planted = copy.deepcopy(BODY)
    PLANTS[name](planted)
    assert misfits(planted) != ""


class _Raw:
    """The body of a reply, as botocore reads one."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        for at in range(0, len(self._data), 50):
            yield self._data[at : at + 50]

    def close(self) -> None:
        pass


def test_botocore_reads_the_stream_as_we_do() -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    parsers = pytest.importorskip("botocore.parsers")
    frames = converse_answer(
        {"reasoningContent": {"text": "hm"}},
        {"text": "héllo wörld 🎈"},
        {"call": ("t-1", "read"), "toolUse": {"input": '{"path": "a"}'}},
        reason="tool_use",
    )
    data = b"".join(frames)
    shape = converse_operation().get_event_stream_output()
    parser = parsers.EventStreamJSONParser()
    theirs = list(eventstream.EventStream(_Raw(data), shape, parser, "ConverseStream"))
    ours = MessageFrames().feed(data)
    assert [name.decode() for name, _ in ours] == [next(iter(event)) for event in theirs]
    for (name, payload), event in zip(ours, theirs, strict=True):
        known = {key: value for key, value in json.loads(payload).items() if key != "p"}
        assert event[name.decode()] == known
    decoder = ConverseDecoder("bedrock")
    assert [event for name, payload in ours for event in decoder.feed(name, payload)]
    assert decoder.is_finished
