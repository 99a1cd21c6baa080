"""Continuation strategies: which one a model gets, and what it is sent."""

from __future__ import annotations

import pytest

from weft.errors import UsageError
from weft.loom.continuation import (
    SEED_LENGTH,
    STRATEGIES,
    ContinuationOptions,
    Strategy,
    choose_strategy,
    continuation_request,
    prompt_entries,
)
from weft.messages import parse_model_name
from weft.providers import ModelInfo, ModelRequest
from weft.providers.catalogue import shipped


def info(name: str) -> ModelInfo:
    named = parse_model_name(name)
    if named.provider in ("scripted", "myserver"):
        return ModelInfo(provider=named.provider, name=named.model)
    return shipped().info(named.provider, named.model)


def asked(
    name: str, text: str, strategy: Strategy | None = None, **options: object
) -> ModelRequest:
    model = info(name)
    chosen = strategy or choose_strategy(model)
    given = ContinuationOptions(**options)  # type: ignore[arg-type]
    return continuation_request(model, chosen, text, given)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("local:smollm2", "completion"),
        ("ollama:llama3.2", "completion"),
        ("openai:davinci-002", "completion"),
        ("openai:gpt-3.5-turbo-instruct", "completion"),
        ("openai:gpt-4o-mini", "system"),
        ("openai:gpt-6.1-sol", "system"),
        ("anthropic:claude-sonnet-4-5", "prefill"),
        ("anthropic:claude-3-5-sonnet-20241022", "prefill"),
        ("anthropic:claude-opus-4-6", "system"),
        ("anthropic:claude-sonnet-5-5", "system"),
        ("mistral:mistral-large-4", "prefill"),
        ("mistral:codestral-2508", "fim"),
        ("ollama:starcoder2", "fim"),
        ("google:gemini-2.5-flash", "system"),
        ("deepseek:deepseek-v4-pro", "system"),
        ("together:meta-llama/Llama-3.1-8B-base", "completion"),
        ("myserver:Qwen3-8B-Base", "completion"),
        ("myserver:Qwen3-8B-Instruct", "system"),
        ("scripted:anything", "system"),
    ],
)
def test_each_model_gets_the_strategy_that_it_takes_best(name: str, strategy: str) -> None:
    assert choose_strategy(info(name)) == strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_strategy_that_is_asked_for_comes_first(strategy: Strategy) -> None:
    model = info("ollama:qwen2.5-coder")
    assert choose_strategy(model, strategy) == strategy


@pytest.mark.parametrize(
    ("name", "strategy", "says"),
    [
        ("openai:gpt-4o", "beam", "no strategy 'beam'; there are completion, prefill"),
        ("anthropic:claude-opus-4-6", "completion", "takes no raw text"),
        ("anthropic:claude-opus-4-6", "prefill", "begun for it; use system"),
        ("ollama:llama3.2", "fim", "not known; use completion"),
    ],
)
def test_a_strategy_that_cannot_be_is_refused_in_one_sentence(
    name: str, strategy: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        choose_strategy(info(name), strategy)


def test_completion_sends_the_text_and_nothing_else() -> None:
    request = asked("local:smollm2", "Once upon a time", context="be sad", max_tokens=40, seed=7)
    assert request.prompt == "Once upon a time"
    assert (request.messages, request.system) == ((), "")
    assert (request.max_output_tokens, request.seed) == (40, 7)
    assert [(e.role, e.text) for e in prompt_entries(request)] == [("prompt", "Once upon a time")]


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("ollama:starcoder2", "<fim_prefix>a(<fim_suffix>)<fim_middle>"),
        ("ollama:qwen2.5-coder", "<|fim_prefix|>a(<|fim_suffix|>)<|fim_middle|>"),
        ("ollama:deepseek-coder", "<｜fim▁begin｜>a(<｜fim▁hole｜>)<｜fim▁end｜>"),
        ("ollama:codellama", "<PRE> a( <SUF>) <MID>"),
        ("ollama:codestral", "[SUFFIX])[PREFIX]a("),
    ],
)
def test_gaps_are_marked_with_the_tokens_of_the_family(name: str, prompt: str) -> None:
    request = asked(name, "a(", "fim", suffix=")", context="ignored")
    assert (request.prompt, request.suffix) == (prompt, "")


def test_a_vendor_with_an_address_for_gaps_gets_them_apart() -> None:
    request = asked("mistral:codestral-2508", "a(", suffix=")")
    assert (request.prompt, request.suffix) == ("a(", ")")


def test_prefill_begins_the_answer_with_the_end_of_the_text() -> None:
    text = "It was a dark and stormy night; the rain fell "
    request = asked("anthropic:claude-sonnet-4-5", text, context="An old ship.")
    system, user, begun = prompt_entries(request)
    assert request.prefill
    assert text in system.text
    assert "<context>\nAn old ship.\n</context>" in system.text
    assert user.text == "[continue]"
    assert begun.role == "assistant"
    assert begun.text == text.rstrip()[-SEED_LENGTH:].lstrip()


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_has_no_beginning_to_repeat(text: str) -> None:
    request = asked("anthropic:claude-sonnet-4-5", text)
    assert not request.prefill
    assert [entry.role for entry in prompt_entries(request)] == ["system", "user"]


@pytest.mark.parametrize("strategy", ["system", "few_shot"])
def test_chat_models_are_shown_the_text_with_one_space_behind_it(strategy: Strategy) -> None:
    def shown(text: str) -> str:
        return prompt_entries(asked("openai:gpt-4o", text, strategy))[-1].text

    assert shown("a loom that") == "a loom that "
    assert shown("a loom that  ") == "a loom that "
    assert shown("one line\n") == "one line\n"
    assert shown(" ") == "(The text is still empty. Write its beginning.)"


def test_few_shot_shows_four_examples() -> None:
    (system, _) = prompt_entries(asked("openai:gpt-4o", "x", "few_shot", context="c"))
    assert system.text.count("<example>") == 4
    assert system.text.endswith("<context>\nc\n</context>")


@pytest.mark.parametrize(
    ("name", "thinking", "most"),
    [
        ("openai:gpt-4o", "default", 40),
        ("anthropic:claude-opus-5", "off", 40),
        ("openai:gpt-6.1-sol", "off", 40 + 4_096),
        ("ollama:qwen3", "off", 40),
    ],
)
def test_models_think_as_little_as_they_can_and_have_room_for_it(
    name: str, thinking: str, most: int
) -> None:
    request = asked(name, "x", "system", max_tokens=40)
    assert (request.thinking, request.max_output_tokens) == (thinking, most)


@pytest.mark.parametrize(
    ("name", "logprobs"),
    [
        ("local:smollm2", 3),
        ("ollama:llama3.2", 3),
        ("openai:gpt-4o", 3),
        ("openai:davinci-002", 3),
        ("deepseek:deepseek-v4-pro", 3),
        ("myserver:anything", 3),
        ("openai:gpt-6.1-sol", None),
        ("anthropic:claude-sonnet-4-5", None),
        ("google:gemini-2.5-flash", None),
    ],
)
def test_probabilities_are_asked_of_models_that_give_them(name: str, logprobs: int | None) -> None:
    assert asked(name, "x", logprobs=3).logprobs == logprobs
    assert asked(name, "x").logprobs is None
