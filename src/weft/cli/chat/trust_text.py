"""Folder trust, in words: what the folder would do if it were trusted, and what is ignored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.app import App
from weft.cli.sanitize import visible

if TYPE_CHECKING:  # loaded where a folder has something that could act
    from weft.project.trust import TrustQuestion


SHOWN = 5
"""Files that are left out and named one by one."""
LONGEST_VALUE = 1_000
"""Characters of a setting's value that the question shows."""


def left_out(problems: Sequence[str]) -> list[str]:
    """What to say about files that are left out: a line each for the first few."""
    lines = [f"left out: {problem}" for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        more = len(problems) - SHOWN
        lines.append(f"left out: {more} more; /memory, /skills and /agents in the chat say which")
    return lines


def may_act(app: App) -> bool:
    """Whether it is worth asking at all: one look, so that other folders cost nothing."""
    return os.path.lexists(os.path.join(app.project_path, ".weft"))


def plain_question(app: App) -> TrustQuestion:
    """What to ask about a folder that withholds nothing, where the user wants to be asked."""
    from weft.project.trust import TrustQuestion  # only for those who ask

    return TrustQuestion(path=app.project_path, files=(), settings=(), commands=())


def title_of(question: TrustQuestion) -> str:
    """What the folder has, in a few words."""
    if question.changed:
        return "This folder has changed"
    if question.files:
        return "This folder has hooks and settings"
    return "This folder has no hooks and settings"


def in_rows(question: TrustQuestion) -> list[tuple[str, str]]:
    """What the user must know to say whether they trust it."""
    return [
        *(("changed", visible(name)) for name in question.changed),
        *(("runs", visible(command)) for command in question.commands),
        *(
            ("sets", f"{name} = {_shortened(value)}")
            for name, value in zip(question.settings, question.values, strict=True)
            # Every command of a hook has a row of its own.
            if name != "hooks"
        ),
        *(("from", visible(name)) for name in question.files),
        ("allows", "agents that work isolated"),
    ]


def _shortened(value: str) -> str:
    shown = visible(value[:LONGEST_VALUE])
    more = len(value) - LONGEST_VALUE
    return f"{shown}… ({more} characters more; read .weft/config.toml)" if more > 0 else shown


def warning(question: TrustQuestion) -> str:
    """One sentence for a run without a terminal."""
    withheld = [
        *(["its hooks"] if question.commands else []),
        *([f"its settings ({', '.join(question.settings)})"] if question.settings else []),
    ]
    what = " and ".join(withheld) or ", ".join(visible(name) for name in question.files)
    return (
        f"this folder is not trusted, so {what} are ignored; "
        "start `weft` in it at a terminal to trust it"
    )
