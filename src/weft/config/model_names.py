"""Bare and short model names: `sonnet`, `gpt-5.4`, or just a provider, without `provider:`.

A provider that has a key comes before one that has none, so that the same word works with the key
that the user has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.errors import UsageError, did_you_mean
from weft.messages import ModelName, parse_model_name
from weft.providers.catalogue import ModelCatalogue


def find_model(text: str, catalogue: ModelCatalogue, providers: Sequence[str]) -> ModelName | None:
    """The model that a bare name means; `providers` are those to look at, in this order.

    None where it is the name of none.
    """
    # With a provider in front the parser tells an effort at the end from a part of the name.
    parsed = parse_model_name(f"any:{text}")
    name, effort = parsed.model, parsed.effort
    word = name.casefold()
    if word in catalogue.providers and catalogue.vendor(word).default:
        return ModelName(word, catalogue.default(word), effort)
    for provider in providers:
        if (meant := catalogue.short(provider).get(word)) is not None:
            return ModelName(provider, meant, effort)
    for provider in providers:
        if catalogue.knows(provider, name):
            return ModelName(provider, name, effort)
    return None


def unknown_model(name: str, catalogue: ModelCatalogue, providers: Iterable[str]) -> UsageError:
    """The error for a bare name that means nothing; it names the nearest that does."""
    words: dict[str, None] = {}
    for provider in providers:
        words |= dict.fromkeys(catalogue.short(provider))
        words |= dict.fromkeys(info.name for info in catalogue.models(provider))
        words[provider] = None
    if hint := did_you_mean(name, words):
        return UsageError(f"unknown model {name!r}{hint}")
    return UsageError(
        f"unknown model {name!r}: write provider:model, as in anthropic:claude-sonnet-5-5, or a "
        "short name such as sonnet"
    )
