"""A map in layers: a dict to its reader, and what another one shares never changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.tree import LayeredMap

keys = st.integers(0, 20)
steps = st.lists(st.tuples(st.sampled_from(["set", "own", "fork"]), keys), max_size=80)


def doubled(value: list[int]) -> list[int]:
    return [*value]


def forked(shared: LayeredMap[int, list[int]]) -> LayeredMap[int, list[int]]:
    return LayeredMap.over(shared)


@given(steps=steps)
def test_every_map_is_the_dict_that_was_written_to_it(
    steps: list[tuple[str, int]],
) -> None:
    """Each fork and its source go their own ways; a dict beside each says what it must hold."""
    first: LayeredMap[int, list[int]] = LayeredMap.over({0: [0]})
    maps = [(first, {0: [0]})]
    for number, (step, key) in enumerate(steps):
        layered, plain = maps[number % len(maps)]
        if step == "fork":
            maps.append((forked(layered), {k: [*v] for k, v in plain.items()}))
        elif step == "set":
            layered[key] = [number]
            plain[key] = [number]
        elif (value := layered.own(key, doubled)) is not None:
            value.append(number)
            plain[key].append(number)
    for layered, plain in maps:
        assert list(layered.items()) == list(plain.items())
        assert len(layered) == len(plain)
        assert layered == plain
        assert [key for key in range(21) if key in layered] == sorted(plain)
        assert layered.get(99) is None
        with pytest.raises(KeyError):
            layered[99]


def test_a_session_that_is_forked_after_every_message_has_few_layers() -> None:
    layered: LayeredMap[int, int] = LayeredMap.over({-1: 0})
    deepest = 0
    for number in range(2_000):
        layered[number] = number
        deepest = max(deepest, len(layered.freeze()))
    assert deepest <= 12, "each is twice as large as the one above it"
    assert list(layered) == [-1, *range(2_000)]
