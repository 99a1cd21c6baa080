"""HTTP to model providers: one small HTTP/1.1 client behind a seam.

Knows bytes and addresses, not models.  Whatever goes wrong on the way is a `ProviderUnavailable` that names the host and
what happened, never the headers.
"""

from weft.providers.transport.base import HttpRequest, Reply, Timeouts, Transport
from weft.providers.transport.client import Client
from weft.providers.transport.proxy import Proxies
from weft.providers.transport.sse import EventParser

__all__ = ["Client", "EventParser", "HttpRequest", "Proxies", "Reply", "Timeouts", "Transport"]
