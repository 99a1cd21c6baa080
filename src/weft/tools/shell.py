"""`shell`: one command line, run by bash where there is one."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.permissions import Action
from weft.tools.arguments import Arguments, parse, schema_of
from weft.tools.base import Outcome, Prepared, Tool, ToolContext
from weft.tools.plain import is_plain
from weft.workspace import Command, RunResult

DEFAULT_SECONDS = 120.0
MAX_SECONDS = 600.0


class ShellArguments(Arguments, frozen=True, kw_only=True):
    """What `shell` takes."""

    command: Annotated[str, Meta(description="The command line.")]
    cwd: Annotated[
        str,
        Meta(
            description="Folder to run it in, relative to the project; the project itself by default."
        ),
    ] = "."
    timeout_seconds: Annotated[
        float,
        Meta(
            gt=0, le=MAX_SECONDS, description=f"Killed after this long; at most {MAX_SECONDS:.0f}."
        ),
    ] = DEFAULT_SECONDS
    outside_sandbox: Annotated[
        bool,
        Meta(
            description="Run it outside the sandbox, with the network and the whole disk. The person is asked each time; only "
            "where it cannot work inside."
        ),
    ] = False


class ShellTool(Tool):
    """Runs what the model wrote, when the policy or the person lets it."""

    name = "shell"
    description = (
        "Run a command line in bash. Each call starts anew in the project folder: no variables, no directory and no background "
        "process carry over. There is no terminal and no input. Output is standard output and error together."
    )
    schema = schema_of(ShellArguments)
    effect: Effect = "unknown"
    timeout_seconds = MAX_SECONDS + 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> Prepared:
        given = parse(ShellArguments, args)
        if not given.command.strip():
            raise FinalToolError("the command is empty")
        cwd = await context.workspace.resolve(given.cwd)
        folder = context.workspace.root if cwd == "." else _absolute(context, cwd)
        program = "" if is_plain(given.command) else context.runner.which("bash")
        is_sandboxed = await context.runner.is_sandboxed()
        escapes = is_sandboxed and given.outside_sandbox
        command = Command(
            argv=(program or context.runner.which("sh") or "sh", "-c", given.command),
            cwd=folder,
            timeout_seconds=given.timeout_seconds,
            is_unconfined=escapes,
            label=context.call_uid,
        )

        async def run() -> Outcome:
            result = await context.runner.run(command, context.emit)
            return outcome_of(result, given.timeout_seconds)

        shown = given.command if cwd == "." else f"cd {shlex.quote(cwd)}\n{given.command}"
        preview = shown
        if escapes:
            shown = preview = f"# outside the sandbox\n{shown}"
        elif not is_sandboxed and (why := await context.runner.why_unconfined()):
            # Not in what a grant names: the command is the same on the next day, when there is one.
            preview = f"# without a sandbox: {why}\n{shown}"
        action = Action(
            tool=self.name,
            kind="run",
            # Elsewhere it is another command, and a grant for the one is none for the other.
            target=shown,
            outside=context.workspace.is_outside(cwd),
            sandboxed=is_sandboxed and not escapes,
            escapes=escapes,
        )
        return Prepared(action=action, run=run, preview=preview)


def _absolute(context: ToolContext, path: str) -> str:
    return path if path.startswith("/") else f"{context.workspace.root.rstrip('/')}/{path}"


def outcome_of(result: RunResult, timeout_seconds: float) -> Outcome:
    """What the model is told: the output first, then how it ended unless it simply worked."""
    output = result.output.rstrip("\n")
    if result.timed_out:
        end = f"(stopped after {timeout_seconds:g} s: it took too long; everything it started was killed)"
    elif result.exit_code < 0:
        end = f"(killed by signal {-result.exit_code})"
    elif result.exit_code:
        end = f"(exit code {result.exit_code})"
    else:
        end = "" if output else "(no output)"
    return Outcome(
        text="\n".join(part for part in (output, end, *result.remarks) if part),
        is_error=result.timed_out
        or result.exit_code != 0
        or result.is_held_back
        or result.has_trespassed,
        touched=result.changes or (),
        notes=(*result.left_out, *result.notes),
        full_text=result.full_output,
        data={
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "total_bytes": result.total_bytes,
            "duration_ms": result.duration_ms,
        },
    )
