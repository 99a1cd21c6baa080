"""The house keeps its promises: commands that are documented exist, links lead somewhere, and
nothing is left lying about.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.__main__ import names
from bench.table import Row, as_json, as_table

from tests.support.proof_runner import CLAIMS
from tests.support.source_code import ROOT, python_files

DOCUMENTS = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("changes/*.md"))
    if path.is_file()
)


def targets() -> set[str]:
    """What `make` can be asked for."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", rules, re.MULTILINE))


def read(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def test_every_make_command_that_is_documented_exists() -> None:
    said = {
        (str(document.relative_to(ROOT)), name)
        for document in DOCUMENTS
        for name in re.findall(r"(?:^ {4,}|`)make ([a-z-]+)", read(document), re.MULTILINE)
    }
    known = targets()
    assert [each for each in sorted(said) if each[1] not in known] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_prose_of_a_document_is_wrapped_at_a_hundred_columns(document: Path) -> None:
    """Not its code, its tables and headings, nor what a script writes."""
    text = re.sub(r"^ *(```|~~~).*?^ *\1$", "", read(document), flags=re.MULTILINE | re.DOTALL)
    if re.search(r"Written by `", text):
        return
    wide = [line for line in text.splitlines() if len(line) > 100 and line[:100].count(" ") > 1]
    assert [line for line in wide if not re.match(r" {4}|[|#<]|\s*\|", line)] == []


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        (str(document.relative_to(ROOT)), link)
        for document in DOCUMENTS
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(document))
        if not (document.parent / link).exists()
    ]
    assert broken == []


def test_the_readme_names_the_commands_that_set_everything_up() -> None:
    readme = read(ROOT / "README.md")
    assert {"test"} <= set(re.findall(r"make ([a-z-]+)", readme))


@pytest.mark.process
def test_make_lists_every_command_with_what_it_does() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wanted = {"test", "quick", "prove", "bench", "run", "format"}
    assert wanted <= {line.split()[0] for line in listed.splitlines()}
    assert all(len(line.split()) > 2 for line in listed.splitlines())


def test_ci_runs_exactly_what_people_run() -> None:
    script = ROOT / ".ci" / "run"
    lines = [each for each in read(script).splitlines() if each and not each.startswith("#")]
    assert lines[0] == "set -euo pipefail"
    assert lines[-1] == "exec make test"
    assert os.access(script, os.X_OK)


STAGES = ["ruff format", "ruff check", "mypy", "python -m pytest"]


def make_test(folder: Path, failing: str) -> int:
    """Run our Makefile where every tool is a stub; the one that is asked for `failing` fails."""
    bin_ = folder / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    for tool in ("ruff", "mypy", "python"):
        (bin_ / tool).write_text(
            f'#!/bin/sh\ncase "{tool} $*" in "{failing}"*) exit 1;; esac\necho "{tool} $*"\n'
        )
        (bin_ / tool).chmod(0o755)
    (folder / ".venv" / ".ready").touch()
    done = subprocess.run(["make", "test", "SYSTEM="], cwd=folder, capture_output=True, check=False)
    return done.returncode


@pytest.mark.process
@pytest.mark.parametrize("failing", STAGES)
def test_make_test_fails_when_any_of_its_stages_does(tmp_path: Path, failing: str) -> None:
    assert make_test(tmp_path, failing) != 0


@pytest.mark.process
def test_make_test_passes_when_all_of_its_stages_do(tmp_path: Path) -> None:
    assert make_test(tmp_path, "nothing") == 0


def test_fragments_of_the_changelog_are_named_by_their_kind() -> None:
    fragments = [each.name for each in (ROOT / "changes").iterdir() if each.name != "README.md"]
    form = r"[\w-]+\.(breaking|added|changed|fixed)\.md"
    assert [name for name in fragments if not re.fullmatch(form, name)] == []


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(each.name[:3]) for each in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(len(numbers)))


def test_the_licence_is_the_one_that_is_named() -> None:
    assert "Apache License" in read(ROOT / "LICENSE")
    assert 'license = "Apache-2.0"' in read(ROOT / "pyproject.toml")


def test_each_claim_that_is_proved_has_one_module() -> None:
    assert len(set(CLAIMS.values())) == len(CLAIMS)
    written = {path.stem for path in (ROOT / "tests" / "crash").glob("*.py")}
    assert written, "the proofs live in tests/crash"


# --- the tests themselves

TESTS = ROOT / "tests"
PROOFS = set(CLAIMS.values())
"""Programs that `make prove` runs; their samples in the suite import them."""


