"""The text of PDF files."""

from __future__ import annotations

import pytest

from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def pdf(*pages: str) -> bytes:
    """A PDF with a line on each page; without a table of its objects, which readers make anew."""
    numbers = [3 + 2 * at for at in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects = [
        "1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj",
        f"2 0 obj <</Type /Pages /Kids [{kids}] /Count {len(pages)}>> endobj",
    ]
    for number, text in zip(numbers, pages, strict=True):
        drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
        font = "<</Font <</F1 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>>>>>"
        objects += [
            f"{number} 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] "
            f"/Resources {font} /Contents {number + 1} 0 R>> endobj",
            f"{number + 1} 0 obj <</Length {len(drawn)}>> stream\n{drawn}\nendstream endobj",
        ]
    body = "\n".join(objects)
    return f"%PDF-1.4\n{body}\ntrailer <</Root 1 0 R>>\nstartxref\n0\n%%EOF\n".encode()


async def test_a_pdf_is_read_page_by_page(bench: ToolBench) -> None:
    (bench.root / "a.pdf").write_bytes(pdf("Hello there", "The end"))
    text = await bench.text("read", path="a.pdf")
    assert text.splitlines() == [
        "     1\t--- page 1 of 2",
        "     2\tHello there",
        "     3\t--- page 2 of 2",
        "     4\tThe end",
    ]


async def test_the_content_decides_and_not_the_name(bench: ToolBench) -> None:
    (bench.root / "a.txt").write_bytes(pdf("Hello there"))
    assert "Hello there" in await bench.text("read", path="a.txt", offset=2)


async def test_a_pdf_without_text_is_said_to_be_a_scan(bench: ToolBench) -> None:
    (bench.root / "a.pdf").write_bytes(pdf("", ""))
    with pytest.raises(FinalToolError, match="a PDF of 2 pages without text; it may be a scan"):
        await bench.run("read", path="a.pdf")


@pytest.mark.parametrize("rest", [b"", b"garbage", b"\x00\xff" * 500, b"1 0 obj " * 2_000])
async def test_a_broken_pdf_is_refused_in_a_sentence(bench: ToolBench, rest: bytes) -> None:
    (bench.root / "a.pdf").write_bytes(b"%PDF-1.4\n" + rest)
    with pytest.raises(FinalToolError, match=r"'a\.pdf' cannot be read as a PDF \(broken: "):
        await bench.run("read", path="a.pdf")
