"""Links between documents: every file, every anchor and every source file that a document names
exists.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from functools import cache
from pathlib import Path

from tests.support.source_code import ROOT, SRC

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("changes/*.md")])

FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def shown(document: Path) -> str:
    """A document's path in the repository."""
    return str(document.relative_to(ROOT))


@cache
def prose(document: Path) -> str:
    """A document without its code blocks: a `#` there is a comment, not a heading."""
    return FENCED.sub("", document.read_text("utf-8"))


def anchors(text: str) -> set[str]:
    """What GitHub calls the headings: lower case, no punctuation, `-` for a space, `-1` for a
    repeat.
    """
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).strip().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken(document: Path) -> list[str]:
    """The links of a document that lead nowhere."""
    wrong = []
    for link in LINK.findall(prose(document)):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue  # another site
        target = (document.parent / path) if path else document
        if not target.exists() or (anchor and anchor not in anchors(prose(target))):
            wrong.append(link)
    return wrong


def test_every_link_leads_to_a_file_and_a_heading_that_exist() -> None:
    assert {shown(each): wrong for each in DOCUMENTS if (wrong := broken(each))} == {}


def test_a_link_to_a_missing_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One: `two`\n\n```sh\n# three\n```\n[a](#one-two) [b](#three) "
        "[c](page.md#one-two) [d](x.md)\n"
    )
    assert broken(page) == ["#three", "x.md"]


def missing_documents(document: Path) -> list[str]:
    """The documents that a document names in code marks and that do not exist."""
    named = re.findall(r"`((?:docs|changes)/[\w/.-]+\.md|[A-Z]+\.md)`", prose(document))
    known = {"CHANGELOG.md", "AGENTS.md", "CLAUDE.md", "SKILL.md"}  # of a release; of a project
    return [name for name in named if name not in known and not (ROOT / name).exists()]


def test_every_document_that_is_named_in_code_marks_exists() -> None:
    assert {shown(each): gone for each in DOCUMENTS if (gone := missing_documents(each))} == {}


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of ours, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute, None)
        return found is not None
    return False


def unknown_names(document: Path) -> list[str]:
    """The dotted names of ours in a document that cannot be imported."""
    named = set(re.findall(r"`(weft(?!\.db|\.log|\.v1)(?:\.[a-zA-Z_]+)+)", prose(document)))
    return sorted(name for name in named if not resolves(name))


def test_every_name_of_ours_that_a_document_gives_can_be_imported() -> None:
    documents = [each for each in DOCUMENTS if each.name != "renames.md"]
    assert {shown(each): wrong for each in documents if (wrong := unknown_names(each))} == {}


ARCHITECTURE = prose(ROOT / "ARCHITECTURE.md")
PAGE = SRC / "web" / "page"
"""What `make web` builds: not there in a fresh checkout."""


def exists(name: str) -> bool:
    """Whether a file or folder of this name is in the source, or in the repository."""
    if (SRC / name).exists() or (ROOT / name).exists():
        return True
    if ROOT / name == PAGE:
        return True
    return name.endswith("/") and any(SRC.rglob(name.rstrip("/")))  # a folder within a folder


def test_every_source_file_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`([a-z_]+/[\w/.]*)`", ARCHITECTURE)
    assert named
    assert [name for name in named if not exists(name)] == []


def test_the_architecture_has_a_row_for_each_folder() -> None:
    rows = set(
        re.findall(r"`([a-z_]+)/?`", " ".join(re.findall(r"^\| (`[^|]+) \|", ARCHITECTURE, re.M)))
    )
    folders = {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert sorted(folders - rows) == []