def imports_of_tests() -> Iterator[tuple[str, str]]:
    """Every import of a module below `tests`: the file that has it, and the dotted name.

    By their text: to parse four hundred files takes seconds, and these imports have one form.
    """
    form = re.compile(r"^\s*from (tests[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
    for file in python_files(TESTS):
        for base, given in form.findall(read(file)):
            for name in re.findall(r"(\w+)(?: as \w+)?", given):
                path = ROOT.joinpath(*base.split("."), name)
                is_module = path.is_dir() or path.with_suffix(".py").is_file()
                yield str(file.relative_to(ROOT)), f"{base}.{name}" if is_module else base


def test_no_test_module_is_imported() -> None:
    """The importer would collect its fixtures; what is shared lies in `tests/support`."""
    lent = [
        f"{file} imports {target}"
        for file, target in imports_of_tests()
        if target.split(".")[-1].startswith(("test_", "conftest"))
    ]
    assert lent == []


def test_what_tests_import_lies_in_support_or_is_a_proof() -> None:
    astray = [
        f"{file} imports {target}"
        for file, target in imports_of_tests()
        if not target.startswith("tests.support") and target not in PROOFS
    ]
    assert astray == []


def test_outside_support_there_are_only_tests_fixtures_and_proofs() -> None:
    proofs = {f"{name.rpartition('.')[2]}.py" for name in PROOFS}
    other = [
        str(file.relative_to(TESTS))
        for file in python_files(TESTS)
        if file.relative_to(TESTS).parts[0] != "support"
        and not file.name.startswith("test_")
        and file.name not in ("__init__.py", "conftest.py")
        and not (file.parent == TESTS / "crash" and file.name in proofs)
    ]
    assert other == [], "helpers of tests go to tests/support"


# --- the benchmark table


def test_every_benchmark_is_found_by_its_name() -> None:
    assert {"append", "listing", "reopen"} <= set(names())


def test_a_row_says_whether_its_limit_is_kept() -> None:
    assert Row("x", 1.0, "ms").holds is None
    assert Row("x", 1.0, "ms", limit=1.5).holds is True
    assert Row("x", 2.0, "ms", limit=1.5).holds is False
    assert Row("x", 2.0, "ms", floor=1.9, limit=1.2, of="ratio").holds is True
    assert Row("x", 2.0, "ms", floor=1.0, limit=1.2, of="ratio").holds is False
    assert Row("x", 900.0, "/s", limit=1000, better="more").holds is False
    assert Row("x", 1900.0, "/s", limit=1000, better="more").holds is True


def test_the_table_is_aligned_and_marks_what_was_missed() -> None:
    rows = [
        Row("short", 0.1234, "ms", floor=0.1, limit=1.5),
        Row("a longer name", 12345.6, "/s", limit=20_000, better="more"),
    ]
    assert as_table(rows).splitlines() == [
        "what            value  unit  floor   ratio     limit",
        "short           0.123  ms    0.100  1.23 ×    ≤ 1.50      ok",
        "a longer name  12,346  /s                   ≥ 20,000  MISSED",
    ]


def test_a_row_as_json_has_everything_that_the_table_shows() -> None:
    line = json.loads(as_json(Row("x", 3.0, "ms", floor=2.0, limit=4.0)))
    assert (line["name"], line["value"], line["ratio"], line["holds"]) == ("x", 3.0, 1.5, True)


def made_run(folder: Path, *, keys: str, model: str, prompt: str) -> str:
    """What `make run` has Weft do where it is a stub with these keys and this default model."""
    bin_ = folder / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    for mark in (".ready", ".local-ready"):
        (folder / ".venv" / mark).touch()
    answers = f'auth) echo \'{keys}\';; config) echo \'{{"value": "{model}"}}\';; *) echo "$*";;'
    (bin_ / "weft").write_text(f'#!/bin/sh\ncase "$1" in {answers} esac\n')
    (bin_ / "weft").chmod(0o755)
    command = ["make", "-s", "run", f"PROMPT={prompt}", "SYSTEM="]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.process
@pytest.mark.parametrize(
    ("keys", "model", "told"),
    [
        ("{}", "", "-C . -m local:smollm2 -p -- Why?"),
        ('{"openai": "env"}', "", "-C . -p -- Why?"),
        ("{}", "ollama:qwen3", "-C . -p -- Why?"),
    ],
)
def test_make_run_names_the_embedded_model_only_where_nothing_else_would_answer(
    tmp_path: Path, keys: str, model: str, told: str
) -> None:
    assert made_run(tmp_path, keys=keys, model=model, prompt="Why?") == told
