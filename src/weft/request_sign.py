"""The sign that a request has left for a vendor, long before there is an answer: what else is to be
done does not delay it any more.

Set where the model is called, given where the request is written; between them are adapters that
know of neither.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final


def do_nothing() -> None:
    """Take the sign where nobody waits for it."""


REQUEST_SENT: Final[ContextVar[Callable[[], None]]] = ContextVar("request_sent", default=do_nothing)
"""Called whenever a request has been written, in the context of its caller."""
