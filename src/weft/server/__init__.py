"""The HTTP server: sessions over HTTP, server-sent events and WebSocket, for programs and the page.

Owns the listener, the gate before every request, the table of operations that routes, OpenAPI and
tests are made from, and the relay of events.  It calls the same API as any program: it knows no
store, no model and no actor, and no other part of Weft imports it before a server is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # loaded when a server is started: it costs start-up time
    from weft.server.client.remote_app import RemoteApp, RemoteSessions, connect
    from weft.server.client.remote_session import RemoteSession
    from weft.server.cluster.cluster_secret import ClusterSecret
    from weft.server.cluster.server_cluster import ClusterSettings
    from weft.server.operations import OPERATIONS
    from weft.server.serve import ServerAddress, WeftServer
    from weft.server.server_record import (
        RecordLock,
        ServerRecord,
        new_code_from,
        running_servers,
        stop_server,
    )
    from weft.server.static import NOT_BUILT, has_page
    from weft.server.telemetry.traces import open_telemetry

__all__ = [
    "NOT_BUILT",
    "OPERATIONS",
    "ClusterSecret",
    "ClusterSettings",
    "RecordLock",
    "RemoteApp",
    "RemoteSession",
    "RemoteSessions",
    "ServerAddress",
    "ServerRecord",
    "WeftServer",
    "connect",
    "has_page",
    "new_code_from",
    "open_telemetry",
    "running_servers",
    "stop_server",
]

_HOMES = {
    "ClusterSecret": "cluster.cluster_secret",
    "ClusterSettings": "cluster.server_cluster",
    "NOT_BUILT": "static",
    "OPERATIONS": "operations",
    "RecordLock": "server_record",
    "RemoteApp": "client.remote_app",
    "RemoteSession": "client.remote_session",
    "RemoteSessions": "client.remote_app",
    "ServerAddress": "serve",
    "ServerRecord": "server_record",
    "WeftServer": "serve",
    "connect": "client.remote_app",
    "has_page": "static",
    "new_code_from": "server_record",
    "open_telemetry": "telemetry.traces",
    "running_servers": "server_record",
    "stop_server": "server_record",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
