"""Requests to the proxy: what is read, and what could be read in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.permissions.domains import plain_host
from weft.workspace.egress.request_head import BadRequest, PlainRequest, read_request

CONNECT = b"CONNECT Example.org:443 HTTP/1.1\r\nHost: example.org:443"


def test_a_tunnel_names_its_host_and_port() -> None:
    found = read_request(CONNECT, plain_host)
    assert (found.is_tunnel, found.host, found.port) == (True, "example.org", 443)


def test_a_plain_request_goes_on_with_its_own_host_and_without_what_is_for_the_proxy() -> None:
    head = (
        b"GET http://Example.org:8080/a?b HTTP/1.1\r\nHost: EXAMPLE.org:8080\r\nAccept: */*\r\n"
        b"Proxy-Connection: keep-alive\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n"
        b"Proxy-Authorization: Basic xyz\r\nTE: trailers"
    )
    assert read_request(head, plain_host).passed_on() == (
        b"GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    )


REFUSED = [
    b"GET / HTTP/1.1\r\nHost: example.org",
    b"GET ftp://example.org/ HTTP/1.1\r\nHost: example.org",
    b"GET https://example.org/ HTTP/1.1\r\nHost: example.org",
    b"GET http://example.org/ HTTP/1.1\r\nHost: evil.test",
    b"GET http://example.org/ HTTP/1.1\r\nHost: example.org:81",
    b"GET http://example.org/ HTTP/1.1",
    b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nHost: evil.test",
    b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n evil.test",
    b"GET http://example.org/ HTTP/1.1\r\nHost : example.org",
    b"GET http://example.org@evil.test/ HTTP/1.1\r\nHost: evil.test",
    b"GET http://evil.test\\@example.org/ HTTP/1.1\r\nHost: example.org",
    b"GET http://exam%70le.org/ HTTP/1.1\r\nHost: example.org",
    b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nA: b\0c",
    b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\nGET / HTTP/1.1",
    b"GET http://example.org/ HTTP/2\r\nHost: example.org",
    b"GET  http://example.org/ HTTP/1.1\r\nHost: example.org",
    b"get http://example.org/ HTTP/1.1\r\nHost: example.org",
    b"CONNECT example.org HTTP/1.1",
    b"CONNECT example.org:0 HTTP/1.1",
    b"CONNECT example.org:99999 HTTP/1.1",
    b"CONNECT example.org:443/ HTTP/1.1",
    b"CONNECT 2130706433:443 HTTP/1.1",
    b"CONNECT 0x7f.1:443 HTTP/1.1",
    b"CONNECT ::1:443 HTTP/1.1",
    b"CONNECT [fe80::1%eth0]:443 HTTP/1.1",
    b"CONNECT a\0.example.org:443 HTTP/1.1",
    b"",
    b"\x16\x03\x01",
]


@pytest.mark.parametrize("head", REFUSED)
def test_what_can_be_read_in_two_ways_is_refused(head: bytes) -> None:
    with pytest.raises(BadRequest):
        read_request(head, plain_host)


def test_a_request_in_a_tunnel_is_for_the_host_of_the_tunnel() -> None:
    tunnel = PlainRequest("CONNECT", "example.org", 80)
    good = b"GET /x HTTP/1.1\r\nHost: example.org"
    assert read_request(good, plain_host, tunnel).path == "/x"
    for bad in (
        b"GET /x HTTP/1.1\r\nHost: evil.test",
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org",
    ):
        with pytest.raises(BadRequest):
            read_request(bad, plain_host, tunnel)


def test_the_length_of_a_body_is_clear_or_refused() -> None:
    def sized(*headers: bytes) -> int | None:
        pairs = tuple((name, value) for name, _, value in (h.partition(b":") for h in headers))
        return PlainRequest("POST", "a.b", 80, headers=pairs).body_size

    assert sized() == 0
    assert sized(b"Content-Length:12") == 12
    assert sized(b"Transfer-Encoding:chunked") is None
    for bad in (
        [b"Content-Length:1", b"Transfer-Encoding:chunked"],
        [b"Content-Length:1", b"Content-Length:2"],
        [b"Content-Length:+1"],
        [b"Content-Length:0x1"],
        [b"Transfer-Encoding:gzip, chunked"],
        [b"Transfer-Encoding:chunked", b"Transfer-Encoding:chunked"],
        [b"Transfer-Encoding:xchunked"],
        # What is for us alone would not go on, and the body would be a request of its own.
        [b"Content-Length:9", b"Connection:close, Content-Length"],
        [b"Transfer-Encoding:chunked", b"Connection: transfer-encoding"],
    ):
        with pytest.raises(BadRequest):
            _ = sized(*bad)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading(data: bytes) -> None:
    for start in (b"", b"CONNECT ", b"GET http://"):
        try:
            found = read_request(start + data, plain_host)
        except BadRequest:
            continue
        assert plain_host(found.host) == found.host
