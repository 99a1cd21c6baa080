"""Images that the model reads."""

from __future__ import annotations

import base64

import pytest

from tests.support.image_samples import png
from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError
from weft.messages import MAX_IMAGE_BYTES

pytestmark = pytest.mark.anyio


async def test_an_image_is_shown_to_the_model(bench: ToolBench) -> None:
    bench.write("a/shot.png", png())
    outcome = await bench.run("read", path="a/shot.png")
    (image,) = outcome.images
    assert (image.media_type, image.name) == ("image/png", "a/shot.png")
    assert base64.b64decode(image.data) == png()
    assert "image/png, 3 x 2" in outcome.text
    assert await bench.text("write", path="a/shot.png", content="text")  # it was read


@pytest.mark.parametrize("data", [png(9_000, 10), png(3, 2, b"\0" * MAX_IMAGE_BYTES)])
async def test_an_image_that_no_vendor_takes_is_refused(bench: ToolBench, data: bytes) -> None:
    bench.write("big.png", data)
    with pytest.raises(FinalToolError, match="Make a smaller copy"):
        await bench.run("read", path="big.png")


async def test_a_damaged_image_is_a_binary_file(bench: ToolBench) -> None:
    bench.write("bad.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    with pytest.raises(FinalToolError, match="binary file"):
        await bench.run("read", path="bad.png")
