"""Proposed rules: the narrowest that would let a line, and others like it, run unasked.

`git diff src` becomes `git diff *`, `npm run test` stays what it is.  Where a star would mean much
(`rm *`, `python *`, `./x *`) the very words are proposed, and nothing for a line that no rule can
allow.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from weft.permissions.shell.parts import ShellPart, read_program
from weft.permissions.shell.patterns import compile_pattern, why_not_covered
from weft.permissions.shell.read_only import NotReadOnly, read_only_use
from weft.permissions.shell.tables import (
    CHANGING_PROGRAMS,
    code_rows,
    is_known,
    wrapper_rows,
)

_WITH_SUBCOMMANDS: Final = frozenset(
    """
    git npm pnpm yarn bun deno cargo go docker podman kubectl pip pip3 uv poetry pdm hatch gh dotnet
    mix bundle composer terraform helm brew apt apt-get make just task rake gradle mvn nox tox
    rustup conda mamba swift dart flutter rails
    """.split()  # noqa: SIM905  # a list of words
)
"""Programs whose first word says what they do; a rule for all of it would mean too much."""
_DEEPER: Final = frozenset(
    {
        *("npm run", "pnpm run", "yarn run", "bun run", "git stash", "git remote", "git worktree"),
        *("git lfs", "docker compose", "docker image", "docker volume", "go mod", "uv pip"),
        *("gh pr", "gh issue", "gh repo", "gh run", "gh workflow", "gh release"),
        *("cargo nextest", "terraform state", "kubectl rollout"),
    }
)
"""Subcommands that have some of their own."""
_TARGETS: Final = frozenset({"make", "just", "task", "rake", "nox", "tox"})
"""Programs that take several words of one kind: another one behind the first is another task."""
_ONE_PURPOSE: Final = frozenset(
    """
    pytest jest vitest mocha ava phpunit rspec ctest mypy pyright pyre tsc eslint biome oxlint
    flake8 pylint ruff black isort prettier rubocop shellcheck golangci-lint clippy-driver ninja
    phpstan
    """.split()  # noqa: SIM905  # a list of words
)
"""Programs whose words are files and names, and change nothing in what they are for."""
_MEANS_MUCH: Final = frozenset(
    """
    run runner exec eval execute console shell ssh x dlx install add i apply delete destroy remove
    rm uninstall publish deploy restart stop kill pkill killall open xdg-open scp socat
    """.split()  # noqa: SIM905  # a list of words
)
"""Words behind which another word is another program, package, process or machine."""
_TASKS: Final = frozenset({"npm run", "pnpm run", "yarn run", "cargo run", "dotnet run"})
"""What runs the project's own program or task, which the line names or which is only one."""
_WORD: Final = re.compile(r"[a-z][a-z0-9-]*")
_MOST_WORDS: Final = 3


def proposed_patterns(line: str, root: str = "", *, reads_unasked: bool = True) -> tuple[str, ...]:
    """The patterns that would allow a line together; empty where none can.

    `reads_unasked`: commands that only read need no rule, for there is a sandbox.
    """
    program = read_program(line)
    if program.doubt or program.is_broken or program.refused:
        return ()
    found: dict[str, None] = {}
    for part in _commands(program.parts):
        if reads_unasked and _only_reads(part, root):
            continue
        pattern = _pattern(part, root)
        if not pattern:
            return ()
        found[pattern] = None
    return tuple(found)


def _commands(parts: Sequence[ShellPart]) -> Iterator[ShellPart]:
    """The commands that need a rule: of a wrapper that only runs another one, that one."""
    for part in parts:
        if part.passes:
            yield from _commands(part.inner)
        elif part.words:
            yield part


def _only_reads(part: ShellPart, root: str) -> bool:
    if part.command.redirects:
        return False
    try:
        read_only_use(part.words, root)
    except NotReadOnly:
        return False
    return True


def _pattern(part: ShellPart, root: str) -> str:
    texts = [word.text for word in part.words]
    is_known = all(word.kind == "literal" for word in part.words)
    if not is_known or part.command.assignments or part.command.redirects or part.opaque:
        return ""
    for pattern in (_with_star(texts), shlex.join(texts)):
        if pattern and _covers(pattern, part, root):
            return pattern
    return ""


def _with_star(texts: Sequence[str]) -> str:
    """The beginning that says what a command does, and a star; empty where that is too much."""
    name = texts[0]
    if "/" in name or name in CHANGING_PROGRAMS or name in code_rows() or name in wrapper_rows():
        return ""
    size = _size(texts)
    begin = texts[:size]
    if (
        not size
        or len(begin) < size
        or any(text.startswith("-") for text in begin)
        or name in _TARGETS
    ):
        return ""
    is_task = " ".join(begin[:2]) in _TASKS
    if name != "git" and not is_task and not _MEANS_MUCH.isdisjoint(begin):
        return ""
    return f"{shlex.join(begin)} *"


def _size(texts: Sequence[str]) -> int:
    """How many words say what a command does; 0 where that is not known."""
    name = texts[0]
    if name in _WITH_SUBCOMMANDS:
        return 2 + (" ".join(texts[:2]) in _DEEPER)
    if name in _ONE_PURPOSE:
        return 1
    # What is not known may have subcommands, of which each is something else.
    size = 1 + sum(1 for _ in takewhile(_WORD.fullmatch, texts[1:]))
    # `instances list` and `instances delete` are two things, and so may `--eval x` be any.
    has_option = size == 1 and texts[1:] and texts[1].startswith("-") and not is_known(name)
    return 0 if size > _MOST_WORDS or has_option else size


def _covers(pattern: str, part: ShellPart, root: str) -> bool:
    try:
        return not why_not_covered(compile_pattern(pattern), part, root)
    except ValueError:
        return False
