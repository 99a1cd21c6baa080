"""The text of PDF files."""

from __future__ import annotations

import base64
import io

import msgspec
import pytest
from pypdf import PdfWriter

from tests.support.pdf_samples import pdf
from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError
from weft.messages import PDF_TYPE
from weft.tools.builtin.read import MOST_SHOWN_PAGES

pytestmark = [pytest.mark.anyio, pytest.mark.process]


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


async def test_the_document_itself_comes_with_its_text(bench: ToolBench) -> None:
    content = pdf("Hello there", "The end")
    (bench.root / "a.pdf").write_bytes(content)
    (document,) = (await bench.run("read", path="a.pdf")).images
    assert base64.b64decode(document.data) == content
    assert (document.media_type, document.name) == (PDF_TYPE, "a.pdf")
    assert (document.pages, document.text_beside) == (2, True)


async def test_a_secret_behind_what_is_shown_keeps_the_document_back(bench: ToolBench) -> None:
    async def masked(text: str) -> str:
        return text.replace("secret", "[redacted]")

    bench.context = msgspec.structs.replace(bench.context, masked=masked)
    bench.write("a.pdf", pdf(f"{'x' * 3_000} secret"))
    outcome = await bench.run("read", path="a.pdf")
    assert "secret " not in outcome.text
    assert outcome.images == ()
    bench.write("a.pdf", pdf("x" * 3_000))
    assert len((await bench.run("read", path="a.pdf")).images) == 1


async def test_a_part_of_a_document_is_only_text(bench: ToolBench) -> None:
    (bench.root / "a.pdf").write_bytes(pdf("Hello there", "The end"))
    assert (await bench.run("read", path="a.pdf", offset=3)).images == ()
    assert (await bench.run("read", path="a.pdf", limit=2)).images == ()


async def test_a_long_document_is_only_text(bench: ToolBench) -> None:
    (bench.root / "a.pdf").write_bytes(pdf(*["page"] * (MOST_SHOWN_PAGES + 1)))
    outcome = await bench.run("read", path="a.pdf")
    assert outcome.images == ()
    assert f"--- page {MOST_SHOWN_PAGES + 1} of {MOST_SHOWN_PAGES + 1}" in outcome.text


async def test_a_pdf_without_text_is_shown_and_said_to_be_a_scan(bench: ToolBench) -> None:
    (bench.root / "a.pdf").write_bytes(pdf("", ""))
    outcome = await bench.run("read", path="a.pdf")
    assert outcome.text == "'a.pdf' is a PDF of 2 pages without text; it may be a scan"
    assert [image.text_beside for image in outcome.images] == [False]


async def test_a_long_scan_is_refused_in_a_sentence(bench: ToolBench) -> None:
    (bench.root / "a.pdf").write_bytes(pdf(*[""] * (MOST_SHOWN_PAGES + 1)))
    with pytest.raises(FinalToolError, match="a PDF of 21 pages without text; it may be a scan"):
        await bench.run("read", path="a.pdf")


async def test_an_encrypted_document_is_not_shown_because_vendors_refuse_it(
    bench: ToolBench,
) -> None:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("", "owner", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    (bench.root / "a.pdf").write_bytes(locked.getvalue())
    with pytest.raises(FinalToolError, match="without text"):
        await bench.run("read", path="a.pdf")


@pytest.mark.parametrize("rest", [b"", b"garbage", b"\x00\xff" * 500, b"1 0 obj " * 2_000])
async def test_a_broken_pdf_is_refused_in_a_sentence(bench: ToolBench, rest: bytes) -> None:
    (bench.root / "a.pdf").write_bytes(b"%PDF-1.4\n" + rest)
    with pytest.raises(FinalToolError, match=r"'a\.pdf' cannot be read as a PDF \(broken: "):
        await bench.run("read", path="a.pdf")
