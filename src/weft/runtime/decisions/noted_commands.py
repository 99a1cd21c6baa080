"""Shell commands that are noted as decisions: those that run tests, and those that commit.

What a command does is read off the programs at the heads of its parts: a word in the middle of one
may be a file, a pattern or a message.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

LONGEST_COMMAND: Final = 4_000
"""Characters of a command that are looked at."""
_BETWEEN: Final = "|;&()"
_BEFORE: Final = (
    r"(?:(?:env|time|command|exec|nohup|sudo|npx|bunx|(?:uv|poetry|pipenv|pdm|rye|hatch) run|"
    r"bundle exec|timeout \S+|(?:\S*/)?python[\d.]* -m|[A-Za-z_]\w*=\S*) )*(?:\S*/)?"
)
"""What may stand before the program that counts."""
# Each word fits one way only: with two, a long command would be tried in all combinations.
_TEST: Final = re.compile(
    _BEFORE + r"(?:(?:py\.?test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest)(?= |$)|"
    r"(?:go|cargo|npm|yarn|pnpm|bun|mix|dotnet|swift|gradle|gradlew|mvn|make|just|bazel|deno|rake)"
    r"(?: -C \S+| -(?!C )\S+| \w+=\S+)* (?:run )?(?:[\w:]+:)?(?:tests?|check|verify)(?=[ :]|$))",
    re.I,
)
_COMMIT: Final = re.compile(_BEFORE + r"git(?: -[cC] \S+| -(?![cC] )\S+)* commit(?= |$)")
_COMMITTED: Final = re.compile(r"^\[[^\]\n]*?([0-9a-f]{7,64})\] ", re.MULTILINE)


def is_test(command: str) -> bool:
    """Whether a command runs tests, as far as its words tell."""
    return any(_TEST.match(part) for part in _parts(command))


def is_commit(command: str) -> bool:
    """Whether a command commits, as far as its words tell."""
    return any(_COMMIT.match(part) for part in _parts(command))


def made_commit(command: str, output: str) -> str:
    """The commit that a command made, as git printed it; empty for none."""
    if not is_commit(command):
        return ""
    found = _COMMITTED.search(output)
    return found[1] if found else ""


def _parts(command: str) -> Iterator[str]:
    """The simple commands of a command, each with its words joined by one blank."""
    # Inside quotes a semicolon instead of a line's end changes no program's name.
    lines = command[:LONGEST_COMMAND].replace("\n", " ; ")
    words = shlex.shlex(lines, posix=True, punctuation_chars=_BETWEEN)
    words.whitespace_split, words.commenters = True, ""
    part: list[str] = []
    try:
        for word in words:
            if word.strip(_BETWEEN):
                # A word is one, whatever stands in it.
                part.append("_".join(word.split()))
            else:
                yield " ".join(part)
                part = []
    except ValueError:  # a quote without an end
        pass
    yield " ".join(part)
