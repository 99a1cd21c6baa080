"""The judges reject every illegal fixture and accept every legal one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)

Json: TypeAlias = dict[str, Any]
Spoil: TypeAlias = Callable[[Json], object]

PIXEL = "iVBORw0KGgo="
SCHEMA: Json = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
OPEN_SCHEMA: Json = {"type": "object", "properties": {"path": {"type": "string"}}}


def swap(values: list[Any], one: int, two: int) -> None:
    values[one], values[two] = values[two], values[one]


# --- Anthropic -------------------------------------------------------------------------


def anthropic() -> Json:
    """A running tool round of two calls on a model with a thinking budget."""
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 8192,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [{"name": "read", "description": "Reads.", "input_schema": OPEN_SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "read both"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": "no",
                        "is_error": True,
                    },
                ],
            },
        ],
    }


ANTHROPIC_ILLEGAL: dict[str, Spoil] = {
    "picture in a failed result": lambda b: b["messages"][2]["content"][1].update(
        content=[
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
            }
        ]
    ),
    "thinking turned off where it cannot be": lambda b: b.update(
        model="claude-opus-5-5", thinking={"type": "disabled"}, messages=b["messages"][:1]
    ),
    "thinking turned off in another model's words": lambda b: b.update(
        model="claude-sonnet-5-5", thinking={"type": "disabled"}, messages=b["messages"][:1]
    ),
    "thinking between tools on a model without": lambda b: b.update(
        model="claude-opus-5", thinking={"type": "between_tools"}, messages=b["messages"][:1]
    ),
    "no max_tokens": lambda b: b.pop("max_tokens"),
    "no messages": lambda b: b.update(messages=[]),
    "starts with the assistant": lambda b: b["messages"].pop(0),
    "system role inside": lambda b: b["messages"][0].update(role="system"),
    "call without result": lambda b: b["messages"][2]["content"].pop(),
    "calls without any results": lambda b: b["messages"].pop(),
    "result without call": lambda b: b["messages"][1]["content"].pop(),
    "result twice": lambda b: b["messages"][2]["content"].append(
        dict(b["messages"][2]["content"][0])
    ),
    "text before results": lambda b: b["messages"][2]["content"].insert(
        0, {"type": "text", "text": "here"}
    ),
    "text after calls": lambda b: b["messages"][1]["content"].append({"type": "text", "text": "x"}),
    "blank text": lambda b: b["messages"][0]["content"][0].update(text=" \n"),
    "empty content": lambda b: b["messages"][0].update(content=[]),
    "bad id": lambda b: b["messages"][1]["content"][2].update(id="call:1"),
    "same id twice": lambda b: (
        b["messages"][1]["content"][3].update(id="toolu_1"),
        b["messages"][2]["content"][1].update(tool_use_id="toolu_1"),
    ),
    "input is a string": lambda b: b["messages"][1]["content"][2].update(input='{"path":"a"}'),
    "thinking not first": lambda b: swap(b["messages"][1]["content"], 0, 1),
    "thinking missing": lambda b: b["messages"][1]["content"].pop(0),
    "thinking last": lambda b: b["messages"].append(
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}]}
    ),
    "thinking unsigned": lambda b: b["messages"][1]["content"][0].update(signature=""),
    "thinking while off": lambda b: b.pop("thinking"),
    "budget too small": lambda b: b["thinking"].update(budget_tokens=512),
    "budget over max_tokens": lambda b: b["thinking"].update(budget_tokens=8192),
    "adaptive with a budget": lambda b: b.update(
        model="claude-opus-4-6", thinking={"type": "adaptive", "budget_tokens": 2048}
    ),
    "budget on a new model": lambda b: b.update(model="claude-opus-4-7"),
    "temperature while thinking": lambda b: b.update(temperature=0.5),
    "forced tool while thinking": lambda b: b.update(tool_choice={"type": "any"}),
    "five cache marks": lambda b: [
        block.update(cache_control={"type": "ephemeral"})
        for block in (
            *b["messages"][0]["content"],
            *b["messages"][1]["content"][1:],
            *b["messages"][2]["content"],
        )
    ],
    "cache mark on thinking": lambda b: b["messages"][1]["content"][0].update(
        cache_control={"type": "ephemeral"}
    ),
    "tool without a type": lambda b: b["tools"][0].update(input_schema={"properties": {}}),
    "tool with anyOf on top": lambda b: b["tools"][0].update(
        input_schema={"type": "object", "anyOf": [{"required": ["a"]}]}
    ),
    "tool name with a dot": lambda b: b["tools"][0].update(name="fs.read"),
    "tool twice": lambda b: b["tools"].append(b["tools"][0]),
    "calls but no tools": lambda b: b.pop("tools"),
    "stop is blank": lambda b: b.update(stop_sequences=["\n"]),
    "image of a strange kind": lambda b: b["messages"][0]["content"].append(
        {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": PIXEL}}
    ),
    "two users in a row": lambda b: b["messages"].insert(0, {"role": "user", "content": "hi"}),
    "prefill on a new model": lambda b: b.update(
        model="claude-sonnet-4-6",
        thinking=None,
        messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    ),
    "unknown field": lambda b: b.update(reasoning_effort="high"),
    "effort on a model without": lambda b: b.update(output_config={"effort": "low"}),
    "effort that the model lacks": lambda b: b.update(
        model="claude-opus-4-5", output_config={"effort": "max"}
    ),
    "open output schema": lambda b: b.update(
        output_config={"format": {"type": "json_schema", "schema": OPEN_SCHEMA}}
    ),
}

ANTHROPIC_LEGAL: dict[str, Spoil] = {
    "as it is": lambda b: None,
    "adaptive, turn without thinking": lambda b: (
        b.update(model="claude-sonnet-4-6", thinking={"type": "adaptive"}),
        b["messages"][1]["content"].pop(0),
    ),
    "text after results": lambda b: b["messages"][2]["content"].append(
        {"type": "text", "text": "and now?"}
    ),
    "prefill on an old model": lambda b: (
        b.pop("thinking"),
        b.update(
            messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        ),
    ),
    "image and text in a result": lambda b: b["messages"][2]["content"][0].update(
        content=[
            {"type": "text", "text": "seen"},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
            },
        ]
    ),
    "closed output schema": lambda b: b.update(
        output_config={"format": {"type": "json_schema", "schema": SCHEMA}}
    ),
    "an effort that the model has": lambda b: b.update(
        model="claude-opus-4-5", output_config={"effort": "low"}
    ),
}


# --- Responses -------------------------------------------------------------------------


def responses() -> Json:
    return {
        "model": "gpt-5",
        "store": False,
        "stream": True,
        "instructions": "Be brief.",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads.",
                "parameters": OPEN_SCHEMA,
                "strict": False,
            }
        ],
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "read both"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ],
            },
            {"type": "reasoning", "summary": [], "encrypted_content": "blob"},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"a"}'},
            {"type": "function_call", "call_id": "c2", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "A"},
            {"type": "function_call_output", "call_id": "c2", "output": "B"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Done."}],
            },
            {"role": "user", "content": "thanks"},
        ],
    }


RESPONSES_ILLEGAL: dict[str, Spoil] = {
    "no input": lambda b: b.update(input=[]),
    "call without output": lambda b: b["input"].pop(5),
    "output without call": lambda b: b["input"].pop(3),
    "output before its call": lambda b: swap(b["input"], 2, 4),
    "output twice": lambda b: b["input"].insert(6, dict(b["input"][5])),
    "same call_id twice": lambda b: b["input"][3].update(call_id="c1"),
    "call_id too long": lambda b: [
        i.update(call_id="c" * 65) for i in (b["input"][2], b["input"][4])
    ],
    "reasoning at the end": lambda b: b["input"].append(dict(b["input"][1])),
    "reasoning before the user": lambda b: b["input"].insert(7, dict(b["input"][1])),
    "reasoning without content": lambda b: b["input"][1].pop("encrypted_content"),
    "arguments are an object": lambda b: b["input"][2].update(arguments={"path": "a"}),
    "arguments are cut": lambda b: b["input"][2].update(arguments='{"path'),
    "output_text from the user": lambda b: b["input"][0]["content"][0].update(type="output_text"),
    "input_text from the model": lambda b: b["input"][6]["content"][0].update(type="input_text"),
    "empty text": lambda b: b["input"][6]["content"][0].update(text=""),
    "empty message": lambda b: b["input"][0].update(content=[]),
    "role tool": lambda b: b["input"][0].update(role="tool"),
    "bad image": lambda b: b["input"][0]["content"][1].update(image_url="file:///etc/passwd"),
    "temperature on a reasoning model": lambda b: b.update(temperature=0),
    "reasoning on another model": lambda b: b.update(model="gpt-4.1"),
    "too few output tokens": lambda b: b.update(max_output_tokens=8),
    "strict by default": lambda b: b["tools"][0].pop("strict"),
    "tool name with a dot": lambda b: b["tools"][0].update(name="fs.read"),
    "tool in the chat form": lambda b: b["tools"].append(
        {"type": "function", "function": {"name": "x", "parameters": SCHEMA}}
    ),
    "stop": lambda b: b.update(stop=["x"]),
    "unknown effort": lambda b: b["reasoning"].update(effort="max"),
    "effort of another model": lambda b: b.update(model="gpt-5-pro"),
    "strict output that is not": lambda b: b.update(
        text={"format": {"type": "json_schema", "name": "a", "schema": OPEN_SCHEMA, "strict": True}}
    ),
    "output item without output": lambda b: b["input"][4].pop("output"),
}

RESPONSES_LEGAL: dict[str, Spoil] = {
    "as it is": lambda b: None,
    "plain text": lambda b: b.update(input="hello"),
    "strict tool": lambda b: b["tools"][0].update(parameters=SCHEMA, strict=True),
    "strict output": lambda b: b.update(
        text={"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}
    ),
    "outputs in any order": lambda b: swap(b["input"], 4, 5),
    "picture as output": lambda b: b["input"][4].update(
        output=[{"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}]
    ),
}


# --- Chat Completions ------------------------------------------------------------------


def chat() -> Json:
    return {
        "model": "gpt-4.1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads.", "parameters": OPEN_SCHEMA},
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "read both"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "read", "arguments": '{"path":"a"}'},
                    },
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "read", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "A"},
            {"role": "tool", "tool_call_id": "c2", "content": "B"},
        ],
    }


CHAT_ILLEGAL: dict[str, Spoil] = {
    "no messages": lambda b: b.update(messages=[]),
    "only a system message": lambda b: b.update(messages=b["messages"][:1]),
    "system in the middle": lambda b: swap(b["messages"], 0, 1),
    "call without result": lambda b: b["messages"].pop(),
    "user before the results": lambda b: b["messages"].insert(3, {"role": "user", "content": "x"}),
    "result without call": lambda b: b["messages"][2]["tool_calls"].pop(),
    "result twice": lambda b: b["messages"].append(dict(b["messages"][4])),
    "tool after user": lambda b: b["messages"].pop(2),
    "empty assistant": lambda b: (
        b.update(messages=b["messages"][:2]),
        b["messages"].extend(
            [{"role": "assistant", "content": ""}, {"role": "user", "content": "x"}]
        ),
    ),
    "assistant with nothing": lambda b: b["messages"].extend(
        [{"role": "assistant", "content": None}, {"role": "user", "content": "x"}]
    ),
    "empty tool_calls": lambda b: b["messages"].extend(
        [{"role": "assistant", "content": "x", "tool_calls": []}, {"role": "user", "content": "x"}]
    ),
    "id too long": lambda b: (
        b["messages"][2]["tool_calls"][0].update(id="c" * 41),
        b["messages"][3].update(tool_call_id="c" * 41),
    ),
    "same id twice": lambda b: (
        b["messages"][2]["tool_calls"][1].update(id="c1"),
        b["messages"][4].update(tool_call_id="c1"),
    ),
    "id used again later": lambda b: b["messages"].extend(copy.deepcopy(b["messages"][2:5])),
    "arguments are an object": lambda b: b["messages"][2]["tool_calls"][0]["function"].update(
        arguments={}
    ),
    "arguments are no object": lambda b: b["messages"][2]["tool_calls"][0]["function"].update(
        arguments="[]"
    ),
    "image in a tool message": lambda b: b["messages"][3].update(
        content=[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
    ),
    "blank user": lambda b: b["messages"][1].update(content=" "),
    "two users in a row": lambda b: b["messages"].insert(1, {"role": "user", "content": "x"}),
    "ends with the model": lambda b: b["messages"].append({"role": "assistant", "content": "x"}),
    "starts with the model": lambda b: b["messages"].insert(
        1, {"role": "assistant", "content": "x"}
    ),
    "both limits": lambda b: b.update(max_completion_tokens=5),
    "five stops": lambda b: b.update(stop=list("abcde")),
    "stream options without stream": lambda b: b.update(stream=False),
    "no tools in the array": lambda b: b.update(tools=[]),
    "tool name with a space": lambda b: b["tools"][0]["function"].update(name="read it"),
    "function with a reference": lambda b: b["tools"][0]["function"].update(
        parameters={"$ref": "#/$defs/A", "$defs": {"A": SCHEMA}}
    ),
    "foreign thinking": lambda b: b["messages"][2].update(thinking="x"),
    "unknown role": lambda b: b["messages"][1].update(role="human"),
}

CHAT_LEGAL: dict[str, Spoil] = {
    "as it is": lambda b: None,
    "no system": lambda b: b["messages"].pop(0),
    "picture from the user": lambda b: b["messages"][1].update(
        content=[
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ]
    ),
    "goes on": lambda b: b["messages"].extend(
        [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "and?"}]
    ),
    "text beside calls": lambda b: b["messages"][2].update(content="I will."),
    "strict output": lambda b: b.update(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "a", "schema": SCHEMA, "strict": True},
        }
    ),
}


# --- Gemini ----------------------------------------------------------------------------


def gemini() -> Json:
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 100, "thinkingConfig": {"thinkingLevel": "low"}},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Reads.", "parametersJsonSchema": OPEN_SCHEMA}
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "read both"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I will."},
                    {
                        "functionCall": {"name": "read", "args": {"path": "a"}, "id": "1"},
                        "thoughtSignature": "sig",
                    },
                    {"functionCall": {"name": "read", "args": {}, "id": "2"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "read", "response": {"output": "A"}, "id": "1"}},
                    {"functionResponse": {"name": "read", "response": {"error": "B"}, "id": "2"}},
                ],
            },
        ],
    }


def _call(b: Json, number: int = 0) -> Json:
    found: Json = b["contents"][1]["parts"][1 + number]["functionCall"]
    return found


def _declared(b: Json) -> Json:
    found: Json = b["tools"][0]["functionDeclarations"][0]
    return found


GEMINI_ILLEGAL: dict[str, Spoil] = {
    "no contents": lambda b: b.update(contents=[]),
    "role assistant": lambda b: b["contents"][1].update(role="assistant"),
    "starts with the model": lambda b: b["contents"].pop(0),
    "ends with the model": lambda b: b["contents"].append(
        {"role": "model", "parts": [{"text": "x"}]}
    ),
    "no parts": lambda b: b["contents"][0].update(parts=[]),
    "empty text": lambda b: b["contents"][0]["parts"][0].update(text=""),
    "part without data": lambda b: b["contents"][0]["parts"].append({}),
    "part with two kinds": lambda b: b["contents"][1]["parts"][1].update(text="x"),
    "fewer responses than calls": lambda b: b["contents"][2]["parts"].pop(),
    "more responses than calls": lambda b: b["contents"][1]["parts"].pop(),
    "no responses": lambda b: b["contents"].pop(),
    "text instead of responses": lambda b: b["contents"][2].update(parts=[{"text": "A"}]),
    "text before responses": lambda b: b["contents"][2]["parts"].insert(0, {"text": "x"}),
    "two user contents": lambda b: b["contents"].append({"role": "user", "parts": [{"text": "x"}]}),
    "responses in another order": lambda b: swap(b["contents"][2]["parts"], 0, 1),
    "response under another name": lambda b: b["contents"][2]["parts"][0][
        "functionResponse"
    ].update(name="write"),
    "response is a string": lambda b: b["contents"][2]["parts"][0]["functionResponse"].update(
        response="A"
    ),
    "args are a string": lambda b: _call(b).update(args="{}"),
    "call by the user": lambda b: b["contents"][0]["parts"].append(
        {"functionCall": {"name": "read", "args": {}}}
    ),
    "signature missing": lambda b: b["contents"][1]["parts"][1].pop("thoughtSignature"),
    "signature on the wrong call": lambda b: swap(b["contents"][1]["parts"], 1, 2),
    "two model contents": lambda b: b["contents"].insert(
        1, {"role": "model", "parts": [{"text": "x"}]}
    ),
    "level and budget": lambda b: b["generationConfig"]["thinkingConfig"].update(
        thinkingBudget=100
    ),
    "name with a slash": lambda b: _declared(b).update(name="fs/read"),
    "name starts with a digit": lambda b: _declared(b).update(name="1read"),
    "additionalProperties": lambda b: _declared(b).update(parametersJsonSchema=SCHEMA),
    "type is a list": lambda b: _declared(b).update(
        parametersJsonSchema={"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    ),
    "const": lambda b: _declared(b).update(
        parametersJsonSchema={"type": "object", "properties": {"a": {"const": 1}}}
    ),
    "both kinds of parameters": lambda b: _declared(b).update(parameters=OPEN_SCHEMA),
    "no declarations": lambda b: b.update(tools=[{"functionDeclarations": []}]),
    "schema without mime type": lambda b: b["generationConfig"].update(
        responseJsonSchema=OPEN_SCHEMA
    ),
    "six stops": lambda b: b["generationConfig"].update(stopSequences=list("abcdef")),
    "empty system": lambda b: b["systemInstruction"].update(parts=[{"text": ""}]),
    "strange picture": lambda b: b["contents"][0]["parts"].append(
        {"inlineData": {"mimeType": "image/bmp", "data": PIXEL}}
    ),
    "same call id": lambda b: (
        _call(b, 1).update(id="1"),
        b["contents"][2]["parts"][1]["functionResponse"].update(id="1"),
    ),
    "unknown field": lambda b: b.update(model="gemini-3-flash"),
}

GEMINI_LEGAL: dict[str, Spoil] = {
    "as it is": lambda b: None,
    "foreign call with the documented mark": lambda b: b["contents"][1]["parts"][1].update(
        thoughtSignature="skip_thought_signature_validator"
    ),
    "picture after the responses": lambda b: b["contents"][2]["parts"].extend(
        [{"text": "seen"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]
    ),
    "old turn without signature": lambda b: (
        b["contents"][1]["parts"][1].pop("thoughtSignature"),
        b["contents"].append({"role": "model", "parts": [{"text": "done"}]}),
        b["contents"].append({"role": "user", "parts": [{"text": "thanks"}]}),
    ),
    "json beside tools": lambda b: b["generationConfig"].update(
        responseMimeType="application/json", responseJsonSchema=OPEN_SCHEMA
    ),
}


def judge_gemini(body: Json) -> list[str]:
    return validate_gemini(body, model="gemini-3-flash-preview")


JUDGES: list[tuple[str, Callable[[Json], list[str]], Callable[[], Json], dict[str, Spoil]]] = [
    ("anthropic", validate_anthropic, anthropic, ANTHROPIC_ILLEGAL),
    ("responses", validate_openai_responses, responses, RESPONSES_ILLEGAL),
    ("chat", validate_openai_chat, chat, CHAT_ILLEGAL),
    ("gemini", judge_gemini, gemini, GEMINI_ILLEGAL),
]
LEGAL = {
    "anthropic": ANTHROPIC_LEGAL,
    "responses": RESPONSES_LEGAL,
    "chat": CHAT_LEGAL,
    "gemini": GEMINI_LEGAL,
}


@pytest.mark.parametrize(
    ("judge", "make", "spoil"),
    [
        pytest.param(judge, make, spoil, id=f"{vendor}-{name}")
        for vendor, judge, make, spoils in JUDGES
        for name, spoil in spoils.items()
    ],
)
def test_an_illegal_request_is_rejected(
    judge: Callable[[Json], list[str]], make: Callable[[], Json], spoil: Spoil
) -> None:
    body = copy.deepcopy(make())
    spoil(body)
    assert judge(body) != []


@pytest.mark.parametrize(
    ("judge", "make", "change"),
    [
        pytest.param(judge, make, change, id=f"{vendor}-{name}")
        for vendor, judge, make, _ in JUDGES
        for name, change in LEGAL[vendor].items()
    ],
)
def test_a_legal_request_is_accepted(
    judge: Callable[[Json], list[str]], make: Callable[[], Json], change: Spoil
) -> None:
    body = copy.deepcopy(make())
    change(body)
    assert judge(body) == []


def test_a_signature_of_another_model_is_rejected() -> None:
    assert validate_anthropic(anthropic(), signed={"sig"}) == []
    assert validate_anthropic(anthropic(), signed={"other"}) != []
    assert validate_openai_responses(responses(), signed={"blob"}) == []
    assert validate_openai_responses(responses(), signed=()) != []
    assert validate_gemini(gemini(), model="gemini-3-flash", signed={"sig"}) == []
    assert validate_gemini(gemini(), model="gemini-3-flash", signed=()) != []


def test_every_judge_has_at_least_twelve_illegal_fixtures() -> None:
    assert all(len(spoils) >= 12 for *_, spoils in JUDGES)
