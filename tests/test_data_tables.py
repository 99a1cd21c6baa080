"""Tables beside a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.data_tables import read_table


def test_rows_are_read_and_comments_are_not(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("# about\na\tb c\n\nd\t#e\n", encoding="utf-8")
    assert read_table(str(tmp_path / "module.py"), "t.tsv", 2) == (("a", "b c"), ("d", "#e"))


@pytest.mark.parametrize("text", ["a\n", "a\tb\tc\n", "a\t\n", "\tb\n"])
def test_a_row_that_lacks_a_column_is_refused_whole(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="needs 2 columns"):
        read_table(str(tmp_path / "module.py"), "t.tsv", 2)
