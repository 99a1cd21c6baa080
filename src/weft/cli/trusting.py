"""What a folder would do if it were trusted, in words."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from weft.app import App
from weft.cli.sanitize import visible

if TYPE_CHECKING:  # loaded where a folder has something that could act
    from weft.app.trust import TrustQuestion


def may_act(app: App) -> bool:
    """Whether it is worth asking at all: one look, so that other folders cost nothing."""
    return os.path.isdir(os.path.join(app.project_path, ".weft"))


def in_rows(question: TrustQuestion) -> list[tuple[str, str]]:
    """What somebody must know to say whether they trust it."""
    rows = [
        *(("changed", name) for name in question.changed),
        *(("runs", visible(command)) for command in question.commands),
        *(("sets", name) for name in question.settings),
        *(("from", name) for name in question.files),
    ]
    return rows or [("from", question.path)]


def warning(question: TrustQuestion) -> str:
    """One sentence for a run without a person."""
    withheld = [
        *(["its hooks"] if question.commands else []),
        *([f"its settings ({', '.join(question.settings)})"] if question.settings else []),
    ]
    what = " and ".join(withheld) or ", ".join(question.files)
    return (
        f"this folder is not trusted, so {what} do not count; "
        "start `weft` in it at a terminal and say that you trust it"
    )
