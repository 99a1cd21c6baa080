"""Typed ids, and how new ones are made.

An id is a short prefix that says what it names, then 26 characters: 48 bits of milliseconds and 80
random bits, in an alphabet that sorts as it counts.  Ids of one kind therefore list in the order
they were made, which is a convenience for lists; nothing in Weft compares ids to learn an order
(`seq` does that).
"""

from __future__ import annotations

from os import urandom
from typing import NewType, TypeAlias

from weft.sha256 import sha256

SessionId = NewType("SessionId", str)
ProjectId = NewType("ProjectId", str)
NodeId = NewType("NodeId", str)
TurnId = NewType("TurnId", str)
CallUid = NewType("CallUid", str)
"""Our own name for one tool call; a provider's id is only ever sent back to that provider."""
RequestId = NewType("RequestId", str)
"""Names one permission or question that waits for the user."""
InputId = NewType("InputId", str)
"""Names one input of a client; repeating it repeats nothing."""
EntryId = NewType("EntryId", str)
"""Names one entry of the steering or follow-up queue."""
WaitId = NewType("WaitId", str)
"""Names one wait of a turn."""
ScheduleId = NewType("ScheduleId", str)
"""Names one prompt that is sent at a time, or again and again."""
GoalId = NewType("GoalId", str)
"""Names one goal of a session."""
DecisionId = NewType("DecisionId", str)
"""Names one node of a project's decision graph; short, because people type it."""
BlobId = NewType("BlobId", str)
"""SHA-256 of the content, in hexadecimal."""
TreeHash: TypeAlias = str
"""Stands for all files of a project; equal ones mean equal files.  To be compared: where it is no
tree of a snapshot, nothing is stored under it."""

# Without i, l, o and u: ids are read aloud and typed.  In ASCII order, so that they sort as they
# count.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# A random byte to the digit of its last five bits: each digit stands for eight bytes.
_DIGIT_OF_BYTE = 8 * _ALPHABET.encode()
_TIME_SHIFTS = tuple(range(45, -1, -5))


def new_id(prefix: str, now_seconds: float) -> str:
    """Make a fresh id such as `ses_06b3…`; `now_seconds` is wall-clock time, for sorting only."""
    # Random bits after the time, not a counter: several processes make ids without asking each
    # other. Two ids of one millisecond therefore sort in any order, and clocks differ between
    # machines, which is why an id is never compared to learn what came first.
    millis, digits = int(now_seconds * 1000), _ALPHABET
    time = "".join([digits[millis >> shift & 31] for shift in _TIME_SHIFTS])
    return f"{prefix}_{time}{urandom(16).translate(_DIGIT_OF_BYTE).decode()}"


def client_id(name: str, made: str) -> str:
    """The id of a client that others see under a name; `made` is a fresh id, which keeps two of one
    name apart.
    """
    kept = "".join(each if _is_plain(each) else "-" for each in name)[:60]
    return f"{made}~{kept}" if kept else made


def _is_plain(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter in "@._-")


def client_name(client: str) -> str:
    """The name in the id of a client; empty where it has none."""
    return client.partition("~")[2]


def derived_id(prefix: str, *names: str) -> str:
    """The id that these names always give, so that a call which comes again under them finds what
    the first one made.  It tells no time.
    """
    seed = "".join(f"{len(name)}:{name}" for name in names)
    return f"{prefix}_{sha256(seed.encode()).digest()[:26].translate(_DIGIT_OF_BYTE).decode()}"


def time_of(made: str) -> float:
    """When an id was made, in seconds; 0 for one that is not ours.  For display only."""
    digits = made.rpartition("_")[2]
    if len(digits) != 26 or not set(digits) <= set(_ALPHABET):
        return 0.0
    number = 0
    for digit in digits:
        number = number * 32 + _ALPHABET.index(digit)
    return (number >> 80) / 1000


def is_node_id(text: str) -> bool:
    """Whether this looks like the whole id of a node that Weft named, and not like a part of it."""
    digits = text.removeprefix("nod_")
    return text != digits and len(digits) in (20, 26) and set(digits) <= set(_ALPHABET)


def new_session_id(now_seconds: float) -> SessionId:
    return SessionId(new_id("ses", now_seconds))


def new_node_id(now_seconds: float) -> NodeId:
    return NodeId(new_id("nod", now_seconds))


def new_text_id() -> NodeId:
    """The id of a node of a text tree: random from its beginning, because people type it, and the
    first letters of ids that tell the time are those of all that was made in the same minutes.
    """
    # Shorter than those that tell the time, so that `time_of` reads none out of it; `is_node_id`
    # knows both lengths.
    return NodeId(f"nod_{urandom(20).translate(_DIGIT_OF_BYTE).decode()}")


def new_call_uid(now_seconds: float) -> CallUid:
    return CallUid(new_id("cal", now_seconds))
