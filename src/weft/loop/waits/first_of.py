"""A race of awaitables: the first that ends decides, the others are cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def first_of(*ways: Callable[[], Awaitable[T]]) -> T:
    """What the first of them gives; of several that end at once, the first that is named."""
    found: dict[int, T] = {}

    async def take(number: int, way: Callable[[], Awaitable[T]], scope: anyio.CancelScope) -> None:
        found[number] = await way()
        scope.cancel()

    async with anyio.create_task_group() as group:
        for number, way in enumerate(ways[:-1]):
            group.start_soon(take, number, way, group.cancel_scope)
        # The last one here: it has begun when the caller's next step is taken.
        await take(len(ways) - 1, ways[-1], group.cancel_scope)
    return found[min(found)]
