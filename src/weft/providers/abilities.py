"""Abilities of models for continuing text: completion, prefill, fill-in-the-middle, logprobs.

Beside the catalogue and not in it: only the loom asks, and the catalogue is read at every start.
Known by provider first and by the model's name then; what is not known for certain is not assumed,
because a request with one field too many is refused.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from weft.providers.base import ModelInfo


class FimTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a family of models was trained to fill a gap with."""

    prefix: str
    suffix: str
    middle: str = ""
    suffix_first: bool = False
    """What follows the gap stands before what precedes it."""

    def prompt(self, prefix: str, suffix: str = "") -> str:
        """The raw text that asks for what belongs between the two."""
        if self.suffix_first:
            return f"{self.suffix}{suffix}{self.prefix}{prefix}{self.middle}"
        return f"{self.prefix}{prefix}{self.suffix}{suffix}{self.middle}"


class TextAbilities(msgspec.Struct, frozen=True, kw_only=True):
    """How a model can be made to continue a text."""

    completes: bool = False
    """Its provider takes raw text."""
    prefers_raw: bool = False
    """Raw text is the best way: a base model, or a server that hides nothing behind a template."""
    prefills: bool = False
    """It goes on in the middle of an answer that was begun for it."""
    fills_gaps: bool = False
    """It is a model for code that was trained to fill gaps and does little else."""
    fim: FimTokens | None = None
    """None: the vendor has an address for gaps, or the family is not known."""
    logprobs: bool = False


_ANGLES: Final = FimTokens(prefix="<fim_prefix>", suffix="<fim_suffix>", middle="<fim_middle>")
_PIPES: Final = FimTokens(prefix="<|fim_prefix|>", suffix="<|fim_suffix|>", middle="<|fim_middle|>")
_FAMILIES: Final[tuple[tuple[str, FimTokens], ...]] = (
    (
        "deepseek",
        FimTokens(prefix="<｜fim▁begin｜>", suffix="<｜fim▁hole｜>", middle="<｜fim▁end｜>"),
    ),
    ("codellama", FimTokens(prefix="<PRE> ", suffix=" <SUF>", middle=" <MID>")),
    ("code-llama", FimTokens(prefix="<PRE> ", suffix=" <SUF>", middle=" <MID>")),
    ("codestral", FimTokens(prefix="[PREFIX]", suffix="[SUFFIX]", suffix_first=True)),
    ("qwen", _PIPES),
    ("codegemma", _PIPES),
    ("starcoder", _ANGLES),
    ("santacoder", _ANGLES),
    ("granite", _ANGLES),
    ("stable-code", _ANGLES),
    ("smollm", _ANGLES),
)
"""Part of a model's name → the tokens of its family."""

_FILLS_GAPS: Final = re.compile(r"deepseek-coder|starcoder|santacoder|code-?llama|codestral|fim")
_BASE_NAME: Final = re.compile(
    r"(^|[-_:/.])base($|[-_:/.])|davinci|babbage|text-(curie|ada)|gpt-3\.5-turbo-instruct"
    r"|[-_:/]text($|[-_:/])"
)
_CHAT_ONLY: Final = frozenset(
    (
        *("anthropic", "google", "bedrock", "vertex", "azure", "deepseek"),
        *("groq", "xai", "cerebras", "moonshot", "zai", "minimax"),
    )
)
"""Providers without an address for raw text."""
_OPENAI: Final = frozenset({"openai", "openai-chat"})
_TESTS: Final = frozenset({"scripted", "replay"})


def text_abilities(info: ModelInfo) -> TextAbilities:
    """What is known of a model's ways to continue a text."""
    name = info.name.lower()
    is_base = _BASE_NAME.search(name) is not None
    completes = _completes(info.provider, is_base=is_base, name=name)
    return TextAbilities(
        completes=completes,
        prefers_raw=completes and (is_base or info.provider in ("local", "ollama")),
        prefills=_prefills(info.provider, name),
        fills_gaps=completes and _FILLS_GAPS.search(name) is not None,
        fim=_family(info.provider, name),
        logprobs=_has_logprobs(info) or (completes and is_base),
    )


def _completes(provider: str, *, is_base: bool, name: str) -> bool:
    if provider in _CHAT_ONLY:
        return False
    if provider in _OPENAI:
        # Of the vendor's own models only the base ones are offered there.
        return is_base
    if provider == "mistral":
        return "codestral" in name
    return True


def _prefills(provider: str, name: str) -> bool:
    if provider in ("local", "ollama", "mistral", *_TESTS):
        return True
    # Claude takes it up to 4.5, and refuses it from 4.6 on.
    found = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)", name)
    return found is not None and (int(found[1]), int(found[2] or 0)) < (4, 6)


def _family(provider: str, name: str) -> FimTokens | None:
    # Mistral's own address takes prefix and suffix apart.
    if provider == "mistral":
        return None
    return next((tokens for part, tokens in _FAMILIES if part in name), None)


def _has_logprobs(info: ModelInfo) -> bool:
    if info.provider in ("local", "ollama", *_TESTS):
        return True
    if info.provider == "deepseek":
        return not info.thinks or "off" in info.levels
    if info.provider in (*_OPENAI, "azure"):
        # Refused for models that think, whatever their level.
        return not info.thinks
    from weft.providers.catalogue import shipped  # read at every start, but not for this module

    # A server of the user's own (vLLM, llama.cpp) speaks the whole protocol.
    return info.provider not in shipped().providers
