"""The sources of the page: their own tests, their types, and what they must never do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from scripts.build_page import build_page, run_node, sources_hash

from tests.support.source_code import ROOT
from weft.server import NOT_BUILT, has_page

WEB = ROOT / "web"
SOURCES = sorted([*WEB.glob("src/**/*.ts"), *WEB.glob("src/**/*.tsx")])
MAKES_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML"
    r"|DOMParser|createContextualFragment|\beval\(|new Function|srcdoc"
)


def built() -> Path:
    """The page, built from these sources; `make web` has done it before the tests of a checkout."""
    build_page(ROOT, with_tools=True)
    return ROOT / "src" / "weft" / "web" / "page"


@pytest.mark.process
def test_the_folds_of_the_page_pass_their_own_tests() -> None:
    built()
    done = run_node(ROOT, "build.mjs", "--tests")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert re.search(r"^# pass [1-9]\d", done.stdout, re.MULTILINE)


@pytest.mark.process
def test_the_page_keeps_to_its_types() -> None:
    built()
    done = run_node(ROOT, "node_modules/typescript/bin/tsc", "--noEmit")
    assert done.returncode == 0, done.stdout[-4000:]


def test_nothing_in_the_page_makes_elements_of_a_string() -> None:
    assert len(SOURCES) > 20
    found = [
        (path.name, line.strip())
        for path in SOURCES
        for line in path.read_text(encoding="utf-8").splitlines()
        if MAKES_HTML.search(line)
    ]
    assert found == []


def test_shapes_of_the_api_are_written_down_once() -> None:
    """What `generated/api.ts` declares is declared by no other source, under whatever form."""
    declares = re.compile(r"(?:interface|type) (\w+)[^=]*(?:=\s*)?\{")
    made = set(re.findall(r"export interface (\w+)", (WEB / "src/generated/api.ts").read_text()))
    assert len(made) > 100
    by_hand = [
        (path.name, name)
        for path in SOURCES
        if path.parent.name != "generated"
        for name in declares.findall(path.read_text(encoding="utf-8"))
        if name in made
    ]
    assert by_hand == []


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, each in lock["packages"].items() if "resolved" in each] == []
    assert all("integrity" in each for name, each in lock["packages"].items() if name)


def test_every_package_has_one_exact_version() -> None:
    package = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    wanted = {**package["dependencies"], **package["devDependencies"]}
    assert {name: text for name, text in wanted.items() if not re.fullmatch(r"[\d.]+", text)} == {}


@pytest.mark.process
def test_the_page_loads_nothing_from_elsewhere_and_no_inline_script() -> None:
    html = (built() / "index.html").read_text(encoding="utf-8")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert addresses
    assert all(each.startswith(("/assets/", "/icon.svg")) for each in addresses)
    assert not re.search(r"<script(?![^>]*src=)|<style|style=", html)


def test_a_change_of_any_source_is_a_reason_to_build_again(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "main.tsx"
    file.write_text("one")
    before = sources_hash(tmp_path)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x").write_text("not a source")
    assert sources_hash(tmp_path) == before
    file.write_text("two")
    assert sources_hash(tmp_path) != before


def test_a_page_that_is_not_built_is_known_to_be_missing(tmp_path: Path) -> None:
    assert not has_page(tmp_path)
    assert "make web" in NOT_BUILT
    (tmp_path / "index.html").write_text("<!doctype html>")
    assert has_page(tmp_path)
