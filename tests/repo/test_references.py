"""References are found by syntax, not by letters."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.repo.definitions import ReferenceOrder
from weft.repo.reference_finder import find_references

SAMPLES = {
    "a.py": 'def total(): ...\n# total in a comment\nx = "total in a string"\nsubtotal = total()\n'
    'y = f"{total()} total"\nobj.total\n',
    "b.ts": "import { total } from './a'\n// total\ns = 'total'\nlet t = `${total()} total`\n",
    "c.go": 'package a\n// total\nfunc total() {}\nvar x = total\nvar s = "total"\n',
    "d.rs": 'fn total() {}\n/* total */\nfn main() { total(); let s = "total"; }\n',
    "e.rb": 'def total; end\n# total\nputs "total #{total}"\n',
}
LINES = {"a.py": [1, 4, 5, 6], "b.ts": [1, 4], "c.go": [3, 4], "d.rs": [1, 3], "e.rb": [1, 3]}


@pytest.mark.parametrize("path", SAMPLES)
def test_a_name_in_comments_strings_and_longer_names_is_no_reference(
    tmp_path: Path, path: str
) -> None:
    (tmp_path / path).write_text(SAMPLES[path])
    found = find_references(ReferenceOrder(project=str(tmp_path), name="total", paths=[path]))
    assert [each.line for each in found] == LINES[path]
    assert found[0].text in SAMPLES[path]


@pytest.mark.parametrize(
    ("path", "text", "name", "lines"),
    [
        ("a.php", "<?php\n$x = 1;\n// $x\n$xx = 'x';\necho \"a $x\";\n", "$x", [2, 5]),
        ("b.sh", "x=1\n# $x\necho \"$x\" '$x'\necho $xx\n", "$x", [3]),
        ("c.rb", "def valid?; end\nvalid\nvalid?\nputs 'valid?'\n", "valid?", [1, 3]),
        (
            "f.rb",
            "def stop; end\nbefore :stop\nputs ':stop'\nx = {stop: 1}\n:stops\n",
            "stop",
            [1, 2, 4],
        ),
        ("g.ex", "def stop, do: 1\n# :stop\napply(A, :stop, [])\n:stops\n", "stop", [1, 3]),
        ("d.js", "const $x = 1\n// $x\nf($x, '$x', a.$x)\n", "$x", [1, 3]),
        ("e.py", "T = 1\n# T\nTT = T\n", "T", [1, 3]),
    ],
)
def test_names_that_are_no_plain_words_are_found(
    tmp_path: Path, path: str, text: str, name: str, lines: list[int]
) -> None:
    (tmp_path / path).write_text(text)
    found = find_references(ReferenceOrder(project=str(tmp_path), name=name, paths=[path]))
    assert [each.line for each in found] == lines


def test_definitions_are_marked_and_the_limit_holds(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SAMPLES["a.py"])
    order = ReferenceOrder(
        project=str(tmp_path), name="total", paths=["a.py", "gone.py", "b.py"], most=5
    )
    found = find_references(order)
    assert [each.is_definition for each in found] == [True, False, False, False, True, False]
