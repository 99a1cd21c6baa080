"""How hard a model thinks, from the command line: behind its name, by an option, by a setting."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Weft


def newest(weft: Weft) -> tuple[str, str]:
    """Model and level of the newest session, as it is exported."""
    [row, *_] = json.loads(weft.run("session", "list", "--json").stdout)
    exported = weft.run("session", "export", row["id"], "-f", "json")
    about = json.loads(exported.stdout)["session"]
    return about["model"], about.get("thinking", "")


@pytest.mark.parametrize(
    ("behind", "options", "level"),
    [
        ("", (), ""),
        (":high", (), "high"),
        (":high", ("--effort", "low"), "low"),
        ("", ("--effort", "xhigh"), "xhigh"),
        (":default", ("--thinking", "off"), "off"),
        (":default", (), ""),
    ],
)
def test_the_effort_stands_behind_the_model_or_is_an_option(
    weft: Weft, behind: str, options: tuple[str, ...], level: str
) -> None:
    model = weft.script("Hello.")
    assert weft.run("-p", "-m", model + behind, *options, "hi").stdout == "Hello.\n"
    assert newest(weft) == (model, level)


def test_a_session_goes_on_with_the_effort_that_it_is_told(weft: Weft) -> None:
    model, other = weft.script("One."), weft.script("Two.", "Two.")
    assert weft.run("-p", "-m", model, "hi").stdout == "One.\n"
    assert weft.run("-p", "-c", "-m", f"{other}:max", "hi").returncode == 0
    assert newest(weft) == (other, "max")


def test_the_configured_model_has_an_effort_behind_it_too(weft: Weft) -> None:
    model = weft.script("Hello.")
    assert weft.run("-p", "--set", f"model.default={model}:low", "hi").stdout == "Hello.\n"
    assert newest(weft) == (model, "low")
