"""Image formats that models take: recognised by magic bytes, measured, held to the vendors' limits.

Pure, and the one table of them.  Only the first bytes are looked at, never a file's name: a name is
a claim.  An image that cannot be measured is damaged, or no image: vendors refuse a whole
conversation for one such, and would again with each further message.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

IMAGE_TYPES: Final = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
}
"""Media type → name; what every vendor with eyes takes."""
IMAGE_NAMES: Final = "PNG, JPEG, GIF and WebP"
"""The same, for sentences."""
MAX_IMAGE_BYTES: Final = 3_750_000
"""Five megabytes as base64: what the strictest vendor takes."""
MAX_IMAGE_SIDE: Final = 8_000
"""Pixels on the longer side: what the strictest vendor takes."""


class ImageInfo(msgspec.Struct, frozen=True):
    """What an image's header says."""

    media_type: str
    width: int
    height: int


def image_info(data: bytes) -> ImageInfo | None:
    """The image that these bytes are; None when they are none that models can be shown."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
            return ImageInfo("image/png", *struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return ImageInfo("image/gif", *struct.unpack("<HH", data[6:10]))
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _webp(data)
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(data)
    except (struct.error, IndexError):
        pass  # it ends in the middle of its header
    return None


def image_problem(info: ImageInfo, size: int) -> str:
    """Why an image of `size` bytes cannot be shown to models; empty when it can."""
    if size <= MAX_IMAGE_BYTES and max(info.width, info.height) <= MAX_IMAGE_SIDE:
        return ""
    return (
        f"it is an image of {size:,} bytes, {info.width} x {info.height}; models take at most "
        f"{MAX_IMAGE_BYTES:,} bytes and {MAX_IMAGE_SIDE} pixels on a side"
    )


def _webp(data: bytes) -> ImageInfo | None:
    match data[12:16]:
        case b"VP8 ":
            # The two highest bits of each are a scaling factor, not a part of the size.
            width, height = struct.unpack("<HH", data[26:30])
            return ImageInfo("image/webp", width & 0x3FFF, height & 0x3FFF)
        case b"VP8L":
            (bits,) = struct.unpack("<I", data[21:25])
            return ImageInfo("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            sides = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
            return ImageInfo("image/webp", *sides) if len(data) >= 30 else None
        case _:
            return None


def _jpeg(data: bytes) -> ImageInfo | None:
    """The size stands in a segment of its own, behind others of any length: walk to it."""
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1  # fill bytes may precede any marker
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return ImageInfo("image/jpeg", width, height)
        else:
            at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None
