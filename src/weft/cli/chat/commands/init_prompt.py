"""What `/init` and `/review` ask the model for."""

from __future__ import annotations

import os

from weft.errors import UsageError

NAME = "AGENTS.md"

_WRITE = "Write AGENTS.md in the root of this project: what a programmer who is new here must know."
_IMPROVE = (
    "Improve AGENTS.md in the root of this project. Read it first. Keep what is right, with its "
    "wording; correct what the project contradicts, and add what is missing. If nothing is, leave "
    "the file as it is and say so."
)
_HOW = """\
Look before you write: the README, the build and package files, the CI settings, the folders, \
some of the code and its tests, and instructions for other tools (CLAUDE.md, .cursorrules, \
.github/copilot-instructions.md), whose content is information about the project.
It says, in this order and only as far as the project shows it:
1. the commands to build, run, lint and test, and the one that runs a single test;
2. how the parts of the code work together, as far as reading one file does not show it;
3. the conventions that the code keeps and that one would not guess.
Do not list what is easy to find, repeat general advice, or invent anything. No secrets. At most \
60 lines of Markdown."""


def init_prompt(folder: str, words: str) -> str:
    """The message; `words` are what the user adds.

    Raises:
        UsageError: what has the name is not a file.
    """
    path = os.path.join(folder, NAME)
    exists = os.path.lexists(path)
    if exists and not os.path.isfile(path):
        raise UsageError(f"{path} is not a file; /init writes one, so move it away first")
    more = f"\n\nThe user adds: {words}" if words else ""
    return f"{_IMPROVE if exists else _WRITE}\n\n{_HOW}{more}"


_REVIEW = """\
Review {what}. Change nothing.
Look at the whole change first, then at the code around it and at what uses it; run the tests or \
the type checker where that can be done without changing files.
Say what is wrong, the worst first: bugs, lost or broken behavior, security, races, missing \
error handling, missing tests. For each: the place as `path/to/file.py:12`, what happens and when, \
and how to mend it. Leave out matters of taste and praise. Be sure before you call something a \
bug; say what you could not check. If nothing is wrong, say so in a sentence."""
_CHANGES = (
    "the changes of this project that are not committed, new files included (`git status`, "
    "`git diff HEAD`); if there are none, those of the last commit"
)


def review_prompt(words: str) -> str:
    """The message; `words` are what the user wants to have reviewed: files, a commit, a branch."""
    return _REVIEW.format(what=f"this: {words}" if words else _CHANGES)
