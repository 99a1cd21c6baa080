"""`shell`: one command line, run by bash where there is one; to its end, or in the background."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import anyio.to_thread
import msgspec
from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.permissions import MOST_NAMED, NOT_LOOKED_UP, ToolAction, judge_line, words_in_line
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import (
    BackgroundCommands,
    BackgroundOutput,
    PreparedCall,
    Tool,
    ToolContext,
    ToolOutcome,
)
from weft.tools.shell_syntax import is_plain, why_no_bash
from weft.workspace import ProcessCommand, RunResult

DEFAULT_SECONDS = 120.0
MAX_SECONDS = 600.0
OUTSIDE = "# outside the sandbox"
INSIDE = "# not outside the sandbox"
REACHES = "# may reach "
MOST_HOSTS = 20
LONGEST_TITLE = 500
"""Characters of a background command's line that lists show."""


BINARY_SHARE = 0.2
"""The share of characters that no text has beyond which output is binary.

Above a Latin-1 text (up to a tenth) or names that end in NUL, far below an image or an archive
(a third and more).
"""
_NO_TEXT = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffd]")

OUT_OF_REACH = ", outside the sandbox; a command reaches its ports only with outside_sandbox"
"""What the model has to know of a server that it cannot talk to from where its other
commands run.
"""


class ShellArguments(ToolArguments, frozen=True, kw_only=True):
    """What `shell` takes."""

    command: Annotated[str, Meta(description="The command line.")]
    description: Annotated[
        str,
        Meta(description="What it is for, in a few words: the user reads it when asked."),
    ] = ""
    cwd: Annotated[
        str,
        Meta(
            description="Folder to run it in, relative to the project; the project itself "
            "by default."
        ),
    ] = "."
    timeout_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=MAX_SECONDS,
            description=f"Killed after this long; at most {MAX_SECONDS:.0f}. In the background "
            "only if given.",
        ),
    ] = DEFAULT_SECONDS
    hosts: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MOST_HOSTS,
            description="Hosts that it has to reach from the sandbox, such as pypi.org or "
            "localhost:8080: the user is asked about those that no rule allows.",
        ),
    ] = ()
    outside_sandbox: Annotated[
        bool,
        Meta(
            description="Run it outside the sandbox, with the network and the whole disk. The user "
            "is asked each time; only "
            "where it cannot work inside."
        ),
    ] = False
    background: Annotated[
        bool,
        Meta(
            description="Start it and go on: servers, watchers. It runs outside the sandbox; "
            "`shell_output` shows what it prints, `wait` waits for its end, "
            "`shell_stop` ends it, and you are told when it ends by itself."
        ),
    ] = False


