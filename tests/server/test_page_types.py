"""The TypeScript client: what the table of operations gives."""

from __future__ import annotations

from scripts.page_types import TARGET, page_types


def test_the_client_of_the_page_is_what_the_operations_give() -> None:
    """`python -m scripts.page_types` writes it again."""
    assert TARGET.read_text("utf-8") == page_types()
