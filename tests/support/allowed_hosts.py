"""Rules about hosts as the proxy of a command sees them, and servers on this machine to allow."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from weft.permissions import PermissionRule
from weft.permissions.network_rules import NamedHost, NetworkRules
from weft.runtime.workspaces.session_egress import SessionEgress
from weft.workspace.egress.egress_proxy import EgressProxy
from weft.workspace.egress.host_lookup import HostLookup


def rule(text: str) -> PermissionRule:
    """`allow localhost:80`, `deny *.example.org`: a rule about a domain."""
    verdict, _, domain = text.partition(" ")
    assert verdict in ("allow", "ask", "deny")
    pattern = f"domain:{domain}" if domain else ""
    return PermissionRule(verdict=verdict, tool="fetch", pattern=pattern)  # type: ignore[arg-type]


def network(*rules: str, given: Sequence[NamedHost] = ()) -> NetworkRules:
    """What these rules say of hosts."""
    return NetworkRules(map(rule, rules), given)


def judge(*rules: str) -> SessionEgress:
    """Says what these rules let a command reach."""
    return SessionEgress(network(*rules))


def proxy(*rules: str, names: Mapping[str, Sequence[str]] | None = None) -> EgressProxy:
    """A proxy under these rules; `names` are those that its name servers know."""
    known = names or {}

    async def look_up(host: str) -> Sequence[str]:
        if host not in known:
            raise OSError("not known")
        return known[host]

    return EgressProxy(judge(*rules), HostLookup(look_up))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the test's own output."""


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


@contextmanager
def file_server(folder: Path) -> Iterator[int]:
    """A web server for the files of a folder, on loopback; gives its port."""

    def handler(*args: object) -> _Quiet:
        return _Quiet(*args, directory=str(folder))  # type: ignore[arg-type]

    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
