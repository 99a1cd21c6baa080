"""Names explain themselves: the words that are ours are defined, and modules are nouns."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.support.source_code import ROOT, SRC, nodes, python_files

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
DEFINED = set(re.findall(r"`(\w+)`", GLOSSARY))

GERUNDS_THAT_ARE_NOUNS = {"testing"}
"""`weft.testing` is what every library calls it."""


@cache
def public_classes() -> list[tuple[str, str]]:
    """File and name of every public class.

    Asked for by the tests and not at import: parsing the whole source takes two seconds, and each
    worker imports this module.
    """
    return [
        (str(file.relative_to(SRC)), node.name)
        for file in python_files()
        for node in nodes(file)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def classes_of_one_word() -> list[tuple[str, str]]:
    """Those of the public classes that are called by a single word."""
    return [each for each in public_classes() if re.fullmatch(r"[A-Z][a-z]+", each[1])]


def test_a_public_class_of_one_word_is_defined_in_the_glossary() -> None:
    undefined = [each for each in classes_of_one_word() if each[1] not in DEFINED]
    assert undefined == [], "call it by two words, or define it in docs/glossary.md"


def test_the_glossary_defines_no_class_that_is_gone() -> None:
    known = {name for _, name in public_classes()}
    classes = {word for word in DEFINED if word[0].isupper()}
    also = {"Reply", "ManualClock"}
    assert classes - also <= known


def test_few_classes_are_one_ordinary_word() -> None:
    """A quarter at most, as in the libraries that we measure ourselves by."""
    assert len(classes_of_one_word()) <= len(public_classes()) / 4


def test_hardly_a_public_class_shares_its_name_with_another() -> None:
    counted = Counter(name for _, name in public_classes())
    shared = {name: count for name, count in counted.items() if count > 1}
    assert sum(shared.values()) <= len(public_classes()) * 3 / 100, shared


def test_no_module_is_named_by_a_gerund() -> None:
    named = [
        str(file.relative_to(SRC))
        for file in python_files()
        for part in (file.stem if file.stem != "__init__" else file.parent.name).split("_")[-1:]
        if part.endswith("ing") and part not in GERUNDS_THAT_ARE_NOUNS and len(part) > 5
    ]
    assert named == []


def test_no_folder_holds_more_than_twenty_files() -> None:
    """Beside its sub-folders, tables included; past that a reader cannot take in what a room
    holds.  What is built (the page, bytecode) is no one's to read.
    """
    built = {SRC / "web" / "page", *SRC.rglob("__pycache__")}
    full = {
        str(folder.relative_to(SRC)): count
        for folder in SRC.rglob("*")
        if folder.is_dir()
        and not built & {folder, *folder.parents}
        and (count := sum(each.is_file() for each in folder.iterdir())) > 20
    }
    assert full == {}


def test_the_folder_that_composes_has_less_than_ten_files() -> None:
    assert len(list((SRC / "app").glob("*.py"))) < 10


RENAMES = (ROOT / "docs" / "renames.md").read_text("utf-8").split("## Classes")


def test_what_a_module_was_renamed_to_is_there() -> None:
    """Past moves are on the page too: the next one has to take its rows along."""
    named = re.findall(r"^\| `[\w.]+` \| (.+) \|$", RENAMES[0], re.MULTILINE)
    targets = {name for cell in named for name in re.findall(r"`([\w.]+)`", cell)}
    paths = {name: SRC / name.replace(".", "/") for name in targets}
    gone = [name for name, path in paths.items() if not _is_module(path)]
    assert len(targets) > 150
    assert gone == []


def test_what_a_class_was_renamed_to_is_there() -> None:
    rows = re.findall(r"^\| `\w+` \| `(\w+)` \| `([\w.]+)` \|$", RENAMES[1], re.MULTILINE)
    gone = [(name, module) for name, module in rows if name not in _defined_in(module)]
    assert len(rows) > 250
    assert gone == []


def _is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def _defined_in(module: str) -> set[str]:
    """The classes of a module, and the names that stand for types."""
    path = SRC / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = nodes(file) if file.is_file() else ()
    classes = {node.name for node in tree if isinstance(node, ast.ClassDef)}
    aliases = {
        node.target.id
        for node in tree
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return classes | aliases
