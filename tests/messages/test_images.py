"""Image formats: recognised by content, measured, and held to the vendors' limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.image_samples import SAMPLES, png
from weft.messages import (
    IMAGE_NAMES,
    IMAGE_TYPES,
    MAX_IMAGE_BYTES,
    MAX_IMAGE_SIDE,
    ImageInfo,
    image_info,
    image_problem,
)


@pytest.mark.parametrize(("data", "media_type"), SAMPLES)
def test_an_image_is_measured_by_its_header_alone(data: bytes, media_type: str) -> None:
    assert image_info(data) == ImageInfo(media_type, 3, 2)
    for end in range(len(data) - 4):
        found = image_info(data[:end])
        assert found is None or found == ImageInfo(media_type, 3, 2)


@given(st.sampled_from([b"", b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBPVP8X"]), st.binary())
def test_looking_for_an_image_never_fails(head: bytes, rest: bytes) -> None:
    image_info(head + rest)


def test_every_format_that_is_recognised_stands_in_the_table() -> None:
    assert {media_type for _, media_type in SAMPLES} == set(IMAGE_TYPES)
    assert all(name in IMAGE_NAMES for name in IMAGE_TYPES.values())


@pytest.mark.parametrize(
    ("side", "size", "fits"),
    [
        (MAX_IMAGE_SIDE, MAX_IMAGE_BYTES, True),
        (MAX_IMAGE_SIDE + 1, 100, False),
        (3, MAX_IMAGE_BYTES + 1, False),
    ],
)
def test_an_image_that_the_strictest_vendor_refuses_is_named_with_its_size(
    side: int, size: int, fits: bool
) -> None:
    info = image_info(png(side, 2))
    assert info is not None
    problem = image_problem(info, size)
    assert (not problem) == fits
    assert fits or (f"{size:,} bytes" in problem and f"{side} x 2" in problem)
