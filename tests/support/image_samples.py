"""Headers of images in every format that models take, each 3 x 2 pixels."""

from __future__ import annotations

import base64
import io
import random
import struct
from typing import Any

from PIL import Image


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


REAL = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
"""Formats of whole pictures, with their media types."""


def picture(
    kind: str = "PNG",
    width: int = 3,
    height: int = 2,
    *,
    noisy: bool = False,
    orientation: int = 0,
) -> bytes:
    """A whole picture; a noisy one does not shrink when it is compressed."""
    size = (width, height)
    # Random, but the same in every run.
    noise = random.Random(0).randbytes(width * height * 3) if noisy else b""
    made = Image.frombytes("RGB", size, noise) if noisy else Image.new("RGB", size, "red")
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    target = io.BytesIO()
    # Compressing takes more than half of the time, and noise comes out no smaller.
    options: dict[str, Any] = {"compress_level": 0} if noisy and kind == "PNG" else {}
    made.save(target, kind, **options, **({"exif": exif} if orientation else {}))
    return target.getvalue()


PIXEL_DATA = base64.b64encode(picture("PNG", 1, 1)).decode()
"""A whole picture as messages hold it."""
