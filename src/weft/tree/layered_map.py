"""A map in layers: what several trees share below, and what one of them has changed on top.

A fork shares the nodes of the session it came from.  To copy them would cost as much memory as the
session has, once for every fork.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class LayeredMap(Mapping[_K, _V]):
    """A map that grows, over layers that never change again.

    It keeps the order of a dict: a key stays where it first came, whichever layer holds its newest
    value.  Nothing is ever removed.
    """

    __slots__ = ("_count", "_layers", "_own")

    def __init__(self, layers: tuple[dict[_K, _V], ...], count: int) -> None:
        self._layers = layers
        """The newest first, which is the order in which they are asked."""
        self._own: dict[_K, _V] = {}
        self._count = count

    @classmethod
    def over(cls, shared: Mapping[_K, _V]) -> LayeredMap[_K, _V]:
        """A new map over all that another one holds by now.

        A dict that is handed in here must not change any more.
        """
        if isinstance(shared, LayeredMap):
            return cls(shared.freeze(), len(shared))
        assert isinstance(shared, dict)
        return cls((shared,), len(shared))

    @property
    def all_layers(self) -> tuple[dict[_K, _V], ...]:
        """All layers, the newest first; only to be read."""
        return (self._own, *self._layers)

    def freeze(self) -> tuple[dict[_K, _V], ...]:
        """All layers; those of this map too do not change from here on."""
        if self._own:
            layers = (self._own, *self._layers)
            # As in a binary counter: each layer is at least twice as large as the one above it.
            # So there are few, however often a session is forked, and a key is copied as seldom.
            while len(layers) > 1 and 2 * len(layers[0]) > len(layers[1]):
                layers = ({**layers[1], **layers[0]}, *layers[2:])
            self._layers, self._own = layers, {}
        return self._layers

    def own(self, key: _K, copied: Callable[[_V], _V]) -> _V | None:
        """A value that may be changed: this map's own, or a copy of a shared one that takes its
        place here.
        """
        value = self._own.get(key)
        if value is None and (shared := self.get(key)) is not None:
            value = self._own[key] = copied(shared)
        return value

    def __setitem__(self, key: _K, value: _V) -> None:
        if key not in self:
            self._count += 1
        self._own[key] = value

    def __getitem__(self, key: _K) -> _V:
        if key in self._own:
            return self._own[key]
        for layer in self._layers:
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self._own or any(key in layer for layer in self._layers)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_K]:
        oldest = (*reversed(self._layers), self._own)
        for number, layer in enumerate(oldest):
            below = oldest[:number]
            for key in layer:
                if not any(key in each for each in below):
                    yield key
