"""RS256, the signature that Google wants of a service account: RSA with SHA-256, PKCS #1 v1.5.

By hand, because google-auth with its signer costs a third of a second of start-up (decision 012).
It signs our own short text with the user's own key once an hour, so neither padding nor timing can
be used against it; google-auth checks what it makes in `tests/oracles/`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec

from weft.errors import AuthFailed

_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
"""RFC 8017, 9.2: what names the hash in front of it."""


class RsaKey(msgspec.Struct, frozen=True):
    """The numbers of a private key that a signature needs."""

    modulus: int
    exponent: int

    def __repr__(self) -> str:
        """Without the key: values end up in logs."""
        return "RsaKey(…)"


def private_key(pem: str) -> RsaKey:
    """The key in a PEM text, as PKCS #8 or PKCS #1.

    Raises:
        AuthFailed: it is none.
    """
    lines = [line.strip() for line in pem.strip().splitlines()]
    try:
        data = base64.b64decode("".join(lines[1:-1]), validate=True)
        fields = _sequence(data)
        if "BEGIN RSA" not in lines[0]:
            # PKCS #8 wraps the key: version, algorithm, and the key as a string of bytes.
            fields = _sequence(fields[2])
        # Version, modulus, public exponent, private exponent; then what makes it faster.
        modulus, exponent = (int.from_bytes(fields[at], "big") for at in (1, 3))
    except (IndexError, ValueError, binascii.Error):
        raise AuthFailed("the private key of the service account cannot be read") from None
    return RsaKey(modulus, exponent)


def sign(message: bytes, key: RsaKey) -> bytes:
    """The signature of a message."""
    size = (key.modulus.bit_length() + 7) // 8
    digest = _SHA256 + hashlib.sha256(message).digest()
    padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
    return pow(int.from_bytes(padded, "big"), key.exponent, key.modulus).to_bytes(size, "big")


def _sequence(data: bytes) -> list[bytes]:
    """The contents of the values in a DER sequence."""
    inner, _ = _value(data)
    found: list[bytes] = []
    while inner:
        value, inner = _value(inner)
        found.append(value)
    return found


def _value(data: bytes) -> tuple[bytes, bytes]:
    """The content of the first value, and what follows it."""
    size, at = data[1], 2
    if size & 0x80:
        count = size & 0x7F
        size, at = int.from_bytes(data[2 : 2 + count], "big"), 2 + count
    if len(data) < at + size:
        raise ValueError("cut off")
    return data[at : at + size], data[at + size :]
