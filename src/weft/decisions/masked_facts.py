"""Facts of the graph without secrets: they are kept for good, told to models and exported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.decisions.facts import DecisionFact

_WORDS: Final = frozenset({"title", "why", "author", "tags", "reason", "rationale", "command"})
"""The fields that hold prose; ids, scopes and hashes are compared, a mask would break them."""


def masked_facts(
    facts: Iterable[DecisionFact], redact: Callable[[str], str]
) -> tuple[DecisionFact, ...]:
    """The same facts; whatever is written in words went through `redact`."""
    return tuple(_masked_fields(fact, redact) for fact in facts)


def masked_texts(value: Any, redact: Callable[[str], str]) -> Any:
    """Plain data with every text in it masked."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {name: masked_texts(each, redact) for name, each in value.items()}
        case tuple() | list():
            return type(value)(masked_texts(each, redact) for each in value)
        case _:
            return value


def _masked_fields(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_masked_fields(each, redact) for each in value)
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    new = {
        name: (masked_texts if name in _WORDS else _masked_fields)(each, redact)
        for name, each in fields.items()
    }
    return value if new == fields else msgspec.structs.replace(value, **new)
