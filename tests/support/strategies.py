"""Hypothesis strategies: any fact of any kind, and plausible histories of a session.

`any_fact()` gives well-typed values without any sense, for laws of the codec; `histories()` and
`forks()` give what a `HistoryGenerator` writes, with the plain model of what it comes to.
"""

from __future__ import annotations

import functools
import random
import types
import typing
from typing import Any, NewType, TypeVar

import msgspec
from hypothesis import strategies as st

from tests.support.history_generator import History, write_fork, write_history
from weft.events import FACTS, SIGNALS, Fact, Signal

T = TypeVar("T", bound=msgspec.Struct)

# --- any fact ----------------------------------------------------------------------------

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
"""Whatever JSON can say, numbers above 64 bits too."""


@functools.cache
def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of one annotated type, as far as our structs use types."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return json_values
    if isinstance(kind, NewType):
        return values_of(kind.__supertype__)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(values_of(each) for each in arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    return _PLAIN[kind]


_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    int: st.integers(min_value=-(2**63), max_value=2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    types.NoneType: st.none(),
}


def structs(cls: type[T]) -> st.SearchStrategy[T]:
    """Values of a struct, every field drawn by its type."""
    hints = typing.get_type_hints(cls)
    fields = msgspec.structs.fields(cls)
    return st.builds(cls, **{field.name: values_of(hints[field.name]) for field in fields})


def any_fact() -> st.SearchStrategy[Fact]:
    """A well-typed fact of any kind."""
    return st.sampled_from(sorted(FACTS)).flatmap(lambda kind: structs(FACTS[kind]))


def any_signal() -> st.SearchStrategy[Signal]:
    """A well-typed signal of any kind."""
    return st.sampled_from(sorted(SIGNALS)).flatmap(lambda kind: structs(SIGNALS[kind]))


def _numbers(most: int) -> st.SearchStrategy[list[int]]:
    """Numbers for a history generator: evenly spread, because small ones would always choose the
    first of what is possible.

    A shorter list of the same seed is a beginning of the longer one, so that a failing history
    shrinks to its shortest beginning.
    """
    return st.builds(numbers, st.integers(0, 2**32), st.integers(0, most))


def numbers(seed: int, count: int) -> list[int]:
    """The first `count` numbers of a seed."""
    source = random.Random(seed)
    return [source.getrandbits(60) for _ in range(count)]


def histories(most: int = 60) -> st.SearchStrategy[History]:
    """What a session could have written."""
    return _numbers(most).map(write_history)


def forks(most: int = 30) -> st.SearchStrategy[History]:
    """What a fork reads: the log it shares, then its own."""
    return st.builds(write_fork, _numbers(most), _numbers(most))
