"""A newcomer and a text: a tree is grown, two branches are compared and woven, and it is exported.

Each step is a command in a process of its own, found by what the one before has said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.weft_program import WeftProgram, text

pytestmark = pytest.mark.process

SEA = " there was a loom.\n\nIt stood by the sea."
HILL = " there was a loom.\n\nIt stood on a hill, and the wind played in it."
END = " And there it stands today."


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


def test_a_newcomer_grows_a_tree_compares_weaves_and_exports(weft: WeftProgram) -> None:
    model = weft.script([text(SEA)], [text(HILL)], by="position", loop=True)

    def said(*words: str) -> str:
        done = weft.run("loom", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "weft loom new" in said()
    grown = said("new", "Once upon a time", "-n", "2", "-m", model)
    # What is printed says what to do next, and that works as it stands.
    (compare,) = re.findall(r"`weft loom (compare 1 2)`", grown)
    one, two = (1, 2) if grown.index("by the sea") < grown.index("on a hill") else (2, 1)
    compared = said(*compare.split())
    assert "there was a loom.\n\nIt stood " in compared
    assert "on a hill, and" in compared
    assert "sea" in compared
    assert "b2  It stood on a hill" in said("weave", str(one), str(two), "--list")
    woven = said("weave", str(one), str(two), "--paragraphs", "a1,b2,a2")
    assert "on a hill, and the wind played in it.\n\nIt stood by the sea." in woven
    assert "`weft loom continue`" in woven
    end = weft.script([text(END)])
    assert END in said("continue", "-n", "1", "-m", end)
    whole = (
        "Once upon a time there was a loom.\n\nIt stood on a hill, and the wind played in it."
        f"\n\nIt stood by the sea.{END}"
    )
    assert said("show") == f"{whole}\n"
    said("bookmark")
    said("export", "-o", "story.md")
    assert (weft.project / "story.md").read_text() == f"{whole}\n"
    said("export", "-o", "story.json")
    said("export", "/", "-o", "story.html")
    page = (weft.project / "story.html").read_text()
    assert page.count("<article") == 5
    assert "5 nodes" in said("stats")
    # On another machine: the file is all that goes along.
    other = WeftProgram(Path(weft.home))
    (other.project / "story.json").write_bytes((weft.project / "story.json").read_bytes())
    assert "5 nodes new" in other.run("loom", "import", "story.json").stdout
    assert other.run("loom", "show").stdout == f"{whole}\n"
    found = other.run("loom", "search", "today", "--bookmarked", "--json")
    assert found.returncode == 0, found.stderr
    (hit,) = json.loads(found.stdout)
    assert hit["text"] == END
    other.close()
