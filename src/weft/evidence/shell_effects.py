"""What the commands of a line do to the bash that runs what follows them.

Behind `exit 0`, `trap 'exit 0' EXIT` or `PATH=fake` the words of a check are no evidence: it may
not have run, or another program of its name has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_PLAIN_SETTINGS: Final = frozenset(
    {
        *("CI", "NODE_ENV", "FORCE_COLOR", "NO_COLOR", "TERM", "RUST_BACKTRACE", "PYTHONPATH"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "LANG", "LC_ALL", "TZ"),
        *(
            "MIX_ENV",
            "RAILS_ENV",
            "DJANGO_SETTINGS_MODULE",
            "COLUMNS",
            "DEBUG",
            "CGO_ENABLED",
            "RUSTFLAGS",
        ),
    }
)
"""Variables that say nothing of which tests are run."""
_CHANGES_SHELL: Final = frozenset(
    """
    alias break continue coproc declare enable eval exit function hash let local logout mapfile popd
    pushd read readarray readonly return shift shopt suspend trap typeset unalias
    """.split()  # noqa: SIM905  # a list of words
)
"""Words of bash behind which the rest of a line may not run, or may run something else."""
_PLAIN_SET: Final = re.compile(r"-[eux]+o?|-o|pipefail|errexit|nounset")
"""What `set` is given that makes nothing end better."""


def place_after(part: Sequence[str], place: tuple[str, ...], root: str) -> tuple[str, ...]:
    """Where a line is behind a `cd`; empty for the project."""
    words = [word for word in part[1:] if word not in ("--", "-L", "-P")]
    if not words:
        return ("~",)
    folder = words[0].rstrip("/")
    if len(words) == 1 and folder in (".", root):
        return place if folder == "." else ()
    return (*place, *words)


def changes_shell(part: Sequence[str]) -> bool:
    """Whether what follows a simple command may run otherwise, or not at all: bash itself has
    changed, or has ended.
    """
    words = [word for word in part if not ASSIGNMENT.match(word)]
    while words and (words[0] in ("command", "builtin", "time") or words[0][:1] == "-"):
        words = words[1:]
    if not words or words[0] == "export":
        return any(is_odd_setting(word) for word in part)
    if words[0] in (".", "source"):
        return not words[-1].endswith("bin/activate")
    if words[0] == "set":
        return not all(map(_PLAIN_SET.fullmatch, words[1:]))
    return words[0] in _CHANGES_SHELL or words[0] == "exec" or words[:2] == ["printf", "-v"]


def is_odd_setting(word: str) -> bool:
    """Whether a word sets a variable that may change which program runs, or on what."""
    return ASSIGNMENT.match(word) is not None and word.partition("=")[0] not in _PLAIN_SETTINGS
