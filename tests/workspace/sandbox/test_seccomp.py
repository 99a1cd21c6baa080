"""The seccomp filter, interpreted as the kernel would: also for the processor the tests do not run
on.
"""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from weft.workspace.sandbox.seccomp import NUMBERS, OWN, program

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
PASSWORD = 0x1234_5678_9ABC_DEF0
ALLOWED, REFUSED, MISSING = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
ON = pytest.mark.parametrize("machine", MACHINES)
UPPER = 0x7FFF_FFFF_0000_0000
"""Bits of an argument that the kernel does not look at, where it takes an `int`."""


def verdict(machine: str, number: int, *arguments: int, kind: int = 0, **options: bool) -> int:
    """What the filter says of a call; `kind` is the processor's, where it is another one."""
    code = program(machine, PASSWORD, **options)
    assert code is not None
    six = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, kind or MACHINES[machine], 0, *six)
    steps = list(struct.iter_unpack("HBBI", code))
    held = at = 0
    while True:
        what, then, otherwise, value = steps[at]
        at += 1
        if what == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        elif what == 0x54:
            held &= value
        elif what == 0x06:
            return int(value)
        else:
            is_so = {0x15: held == value, 0x35: held >= value, 0x45: held & value != 0}[what]
            at += then if is_so else otherwise


@ON
@pytest.mark.parametrize("flags", [0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK, UPPER])
def test_of_all_pairs_only_streams_and_packets_are_made(machine: str, flags: int) -> None:
    number = NUMBERS[machine]["socketpair"]
    made = [
        kind
        for kind in range(16)
        if verdict(machine, number, UPPER | socket.AF_UNIX, flags | kind) == ALLOWED
    ]
    assert made == [socket.SOCK_STREAM, socket.SOCK_SEQPACKET]


@ON
def test_unix_sockets_that_are_allowed_come_in_every_kind(machine: str) -> None:
    numbers = NUMBERS[machine]
    for kind in range(16):
        for name in ("socket", "socketpair"):
            said = verdict(machine, numbers[name], socket.AF_UNIX, kind, unix_sockets=True)
            assert said == ALLOWED


@ON
def test_a_socket_is_refused_by_its_family(machine: str) -> None:
    number = NUMBERS[machine]["socket"]
    refused = [f for f in range(64) if verdict(machine, number, UPPER | f, 1) == REFUSED]
    assert refused == [socket.AF_UNIX, 38, 40]


@ON
def test_what_has_a_name_is_refused_and_what_has_none_is_not(machine: str) -> None:
    judged = {"socket", "socketpair", "ioctl", "clone", "clone3"}
    for name, number in NUMBERS[machine].items():
        if name not in judged:
            assert verdict(machine, number) == REFUSED, name
            allowed = name in OWN
            said = verdict(machine, number, 0, 0, 0, 0, 0, PASSWORD)
            assert said == (ALLOWED if allowed else REFUSED), name
    assert verdict(machine, NUMBERS[machine]["clone3"]) == MISSING
    unnamed = set(range(500)) - set(NUMBERS[machine].values())
    assert {verdict(machine, number) for number in unnamed} == {ALLOWED}


@ON
def test_a_program_for_another_processor_makes_no_call_at_all(machine: str) -> None:
    ia32, arm = 0x40000003, 0x40000028
    for kind in (ia32, arm, *(set(MACHINES.values()) - {MACHINES[machine]})):
        assert {verdict(machine, number, kind=kind) for number in range(500)} == {REFUSED}


def test_a_program_with_short_pointers_makes_none_either() -> None:
    assert {verdict("x86_64", 0x40000000 | number) for number in range(600)} == {MISSING}
