"""`grep`: lines of files that fit a regular expression.

ripgrep does it where there is one.  Else a small Python program does, in a process of its own:
Python's matcher holds the interpreter's lock and may take for ever on a bad pattern, and a process
can be killed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.files import action
from weft.tools.glob import matcher
from weft.tools.project_files import files_of, is_file
from weft.workspace import ProcessCommand, RunResult, unless_trapped

DEFAULT_LINES = 200
MAX_LINES = 2_000
MAX_LINE = 400
_SECONDS = 30.0
_WORKER = os.path.join(os.path.dirname(__file__), "grep_worker.py")
_BAD_PATTERN = "bad pattern: "
_REFUSALS = ("regex parse error", "error parsing glob", "is not allowed in a regex")
_CUT = re.compile(r" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$")
_LINE_BREAK = re.compile(r"\n|^(?:[^\\[]|\\.|\[(?:[^\]\\]|\\.)+\])*?\\n")
"""A line break in an expression, by itself or as `\\n`, but not where a class of characters names
it.
"""


class GrepArguments(ToolArguments, frozen=True, kw_only=True):
    """What `grep` takes."""

    pattern: Annotated[str, Meta(min_length=1, max_length=5000, description="Regular expression.")]
    path: Annotated[
        str, Meta(description="File or folder to search; the project itself by default.")
    ] = "."
    glob: Annotated[
        str,
        Meta(
            max_length=1000,
            description="Only files whose name fits, such as `*.py` or `src/**/*.ts`.",
        ),
    ] = ""
    ignore_case: Annotated[bool, Meta(description="Do not tell upper from lower case.")] = False
    context: Annotated[int, Meta(ge=0, le=20, description="Lines to show around each match.")] = 0
    files_only: Annotated[bool, Meta(description="Only the names of files with a match.")] = False
    limit: Annotated[int, Meta(ge=1, le=MAX_LINES, description="Lines to show at most.")] = (
        DEFAULT_LINES
    )


class GrepTool(Tool):
    """Searches contents; ignored and binary files left out."""

    name = "grep"
    description = (
        "Search the contents of files for a regular expression. Lines come as "
        "`path:line:text`. Files that the project ignores "
        "and binary files are left out."
    )
    schema = late_schema(GrepArguments)
    effect: Effect = "pure"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(GrepArguments, args)
        path = await context.workspace.resolve(given.path)
        crosses_lines = _LINE_BREAK.search(given.pattern) is not None

        async def run() -> ToolOutcome:
            if crosses_lines:
                result = await _by_worker(given, path, context, crosses_lines=True)
                return ToolOutcome(text=_shown(result, given.limit))
            program = context.runner.which("rg", not_below=context.workspace.root)
            guard = context.read_guard
            # ripgrep chooses the files for itself; where some may not be read, we choose.
            if program is not None and (guard is None or not guard.has_rules):
                result = await _by_rg(program, given, path, context)
            else:
                result = await _by_worker(given, path, context)
            return ToolOutcome(text=_shown(result, given.limit))

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)


async def _by_rg(program: str, given: GrepArguments, path: str, context: ToolContext) -> RunResult:
    await is_file(path, context)  # tells of a missing path in our words
    argv = [
        program,
        "--no-config",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
    ]
    argv += ["--sort=path", "--hidden", "--no-require-git", "--glob=!.git", "--no-messages"]
    argv += ["--crlf"]  # a line of Windows ends before its return
    argv += [f"--max-columns={MAX_LINE}", "--max-columns-preview", f"--context={given.context}"]
    # Every text of the model's stands where no program takes it for an option.
    argv += [f"--glob={glob}" for glob in _globs(given.glob, path)]
    argv += ["--ignore-case"] if given.ignore_case else []
    argv += ["--files-with-matches"] if given.files_only else []
    where = path if path.startswith("/") else "./" if path == "." else f"./{path}"
    argv += ["-e", given.pattern, "--", where]
    command = ProcessCommand(
        argv=tuple(argv), cwd=context.workspace.root, timeout_seconds=_SECONDS, only_reads=True
    )
    folder = os.path.join(context.workspace.root, path)
    result = await unless_trapped(folder, lambda: context.runner.run(command))
    if result is None:
        return await _by_worker(given, path, context)
    if result.exit_code == 2 and any(words in result.output for words in _REFUSALS):
        # Looking around and back is what it cannot do and we can; what is wrong we say in the same
        # words everywhere.
        return await _by_worker(given, path, context)
    return result


def _globs(glob: str, path: str) -> list[str]:
    """The glob as ripgrep takes it, from the project.

    And from the folder that is searched, which is as often meant.
    """
    if not glob:
        return []
    bare = glob.removeprefix("./")
    if path == "." or path.startswith("/") or "/" not in bare or bare.startswith(("/", "!")):
        return [bare]
    return [bare, f"/{path}/{bare}"]


async def _by_worker(
    given: GrepArguments, path: str, context: ToolContext, *, crosses_lines: bool = False
) -> RunResult:
    if await is_file(path, context):
        names = [path]
    else:
        prefix = "" if path == "." else f"{path}/"
        fits = _fitting(given.glob, prefix)
        names = [prefix + name for name in (await files_of(path, context)).names if fits(name)]
    guard = context.read_guard
    if guard is not None and guard.has_rules:
        names = [name for name in names if not guard.forbids(name)]
    order = {
        "root": context.workspace.root,
        "pattern": given.pattern,
        "ignore_case": given.ignore_case,
        "context": given.context,
        "files_only": given.files_only,
        "crosses_lines": crosses_lines,
        # One more than is shown: it tells that there are more, without counting them all.
        "limit": given.limit + 1,
        "max_line": MAX_LINE,
        "names": names,
    }
    command = ProcessCommand(
        # Isolated and without site: neither PYTHONPATH nor a `sitecustomize` of the project is
        # loaded.
        argv=(sys.executable, "-I", "-S", _WORKER),
        cwd=context.workspace.root,
        timeout_seconds=_SECONDS,
        stdin=msgspec.json.encode(order),
        only_reads=True,
    )
    result = await context.runner.run(command)
    if result.output.startswith(_BAD_PATTERN):
        reason = result.output.removeprefix(_BAD_PATTERN).strip()
        raise FinalToolError(f"the pattern is not a regular expression: {reason}")
    return result


def _fitting(glob: str, prefix: str) -> Callable[[str], bool]:
    """Whether a name fits the glob, from the folder that is searched or from the project.

    `!` turns it round.
    """
    if not glob:
        return lambda name: True
    fits = matcher(glob.removeprefix("!"))
    wanted = not glob.startswith("!")
    return lambda name: (fits(name) or fits(prefix + name)) is wanted


def _shown(result: RunResult, limit: int) -> str:
    text = (
        result.output if result.full_output is None else result.full_output.decode(errors="replace")
    )
    lines = [
        _CUT.sub(" (…)", line.removeprefix("./").removesuffix("\r"))
        for line in text.split("\n")
        if line
    ]
    cut = len(lines) > limit
    shown = [
        line if len(line) <= MAX_LINE * 2 else f"{line[: MAX_LINE * 2]} (…)"
        for line in lines[:limit]
    ]
    if cut:
        shown.append(
            f"(more than {limit} lines; use a narrower pattern, a glob, or a higher limit)"
        )
    if result.timed_out:
        shown.append(f"(stopped after {_SECONDS:g} s; search less at once)")
    return "\n".join(shown) or "(no match)"
