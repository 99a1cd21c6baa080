"""Pictures are decoded before a vendor sees them: what is none is refused, what is large is
shrunk.
"""

from __future__ import annotations

import pytest

from tests.support.image_samples import REAL, picture, png
from weft.messages import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE, image_info
from weft.tools.pictures import MAX_PIXELS, SHRUNK_SIDE, FittedPicture, PictureProblem, fit


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
