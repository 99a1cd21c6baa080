"""The man page weft(1), from the tables that the command line itself reads.

python -m scripts.man_page    # writes docs/weft.1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from weft.cli.command_spec import CommandOption, CommandSpec
from weft.cli.exit_codes import MEANINGS
from weft.cli.options import RUN, VERBS

MAN_PAGE = Path(__file__).parent.parent / "docs" / "weft.1"

BEGINNING = r""".\" Written by `python -m scripts.man_page`; edit src/weft/cli/options.py instead.
.TH WEFT 1 "" "Weft" "User Commands"
.SH NAME
weft \- a coding agent whose conversations are kept and can be branched
.SH SYNOPSIS
.B weft
.RI [ options ]
.RI [ prompt ]
.br
.B weft
.I command
.RI [ options ]
.SH DESCRIPTION
Without a command, \fBweft\fR opens a chat in this folder. With \fB\-p\fR it answers one prompt on
standard output and exits.
"""
END = r""".SH FILES
.TP
.I ~/.config/weft/config.toml
Your settings.
.TP
.I .weft/config.toml
Settings of a project.
.TP
.I ~/.local/share/weft
Sessions; \fBWEFT_HOME\fR names another place.
.SH SEE ALSO
.BR git (1)
"""


def man_page() -> str:
    """The whole page."""
    lines = [BEGINNING.rstrip()]
    for section in RUN:
        lines.append(f".SH {_text(section.title).upper().rstrip(':')}")
        lines += _options(section.options)
    lines.append(".SH COMMANDS")
    for verb in VERBS:
        lines += _command(verb, "")
    lines.append(".SH EXIT STATUS")
    for code, meaning in MEANINGS.items():
        lines += [".TP", rf"\fB{code}\fR", _text(meaning)]
    return "\n".join([*lines, END])


def _options(options: Iterable[CommandOption]) -> Iterator[str]:
    for option in options:
        names = ", ".join(rf"\fB{_text(name)}\fR" for name in option.names)
        value = rf" \fI{_text(option.metavar)}\fR" if option.metavar else ""
        yield from (".TP", names + value, _text(option.about))


def _command(verb: CommandSpec, above: str) -> Iterator[str]:
    name = f"{above} {verb.name}".strip()
    words = rf" \fI{_text(verb.words)}\fR" if verb.words else ""
    yield from (".TP", rf"\fBweft {_text(name)}\fR{words}", _text(verb.about))
    for each in verb.verbs:
        yield from _command(each, name)


def _text(text: str) -> str:
    """Words as troff prints them: a backslash or a line that begins with a dot would be a command,
    and a plain hyphen is not the one that can be copied.
    """
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    MAN_PAGE.write_text(man_page(), "utf-8")
