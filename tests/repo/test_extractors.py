"""Extractors of installed packages, written and registered as the documentation says."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.doc_examples import examples
from tests.support.source_code import ROOT
from weft.repo.definition_reader import DefinitionReader, _grammar
from weft.repo.index_cache import IndexCache
from weft.repo.index_update import UpdateReport, update_index
from weft.repo.parsers import extractors
from weft.repo.project_files import walk_project

pytestmark = pytest.mark.process
TEXT = (ROOT / "docs" / "extractors.md").read_text("utf-8")
SOURCE = "// Wren\nclass Cart {\n  total { 1 }\n}\n\nforeign class Rate {}\n"


class InstalledPackages:
    """A folder of packages, as pip makes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def install(self, code: str, project: str) -> None:
        """Put a package there: its module, and what its `pyproject.toml` says of entry points."""
        about = tomllib.loads(project)["project"]
        lines = []
        for group, entries in about["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
        (module,) = {entry.partition(":")[0] for entry in entries.values()}
        (self._folder / f"{module}.py").write_text(code)
        metadata = self._folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        forget()


def forget() -> None:
    """As a new process would begin."""
    for cached in (
        extractors.installed,
        extractors.extractor_of,
        extractors._brought_suffixes,
        extractors.reader_seed,
        extractors.readers_version,
    ):
        cached.cache_clear()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstalledPackages]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield InstalledPackages(folder)
    monkeypatch.undo()
    forget()


@pytest.fixture
def cache(tmp_path: Path) -> IndexCache:
    return IndexCache(tmp_path / "cache.db", writes=True)


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "shop.wren").write_text(SOURCE)
    (tmp_path / "p" / "a.py").write_text("def a(): ...\n")
    return str(tmp_path / "p")


def update(cache: IndexCache, project: str) -> UpdateReport:
    return update_index(cache, project, walk_project(project))


def names(cache: IndexCache, path: str) -> list[tuple[str, str, int]] | None:
    found = cache.definitions(path)
    return None if found is None else [(each.name, each.kind, each.first) for each in found]


def documented() -> tuple[str, str]:
    """The extractor and the project file of the documentation."""
    project = TEXT.split("```toml\n")[1].split("```")[0]
    return examples("extractors.md")[0].code, project


def test_an_extractor_that_is_written_and_registered_as_documented_reads_its_language(
    cache: IndexCache, project: str, packages: InstalledPackages
) -> None:
    assert update(cache, project).parsed == ("a.py",)
    packages.install(*documented())
    assert update(cache, project).parsed == ("shop.wren",)
    assert names(cache, "shop.wren") == [("Cart", "class", 2), ("Rate", "class", 6)]
    assert cache.languages() == {"python": 1, "wren": 1}
    assert update(cache, project) == UpdateReport()


def test_a_new_version_reads_the_files_of_its_language_again(
    cache: IndexCache, project: str, packages: InstalledPackages
) -> None:
    code, about = documented()
    packages.install(code, about)
    update(cache, project)
    newer = code.replace('version = "1"', 'version = "2"').replace('"class",', '"type",')
    # By another name: a module that is loaded stays loaded.
    packages.install(newer, about.replace("weft_wren", "weft_wren_two"))
    report = update(cache, project)
    assert (report.parsed, report.known) == (("shop.wren",), ("a.py",))
    assert names(cache, "shop.wren") == [("Cart", "type", 2), ("Rate", "type", 6)]


@pytest.mark.parametrize(
    "fault",
    [
        "raise ImportError",
        "class WrenExtractor:\n    suffixes = '.wren'\n    version = '1'",
        "class WrenExtractor:\n    def __init__(self):\n        raise RuntimeError",
    ],
    ids=["import", "fields", "creation"],
)
def test_an_extractor_that_cannot_be_loaded_is_left_out(
    cache: IndexCache, project: str, packages: InstalledPackages, fault: str
) -> None:
    _, about = documented()
    module = f"weft_wren_{abs(hash(fault))}"
    packages.install(fault, about.replace("weft_wren", module))
    assert update(cache, project).parsed == ("a.py",)
    assert names(cache, "shop.wren") is None


@pytest.mark.parametrize(
    "body",
    ["raise RuntimeError", "return [1, 2]", "return None", "import os; os._exit(3)"],
    ids=["raises", "no definitions", "none", "ends"],
)
def test_an_extractor_that_fails_leaves_its_files_without_definitions(
    cache: IndexCache, project: str, packages: InstalledPackages, body: str
) -> None:
    code = (
        "class WrenExtractor:\n    suffixes = ('.wren',)\n    version = '1'\n"
        f"    def read(self, source):\n        {body}\n"
    )
    _, about = documented()
    packages.install(code, about.replace("weft_wren", f"weft_wren_f{abs(hash(body))}"))
    update(cache, project)
    assert names(cache, "shop.wren") == []
    assert names(cache, "a.py") == [("a", "function", 1)]


def test_an_installed_extractor_replaces_ours(
    cache: IndexCache, project: str, packages: InstalledPackages
) -> None:
    code, about = documented()
    code = code.replace('(".wren",)', '(".py",)').replace("class\\s+", "def\\s+")
    about = about.replace("wren = ", "python = ").replace("weft_wren", "weft_own_python")
    packages.install(code, about)
    update(cache, project)
    assert names(cache, "a.py") == [("a", "class", 1)]


def test_a_grammar_can_be_given_with_its_query() -> None:
    query = "(function_definition name: (identifier) @name) @definition.function"
    reader = DefinitionReader(_grammar("python"), query)
    assert [each.name for each in reader.read(b"def total(): ...\n")] == ["total"]
