"""Neutral conversations for property tests: legal ones, with everything that happens to real
histories.

Parts come from several providers and models, ids repeat and carry odd characters, texts may be
blank, arguments may have been nonsense, pictures may have lost their content.
"""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from weft.ids import CallUid
from weft.messages import (
    PDF_TYPE,
    CallResult,
    CallResults,
    ChatMessage,
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from weft.providers.base import ModelRequest, ToolSpec
from weft.thinking_levels import THINKING_LEVELS

PROVIDERS = ["anthropic", "openai", "openai-chat", "google", "ollama"]
MODELS = ["claude-sonnet-4-6", "claude-sonnet-4-5", "gpt-5", "gemini-2.5-flash", "gemini-3-pro"]
PIXEL = "iVBORw0KGgo="

texts = st.one_of(
    st.sampled_from(["hello", " ", "", "\n\t", "a\nb  ", "ü🎈", "x" * 300]), st.text(max_size=20)
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
pictures = st.builds(
    Image,
    media_type=st.sampled_from(["image/png", "image/jpeg", "image/bmp"]),
    data=st.sampled_from([PIXEL, PIXEL, ""]),
    name=st.sampled_from(["", "shot.png"]),
)
documents = st.builds(
    Image,
    media_type=st.just(PDF_TYPE),
    data=st.sampled_from(["JVBERi0xLjQK", "JVBERi0xLjQK", ""]),
    name=st.sampled_from(["", "a/b.pdf", "x" * 600 + ".pdf"]),
    pages=st.sampled_from([0, 1, 99, 1_000]),
    text_beside=st.booleans(),
)
images = st.one_of(pictures, pictures, documents)
files = st.builds(
    File,
    name=st.sampled_from(["a.txt", "a/b.pdf"]),
    media_type=st.sampled_from(["text/plain", PDF_TYPE]),
    text=texts,
)


@st.composite
def thoughts(draw: st.DrawFn, asked: tuple[str, str]) -> Thinking:
    """Reasoning of the model that is asked now, half of the time; its proof tells who made it."""
    others = st.tuples(st.sampled_from(PROVIDERS), st.sampled_from(MODELS))
    provider, model = draw(st.one_of(st.just(asked), others))
    kind = draw(st.sampled_from(["signed", "signed", "redacted", "bare"]))
    who = base64.b64encode(f"{provider}/{model}/{draw(st.integers(0, 3))}".encode()).decode()
    proof = f"rs_1 {who}" if provider == "openai" else who
    return Thinking(
        text=draw(texts),
        signature=proof if kind == "signed" else "",
        redacted=proof if kind == "redacted" else "",
        provider=provider,
        model=model,
    )


names = st.sampled_from(["read", "write", "mcp__fs__read", "fs.read", "9lives", "n" * 90, "ü"])
ids = st.sampled_from(["", "toolu_1", "call_1", "call_1", "fc:odd/id", "c" * 60, "same", "same"])


@st.composite
def calls(draw: st.DrawFn, number: int, asked: tuple[str, str]) -> ToolCall:
    is_broken = draw(st.booleans()) and draw(st.booleans())
    provider = draw(st.one_of(st.just(asked[0]), st.sampled_from(PROVIDERS)))
    return ToolCall(
        call_uid=CallUid(f"cal_{number:026d}"),
        name=draw(names),
        args={} if is_broken else draw(st.dictionaries(st.text(max_size=4), values, max_size=3)),
        raw_args='{"half' if is_broken else "",
        provider_id=draw(ids),
        provider=provider,
        signature=draw(
            st.sampled_from(["", base64.b64encode(f"{provider}{number}".encode()).decode()])
        ),
    )


@st.composite
def messages(draw: st.DrawFn, asked: tuple[str, str]) -> tuple[Message, ...]:
    """User and assistant in any order the tree can give, every call answered right after it."""
    out: list[Message] = []
    number = 0
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.booleans()):
            said = draw(st.lists(st.one_of(st.builds(Text, text=texts), images, files), max_size=3))
            out.append(ChatMessage(role="user", parts=tuple(said)))
            continue
        parts: list[Part] = draw(
            st.lists(st.one_of(st.builds(Text, text=texts), thoughts(asked)), max_size=3)
        )
        made = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            made.append(draw(calls(number, asked)))
        mixed = draw(st.permutations([*parts, *made]))
        model = draw(st.sampled_from(["", ":".join(asked), f"{asked[0]}:another"]))
        out.append(ChatMessage(role="assistant", parts=tuple(mixed), model=model))
        ordered = [part for part in mixed if isinstance(part, ToolCall)]
        if ordered:
            out.append(CallResults(results=tuple(draw(result_of(call)) for call in ordered)))
    return tuple(out)


@st.composite
def result_of(draw: st.DrawFn, call: ToolCall) -> CallResult:
    return CallResult(
        call_uid=call.call_uid,
        provider_id=call.provider_id,
        tool_name=call.name,
        text=draw(texts),
        images=tuple(draw(st.lists(images, max_size=2))),
        is_error=draw(st.booleans()),
    )


SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {}},
    {
        "type": "object",
        "title": "Args",
        "properties": {
            "path": {"type": "string", "minLength": 1, "title": "Path"},
            "limit": {"type": ["integer", "null"], "default": None, "exclusiveMinimum": 0},
            "title": {"enum": ["a", "b"], "default": "a"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    {
        "$ref": "#/$defs/Args",
        "$defs": {
            "Args": {
                "type": "object",
                "properties": {"edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}}},
                "required": ["edits"],
            },
            "Edit": {
                "type": "object",
                "properties": {"old": {"type": "string"}},
                "required": ["old"],
            },
        },
    },
    {
        "anyOf": [
            {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "string", "pattern": "x+"}}},
        ]
    },
    {
        "type": "object",
        "properties": {"size": {"oneOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["size"],
    },
    {
        "type": "object",
        "properties": {"both": {"allOf": [{"type": "string"}, {"not": {"const": "x"}}]}},
        "required": ["both"],
    },
]


@st.composite
def tools(draw: st.DrawFn) -> tuple[ToolSpec, ...]:
    chosen = draw(st.lists(names, unique=True, max_size=4))
    return tuple(
        ToolSpec(name=name, description="Does it.", schema=draw(st.sampled_from(SCHEMAS)))
        for name in chosen
    )


@st.composite
def requests(draw: st.DrawFn, provider: str, models: list[str]) -> ModelRequest:
    """A request to one of the models of this provider."""
    model = draw(st.sampled_from(models))
    return ModelRequest(
        model=model,
        messages=draw(messages((provider, model))),
        system=draw(st.sampled_from(["", "Be brief.", "  "])),
        tools=draw(tools()),
        max_output_tokens=draw(st.sampled_from([None, 1, 500, 1100, 8_000, 64_000])),
        temperature=draw(st.sampled_from([None, 0.0, 0.7, 1.0])),
        thinking=draw(st.sampled_from(THINKING_LEVELS)),
        schema=draw(st.none() | st.sampled_from(SCHEMAS[1:])),
        session_id=draw(st.sampled_from(["", "ses_1"])),
        stop=draw(st.sampled_from([(), ("END",), ("a", "b", "c", "d", "e", "f"), (" ",)])),
    )
