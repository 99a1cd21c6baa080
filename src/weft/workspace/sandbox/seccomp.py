"""The seccomp filter: the system calls that a sandboxed command cannot make.

A command has no use for them: they look into other processes, load code into the kernel, make
namespaces, or open unix sockets, which reach servers outside the sandbox by their path whatever the
network namespace says.  They fail with "Operation not permitted", so that programs go on as they do
elsewhere.  `clone3` does not exist here: its flags cannot be seen by a filter, and programs fall
back to `clone`.

A seccomp filter sees numbers, never what a pointer leads to: the address that is given to `sendto`,
`sendmsg` or `connect` cannot be judged.  So no unix socket may exist that would use one.  An end of
a stream or seqpacket pair stays with its peer for good; an end of a datagram pair sends to any
address, and passes descriptors there, so such pairs are refused (`PAIRS`).

The process that holds a cell is under the same filter and has to make some of these calls itself.
Its own carry a password in their last argument, where the kernel does not look; it is drawn anew
for each cell, and no command can read it.  `mount` is not filtered, for all its arguments are used;
without a capability it is refused anyway.

The program is classic BPF, one for each kind of processor that we know; elsewhere there is no
sandbox.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from typing import Final

# What a filter sees: the number of the call, the processor's kind, and the arguments, of which the
# lower half is enough.
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_STEP = struct.Struct("HBBI")
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_MISSING = 0x00050000 | errno.ENOSYS
X32 = 0x40000000
"""The bit in the numbers of calls of the x32 ABI."""
_NEW_NAMESPACES = 0x7E020000
"""Every flag of `clone` that makes a namespace."""
_FAMILIES = (1, 38, 40)
"""Unix sockets, the kernel's own cryptography, and sockets to the machine that hosts this one."""
PAIRS = (1, 5)
"""Types that `socketpair` may make: SOCK_STREAM and SOCK_SEQPACKET.  A list of what is allowed,
because SOCK_DGRAM (2) has a second name: the kernel turns SOCK_RAW (3) into it.
"""
_SOCKET_TYPE = 0xF
"""The other bits of the argument are SOCK_CLOEXEC and SOCK_NONBLOCK."""
_TERMINAL_REQUESTS = (0x5412, 0x541C)
"""Typing into a terminal."""

_COMMON = {
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "clone3": 435,
}
NUMBERS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        **_COMMON,
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "kcmp": 312,
        "userfaultfd": 323,
        "keyctl": 250,
        "add_key": 248,
        "request_key": 249,
        "bpf": 321,
        "perf_event_open": 298,
        "pivot_root": 155,
        "chroot": 161,
        "unshare": 272,
        "setns": 308,
        "open_by_handle_at": 304,
        "kexec_load": 246,
        "kexec_file_load": 320,
        "init_module": 175,
        "finit_module": 313,
        "delete_module": 176,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "acct": 163,
        "quotactl": 179,
        "syslog": 103,
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "ioctl": 16,
    },
    "aarch64": {
        **_COMMON,
        "ptrace": 117,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "kcmp": 272,
        "userfaultfd": 282,
        "keyctl": 219,
        "add_key": 217,
        "request_key": 218,
        "bpf": 280,
        "perf_event_open": 241,
        "pivot_root": 41,
        "chroot": 51,
        "unshare": 97,
        "setns": 268,
        "open_by_handle_at": 265,
        "kexec_load": 104,
        "kexec_file_load": 294,
        "init_module": 105,
        "finit_module": 273,
        "delete_module": 106,
        "swapon": 224,
        "swapoff": 225,
        "reboot": 142,
        "acct": 89,
        "quotactl": 60,
        "syslog": 116,
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "ioctl": 29,
    },
}
"""Numbers of the calls, by processor."""
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OWN: Final = frozenset({"unshare", "setns"})
"""What the process that holds a cell may call itself."""
_BY_ARGUMENT = frozenset({"socket", "socketpair", "clone", "ioctl", "clone3"})


def program(machine: str, password: int, *, unix_sockets: bool = False) -> bytes | None:
    """The filter for this kind of processor, which lets calls with this password through.

    None where we know none.
    """
    numbers = NUMBERS.get(machine)
    if numbers is None:
        return None
    # AF_UNIX is 1.  The other two stay refused: no setting is about them.
    families = [family for family in _FAMILIES if family != 1 or not unix_sockets]
    steps = [
        # Another kind of processor has other numbers: a 32-bit program could call anything.
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, _MACHINES[machine], then=1),
        _step(_RETURN, _REFUSE),
        _step(_LOAD, _NUMBER),
        *(
            [_step(_AT_LEAST, X32, otherwise=1), _step(_RETURN, _MISSING)]
            if machine == "x86_64"
            else []
        ),
        _step(_EQUAL, numbers["clone3"], otherwise=1),
        _step(_RETURN, _MISSING),
        *_refused(number for name, number in numbers.items() if name not in _BY_ARGUMENT | OWN),
        *(step for name in sorted(OWN) for step in _refused_without(numbers[name], password)),
        *_refused_with(numbers["socket"], argument=0, values=families),
        *([] if unix_sockets else _refused_pairs(numbers["socketpair"])),
        *_refused_with(numbers["ioctl"], argument=1, values=_TERMINAL_REQUESTS),
        _step(_EQUAL, numbers["clone"], otherwise=3),
        _step(_LOAD, _ARGUMENTS),
        _step(_ANY_BIT, _NEW_NAMESPACES, otherwise=1),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _refused(numbers: Iterable[int]) -> list[bytes]:
    """Calls that are refused whatever their arguments."""
    steps: list[bytes] = []
    for number in numbers:
        steps += [_step(_EQUAL, number, otherwise=1), _step(_RETURN, _REFUSE)]
    return steps


def _refused_without(number: int, password: int) -> list[bytes]:
    """A call that is refused unless its last argument is the password."""
    # A filter compares 32 bits at a time, so a 64-bit argument takes two loads (low half first on
    # the little-endian processors that we know).
    last = _ARGUMENTS + 8 * 5
    return [
        _step(_EQUAL, number, otherwise=6),
        _step(_LOAD, last),
        _step(_EQUAL, password & 0xFFFFFFFF, otherwise=3),
        _step(_LOAD, last + 4),
        _step(_EQUAL, password >> 32, otherwise=1),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _REFUSE),
    ]


def _refused_with(number: int, *, argument: int, values: Iterable[int]) -> list[bytes]:
    """A call that is refused when an argument has one of these values, and allowed else."""
    checks: list[bytes] = []
    for value in values:
        checks += [_step(_EQUAL, value, otherwise=1), _step(_RETURN, _REFUSE)]
    return [
        _step(_EQUAL, number, otherwise=len(checks) + 2),
        _step(_LOAD, _ARGUMENTS + 8 * argument),
        *checks,
        _step(_RETURN, _ALLOW),
    ]


def _refused_pairs(number: int) -> list[bytes]:
    """`socketpair`, refused for all types but those of `PAIRS`, whatever the family."""
    return [
        _step(_EQUAL, number, otherwise=len(PAIRS) + 4),
        _step(_LOAD, _ARGUMENTS + 8),
        _step(_AND, _SOCKET_TYPE),
        *(_step(_EQUAL, kind, then=len(PAIRS) - place) for place, kind in enumerate(PAIRS)),
        _step(_RETURN, _REFUSE),
        _step(_RETURN, _ALLOW),
    ]


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; `then` and `otherwise` say how many to skip."""
    return _STEP.pack(code, then, otherwise, value)
