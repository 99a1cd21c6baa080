"""The man page says what the tables of the command line say, and is shipped."""

from __future__ import annotations

import tomllib
from pathlib import Path

from scripts.man_page import MAN_PAGE, man_page

from weft.cli.options import RUN, VERBS

ROOT = Path(__file__).parent.parent.parent


def test_the_man_page_is_what_the_tables_give() -> None:
    """Else run `python -m scripts.man_page`."""
    assert MAN_PAGE.read_text("utf-8") == man_page()


def test_every_option_and_every_command_is_in_it() -> None:
    text = man_page().replace(r"\-", "-")
    names = [name for section in RUN for option in section.options for name in option.names]
    assert [name for name in names if rf"\fB{name}\fR" not in text] == []
    assert [verb.name for verb in VERBS if rf"\fBweft {verb.name}\fR" not in text] == []


def test_no_line_is_taken_for_a_command_of_troff() -> None:
    known = (".\\", ".TH", ".SH", ".TP", ".B", ".BR", ".I", ".RI", ".br")
    lines = [line for line in man_page().splitlines() if line.startswith((".", "'"))]
    assert [line for line in lines if not line.startswith(known)] == []


def test_the_man_page_is_installed_with_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"docs/weft.1": "share/man/man1/weft.1"}