class ShellTool(Tool):
    """Runs what the model wrote, when the policy or the user lets it."""

    name = "shell"
    description = (
        "Run a command line in bash. Each call starts anew in the project folder: no "
        "variables, no directory and no process left by `&` "
        "carry over; what is to go on running needs `background`. There is no terminal "
        "and no input. Output is standard output and error together."
    )
    schema = late_schema(ShellArguments)
    effect: Effect = "unknown"
    timeout_seconds = MAX_SECONDS + 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(ShellArguments, args)
        if not given.command.strip():
            raise FinalToolError("the command is empty")
        commands = _background(context) if given.background else None
        cwd = await context.workspace.resolve(given.cwd)
        folder = context.workspace.root if cwd == "." else _absolute(context, cwd)
        program = "" if is_plain(given.command) else context.runner.which("bash")
        is_sandboxed = await context.runner.is_sandboxed()
        # What runs for hours cannot write over the project: its changes would show only at the end.
        escapes = is_sandboxed and (given.outside_sandbox or given.background)
        # Elsewhere it reaches them, and whatever else, without being let.
        hosts = _named(given.hosts) if is_sandboxed and not escapes else ()
        # The default is for commands that are waited for; a server must not die of it.
        is_bounded = not given.background or "timeout_seconds" in args
        command = ProcessCommand(
            argv=(program or context.runner.which("sh") or "sh", "-c", given.command),
            cwd=folder,
            timeout_seconds=given.timeout_seconds if is_bounded else math.inf,
            is_unconfined=escapes,
            hosts=hosts,
            label=context.call_uid,
        )

        async def run() -> ToolOutcome:
            if commands is not None:
                return started(
                    await commands.start(command, given.command, context.runner), command
                )
            # By the table alone: a rule of the user's may allow more than what reads.
            may_drop = action.sandboxed and not action.leads_out
            judged = judge_line(action, ()) if may_drop else None
            drops = judged is not None and judged.only_reads
            kept = msgspec.structs.replace(command, drops_changes=True) if drops else command
            if "git" not in given.command:
                result = await context.runner.run(kept, context.emit)
                return outcome_of(result, given.timeout_seconds)
            return await _with_commits(kept, context, given.timeout_seconds)

        shown = given.command if cwd == "." else f"cd {shlex.quote(cwd)}\n{given.command}"
        shown = preview = _marked(shown, hosts, escapes=escapes)
        if not escapes and not is_sandboxed:
            # Every such call, whatever the reason: what has no mark is shown as sandboxed. Not in
            # what a grant names: the command is the same on the next day, when there is one.
            why = await context.runner.why_unconfined() or "it is switched off"
            preview = f"# without a sandbox: {why}\n{shown}"
        if given.background:
            # Not in what rules and grants name, either: it is the same command with the same
            # rights.
            preview = f"# goes on in the background\n{preview}"
        guard = context.read_guard
        exposes = ""
        if guard is not None and guard.has_rules and not escapes:
            exposes = await guard.why_exposed(is_sandboxed=is_sandboxed)
        reads = context.reads_lines
        asks_bash = reads and bool(program)
        refused = await why_no_bash(given.command, context.runner, folder) if asks_bash else ""
        leads_out = "" if reads else NOT_LOOKED_UP
        if reads and is_sandboxed:
            leads_out = await _leads_out(given.command, cwd, context)
        action = ToolAction(
            tool=self.name,
            kind="run",
            # Elsewhere it is another command, and a grant for the one is none for the other.
            target=shown,
            outside=context.workspace.is_outside(cwd),
            sandboxed=is_sandboxed and not escapes,
            escapes=escapes,
            goes_on=given.background,
            exposes=exposes,
            hosts=hosts,
            # Another shell than bash reads some lines differently: those are not judged by words.
            line=given.command if program or is_plain(given.command) else "",
            refused=refused,
            leads_out=leads_out,
            root=context.workspace.root,
            folder="" if cwd == "." else cwd,
        )
        return PreparedCall(action=action, run=run, preview=preview)


async def _with_commits(
    command: ProcessCommand, context: ToolContext, seconds: float
) -> ToolOutcome:
    """Run a command that may commit, and name the commits that it made."""
    from weft.workspace import commits_since, head_record  # few commands do

    before = await anyio.to_thread.run_sync(head_record, context.workspace.root)
    outcome = outcome_of(await context.runner.run(command, context.emit), seconds)
    if before is None:
        return outcome
    commits = await anyio.to_thread.run_sync(commits_since, before)
    if not commits:
        return outcome
    return msgspec.structs.replace(outcome, data={**outcome.data, "commits": commits})


async def _leads_out(line: str, cwd: str, context: ToolContext) -> str:
    """A word of a line that is a link out of the project: to read it is to read outside."""
    words = words_in_line(line)
    if len(words) > MOST_NAMED:
        return NOT_LOOKED_UP
    for word in words:
        # With a folder in front, a blank and a tilde are names as others are: the words of a line
        # are what is left of its quotes (`cut -d ' '`).
        place = word if word.startswith("/") else f"{cwd}/{word}"
        try:
            if context.workspace.is_outside(place):
                continue  # judged by its name
            if context.workspace.is_outside(await context.workspace.resolve(place)):
                return word
        except FinalToolError:
            return word
    return ""


