"""Paths in answers as hyperlinks of the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from weft.cli.chat.paint.answer_flow import AnswerFlow
from weft.cli.chat.paint.path_links import MOST_LINKS, PathLinks, linked_paths
from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.chat.paint.theme import PaintTheme


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src").mkdir(parents=True)
    for name in ("calc.py", "src/a-b.py", "my notes.md", "Makefile"):
        (tmp_path / "project" / name).write_text("x\n")
    (tmp_path / "secret.txt").write_text("x\n")
    return tmp_path / "project"


def links(text: str, folder: Path, style: str = "") -> dict[str, str]:
    spans = linked_paths([StyledSpan(text, style, 5)], PathLinks(str(folder)))
    assert "".join(span.text for span in spans) == text
    # Each piece still knows its place in the source.
    assert all(span.at == 5 + text.index(span.text) for span in spans if span.link)
    return {span.text: span.link for span in spans if span.link}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see calc.py:12-20, and src/a-b.py.", {"calc.py:12-20": "calc.py", "src/a-b.py": ""}),
        ("(calc.py:3)", {"calc.py:3": "calc.py"}),
        ("./calc.py", {"./calc.py": "calc.py"}),
        ("nothing.py and obj.method are none", {}),
        ("../secret.txt and src/../../secret.txt lie outside", {}),
        ("mail a@calc.py or https://x.example/calc.py", {}),
    ],
)
def test_words_that_are_files_of_the_project_are_links(
    folder: Path, text: str, found: dict[str, str]
) -> None:
    expected = {word: f"file://{folder}/{path or word}" for word, path in found.items()}
    assert links(text, folder) == expected


@pytest.mark.parametrize("code", ["calc.py", "calc.py:12", "Makefile", "my notes.md", "src/"])
def test_code_that_is_a_path_is_a_link_as_a_whole(folder: Path, code: str) -> None:
    (link,) = links(code, folder, "code").values()
    name = code.partition(":")[0].rstrip("/").replace(" ", "%20")
    assert link == f"file://{folder}/{name}"


def test_an_absolute_path_leads_into_the_project_or_nowhere(folder: Path) -> None:
    assert links(str(folder / "calc.py"), folder, "code")
    assert not links(str(folder.parent / "secret.txt"), folder, "code")
    assert not links("/etc/passwd", folder, "code")


def test_a_link_out_of_the_project_is_none(folder: Path) -> None:
    (folder / "out.txt").symlink_to(folder.parent / "secret.txt")
    assert not links("out.txt", folder, "code")


def looked_at(run: Callable[[], object]) -> list[str]:
    """What `run` asked the file system for."""
    seen: list[str] = []

    def see(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call" and argument.__name__ in ("stat", "lstat", "readlink"):
            seen.append(argument.__name__)

    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def test_a_repaint_asks_the_file_system_for_nothing(folder: Path) -> None:
    theme = PaintTheme(has_links=True, folder=str(folder))
    flow = AnswerFlow()
    text = "Look at `calc.py`, src/a-b.py and none.py"
    assert looked_at(lambda: flow.lines(text, width=80, theme=theme))
    for more, width in ((" for", 80), (" for it", 80), (" for it", 40)):
        paint = partial(flow.lines, text + more, width=width, theme=theme)
        assert not looked_at(paint)


def test_a_file_that_is_made_meanwhile_is_a_link_in_the_next_answer(folder: Path) -> None:
    theme = PaintTheme(has_links=True, folder=str(folder))
    flow = AnswerFlow()
    assert "]8;;" not in "".join(flow.finish("I will write `new.py`.", width=80, theme=theme))
    (folder / "new.py").write_text("x")
    assert "]8;;" in "".join(flow.finish("I wrote `new.py`.", width=80, theme=theme))


def test_links_that_are_remembered_are_bounded(folder: Path) -> None:
    links = PathLinks(str(folder))
    for number in range(3 * MOST_LINKS):
        links.link(f"none{number}.py")
    assert len(links) <= MOST_LINKS
    assert links.link("calc.py") == f"file://{folder}/calc.py"


@pytest.mark.parametrize("has_links", [True, False])
def test_an_answer_has_them_where_the_terminal_can(folder: Path, has_links: bool) -> None:
    theme = PaintTheme(has_links=has_links, folder=str(folder))
    painted = "".join(AnswerFlow().finish("Look at `calc.py`.", width=80, theme=theme))
    assert (f"\x1b]8;;file://{folder}/calc.py\x1b\\" in painted) == has_links
