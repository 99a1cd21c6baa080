"""How each vendor is spoken to: the words chosen where the rules alone leave a choice."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import msgspec
import pytest

from tests.support.example_count import examples
from weft.ids import BlobId, CallUid
from weft.messages import (
    CallResult,
    CallResults,
    ChatMessage,
    File,
    Image,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from weft.providers.anthropic.encode import BINDING_BETA
from weft.providers.anthropic.encode import encode as anthropic
from weft.providers.anthropic.stream import AnthropicWire
from weft.providers.base import Message, ModelInfo, ModelRequest, ThinkingLevel, ToolSpec
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.google.encode import encode as google
from weft.providers.normalize import real_names, turns, wire_name
from weft.providers.ollama.encode import encode as ollama
from weft.providers.openai.encode import encode as responses
from weft.providers.openai_chat.encode import (
    COMPATIBLE,
    DEEPSEEK,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    ChatDialect,
)
from weft.providers.openai_chat.encode import encode as chat
from weft.providers.openai_chat.stream import ChatWire

PIXEL = "iVBORw0KGgo="
READ = ToolSpec(
    name="read",
    description="Reads a file.",
    schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def info(provider: str, model: str, **more: Any) -> ModelInfo:
    known = shipped().info(provider, model)
    return msgspec.structs.replace(known, **{"sees_images": True, **more})


def user(*parts: Part | str) -> ChatMessage:
    return ChatMessage(
        role="user", parts=tuple(Text(text=p) if isinstance(p, str) else p for p in parts)
    )


def model_says(*parts: Part | str) -> ChatMessage:
    return ChatMessage(
        role="assistant", parts=tuple(Text(text=p) if isinstance(p, str) else p for p in parts)
    )


def call(number: int, *, provider: str = "", provider_id: str = "", **more: Any) -> ToolCall:
    return ToolCall(
        call_uid=CallUid(f"cal_{number}"),
        name="read",
        args={"path": "a"},
        provider=provider,
        provider_id=provider_id,
        **more,
    )


def gave(*calls: ToolCall, text: str = "ok", **more: Any) -> CallResults:
    return CallResults(
        results=tuple(
            CallResult(call_uid=c.call_uid, provider_id="", tool_name=c.name, text=text, **more)
            for c in calls
        )
    )


def ask(model: str, *messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(model=model, messages=messages, **more)


CLAUDE, GPT, GEMINI = "claude-sonnet-4-6", "gpt-5", "gemini-2.5-flash"
A, R, C, G = (
    info("anthropic", CLAUDE),
    info("openai", GPT),
    info("openai-chat", GPT),
    info("google", GEMINI),
)


# --- ids -------------------------------------------------------------------------------


def test_a_vendors_id_goes_back_to_it_and_to_no_other() -> None:
    one = call(1, provider="anthropic", provider_id="toolu_9")
    messages = (user("go"), model_says(one), gave(one))
    assert b"toolu_9" in msgspec.json.encode(anthropic(ask(CLAUDE, *messages), A))
    for body in (
        responses(ask(GPT, *messages), R),
        chat(ask(GPT, *messages), C),
        google(ask(GEMINI, *messages), G),
    ):
        assert b"toolu_9" not in msgspec.json.encode(body)


def test_a_made_up_id_is_the_same_in_every_request() -> None:
    odd = ToolCall(call_uid=CallUid("cal:odd/" + "x" * 70), name="read")
    first = chat(ask(GPT, user("go"), model_says(odd), gave(odd)), C)
    later = chat(ask(GPT, user("go"), model_says(odd), gave(odd), model_says("x"), user("y")), C)
    wire_id = first["messages"][1]["tool_calls"][0]["id"]
    assert wire_id == later["messages"][1]["tool_calls"][0]["id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", wire_id)


def test_an_id_that_a_vendor_gave_twice_is_sent_once() -> None:
    one, two = (call(n, provider="anthropic", provider_id="same") for n in (1, 2))
    body = anthropic(ask(CLAUDE, user("go"), model_says(one, two), gave(one, two)), A)
    blocks = body["messages"][1]["content"]
    assert [block["id"] for block in blocks] == ["same", "cal_2"]
    results = body["messages"][2]["content"]
    assert [block["tool_use_id"] for block in results] == ["same", "cal_2"]


def test_odd_tool_names_are_made_legal_and_found_again() -> None:
    odd = msgspec.structs.replace(READ, name="mcp.fs/read")
    assert real_names((odd, READ)) == {wire_name("mcp.fs/read"): "mcp.fs/read"}
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", wire_name("9" * 90))
    assert wire_name("mcp.fs/read") != wire_name("mcp_fs_read")


# --- what a model cannot take ----------------------------------------------------------


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    body = anthropic(ask(CLAUDE, user("go"), model_says(call(1)), user("well?")), A)
    results = body["messages"][2]["content"]
    assert results[0]["is_error"] is True
    assert "No result was recorded" in results[0]["content"]
    assert results[1]["text"] == "well?"


def test_malformed_arguments_go_back_as_an_empty_object() -> None:
    bad = ToolCall(call_uid=CallUid("cal_1"), name="read", raw_args='{"path')
    body = chat(ask(GPT, user("go"), model_says(bad), gave(bad, is_error=True)), C)
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert body["messages"][2]["content"] == "Error: ok"


def test_a_picture_for_a_blind_model_becomes_a_note() -> None:
    blind = info("openai-chat", "tiny", sees_images=False)
    picture = Image(media_type="image/png", data=PIXEL, name="shot.png")
    body = chat(ask("tiny", user("see", picture)), blind)
    assert body["messages"][0]["content"][1]["text"] == (
        "[image 'shot.png' left out: this model cannot see images]"
    )


def test_a_file_is_sent_as_text_under_its_name() -> None:
    body = responses(ask(GPT, user(File(name="a.py", text="x = 1"))), R)
    assert body["input"][0]["content"][0]["text"] == '<file name="a.py">\nx = 1\n</file>'


def test_a_text_whose_rest_was_not_fetched_says_so() -> None:
    body = chat(ask(GPT, user(Text(text="begin", blob=BlobId("0" * 64)))), C)
    assert body["messages"][0]["content"].startswith("begin\n[the rest of this text is left out")


def test_reasoning_of_the_same_model_elsewhere_is_left_out() -> None:
    ours = Thinking(text="own", signature="s1", provider="anthropic", model=CLAUDE)
    cloud = Thinking(text="cloud", signature="s2", provider="bedrock", model=CLAUDE)
    older = Thinking(text="older", signature="s3", provider="anthropic", model="claude-opus-4-6")
    body = anthropic(
        ask(CLAUDE, user("a"), model_says(ours, cloud, older, "b"), user("c"), thinking="low"), A
    )
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "own", "signature": "s1"},
        {"type": "text", "text": "b"},
    ]


# --- Anthropic -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        # Adaptive thinking comes between words too, and must go back as it came.
        ("claude-opus-4-8", ["thinking", "text", "thinking", "text", "tool_use"]),
        ("claude-sonnet-4-5", ["thinking", "thinking", "text", "text", "tool_use"]),
    ],
)
def test_anthropic_gets_reasoning_back_in_its_place_and_calls_last(
    model: str, kinds: list[str]
) -> None:
    first, second = (
        Thinking(text="t", signature=sign, provider="anthropic", model=model) for sign in "ab"
    )
    one = call(1)
    said = model_says(first, "x", second, one, "y")
    request = ask(model, user("a"), said, gave(one), thinking="high")
    blocks = anthropic(request, info("anthropic", model))["messages"][1]["content"]
    assert [block["type"] for block in blocks] == kinds


def test_anthropic_shows_what_a_failed_call_gave_after_the_results() -> None:
    one = call(1)
    picture = Image(media_type="image/png", data=PIXEL)
    failed = gave(one, text="no", images=(picture,), is_error=True)
    body = anthropic(ask(CLAUDE, user("a"), model_says(one), failed), A)
    result, words, shown = body["messages"][2]["content"]
    assert (result["content"], result["is_error"]) == ("no", True)
    assert words["text"] == "Images from read:"
    assert shown["source"]["data"] == PIXEL


def test_anthropic_marks_system_tools_and_the_last_two_user_messages() -> None:
    messages = (user("a"), model_says("b"), user("c"), model_says("d"), user("e"))
    body = anthropic(ask(CLAUDE, *messages, system="s", tools=(READ, READ)), A)
    mark = {"type": "ephemeral"}
    assert body["system"][0]["cache_control"] == mark
    assert "cache_control" not in body["tools"][0]
    assert body["tools"][1]["cache_control"] == mark
    marked = ["cache_control" in m["content"][-1] for m in body["messages"]]
    assert marked == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("model", "level", "expected"),
    [
        ("claude-sonnet-4-6", "medium", {"type": "adaptive"}),
        ("claude-sonnet-5", "max", {"type": "adaptive", "display": "summarized"}),
        ("claude-opus-4-8", "off", None),
        ("claude-opus-5", "off", {"type": "disabled"}),
        ("claude-haiku-5-5", "off", {"type": "disabled"}),
        ("claude-sonnet-5-5", "off", {"type": "between_tools"}),
        ("claude-opus-5-5", "off", {"type": "adaptive", "display": "summarized"}),
        ("claude-fable-5", "off", {"type": "adaptive", "display": "summarized"}),
        ("claude-haiku-6", "off", {"type": "adaptive", "display": "summarized"}),
        ("our-own-name", "off", None),
        ("claude-sonnet-4-5-20250929", "low", {"type": "enabled", "budget_tokens": 4096}),
        ("claude-sonnet-4-5-20250929", "max", {"type": "enabled", "budget_tokens": 28672}),
        ("claude-opus-4-20250514", "max", {"type": "enabled", "budget_tokens": 24000}),
        ("claude-sonnet-4-6", "off", None),
        ("claude-sonnet-4-6", "default", None),
        ("claude-haiku-4-5", "default", None),
        ("our-own-name", "default", None),
        ("claude-sonnet-5-5", "default", {"type": "adaptive", "display": "summarized"}),
    ],
)
def test_anthropic_thinks_in_the_form_of_the_model(
    model: str, level: ThinkingLevel, expected: object
) -> None:
    body = anthropic(
        ask(model, user("a"), thinking=level),
        info("anthropic", model, max_output_tokens=32_768),
    )
    assert body.get("thinking") == expected


def test_anthropic_thinks_least_where_it_cannot_be_turned_off() -> None:
    model = "claude-opus-5-5"
    thought = Thinking(text="", signature="s", provider="anthropic", model=model)
    request = ask(model, user("a"), model_says(thought, "b"), user("c"), thinking="off")
    body = anthropic(request, info("anthropic", model))
    assert body["output_config"] == {"effort": "low"}
    assert body["messages"][1]["content"][0]["signature"] == "s"


@pytest.mark.parametrize(
    ("model", "level", "effort"),
    [
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-8", "xhigh", "xhigh"),
        ("claude-sonnet-5-5", "minimal", "low"),
        ("claude-haiku-6", "max", "high"),
    ],
)
def test_anthropic_gets_the_nearest_effort_that_the_model_has(
    model: str, level: ThinkingLevel, effort: str
) -> None:
    body = anthropic(ask(model, user("a"), thinking=level), info("anthropic", model))
    assert body["output_config"] == {"effort": effort}


def test_anthropic_gets_reasoning_back_that_a_model_did_by_default() -> None:
    model = "claude-sonnet-5-5"
    thought = Thinking(text="", signature="s", provider="anthropic", model=model)
    request = ask(model, user("a"), model_says(thought, "b"), user("c"), thinking="default")
    body = anthropic(request, info("anthropic", model))
    assert "output_config" not in body
    assert body["messages"][1]["content"][0]["signature"] == "s"


@pytest.mark.parametrize(
    ("model", "address", "is_bound"),
    [
        ("claude-opus-5-5", "", True),
        ("claude-fable-5-1", "https://api.anthropic.com", True),
        ("claude-opus-5", "", False),
        ("claude-opus-5-5", "https://gateway.example/anthropic", False),
        ("claude-opus-5-5", "https://api.anthropic.com.example", False),
    ],
)
def test_anthropic_drops_reasoning_whose_conversation_changed_instead_of_refusing(
    model: str, address: str, is_bound: bool
) -> None:
    wire = AnthropicWire(
        ProviderAccess(key="k", base_url=address), "anthropic", shipped().vendor("anthropic")
    )
    sent = wire.http(ask(model, user("a"), thinking="high"), info("anthropic", model))
    thinking = msgspec.json.decode(sent.body)["thinking"]
    assert ("anthropic-beta", BINDING_BETA) in sent.headers or not is_bound
    asked = {"prefix_mismatch_behavior": "drop_block"} if is_bound else None
    assert thinking.get("block_binding") == asked


def test_anthropic_opens_the_running_round_with_reasoning_that_came_last_in_it() -> None:
    old = "claude-sonnet-4-5"
    one = call(1)
    last = Thinking(text="t", signature="a", provider="anthropic", model=old)
    request = ask(old, user("a"), model_says("x", one, last), gave(one), thinking="high")
    body = anthropic(request, info("anthropic", old))
    assert body["thinking"]["type"] == "enabled"
    kinds = [block["type"] for block in body["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]


def test_anthropic_turns_thinking_off_when_the_running_round_has_none() -> None:
    old = "claude-sonnet-4-5"
    one = call(1, provider="openai")
    body = anthropic(
        ask(old, user("a"), model_says(one), gave(one), thinking="high"), info("anthropic", old)
    )
    assert "thinking" not in body


def test_anthropic_declares_the_tools_of_the_history_when_none_may_be_called() -> None:
    one = call(1)
    body = anthropic(ask(CLAUDE, user("a"), model_says(one), gave(one), user("sum up")), A)
    assert [tool["name"] for tool in body["tools"]] == ["read"]
    assert body["tool_choice"] == {"type": "none"}


def test_anthropic_prefills_only_where_the_model_allows_it() -> None:
    old = "claude-3-5-haiku-latest"
    messages = (user("a"), model_says("once upon "))
    body = anthropic(ask(old, *messages), info("anthropic", old, thinks=False))
    assert body["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "once upon"}],
    }
    assert anthropic(ask(CLAUDE, *messages), A)["messages"][-1]["role"] == "user"


def test_anthropic_takes_a_schema_as_output_format_or_in_words() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    form = anthropic(ask(CLAUDE, user("a"), schema=schema), A)["output_config"]["format"]
    assert form["schema"]["additionalProperties"] is False
    assert form["schema"]["properties"]["n"] == {"type": "integer", "description": "(minimum 1)"}
    old = anthropic(ask("claude-3-5-haiku-latest", user("a"), schema=schema), A)
    assert "fits this JSON Schema" in old["system"][0]["text"]


# --- OpenAI ----------------------------------------------------------------------------


def test_responses_sends_reasoning_back_encrypted_before_what_it_led_to() -> None:
    thought = Thinking(text="sum", signature="rs_1 gAAA", provider="openai", model=GPT)
    one = call(1, provider="openai", provider_id="call_x")
    body = responses(
        ask(GPT, user("a"), model_says(thought, one), gave(one), tools=(READ,), session_id="ses_1"),
        R,
    )
    assert [item["type"] for item in body["input"]] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert body["input"][1] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "sum"}],
        "encrypted_content": "gAAA",
        "id": "rs_1",
    }
    assert body["input"][2]["call_id"] == "call_x"
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["store"] is False
    assert body["prompt_cache_key"] == "ses_1"


@pytest.mark.parametrize(
    ("model", "level", "effort"),
    [
        ("gpt-5", "off", "minimal"),
        ("gpt-5.1", "off", "none"),
        ("gpt-5.2", "max", "xhigh"),
        ("gpt-5", "max", "high"),
        ("gpt-5-codex", "off", "low"),
        ("o3", "off", "low"),
        ("gpt-5", "medium", "medium"),
        ("gpt-6-sol", "off", "none"),
        ("gpt-6.1-sol", "off", "low"),
        ("gpt-6-astra", "off", "low"),
        ("gpt-6.1-terra", "max", "max"),
        ("gpt-5.6-sol", "max", "max"),
        ("gpt-5.6-sol", "minimal", "low"),
        ("gpt-5-pro", "low", "high"),
        ("gpt-5-pro", "off", "high"),
        ("gpt-5.2-pro", "off", "medium"),
        ("gpt-6.1-sol", "default", None),
    ],
)
def test_responses_says_how_much_to_think(
    model: str, level: ThinkingLevel, effort: str | None
) -> None:
    body = responses(ask(model, user("a"), thinking=level), info("openai", model))
    assert body["reasoning"].get("effort") == effort


@pytest.mark.parametrize(
    ("model", "phases"),
    [("gpt-6-sol", ["commentary", "final_answer"]), ("gpt-5.1", [None, None])],
)
def test_responses_says_which_words_were_said_on_the_way(
    model: str, phases: list[str | None]
) -> None:
    one = call(1)
    said = (user("a"), model_says("let me look", one), gave(one), model_says("done"), user("b"))
    items = responses(ask(model, *said), info("openai", model))["input"]
    assert [item.get("phase") for item in items if item.get("role") == "assistant"] == phases


def test_a_schema_is_strict_only_where_that_changes_nothing() -> None:
    tight = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert responses(ask(GPT, user("x"), schema=tight), R)["text"]["format"]["strict"] is True
    assert responses(ask(GPT, user("x"), schema=loose), R)["text"]["format"]["strict"] is False


def test_chat_shows_pictures_of_tools_after_all_results() -> None:
    one, two = call(1), call(2)
    picture = Image(media_type="image/png", data=PIXEL)
    body = chat(
        ask(GPT, user("a"), model_says(one, two), gave(one, two, images=(picture,)), user("b")), C
    )
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    kinds = [block["type"] for block in body["messages"][-1]["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]


@pytest.mark.parametrize("dialect", [OPENAI, DEEPSEEK, MISTRAL, OPENROUTER])
def test_chat_requests_that_grow_are_as_if_each_were_the_first(dialect: ChatDialect) -> None:
    """What is kept of the turns before shows in no request, also in a dialect that marks some."""
    model, scratch = "anthropic/claude-sonnet-5.5", dict[int, Any]()
    said: list[Message] = [user("a")]
    seen = []
    for number in range(12):
        each = call(number)
        picture = Image(media_type="image/png", data=PIXEL, name=str(number))
        shown = (picture,) * (5 if number % 2 else 0)
        said += [model_says(f"step {number}", each), gave(each, images=shown)]
        if number % 3 == 0:
            said += [model_says("half"), user("go on")]
        # A request in another dialect between those of this one, as with a fallback model.
        if number % 5 == 0:
            chat(ask(model, *said, scratch=scratch), C, COMPATIBLE)
        body = chat(ask(model, *said, scratch=scratch), C, dialect)
        assert body == chat(ask(model, *said), C, dialect)
        seen.append((body, msgspec.json.encode(body)))
    assert all(msgspec.json.encode(body) == sent for body, sent in seen)


def some_message(chance: random.Random, open_calls: list[ToolCall]) -> Message:
    """A message of any kind; also ones that a sound history does not hold."""
    kind = chance.choice(["user", "blank", "model", "calls", "calls", "results", "results", "pdf"])
    if kind == "calls":
        # Ids that the vendor gave twice, too.
        made = [
            call(chance.randrange(10**6), provider="openai-chat", provider_id=f"id{number % 3}")
            for number in range(chance.randrange(1, 3))
        ]
        open_calls[:] = made
        return model_says("so", *made)
    if kind == "results":
        shots = (Image(media_type="image/png", data=PIXEL),) * chance.randrange(8)
        return gave(*open_calls, images=shots)
    if kind == "pdf" and chance.random() < 0.2:
        # Of two of them the vendor takes only the newer.
        return user("see", Image(media_type="application/pdf", data=PIXEL, name="a", pages=60))
    said = {"user": user("x"), "blank": user(" ")}.get(kind)
    return said or model_says("y", Thinking(text="hm", signature="s", provider="openai-chat"))


@pytest.mark.parametrize("seed", range(examples(60)))
def test_requests_that_grow_or_go_back_are_shaped_as_if_each_were_the_first(seed: int) -> None:
    chance, scratch = random.Random(seed), dict[int, Any]()
    said: list[Message] = []
    calls: list[ToolCall] = []
    for _ in range(25):
        said += [some_message(chance, calls) for _ in range(chance.randrange(4))]
        if chance.random() < 0.1:  # a rewind, or another branch
            del said[chance.randrange(len(said) + 1) :]
        reads = msgspec.structs.replace(C, reads_pdf=True)
        info = chance.choice([reads, reads, reads, msgspec.structs.replace(C, sees_images=False)])
        again = turns(ask(GPT, *said, scratch=scratch), info)
        assert again == turns(ask(GPT, *said), info)


def test_chat_encodes_the_turns_of_a_session_once() -> None:
    one, two, scratch = call(1), call(2), dict[int, Any]()
    first = (user("a"), model_says(one), gave(one))
    before = chat(ask(GPT, *first, scratch=scratch), C)["messages"]
    after = chat(ask(GPT, *first, model_says(two), gave(two), scratch=scratch), C)["messages"]
    assert [a is b for a, b in zip(before, after, strict=False)] == [False, True, True]


def test_chat_dialects_differ_in_words() -> None:
    request = ask(GPT, user("a"), max_output_tokens=9, temperature=0.5, thinking="max")
    official = chat(request, C, OPENAI)
    common = chat(request, C, COMPATIBLE)
    assert (official["max_completion_tokens"], official["reasoning_effort"]) == (9, "high")
    assert "temperature" not in official
    assert (common["max_tokens"], common["temperature"]) == (9, 0.5)
    assert "reasoning_effort" not in common


def test_chat_gives_reasoning_back_where_the_server_wants_it() -> None:
    thought = Thinking(text="hm", signature="x", provider="openai-chat", model=GPT)
    one = call(1)
    request = ask(GPT, user("a"), model_says(thought, one), gave(one))
    wanting = chat(request, C, ChatDialect(reasoning_back=True))
    assert wanting["messages"][1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in chat(request, C)["messages"][1]


# --- Gemini ----------------------------------------------------------------------------


def test_gemini_returns_a_calls_signature_and_marks_foreign_calls() -> None:
    three = "gemini-3-pro-preview"
    own = call(1, provider="google", provider_id="g1", signature="proof")
    foreign = call(2, provider="openai", signature="other")
    body = google(
        ask(three, user("a"), model_says(own), gave(own), model_says(foreign), gave(foreign)),
        info("google", three),
    )
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part for part in parts if "functionCall" in part]
    assert calls[0] == {
        "functionCall": {"name": "read", "args": {"path": "a"}, "id": "g1"},
        "thoughtSignature": "proof",
    }
    assert calls[1]["thoughtSignature"] == "skip_thought_signature_validator"
    assert "id" not in calls[1]["functionCall"]


def test_gemini_gets_no_signature_that_another_of_its_models_gave() -> None:
    model = "gemini-3.8-flash"
    own = call(1, provider="google", provider_id="g1", signature="proof")
    said = msgspec.structs.replace(model_says(own), model="google:gemini-4-argon")
    body = google(ask(model, user("a"), said, gave(own)), info("google", model))
    part = body["contents"][1]["parts"][0]
    assert part["thoughtSignature"] == "skip_thought_signature_validator"
    assert part["functionCall"]["id"] == "g1"


def test_gemini_cannot_have_a_schema_beside_tools_before_version_three() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    old = google(ask(GEMINI, user("x"), schema=schema, tools=(READ,)), G)
    assert "responseJsonSchema" not in old.get("generationConfig", {})
    assert "fits this JSON Schema" in old["systemInstruction"]["parts"][0]["text"]
    new = google(ask("gemini-3-flash", user("x"), schema=schema, tools=(READ,)), G)
    assert new["generationConfig"]["responseJsonSchema"] == schema


@pytest.mark.parametrize(
    ("model", "level", "expected"),
    [
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 512}),
        ("gemini-2.5-pro", "low", {"thinkingBudget": 2048, "includeThoughts": True}),
        ("gemini-2.5-pro", "default", {"includeThoughts": True}),
        ("gemini-2.5-flash-lite", "default", None),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-3-flash-preview", "off", {"thinkingLevel": "minimal"}),
        ("gemini-4-argon", "off", {"thinkingLevel": "low"}),
        ("gemini-3.7-flash", "off", {"thinkingLevel": "low"}),
        ("gemini-3.8-flash", "off", {"thinkingLevel": "low"}),
        ("gemini-3.8-flash", "minimal", {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-3.8-flash", "medium", {"thinkingLevel": "medium", "includeThoughts": True}),
        ("gemini-3.8-flash", "default", {"includeThoughts": True}),
    ],
)
def test_gemini_thinks_in_the_form_of_the_model(
    model: str, level: ThinkingLevel, expected: object
) -> None:
    body = google(ask(model, user("a"), thinking=level), info("google", model))
    assert body.get("generationConfig", {}).get("thinkingConfig") == expected


def test_gemini_declares_a_tool_without_arguments_without_parameters() -> None:
    bare = ToolSpec(name="now", description="The time.", schema={"type": "object"})
    body = google(ask(GEMINI, user("a"), tools=(bare, READ)), G)
    declared = body["tools"][0]["functionDeclarations"]
    assert declared[0] == {"name": "now", "description": "The time."}
    assert declared[1]["parametersJsonSchema"] == READ.schema


def test_mistral_gets_ids_and_an_order_that_it_takes() -> None:
    one, two = call(1), call(2, provider="mistral", provider_id="abcDEF123")
    said = (user("a"), model_says(one, two), gave(one, two), user("and now?"))
    asked = info("mistral", "mistral-medium-latest")
    messages = chat(ask("mistral-medium-latest", *said), asked, MISTRAL)["messages"]
    made, own = (each["id"] for each in messages[1]["tool_calls"])
    assert re.fullmatch("[a-zA-Z0-9]{9}", made)
    assert own == "abcDEF123"
    assert [m.get("tool_call_id") for m in messages[2:4]] == [made, own]
    assert [m["role"] for m in messages[3:]] == ["tool", "assistant", "user"]


def test_deepseek_gets_reasoning_back_beside_calls_even_where_there_was_none() -> None:
    model = "deepseek-v4-pro"
    asked = info("deepseek", model)
    mine, foreign = call(1), call(2)
    thought = Thinking(text="hm", signature="reasoning_content", provider="deepseek", model=model)
    said = (user("a"), model_says(thought, mine), gave(mine), model_says(foreign), gave(foreign))
    body = chat(ask(model, *said, thinking="high"), asked, DEEPSEEK)
    given = [m["reasoning_content"] for m in body["messages"] if "tool_calls" in m]
    assert given == ["hm", ""]
    assert (body["thinking"], body["reasoning_effort"]) == ({"type": "enabled"}, "high")
    off = chat(ask(model, *said, thinking="off"), asked, DEEPSEEK)
    assert off["thinking"] == {"type": "disabled"}
    untold = chat(ask(model, *said, thinking="default"), asked, DEEPSEEK)
    assert untold.keys() & {"thinking", "reasoning_effort"} == set()


def test_openai_chat_leaves_reasoning_out_beside_tools_where_it_must() -> None:
    cases = (("gpt-6-sol", "none"), ("gpt-5.5", "none"), ("gpt-5.2", "high"))
    for model, effort in cases:
        request = ask(model, user("a"), thinking="high", tools=(READ,))
        assert chat(request, info("openai-chat", model), OPENAI)["reasoning_effort"] == effort
    untold = ask("gpt-6-sol", user("a"), thinking="default", tools=(READ,))
    asked = info("openai-chat", "gpt-6-sol")
    assert chat(untold, asked, OPENAI)["reasoning_effort"] == "none"


@pytest.mark.parametrize(
    ("model", "level", "think"),
    [
        ("gpt-oss:20b", "off", "low"),
        ("gpt-oss:20b", "medium", "medium"),
        ("gpt-oss:20b", "max", "high"),
        ("qwen3:8b", "max", True),
        ("qwen3:8b", "minimal", True),
        ("qwen3:8b", "off", False),
        ("qwen3:8b", "default", None),
        ("gpt-oss:20b", "default", None),
    ],
)
def test_ollama_says_how_much_to_think_in_the_models_words(
    model: str, level: ThinkingLevel, think: object
) -> None:
    body = ollama(ask(model, user("a"), thinking=level), info("ollama", model))
    assert body.get("think") == think


def test_of_many_pictures_only_the_newest_are_shown() -> None:
    """Beyond twenty, one vendor takes only small ones; ten go at once, so that caches hold."""

    def seen(count: int) -> list[str]:
        shots = [Image(media_type="image/png", data=PIXEL, name=str(n)) for n in range(count)]
        one = call(1)
        last = gave(one, images=tuple(shots[1:4]))
        said = (user(shots[0]), model_says(one), last, user(*shots[4:]))
        body = anthropic(ask(CLAUDE, *said), A)
        blocks = msgspec.json.encode(body).decode()
        assert blocks.count(PIXEL) + blocks.count("an older image left out") == count
        return re.findall("an older image left out|iVBORw0KGgo=", blocks)

    assert seen(20).count("an older image left out") == 0
    for count in (21, 30):
        assert seen(count)[:10] == ["an older image left out"] * 10
        assert seen(count)[10:] == [PIXEL] * (count - 10)
    assert seen(31).count(PIXEL) == 11


@pytest.mark.parametrize(("provider", "model"), [("moonshot", "kimi-k3"), ("zai", "glm-5.3")])
def test_kimi_and_glm_get_their_reasoning_back_beside_calls(provider: str, model: str) -> None:
    """Kimi answers 400 to a call without it: "reasoning_content is missing"."""
    wire = ChatWire(ProviderAccess(key="k"), provider, shipped().vendor(provider))
    thought = Thinking(text="hm", signature="reasoning_content", provider=provider, model=model)
    said = (user("a"), model_says(thought, call(1)), gave(call(1)))
    sent = wire.http(ask(model, *said), shipped().info(provider, model))
    assert json.loads(sent.body)["messages"][1]["reasoning_content"] == "hm"
