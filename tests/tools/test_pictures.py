"""Looking at pictures."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.conftest import Bench
from weft.errors import FinalToolError
from weft.tools.images import MAX_BYTES, ImageInfo, picture

pytestmark = pytest.mark.anyio


def png(width: int = 3, height: int = 2, more: bytes = b"") -> bytes:
    size = struct.pack(">II", width, height)
    return b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + size + b"\x08\x02\0\0\0" + more


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    b"\xff\xff\xc0\x00\x11\x08\x00\x02\x00\x03\x03"
)
GIF = b"GIF89a\x03\0\x02\0\x80\0\0"
LOSSY = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x03\x00\x02\x00"
LOSSLESS = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f" + struct.pack("<I", 2 | 1 << 14)
EXTENDED = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (png(), "png"),
        (JPEG, "jpeg"),
        (GIF, "gif"),
        (LOSSY, "webp"),
        (LOSSLESS, "webp"),
        (EXTENDED, "webp"),
    ],
)
async def test_a_picture_is_measured(data: bytes, kind: str) -> None:
    assert picture(data) == ImageInfo(f"image/{kind}", 3, 2)
    for end in range(len(data) - 4):
        found = picture(data[:end])
        assert found is None or found == ImageInfo(f"image/{kind}", 3, 2)


@given(st.sampled_from([b"", b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBPVP8X"]), st.binary())
def test_looking_for_a_picture_never_fails(head: bytes, rest: bytes) -> None:
    picture(head + rest)


async def test_a_picture_is_shown_to_the_model(bench: Bench) -> None:
    bench.write("a/shot.png", png())
    outcome = await bench.run("read", path="a/shot.png")
    (image,) = outcome.images
    assert (image.media_type, image.name) == ("image/png", "a/shot.png")
    assert base64.b64decode(image.data) == png()
    assert "image/png, 3 x 2" in outcome.text
    assert await bench.text("write", path="a/shot.png", content="text")  # it was read


@pytest.mark.parametrize("data", [png(9_000, 10), png(3, 2, b"\0" * MAX_BYTES)])
async def test_a_picture_that_no_vendor_takes_is_refused(bench: Bench, data: bytes) -> None:
    bench.write("big.png", data)
    with pytest.raises(FinalToolError, match="Make a smaller copy"):
        await bench.run("read", path="big.png")


async def test_a_damaged_picture_is_a_binary_file(bench: Bench) -> None:
    bench.write("bad.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    with pytest.raises(FinalToolError, match="binary file"):
        await bench.run("read", path="bad.png")