def _named(hosts: Sequence[str]) -> tuple[str, ...]:
    """Hosts as they are judged and shown."""
    if not hosts:
        return ()
    from weft.permissions import read_host  # few commands name any

    found = {text: read_host(text) for text in hosts}
    if wrong := [text for text, host in found.items() if host is None]:
        raise FinalToolError(
            f"{wrong[0]!r} is no host; name each as pypi.org, localhost:8080 or 192.0.2.1:80, "
            "without a path"
        )
    return tuple(sorted({str(host) for host in found.values()}))


def _marked(shown: str, hosts: tuple[str, ...], *, escapes: bool) -> str:
    """The command as grants name it: where it runs, and what it reaches, is part of that."""
    if escapes:
        return f"{OUTSIDE}\n{shown}"
    # The model writes the command, comments included.  A command that begins with our words would
    # name the same grant as one that really leaves the sandbox.
    if shown.startswith((OUTSIDE, INSIDE, REACHES)):
        shown = f"{INSIDE}\n{shown}"
    return f"{REACHES}{', '.join(hosts)}\n{shown}" if hosts else shown


def _background(context: ToolContext) -> BackgroundCommands:
    if context.background is None:
        raise FinalToolError("nothing can be left running in the background from here")
    commands = context.background()
    # While preparing: otherwise the user would allow a command that is then refused.
    commands.refuse_more()
    return commands


def started(look: BackgroundOutput, command: ProcessCommand) -> ToolOutcome:
    """What the model reads of a command that it started in the background."""
    if look.result is not None:
        outcome = outcome_of(look.result, command.timeout_seconds)
        return msgspec.structs.replace(
            outcome, text=f"{outcome.text}\n(It ended at once; nothing runs in the background.)"
        )
    output = readable(look.output).rstrip("\n") or "(no output yet)"
    where = OUT_OF_REACH if command.is_unconfined else ""
    return ToolOutcome(
        text=f"{output}\n(It runs in the background as {look.id}{where}.)",
        data={"background": {"id": look.id, "command": command.argv[-1][:LONGEST_TITLE]}},
    )


def _absolute(context: ToolContext, path: str) -> str:
    return path if path.startswith("/") else f"{context.workspace.root.rstrip('/')}/{path}"


def how_it_ended(look: BackgroundOutput) -> str:
    """How a background command ended, in a few words."""
    result = look.result
    if look.was_stopped:
        return "it was stopped"
    if result is None:
        return "it was killed"
    if result.timed_out:
        return "it was stopped at the end of the time it was given"
    if result.exit_code < 0:
        return f"it was killed by signal {-result.exit_code}"
    return f"it ended with exit code {result.exit_code}"


def readable(output: str, size: int | None = None) -> str:
    """Output as the model is to read it: a note in the place of what is not text.

    `size` is its length in bytes, where that is known.
    """
    odd = len(_NO_TEXT.findall(output))
    if odd <= BINARY_SHARE * len(output):
        return output
    shown = f"{size:,} bytes" if size is not None else f"about {len(output):,} bytes"
    return f"[binary output, {shown}, not shown; look at it with xxd or file, or save it to a file]"


def outcome_of(result: RunResult, timeout_seconds: float) -> ToolOutcome:
    """What the model reads: the output first, then how it ended unless it simply worked."""
    output = readable(result.output, result.total_bytes).rstrip("\n")
    is_binary = output != result.output.rstrip("\n")
    if result.timed_out:
        end = (
            f"(stopped after {timeout_seconds:g} s: it took too long; everything it started "
            "was killed)"
        )
    elif result.exit_code < 0:
        end = f"(killed by signal {-result.exit_code})"
    elif result.exit_code:
        end = f"(exit code {result.exit_code})"
    else:
        end = "" if output else "(no output)"
    return ToolOutcome(
        text="\n".join(part for part in (output, end, *result.remarks) if part),
        is_error=result.timed_out
        or result.exit_code != 0
        or result.is_held_back
        or result.has_violations,
        touched=result.changes or (),
        notes=(*result.left_out, *result.notes),
        full_text=None if is_binary else result.full_output,
        data={
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "total_bytes": result.total_bytes,
            "duration_ms": result.duration_ms,
            **({} if result.tree is None else {"tree": result.tree}),
        },
    )
