"""`grep`: lines of files that fit a regular expression.

ripgrep does it where there is one.  Else a small Python program does, in a process of its own: Python's matcher holds the
interpreter's lock and may take for ever on a bad pattern, and a process can be killed.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.tools.arguments import Arguments, parse, schema_of
from weft.tools.base import Outcome, Prepared, Tool, ToolContext
from weft.tools.files import action
from weft.tools.glob import matcher
from weft.tools.listing import files_of
from weft.tools.suggest import near_names
from weft.workspace import Command, RunResult

DEFAULT_LINES = 200
MAX_LINES = 2_000
MAX_LINE = 400
_SECONDS = 30.0
_WORKER = os.path.join(os.path.dirname(__file__), "grep_worker.py")
_BAD_PATTERN = "bad pattern: "


class GrepArguments(Arguments, frozen=True, kw_only=True):
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
        "Search the contents of files for a regular expression. Lines come as `path:line:text`. Files that the project ignores "
        "and binary files are left out."
    )
    schema = schema_of(GrepArguments)
    effect: Effect = "pure"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> Prepared:
        given = parse(GrepArguments, args)
        path = await context.workspace.resolve(given.path)

        async def run() -> Outcome:
            program = context.runner.which("rg", not_below=context.workspace.root)
            if program is not None:
                result = await _by_rg(program, given, path, context)
            else:
                result = await _by_worker(given, path, context)
            return Outcome(text=_shown(result, given.limit))

        return Prepared(action=action(self.name, path, context, edits=False), run=run)


async def _by_rg(program: str, given: GrepArguments, path: str, context: ToolContext) -> RunResult:
    await _is_file(path, context)  # tells of a missing path in our words
    argv = [
        program,
        "--no-config",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
    ]
    argv += ["--sort=path", "--hidden", "--glob=!.git", "--no-messages"]
    argv += [f"--max-columns={MAX_LINE}", "--max-columns-preview", f"--context={given.context}"]
    # Every text of the model's stands where no program takes it for an option.
    argv += [f"--glob={given.glob}"] if given.glob else []
    argv += ["--ignore-case"] if given.ignore_case else []
    argv += ["--files-with-matches"] if given.files_only else []
    where = path if path.startswith("/") else "./" if path == "." else f"./{path}"
    argv += ["-e", given.pattern, "--", where]
    command = Command(
        argv=tuple(argv), cwd=context.workspace.root, timeout_seconds=_SECONDS, only_reads=True
    )
    result = await context.runner.run(command)
    if result.exit_code == 2 and "regex parse error" in result.output:
        raise FinalToolError(f"the pattern is no regular expression: {_last_line(result.output)}")
    return result


async def _by_worker(given: GrepArguments, path: str, context: ToolContext) -> RunResult:
    if await _is_file(path, context):
        names = [path]
    else:
        fits = matcher(given.glob) if given.glob else lambda name: True
        prefix = "" if path == "." else f"{path}/"
        names = [prefix + name for name in (await files_of(path, context)).names if fits(name)]
    order = {
        "root": context.workspace.root,
        "pattern": given.pattern,
        "ignore_case": given.ignore_case,
        "context": given.context,
        "files_only": given.files_only,
        "limit": given.limit + 1,
        "max_line": MAX_LINE,
        "names": names,
    }
    command = Command(
        argv=(sys.executable, "-I", "-S", _WORKER),
        cwd=context.workspace.root,
        timeout_seconds=_SECONDS,
        stdin=msgspec.json.encode(order),
        only_reads=True,
    )
    result = await context.runner.run(command)
    if result.output.startswith(_BAD_PATTERN):
        reason = result.output.removeprefix(_BAD_PATTERN).strip()
        raise FinalToolError(f"the pattern is no regular expression: {reason}")
    return result


async def _is_file(path: str, context: ToolContext) -> bool:
    try:
        state = await context.workspace.peek(path, limit=0)
    except FinalToolError:
        return False  # a folder, or nothing that can be read: searching it will say so
    if state is None:
        raise FinalToolError(
            f"there is no file or folder {path!r}{await near_names(path, context.workspace)}"
        )
    return True


def _shown(result: RunResult, limit: int) -> str:
    text = (
        result.output if result.full_output is None else result.full_output.decode(errors="replace")
    )
    lines = [line.removeprefix("./") for line in text.split("\n") if line]
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


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
