"""What a terminal sends, as keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cli.chat.screens.terminal.key_decoder import (
    KeyDecoder,
    KeyPress,
    PastedText,
    TerminalEvent,
    TerminalReply,
)


def decoded(data: bytes) -> list[TerminalEvent]:
    decoder = KeyDecoder()
    return [*decoder.feed(data), *decoder.flush()]


def names(data: bytes) -> list[str]:
    return [each.name for each in decoded(data) if isinstance(each, KeyPress)]


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        (b"a", "a"),
        (b" ", "space"),
        ("中".encode(), "中"),
        (b"\r", "enter"),
        (b"\n", "c-j"),
        (b"\t", "tab"),
        (b"\x7f", "backspace"),
        (b"\x01", "c-a"),
        (b"\x1f", "c-_"),
        (b"\x1b", "escape"),
        (b"\x1b[A", "up"),
        (b"\x1bOA", "up"),
        (b"\x1b[1;5D", "c-left"),
        (b"\x1b[1;3C", "m-right"),
        (b"\x1b[3~", "delete"),
        (b"\x1b[1~", "home"),
        (b"\x1bOF", "end"),
        (b"\x1b[Z", "s-tab"),
        (b"\x1bb", "m-b"),
        (b"\x1b\r", "m-enter"),
        (b"\x1b\x7f", "m-backspace"),
        (b"\x1b[13;2u", "s-enter"),
        (b"\x1b[13;3u", "m-enter"),
        (b"\x1b[27u", "escape"),
        (b"\x1b[99;5u", "c-c"),
        (b"\x1b[97;2u", "A"),
        (b"\x1b[9;2u", "s-tab"),
        (b"\x1b[27;2;13~", "s-enter"),
        (b"\x1b[112;3u", "m-p"),
        (b"\x1b[", "m-["),
    ],
)
def test_a_key_by_its_bytes(sent: bytes, key: str) -> None:
    assert names(sent) == [key]


def test_esc_and_the_key_behind_it_are_two_where_alt_means_nothing() -> None:
    assert names(b"\x1b\x04") == ["escape", "c-d"]
    assert names(b"\x1b\x1b") == ["escape", "escape"]
    assert names(b"\x1b\x1b[A") == ["escape", "up"]


def test_a_lone_esc_waits_for_what_may_follow() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.pending
    assert decoder.feed(b"[A") == [KeyPress("up")]
    assert not decoder.pending


def test_a_paste_is_text_whatever_is_in_it() -> None:
    pasted = b"one\r\ntwo\x1b[A\rthree\t1"
    assert decoded(b"\x1b[200~" + pasted + b"\x1b[201~x") == [
        PastedText("one\ntwo\x1b[A\nthree\t1"),
        KeyPress("x"),
    ]


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (b"\x1b[12;40R", TerminalReply("cursor", (12, 40))),
        (b"\x1b[I", TerminalReply("focus", (1,))),
        (b"\x1b[O", TerminalReply("focus", (0,))),
        (
            b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\",
            TerminalReply("background", text="rgb:1e1e/1e1e/2e2e"),
        ),
        (b"\x1b]11;rgb:ff/ff/ff\x07", TerminalReply("background", text="rgb:ff/ff/ff")),
        (b"\x1b[?62;22c", TerminalReply("other", text="?62;22c")),
    ],
)
def test_what_the_terminal_answers_is_no_key(sent: bytes, reply: TerminalReply) -> None:
    assert decoded(sent) == [reply]


PIECES = [
    *(b"a", "中".encode(), "é".encode(), b"\x1b[A", b"\x1b[1;5D", b"\x1bb", b"\r", b"\x1b[13;2u"),
    *(b"\x1b[200~x\ry\x1b[201~", b"\x1b[5;9R", b"\x1b]11;rgb:0/0/0\x07", b"\x7f", b"\x1bOH"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data())
def test_it_does_not_matter_where_the_bytes_are_cut(
    pieces: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(pieces)
    decoder = KeyDecoder()
    found: list[TerminalEvent] = []
    rest = whole
    while rest:
        cut = data.draw(st.integers(1, len(rest)))
        found += decoder.feed(rest[:cut])
        rest = rest[cut:]
    assert [*found, *decoder.flush()] == decoded(whole)


@given(st.binary(max_size=60))
def test_any_bytes_are_survived_and_what_follows_is_read(noise: bytes) -> None:
    decoder = KeyDecoder()
    decoder.feed(noise)
    decoder.flush()
    # A paste or string that was begun has to be ended first.
    decoder.feed(b"\x1b[201~\x1b\\")
    decoder.flush()
    assert decoder.feed(b"z")[-1:] == [KeyPress("z")]
