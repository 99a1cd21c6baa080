"""HTTP to model providers: one small HTTP/1.1 client behind a seam.

Knows bytes and addresses, not models.  Whatever goes wrong on the way is a `ProviderUnavailable` that names the host and
what happened, never the headers.
"""

from weft.transport.base import HttpRequest, Reply, Timeouts, Transport
from weft.transport.client import Client
from weft.transport.proxy import Proxies, is_loopback, target
from weft.transport.sse import MAX_EVENT, EventParser

__all__ = [
    "MAX_EVENT",
    "Client",
    "EventParser",
    "HttpRequest",
    "Proxies",
    "Reply",
    "Timeouts",
    "Transport",
    "is_loopback",
    "target",
]
