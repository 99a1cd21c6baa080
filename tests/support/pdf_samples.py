"""PDF files, made by hand."""

from __future__ import annotations


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
