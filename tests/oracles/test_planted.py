"""The oracle finds what is wrong: requests of real conversations, each with one planted fault."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.oracles.conversations import LIST, READ, calls, pictures_and_documents, say
from tests.support.oracles.sdk_types import SDKS, misfits_of_types, verdict
from tests.support.oracles.vendor_world import ORACLE_MODELS, OracleWorld, oracle_world

# A PDF is read by a process.
pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(900)]
Json = dict[str, Any]
Plant = Callable[[Json], object]
LEAST = 40
"""Planted faults in all."""


def _assistant(body: Json, key: str = "messages") -> Json:
    found: Json = next(m for m in body[key] if m.get("role") == "assistant")
    return found


def _block(body: Json, kind: str) -> Json:
    blocks = (b for m in body["messages"] for b in m["content"] if isinstance(b, dict))
    found: Json = next(block for block in blocks if block["type"] == kind)
    return found


def _item(body: Json, kind: str) -> Json:
    found: Json = next(item for item in body["input"] if item["type"] == kind)
    return found


def _content(body: Json, kind: str) -> Json:
    contents = (i["content"] for i in body["input"] if isinstance(i.get("content"), list))
    found: Json = next(part for parts in contents for part in parts if part["type"] == kind)
    return found


def _drop_item(body: Json, kind: str) -> None:
    body["input"].remove(_item(body, kind))


def _drop_role(body: Json, role: str) -> None:
    body["messages"].remove(next(m for m in body["messages"] if m["role"] == role))


def _model(body: Json) -> Json:
    found: Json = next(c for c in body["contents"] if c["role"] == "model")
    return found


def _part(body: Json, kind: str) -> Json:
    found: Json = next(p for c in body["contents"] for p in c["parts"] if kind in p)
    return found


def _shape(body: Json, kind: str) -> Json:
    blocks = (block for message in body["messages"] for block in message["content"])
    found: Json = next(block for block in blocks if kind in block)
    return found


def _tool_spec(body: Json) -> Json:
    found: Json = body["toolConfig"]["tools"][0]["toolSpec"]
    return found


PLANTS: dict[str, dict[str, Plant]] = {
    "anthropic": {
        "unknown field": lambda b: b.update(reasoning_effort="high"),
        "no max_tokens": lambda b: b.pop("max_tokens"),
        "max_tokens as text": lambda b: b.update(max_tokens="4096"),
        "unknown role": lambda b: b["messages"][0].update(role="tool"),
        "unknown block": lambda b: _block(b, "text").update(type="output_text"),
        "unknown effort": lambda b: b.update(output_config={"effort": "huge"}),
        "unknown thinking": lambda b: b.update(thinking={"type": "on"}),
        "thought without signature": lambda b: _block(b, "thinking").pop("signature"),
        "foreign signature": lambda b: _block(b, "thinking").update(signature="Zm9yZWlnbg=="),
        "call without input": lambda b: _block(b, "tool_use").pop("input"),
        "input as text": lambda b: _block(b, "tool_use").update(input="{}"),
        "result of no call": lambda b: _block(b, "tool_result").update(tool_use_id="toolu_x"),
        "picture of a kind that is not taken": lambda b: _block(b, "image")["source"].update(
            media_type="image/tiff"
        ),
        "document of a kind that is not taken": lambda b: _block(b, "document")["source"].update(
            media_type="application/msword"
        ),
        "document without content": lambda b: _block(b, "document")["source"].update(data=""),
        "blank text": lambda b: _block(b, "text").update(text=" "),
        "five cache marks": lambda b: [
            tool.update(cache_control={"type": "ephemeral"}) for tool in b["tools"]
        ],
        "unknown cache": lambda b: b["system"][0]["cache_control"].update(ttl="2h"),
        "tool without schema": lambda b: b["tools"][0].pop("input_schema"),
    },
    "openai": {
        "unknown field": lambda b: b.update(messages=[]),
        "unknown effort": lambda b: b["reasoning"].update(effort="huge"),
        "stream as text": lambda b: b.update(stream="yes"),
        "unknown item": lambda b: _item(b, "message").update(type="text"),
        "call without an id": lambda b: _item(b, "function_call").pop("call_id"),
        "arguments as an object": lambda b: _item(b, "function_call").update(arguments={}),
        "result of no call": lambda b: _drop_item(b, "function_call"),
        "call without result": lambda b: _drop_item(b, "function_call_output"),
        "unknown detail of a picture": lambda b: _content(b, "input_image").update(detail="sharp"),
        "file without content": lambda b: _content(b, "input_file").pop("file_data"),
        "file without name": lambda b: _content(b, "input_file").pop("filename"),
        "reasoning without summary": lambda b: _item(b, "reasoning").pop("summary"),
        "foreign reasoning": lambda b: _item(b, "reasoning").update(encrypted_content="Zm9yZQ=="),
        "tool without name": lambda b: b["tools"][0].pop("name"),
        "unknown include": lambda b: b.update(include=["everything"]),
    },
    "openai-chat": {
        "unknown field": lambda b: b.update(thinking={"type": "enabled"}),
        "unknown role": lambda b: b["messages"][1].update(role="human"),
        "no messages": lambda b: b.pop("messages"),
        "call without an id": lambda b: _assistant(b)["tool_calls"][0].pop("id"),
        "arguments as an object": lambda b: _assistant(b)["tool_calls"][0]["function"].update(
            arguments={}
        ),
        "call without result": lambda b: _drop_role(b, "tool"),
        "result of no call": lambda b: _assistant(b).pop("tool_calls"),
        "result without id": lambda b: next(m for m in b["messages"] if m["role"] == "tool").pop(
            "tool_call_id"
        ),
        "unknown part": lambda b: b["messages"][1].update(content=[{"type": "picture"}]),
        "tool without function": lambda b: b["tools"][0].pop("function"),
        "file that is no address": lambda b: _block(b, "file")["file"].update(file_data="JVBERi0="),
        "stream_options as a flag": lambda b: b.update(stream_options=True),
    },
    "google": {
        "unknown field": lambda b: b.update(messages=[]),
        "no contents": lambda b: b.update(contents=[]),
        "unknown role": lambda b: b["contents"][0].update(role="human"),
        "unknown part": lambda b: b["contents"][0]["parts"].append({"picture": "x"}),
        "call with text for arguments": lambda b: _part(b, "functionCall")["functionCall"].update(
            args="{}"
        ),
        "response as text": lambda b: _part(b, "functionResponse")["functionResponse"].update(
            response="ok"
        ),
        "call without response": lambda b: b["contents"].remove(
            next(c for c in b["contents"] if "functionResponse" in c["parts"][0])
        ),
        "picture that is no base64": lambda b: _part(b, "inlineData")["inlineData"].update(
            data="***"
        ),
        "unknown level": lambda b: b.setdefault("generationConfig", {}).update(
            thinkingConfig={"thinkingLevel": "huge"}
        ),
        "level and budget": lambda b: b.setdefault("generationConfig", {}).update(
            thinkingConfig={"thinkingLevel": "high", "thinkingBudget": 100}
        ),
        "two contents of the model": lambda b: b["contents"].insert(1, copy.deepcopy(_model(b))),
        "foreign signature": lambda b: _part(b, "functionCall").update(
            thoughtSignature="Zm9yZWlnbg=="
        ),
        "empty text": lambda b: b["contents"][0]["parts"].append({"text": ""}),
    },
    "ollama": {
        "unknown field": lambda b: b.update(max_tokens=5),
        "unknown level": lambda b: b.update(think="huge"),
        "content as a list": lambda b: b["messages"][1].update(content=[{"type": "text"}]),
        "call without result": lambda b: _drop_role(b, "tool"),
        "result of no call": lambda b: _assistant(b).pop("tool_calls"),
        "arguments as text": lambda b: _assistant(b)["tool_calls"][0]["function"].update(
            arguments="{}"
        ),
        "no model": lambda b: b.pop("model"),
        "options as a list": lambda b: b.update(options=[]),
        "unknown option": lambda b: b["options"].update(num_tokens=5),
        "no window": lambda b: b["options"].pop("num_ctx"),
    },
    "bedrock": {
        "unknown field": lambda b: b.update(thinking={}),
        "text as a list": lambda b: _shape(b, "text").update(text=["x"]),
        "call without a name": lambda b: _shape(b, "toolUse")["toolUse"].pop("name"),
        "tool without a schema": lambda b: _tool_spec(b).pop("inputSchema"),
        "system as text": lambda b: b.update(system="x"),
        "image without a source": lambda b: _shape(b, "image")["image"].pop("source"),
        "blank text": lambda b: _shape(b, "text").update(text=" "),
        "result of no call": lambda b: _shape(b, "toolUse")["toolUse"].update(toolUseId="other"),
        "two of one role": lambda b: b["messages"].insert(0, copy.deepcopy(b["messages"][0])),
        "ends with the model": lambda b: b["messages"].pop(),
        "calls without tools": lambda b: b.pop("toolConfig"),
    },
}


class Recorder(OracleWorld):
    """Keeps the newest request."""

    last: Json
    proofs: set[str]

    def judge(self, provider: str, protocol: str, model: str, body: Json) -> None:
        super().judge(provider, protocol, model, body)
        self.last = body
        self.proofs = {"", "rs_1", *self._proofs.get(f"{protocol}:{model}", ())}


async def last_request(protocol: str, folder: Path) -> tuple[Json, set[str]]:
    """The last request of a conversation with calls, pictures and reasoning."""
    async with oracle_world(folder, Recorder()) as (app, world):
        assert isinstance(world, Recorder)
        name = f"{protocol}:{ORACLE_MODELS[protocol][0]}"
        session = await app.sessions.start_session(model=name, thinking="high")
        world.script = [calls(READ, LIST)]
        await say(session, "look")
        await pictures_and_documents(world, session, protocol)
    assert world.wrong == []
    return world.last, world.proofs


@pytest.mark.parametrize("protocol", SDKS)
async def test_a_planted_fault_is_found(protocol: str, tmp_path: Path) -> None:
    for sdk in SDKS.values():
        pytest.importorskip(sdk)
    body, proofs = await last_request(protocol, tmp_path)
    model = ORACLE_MODELS[protocol][0]
    assert verdict(protocol, body, model=model, signed=proofs) == []
    missed, by_types = [], 0
    for name, plant in PLANTS[protocol].items():
        planted = json.loads(json.dumps(body))
        plant(planted)
        assert planted != body, name
        by_types += bool(misfits_of_types(protocol, planted))
        if not verdict(protocol, planted, model=model, signed=proofs):
            missed.append(name)
    assert missed == []
    # Most faults are of the shape; where none is, the SDK's types were not looked at.
    assert by_types >= 4


def test_there_are_enough_planted_faults() -> None:
    assert sum(map(len, PLANTS.values())) >= LEAST
