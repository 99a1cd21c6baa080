"""HTTP to model providers: one small HTTP/1.1 client behind an interface.

Knows bytes and addresses, not models.  Whatever goes wrong on the way is a `ProviderUnavailable`
that names the host and what happened, never the headers.
"""

from weft.transport.base import HttpReply, HttpRequest, HttpTimeouts, HttpTransport
from weft.transport.client import HttpClient
from weft.transport.proxy import ProxySettings, is_loopback, target
from weft.transport.sse import MAX_EVENT, EventParser

__all__ = [
    "MAX_EVENT",
    "EventParser",
    "HttpClient",
    "HttpReply",
    "HttpRequest",
    "HttpTimeouts",
    "HttpTransport",
    "ProxySettings",
    "is_loopback",
    "target",
]
