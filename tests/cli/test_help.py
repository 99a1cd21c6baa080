"""Help and documentation say what the tables say."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.source_code import ROOT, SRC, files_with, nodes
from weft.cli import exit_codes as exits
from weft.cli.chat.screens.terminal.key_help import key_rows
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.command_spec import CommandOption
from weft.cli.exit_codes import MEANINGS
from weft.cli.help import main_help, topic_help, verb_help
from weft.cli.keys import KEYS
from weft.cli.options import RUN, VERBS, options_of
from weft.errors import UsageError
from weft.project.slash_commands import COMMANDS, find_slash

DOCS = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def row(option: CommandOption) -> str:
    shown = ", ".join(option.names) + (f" {option.metavar}" if option.metavar else "")
    return f"| `{shown}` | {option.about.replace('|', chr(92) + '|')} |"


def test_every_option_is_documented_with_its_sentence() -> None:
    options = [
        *(o for section in RUN for o in section.options),
        *(o for v in VERBS for each in (v, *v.verbs) for o in each.options),
    ]
    assert [row(option) for option in options if row(option) not in DOCS] == []


def test_every_command_slash_command_key_and_exit_code_is_documented() -> None:
    missing = [verb.name for verb in VERBS if f"### `weft {verb.name}`" not in DOCS]
    missing += [
        f"{v.name} {e.name}"
        for v in VERBS
        for e in v.verbs
        if f"`weft {v.name} {e.name}" not in DOCS
    ]
    missing += [command.shown for command in COMMANDS if f"| `{command.shown}` |" not in DOCS]
    missing += [key for key, about in KEYS if f"| {key} | {about} |" not in DOCS]
    missing += [
        str(code) for code, meaning in MEANINGS.items() if f"| {code} | {meaning} |" not in DOCS
    ]
    assert missing == []


def test_help_names_every_key_of_the_panel_and_answers_by_the_number_of_a_row() -> None:
    panel = key_rows(width=80, limit=100, styles=RowStyles(coloured=False))
    assert len(panel) > 10
    for row in panel:
        key = row.split("  ")[1]
        assert [name for name, _ in KEYS if key in name.split(", ") or key == name], key
    named = dict(KEYS)
    assert {"Ctrl+T", "Alt+P", "!, !!", "?"} <= set(named)
    assert named["1, 2, 3 …"] == "Answer a question: the number of a row answers it"


def test_every_exit_code_in_the_source_has_a_meaning() -> None:
    named = {
        name: value
        for name, value in vars(exits).items()
        if name.isupper() and isinstance(value, int)
    }
    assert set(named.values()) == set(MEANINGS)


def test_every_environment_variable_that_the_command_line_reads_is_documented() -> None:
    read: set[str] = set()
    for file in files_with("os.environ.get", below=SRC / "cli"):
        for node in nodes(file):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "os.environ.get":
                read |= {
                    a.value
                    for a in node.args[:1]
                    if isinstance(a, ast.Constant) and isinstance(a.value, str)
                }
    assert {"NO_COLOR", "TERM"} <= read
    assert {name for name in read if f"`{name}`" not in DOCS and name not in DOCS} == set()


@pytest.mark.parametrize("width", [40, 60, 80, 110])
def test_help_fits_every_window_and_names_everything(width: int) -> None:
    shown = main_help(width)
    fixed = {
        line
        for line in shown.split("\n")
        if line.startswith(("  weft", "`weft", "In the chat", "Weft:", "A word"))
    }
    assert [line for line in shown.split("\n") if len(line) > width and line not in fixed] == []
    for section in RUN:
        assert f"{section.title}:" in shown
        for option in section.options:
            assert all(name in shown for name in option.names)
    assert all(re.search(rf"^  {verb.name}\b", shown, re.MULTILINE) for verb in VERBS)


def test_every_command_has_a_help_of_its_own() -> None:
    for verb in VERBS:
        for each in (verb, *verb.verbs):
            words = (verb.name,) if each is verb else (verb.name, each.name)
            shown = verb_help(words, 80)
            assert f"weft {' '.join(words)}" in shown
            if not each.verbs and not each.is_run:
                assert all(option.names[0] in shown for option in options_of(each))


def test_topics_explain_codes_commands_and_keys() -> None:
    assert "130" in topic_help(("exit-codes",), 80)
    assert "/resume" in topic_help(("slash",), 80)
    assert "Shift+Tab" in topic_help(("keys",), 80)
    with pytest.raises(UsageError, match="no command 'nonsense'"):
        topic_help(("nonsense",), 80)


def test_no_two_slash_commands_share_a_name() -> None:
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    found = find_slash("/q")
    assert found is not None
    assert found.name == "/quit"


def test_the_help_of_a_command_names_the_options_that_it_takes_without_another_word() -> None:
    shown = verb_help(("serve",), 100)
    assert "status" in shown
    assert "--detach" in shown
