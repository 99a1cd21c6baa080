"""Images that the model reads."""

from __future__ import annotations

import base64

import pytest

from tests.support.image_samples import picture, png
from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError
from weft.messages import MAX_IMAGE_BYTES

pytestmark = pytest.mark.anyio


async def test_an_image_is_shown_to_the_model(bench: ToolBench) -> None:
    bench.write("a/shot.png", picture())
    outcome = await bench.run("read", path="a/shot.png")
    (image,) = outcome.images
    assert (image.media_type, image.name) == ("image/png", "a/shot.png")
    assert base64.b64decode(image.data) == picture()
    assert "image/png, 3 x 2" in outcome.text
    assert await bench.text("write", path="a/shot.png", content="text")  # it was read


@pytest.mark.parametrize(("width", "height"), [(9_000, 10), (1_500, 1_000)])
async def test_an_image_that_no_vendor_takes_is_shrunk(
    bench: ToolBench, width: int, height: int
) -> None:
    bench.write("big.png", picture("PNG", width, height, noisy=height > 10))
    outcome = await bench.run("read", path="big.png")
    (image,) = outcome.images
    assert len(base64.b64decode(image.data)) <= MAX_IMAGE_BYTES
    assert f"{width} x {height}" in outcome.text
    assert "shown with this" in outcome.text


@pytest.mark.parametrize("data", [png(), picture("JPEG", 300, 200, noisy=True)[:5_000]])
async def test_half_an_image_is_refused(bench: ToolBench, data: bytes) -> None:
    """A vendor would refuse the conversation with it, now and with each further message."""
    bench.write("half.png", data)
    with pytest.raises(FinalToolError, match=r"half\.png' cannot be shown: it is a damaged image"):
        await bench.run("read", path="half.png")


async def test_a_damaged_image_is_a_binary_file(bench: ToolBench) -> None:
    bench.write("bad.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    with pytest.raises(FinalToolError, match="binary file"):
        await bench.run("read", path="bad.png")
