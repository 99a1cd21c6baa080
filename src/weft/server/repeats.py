"""Answers of calls that have no memory of their own, kept for those that come again.

A session remembers its `input_id`s in the log.  What is no session's (a query, a note in memory, an
edit of a text tree) is remembered here, for as long as the server runs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from weft.errors import StaleInput
from weft.sha256 import sha256

MOST_REPEATS: Final = 1_000
"""Answers that are kept; the oldest is forgotten first."""


class RepeatedCall:
    """A call that was made under an input id."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.is_over = anyio.Event()
        self.answer: Any = None
        self.failed = False


class RepeatCache:
    """The calls under input ids, each with its answer."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], RepeatedCall] = OrderedDict()

    async def once(
        self, target: str, input_id: str, body: bytes, call: Callable[[], Awaitable[Any]]
    ) -> Any:
        """The answer of a call to `target`; one that comes again gets that of the first.

        A call that failed has done nothing, and may be made again.

        Raises:
            StaleInput: the id was used for something else.
        """
        key, digest = (target, input_id), sha256(body).hexdigest()
        while (known := self._calls.get(key)) is not None:
            if known.digest != digest:
                raise StaleInput(input_id)
            await known.is_over.wait()
            if not known.failed:
                return known.answer
        mine = self._calls[key] = RepeatedCall(digest)
        while len(self._calls) > MOST_REPEATS:
            self._calls.popitem(last=False)
        mine.failed = True
        try:
            mine.answer = await call()
            mine.failed = False
        finally:
            if mine.failed and self._calls.get(key) is mine:
                del self._calls[key]
            mine.is_over.set()
        return mine.answer
