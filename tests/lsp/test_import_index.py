"""Who imports whom, by the words of import lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.lsp.import_index import ImportIndex
from weft.lsp.wire import CHANGED, CREATED, DELETED


def write(root: Path, name: str, text: str) -> str:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("edited", "importer", "text"),
    [
        ("pkg/calc.py", "a.py", "from pkg.calc import f\n"),
        ("pkg/calc.py", "a.py", "from pkg import (\n    other,\n    calc,\n)\n"),
        ("pkg/calc.py", "pkg/b.py", "from . import calc\n"),
        ("pkg/calc.py", "a.py", "def f():\n    import pkg.calc as c\n"),
        ("pkg/__init__.py", "a.py", "import pkg\n"),
        ("pkg/index.py", "pkg/a.py", "from . import index\n"),
        ("pkg/lib.py", "pkg/a.py", "from .lib import f\n"),
        ("pkg/mod.py", "pkg/a.py", "from . import mod\n"),
        ("pkg/index.h", "pkg/a.c", '#include "index.h"\n'),
        ("src/lib.ts", "src/a.ts", 'import { f } from "./lib";\n'),
        ("src/calc/mod.rs", "src/main.rs", "mod calc;\n"),
        ("src/calc.ts", "src/a.ts", 'import { f } from "./calc";\n'),
        ("src/calc.ts", "src/a.tsx", 'export * from "./calc.js";\n'),
        ("src/calc/index.js", "a.js", "const c = require('./src/calc')\n"),
        ("calc.h", "main.c", '#include "calc.h"\n'),
        ("inc/calc.hpp", "main.cpp", "  #  include <inc/calc.hpp>\n"),
        ("src/calc.rs", "src/main.rs", "pub mod calc;\n"),
    ],
)
def test_a_file_that_imports_another_is_found(
    tmp_path: Path, edited: str, importer: str, text: str
) -> None:
    path = write(tmp_path, edited, "")
    found = write(tmp_path, importer, text)
    write(tmp_path, f"unrelated{Path(importer).suffix}", "calc = 1  # import calc\n")
    index = ImportIndex(str(tmp_path))
    index.update([path])
    assert index.importers(path) == [found]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("a.ts", "from" + " " * 250_000),
        ("a.ts", "import(" + "\n" * 250_000),
        ("a.py", "from a import (\n" * 16_000),
        ("a.py", "import (" * 30_000),
        ("a.rs", "pub use" * 36_000),
        ("a.c", "#" + "\t" * 250_000),
    ],
)
def test_no_file_takes_long(tmp_path: Path, name: str, part: str) -> None:
    # A pattern that tries each way to part its blanks takes minutes, and all threads wait for it.
    path = write(tmp_path, f"calc{Path(name).suffix}", "")
    write(tmp_path, name, part)
    index = ImportIndex(str(tmp_path))
    index.update([path])
    assert index.importers(path) == []


def test_what_is_ignored_or_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "p"
    path = write(root, "calc.py", "")
    write(root, "node_modules/x.py", "import calc\n")
    write(root, "build/x.py", "import calc\n")
    write(root, ".gitignore", "build/\n")
    (root / "link.py").symlink_to(write(tmp_path, "out.py", "import calc\n"))
    index = ImportIndex(str(root))
    index.update([path])
    assert index.importers(path) == []


def test_the_nearest_come_first(tmp_path: Path) -> None:
    path = write(tmp_path, "a/b/calc.py", "")
    far = [write(tmp_path, f"z{number}.py", "import calc\n") for number in range(5)]
    near = write(tmp_path, "a/b/near.py", "import calc\n")
    index = ImportIndex(str(tmp_path))
    index.update([path])
    assert index.importers(path) == [near, *far]


def test_changes_since_the_last_look_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.py", "1\n")
    gone = write(tmp_path, "gone.py", "1\n")
    index = ImportIndex(str(tmp_path))
    assert index.update([path]) == []
    Path(gone).unlink()
    write(tmp_path, "a.py", "longer\n")
    new = write(tmp_path, "new.py", "import a\n")
    assert index.update([path]) == [(gone, DELETED), (path, CHANGED), (new, CREATED)]
    assert index.update([path]) == []
    assert index.importers(path) == [new]


def test_what_a_look_did_not_reach_is_not_gone(tmp_path: Path) -> None:
    paths = [write(tmp_path, f"f{number}.py", "import x\n") for number in range(5)]
    index = ImportIndex(str(tmp_path))
    index.update(paths)
    index._most_entries = 2
    assert index.update(paths) == []
    assert index.importers(str(tmp_path / "x.py")) == paths


def test_files_in_which_a_name_stands_as_a_word_are_found(tmp_path: Path) -> None:
    path = write(tmp_path, "a/calc.py", "def area(): ...\n")
    near = write(tmp_path, "a/near.py", "x = area()\n")
    far = write(tmp_path, "far.py", "# area\n")
    write(tmp_path, "no.py", "areas = subarea\n")
    index = ImportIndex(str(tmp_path))
    index.update([path])
    assert index.mentions(path, "area") == [path, near, far]


def test_a_language_without_imports_that_we_know_has_none(tmp_path: Path) -> None:
    index = ImportIndex(str(tmp_path))
    assert index.update([str(tmp_path / "a.zig")]) == []
    assert index.importers(str(tmp_path / "a.zig")) == []
