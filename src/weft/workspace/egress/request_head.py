"""Requests to the proxy: `CONNECT host:port`, and plain ones with a whole address (RFC 9112).

What two programs could read differently is refused: the server behind us is one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

LONGEST: Final = 64 * 1024
HEAD_END: Final = b"\r\n\r\n"
_FIRST: Final = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,16384}) HTTP/1\.[01]")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_TARGET: Final = re.compile(r"(?:http://([^/?#@\\]+))?([/?][^#\\]*)?", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_MOST_PORTS: Final = 65_535
_METHODS: Final = b"GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND|REPORT|SEARCH|MKCOL"
_PLAIN: Final = re.compile(rb"(?:" + _METHODS + rb") /")
_BEGUN: Final = re.compile(rb"[A-Z]{1,8} ?")
_FOR_US: Final = frozenset(
    {
        *("connection", "proxy-connection", "keep-alive", "te", "trailer", "upgrade", "host"),
        *("proxy-authorization", "proxy-authenticate", "http2-settings"),
    }
)
"""Headers between a client and its proxy; the others go on."""


class BadRequest(ValueError):
    """What no program sends that means well; the message says what is wrong."""


class PlainRequest(NamedTuple):
    """A request, read as far as a proxy has to."""

    method: str
    host: str
    """As the judge writes it."""
    port: int
    path: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def is_tunnel(self) -> bool:
        return self.method == "CONNECT"

    @property
    def body_size(self) -> int | None:
        """Bytes of the body; None where it comes in chunks.

        Raises:
            BadRequest: it can be read in two ways.
        """
        sizes = {value for name, value in self.headers if name.lower() == b"content-length"}
        codings = [value for name, value in self.headers if name.lower() == b"transfer-encoding"]
        if self._for_us & {b"content-length", b"transfer-encoding"}:
            # The server would not be told, and take the body for a request that nobody judged.
            raise BadRequest("the length of the body is not clear")
        if codings:
            if sizes or [each.strip().lower() for each in codings] != [b"chunked"]:
                raise BadRequest("the length of the body is not clear")
            return None
        if not sizes:
            return 0
        size = sizes.pop()
        if sizes or not re.fullmatch(rb"[0-9]{1,15}", size):
            raise BadRequest("the length of the body is not clear")
        return int(size)

    @property
    def _for_us(self) -> set[bytes]:
        """Headers that the client says are for its proxy."""
        return {
            word.strip().lower()
            for name, value in self.headers
            if name.lower() == b"connection"
            for word in value.split(b",")
        }

    def passed_on(self) -> bytes:
        """The head as the server gets it: one request, and the connection ends."""
        named = self._for_us
        shown = self.host if self.port == 80 else f"{self.host}:{self.port}"
        kept = [
            name + b": " + value
            for name, value in self.headers
            if name.lower().decode() not in _FOR_US and name.lower() not in named
        ]
        first = f"{self.method} {self.path} HTTP/1.1\r\nHost: {shown}\r\nConnection: close"
        return b"\r\n".join([first.encode(), *kept]) + HEAD_END


def is_plain_request(data: bytes) -> bool:
    """Whether what comes through a tunnel is a request that is not encrypted."""
    return bool(_PLAIN.match(data))


def may_become_plain(data: bytes) -> bool:
    """Whether too little has come to say so."""
    return bool(_BEGUN.fullmatch(data))


def read_request(
    head: bytes, plain_host: Callable[[str], str], within: PlainRequest | None = None
) -> PlainRequest:
    """A request; `within` is the tunnel through which it comes, and names its server.

    Raises:
        BadRequest: it can be read in two ways, or not at all.
    """
    first, *lines = head.split(b"\r\n")
    found = _FIRST.fullmatch(first)
    if found is None:
        raise BadRequest("it is no request to a proxy")
    method, target = found[1].decode(), found[2].decode()
    headers = tuple(_header(line) for line in lines)
    if method == "CONNECT":
        host, port = _authority(target, plain_host, None)
        return PlainRequest(method, host, port, headers=headers)
    parts = _TARGET.fullmatch(target)
    if parts is None or (parts[1] is None) is not (within is not None):
        raise BadRequest("only http:// addresses and CONNECT are known here")
    if within is not None:
        host, port = within.host, within.port
    else:
        host, port = _authority(parts[1], plain_host, 80)
    _check_host(headers, plain_host, host, port)
    path = parts[2] or "/"
    path = path if path.startswith("/") else f"/{path}"
    return PlainRequest(method, host, port, path, headers)


def _check_host(
    headers: tuple[tuple[bytes, bytes], ...], plain_host: Callable[[str], str], host: str, port: int
) -> None:
    """Refuse a request that names another server than its address does."""
    named = [value for name, value in headers if name.lower() == b"host"]
    if len(named) != 1:
        raise BadRequest("it has to name its host once")
    text = named[0].decode("latin-1").strip()
    if _authority(text, plain_host, 80) != (host, port):
        raise BadRequest(f"its Host header names another server than {host}:{port}")


def _header(line: bytes) -> tuple[bytes, bytes]:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise BadRequest("a header cannot be read")
    return found[1], found[2].rstrip(b" \t")


def _authority(text: str, plain_host: Callable[[str], str], default: int | None) -> tuple[str, int]:
    found = _AUTHORITY.fullmatch(text)
    host = plain_host(found[1]) if found else ""
    if found is None or not host:
        raise BadRequest("its host cannot be read; write a name, or an address as 127.0.0.1")
    port = int(found[2]) if found[2] else default
    if port is None or not 0 < port <= _MOST_PORTS:
        raise BadRequest("its port is missing, or none")
    return host, port
