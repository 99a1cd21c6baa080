"""The server that a TLS connection names in its first message."""

from __future__ import annotations

import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.workspace.egress.tls_hello import (
    HelloRecords,
    IncompleteHello,
    NoHello,
    named_server,
    server_name,
)


def hello(name: str | None) -> bytes:
    """What Python's own client begins with."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def test_a_real_client_names_its_server_or_none() -> None:
    assert server_name(hello("example.org")) == "example.org"
    assert server_name(hello(None)) == ""
    assert server_name(hello("127.0.0.1")) == ""


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_message_that_is_cut_into_small_records_is_put_together(size: int) -> None:
    whole = hello("example.org")
    body = whole[5:]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    cut = b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)
    assert server_name(cut) == "example.org"


class CountedBytes(bytes):
    """Counts how often a record is taken out of it."""

    taken = 0

    def __getitem__(self, key: object) -> bytes:  # type: ignore[override]
        CountedBytes.taken += 1
        return super().__getitem__(key)  # type: ignore[call-overload,no-any-return]


def test_a_record_is_read_once_however_many_pieces_come() -> None:
    body = hello("example.org")[5:]
    cut = b"".join(b"\x16\x03\x01\x00\x01" + bytes([each]) for each in body)
    records = HelloRecords()
    for size in range(len(cut)):
        with pytest.raises(IncompleteHello):
            records.message(CountedBytes(cut[:size]))
    assert named_server(records.message(CountedBytes(cut))) == "example.org"
    assert CountedBytes.taken < 3 * len(cut)


def test_every_beginning_of_one_wants_more() -> None:
    whole = hello("example.org")
    for size in range(len(whole)):
        with pytest.raises(IncompleteHello):
            server_name(whole[:size])


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x17\x03\x01\x00\x01x",
        b"\x16\x02\x01\x00\x01x",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03",
    ],
)
def test_what_is_no_such_message_is_refused(data: bytes) -> None:
    with pytest.raises(NoHello):
        server_name(data)


@given(st.binary(max_size=80), st.integers(0, 400))
def test_changed_bytes_never_break_the_reading(data: bytes, at: int) -> None:
    whole = hello("example.org")
    with suppress(IncompleteHello, NoHello):
        server_name(whole[:at] + data + whole[at + len(data) :])
