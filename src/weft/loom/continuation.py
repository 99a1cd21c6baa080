"""Continuation strategies: how a model is made to go on with a text instead of answering it.

`choose_strategy` picks one for a model, `continuation_request` writes the request.  Pure: nothing
is sent from here.  Each strategy shows the model the whole text; they differ in who is made to
believe that it has written it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

import msgspec

from weft.errors import UsageError
from weft.messages import ChatMessage, Text
from weft.providers import ModelInfo, ModelRequest, ThinkingLevel, text_abilities

Strategy: TypeAlias = Literal["completion", "prefill", "system", "few_shot", "fim"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)

SEED_LENGTH: Final = 20
"""Characters of the text that a begun answer repeats: enough to fix the place, and few enough that
a vendor's limit on what it takes back does not matter.
"""
_THOUGHT_ROOM: Final[dict[ThinkingLevel, int]] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""Output tokens for the reasoning of a model that cannot be kept from it, by its least level."""

_RULES: Final = """\
The user sends the beginning of a text. Write what comes next in it.
Your whole answer is appended to that text as it is, so:
- write only new text, beginning with the very next character; repeat nothing;
- keep to its voice, tense, language, format and level of detail;
- do not greet, comment, explain, summarize, ask, or put quotation marks around it;
- do not round it off: you may stop in the middle of a sentence."""

_EXAMPLES: Final[tuple[tuple[str, str], ...]] = (
    (
        "The lamp in the harbour office had been burning since four, and Marta",
        " had not once looked up from the ledger. Outside, the first boats knocked against",
    ),
    (
        "A hash index answers equality in constant time. It cannot",
        " answer a range, because neighbouring keys land in unrelated buckets; for that",
    ),
    (
        "under the bridge\nthe water keeps\n",
        "what the sky let go of,\na slow green light\nfolding",
    ),
    (
        "“You said it was only a short walk.”\n\n“It is,” said Ivo. “If you",
        " leave out the hill.”\n\n“And how does one leave out a hill?”",
    ),
)
"""Fiction, an explanation, verse, dialogue: each begins where its text breaks off."""

_EMPTY: Final = "(The text is still empty. Write its beginning.)"
_CONTINUE: Final = "[continue]"


class ContinuationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation sets for one branch."""

    max_tokens: int = 200
    temperature: float | None = 0.9
    context: str = ""
    """What the model is to know beside the text; raw strategies have no place for it."""
    suffix: str = ""
    """Text behind the gap, for `fim`."""
    seed: int | None = None
    logprobs: int | None = None
    session_id: str = ""


class PromptEntry(msgspec.Struct, frozen=True):
    """One part of what a model is sent, for showing: `role` is `prompt` for raw text."""

    role: Literal["prompt", "system", "user", "assistant"]
    text: str


def choose_strategy(info: ModelInfo, override: str | None = None) -> Strategy:
    """The strategy for a model: the one that is asked for, or the best that it is known to take.

    Raises:
        UsageError: there is no strategy of this name, or the model cannot do it.
    """
    abilities = text_abilities(info)
    if override:
        return _checked(info, override)
    if abilities.fills_gaps:
        return "fim"
    if abilities.prefers_raw:
        return "completion"
    # A scripted model takes anything; it stands in for a chat model.
    if abilities.prefills and info.provider not in ("scripted", "replay"):
        return "prefill"
    return "system"


def _checked(info: ModelInfo, name: str) -> Strategy:
    found = next((each for each in STRATEGIES if each == name), None)
    if found is None:
        raise UsageError(f"no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    abilities = text_abilities(info)
    if found in ("completion", "fim") and not abilities.completes:
        raise UsageError(
            f"{info.provider}:{info.name} takes no raw text, so {found} cannot be used; "
            f"{choose_strategy(info)} can"
        )
    if found == "fim" and abilities.fim is None and info.provider != "mistral":
        raise UsageError(
            f"the tokens with which {info.provider}:{info.name} fills gaps are not known; "
            f"use {choose_strategy(info)}"
        )
    if found == "prefill" and not abilities.prefills:
        raise UsageError(
            f"{info.provider}:{info.name} does not go on with an answer that was begun for it; "
            f"use {choose_strategy(info)}"
        )
    return found


def continuation_request(
    info: ModelInfo, strategy: Strategy, text: str, options: ContinuationOptions
) -> ModelRequest:
    """The request that has the model continue `text`.

    Its stream gives the continuation alone; `boundary_repair` says how the two are joined.
    """
    if strategy in ("completion", "fim"):
        return _raw(info, strategy, text, options)
    thinking, room = _quiet(info)
    if strategy == "prefill":
        system = _with_context(f"{_RULES}\n\n<text>\n{text}\n</text>", options.context)
        said: tuple[ChatMessage, ...] = (_message("user", _CONTINUE),)
        # Vendors refuse a beginning that is blank, or that ends in white space.
        if seed := text.rstrip()[-SEED_LENGTH:].lstrip():
            said = (*said, _message("assistant", seed))
    else:
        rules = _RULES if strategy == "system" else f"{_RULES}\n\n{_examples()}"
        system = _with_context(rules, options.context)
        said = (_message("user", shown_text(text)),)
    return ModelRequest(
        model=info.name,
        messages=said,
        system=system,
        prefill=said[-1].role == "assistant",
        max_output_tokens=_limit(info, options.max_tokens + room),
        temperature=options.temperature,
        thinking=thinking,
        seed=options.seed,
        logprobs=_logprobs(info, options),
        session_id=options.session_id,
    )


def prompt_entries(request: ModelRequest) -> tuple[PromptEntry, ...]:
    """What the request says, part by part."""
    if request.prompt is not None:
        return (PromptEntry("prompt", request.prompt),)
    entries = [PromptEntry("system", request.system)] if request.system else []
    for message in request.messages:
        if isinstance(message, ChatMessage):
            words = "".join(part.text for part in message.parts if isinstance(part, Text))
            role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
            entries.append(PromptEntry(role, words))
    return tuple(entries)


def shown_text(text: str) -> str:
    """The text as a chat model is shown it, which begins its answer with a word, and no space.

    A line end stays as it is: behind it, verse and lists go on with a new line.
    """
    if not text.strip():
        return _EMPTY
    kept = text.rstrip(" \t")
    return kept if kept.endswith("\n") else f"{kept} "


def _raw(
    info: ModelInfo, strategy: Strategy, text: str, options: ContinuationOptions
) -> ModelRequest:
    tokens = text_abilities(info).fim if strategy == "fim" else None
    return ModelRequest(
        model=info.name,
        messages=(),
        prompt=tokens.prompt(text, options.suffix) if tokens else text,
        suffix="" if tokens or strategy != "fim" else options.suffix,
        max_output_tokens=_limit(info, options.max_tokens),
        temperature=options.temperature,
        seed=options.seed,
        logprobs=_logprobs(info, options),
        session_id=options.session_id,
    )


def _quiet(info: ModelInfo) -> tuple[ThinkingLevel, int]:
    """The level at which a model thinks least, and the tokens that this takes."""
    level = info.level("off")
    return ("off", _THOUGHT_ROOM.get(level, 0)) if info.levels else ("default", 0)


def _limit(info: ModelInfo, tokens: int) -> int:
    return min(tokens, info.max_output_tokens)


def _logprobs(info: ModelInfo, options: ContinuationOptions) -> int | None:
    # Asking a vendor that has none would have the whole request refused.
    return options.logprobs if text_abilities(info).logprobs else None


def _with_context(system: str, context: str) -> str:
    if not context.strip():
        return system
    return f"{system}\n\n<context>\n{context.strip()}\n</context>"


def _examples() -> str:
    shown = (
        f"<example>\n<text>{before}</text>\n<continuation>{after}</continuation>\n</example>"
        for before, after in _EXAMPLES
    )
    return "\n".join(("Examples:", *shown))


def _message(role: Literal["user", "assistant"], text: str) -> ChatMessage:
    return ChatMessage(role=role, parts=(Text(text=text),))
