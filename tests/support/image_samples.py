"""Headers of images in every format that models take, each 3 x 2 pixels."""

from __future__ import annotations

import struct


def png(width: int = 3, height: int = 2, more: bytes = b"") -> bytes:
    """A PNG of this size; `more` follows its header."""
    size = struct.pack(">II", width, height)
    return b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + size + b"\x08\x02\0\0\0" + more


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    b"\xff\xff\xc0\x00\x11\x08\x00\x02\x00\x03\x03"
)
GIF = b"GIF89a\x03\0\x02\0\x80\0\0"
LOSSY_WEBP = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x03\x00\x02\x00"
LOSSLESS_WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f" + struct.pack("<I", 2 | 1 << 14)
EXTENDED_WEBP = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0"

SAMPLES = (
    (png(), "image/png"),
    (JPEG, "image/jpeg"),
    (GIF, "image/gif"),
    (LOSSY_WEBP, "image/webp"),
    (LOSSLESS_WEBP, "image/webp"),
    (EXTENDED_WEBP, "image/webp"),
)
"""Each with its media type."""
