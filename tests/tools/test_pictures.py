"""Pictures are decoded before a vendor sees them: what is none is refused, what is large is
shrunk.
"""

from __future__ import annotations

import base64

import pytest

from tests.support.image_samples import REAL, picture, png
from tests.support.pdf_samples import pdf
from weft.errors import UsageError
from weft.messages import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE, PDF_TYPE, File, Image, image_info
from weft.tools.pdf import MAX_SHOWN_FILE
from weft.tools.pictures import (
    MAX_PIXELS,
    SHRUNK_SIDE,
    FittedPicture,
    PictureProblem,
    fit,
    fitted_parts,
)


def refused(data: bytes) -> str:
    problem = fit(data)
    assert isinstance(problem, PictureProblem)
    return problem.text


def taken(data: bytes) -> FittedPicture:
    found = fit(data)
    assert isinstance(found, FittedPicture), found
    return found


@pytest.mark.parametrize(("kind", "media_type"), REAL.items())
def test_a_picture_that_fits_stays_byte_for_byte(kind: str, media_type: str) -> None:
    data = picture(kind)
    assert taken(data).data == data
    assert taken(data).info.media_type == media_type
    assert taken(data).note == ""


@pytest.mark.parametrize("kind", REAL)
def test_half_a_picture_is_refused(kind: str) -> None:
    data = picture(kind, 300, 200, noisy=True)
    assert "damaged" in refused(data[: len(data) // 2])


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    assert "is not an image that models take; those are PNG, JPEG, GIF and WebP" in refused(data)


def test_a_header_alone_is_no_picture() -> None:
    assert "damaged" in refused(png())


@pytest.mark.parametrize("side", [20_000, 2**31 - 1])
def test_a_picture_that_would_fill_the_memory_is_not_decoded(side: int) -> None:
    assert f"at most {MAX_PIXELS:,} pixels" in refused(png(side, side))


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_with_too_many_pixels_is_shrunk(kind: str) -> None:
    found = taken(picture(kind, MAX_IMAGE_SIDE + 2, 10))
    assert max(found.info.width, found.info.height) == SHRUNK_SIDE
    assert found.note == f"shrunk from {MAX_IMAGE_SIDE + 2} x 10 to {SHRUNK_SIDE} x 3"
    assert image_info(found.data) == found.info


def test_a_picture_with_too_many_bytes_is_shrunk() -> None:
    data = picture("PNG", 1_500, 1_000, noisy=True)
    assert len(data) > MAX_IMAGE_BYTES
    found = taken(data)
    assert len(found.data) <= MAX_IMAGE_BYTES
    assert found.info.media_type == "image/jpeg"
    assert found.note == "as JPEG, which takes fewer bytes"


def test_a_photo_stays_upright_when_it_is_shrunk() -> None:
    """Orientation 6: the camera was held sideways."""
    found = taken(picture("JPEG", MAX_IMAGE_SIDE + 2, 10, orientation=6))
    assert found.info.height > found.info.width


# --- parts of a message ------------------------------------------------------------------


def with_text(data: bytes, media_type: str = PDF_TYPE) -> Image:
    return Image(
        media_type=media_type,
        data=base64.b64encode(data).decode(),
        name="a",
        text_beside=True,
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("part", "said"),
    [
        (with_text(b"garbage", "image/png"), "a is not an image that models take"),
        (with_text(pdf("Hello"), "image/png"), "a is not an image that models take"),
        (with_text(b"garbage"), "a is not a PDF"),
        (with_text(picture("PNG")), "a is not a PDF"),
        (with_text(b"%PDF-" + b"." * MAX_SHOWN_FILE), "a is larger than 30 MB"),
        (Image(media_type=PDF_TYPE, data="%", name="a", text_beside=True), "a is not base64"),
    ],
    ids=["no picture", "PDF as picture", "no PDF", "picture as PDF", "large", "no base64"],
)
async def test_a_text_beside_it_does_not_make_a_part_right(part: Image, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        await fitted_parts([part, File(name="a", media_type=PDF_TYPE, text="Hello")])


@pytest.mark.anyio
async def test_a_document_with_its_text_is_taken_as_it_is() -> None:
    parts = (with_text(pdf("Hello")), File(name="a", media_type=PDF_TYPE, text="Hello"))
    assert await fitted_parts(parts) == parts
