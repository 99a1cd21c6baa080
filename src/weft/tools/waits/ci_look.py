"""A wait for a run of a forge's CI: until it has ended, as the forge's own program says.

The program runs outside the sandbox, with the network and the user's login.  So its words are ours:
of what the model names only a number and a repository's name get into them, and it does not run in
the project, whose settings it would read.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from weft.errors import BadArguments, ToolError
from weft.events import WaitSubject
from weft.permissions import ToolAction
from weft.tools.base import ToolContext, WaitLook
from weft.workspace import ProcessCommand

PACE_SECONDS: Final = 30.0
"""Between two looks: each is a request to the forge."""
GITHUB: Final = "gh"
GITLAB: Final = "glab"
_LOOK_SECONDS: Final = 60.0
_NAME: Final = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_SHORT = re.compile(rf"(gitlab:)?({_NAME}(?:/{_NAME})+)#(\d{{1,20}})")
_GITHUB_PAGE = re.compile(
    rf"https://github\.com/({_NAME}/{_NAME})/actions/runs/(\d{{1,20}})(?:/.*)?"
)
_GITLAB_PAGE = re.compile(rf"https://gitlab\.com/({_NAME}(?:/{_NAME})+)/-/pipelines/(\d{{1,20}})")
_ENDED: Final = frozenset({"success", "failed", "canceled", "cancelled", "skipped"})
"""The words of GitLab for a pipeline that does nothing more by itself."""


class CiRun(msgspec.Struct, frozen=True):
    """A run of a forge."""

    program: str
    repository: str
    number: str

    @property
    def argv(self) -> tuple[str, ...]:
        """What asks for its state."""
        where = ("-R", self.repository)
        if self.program == GITHUB:
            return (GITHUB, "run", "view", self.number, *where, "--json", "status,conclusion")
        return (GITLAB, "ci", "get", "-p", self.number, *where, "-F", "json")

    @property
    def text(self) -> str:
        """What it is called."""
        what = "run" if self.program == GITHUB else "pipeline"
        return f"{what} {self.number} of {self.repository}"


class _GithubState(msgspec.Struct):
    status: str
    conclusion: str | None = None


class _GitlabState(msgspec.Struct):
    status: str


def ci_run(given: str) -> CiRun:
    """The run that is meant.

    Raises:
        BadArguments: it is none.
    """
    named = given.strip()
    if (short := _SHORT.fullmatch(named)) is not None:
        program = GITLAB if short[1] else GITHUB
        if program == GITLAB or short[2].count("/") == 1:
            return CiRun(program, short[2], short[3])
    if (page := _GITHUB_PAGE.fullmatch(named)) is not None:
        return CiRun(GITHUB, page[1], page[2])
    if (page := _GITLAB_PAGE.fullmatch(named)) is not None:
        return CiRun(GITLAB, page[1], page[2])
    raise BadArguments(
        f"`ci` is owner/name#RUN, gitlab:group/name#PIPELINE, or the address of one: {given!r:.100}"
    )


def ci_subject(run: CiRun) -> WaitSubject:
    """What is waited for."""
    host = "gitlab:" if run.program == GITLAB else ""
    place = f"{host}{run.repository}#{run.number}"
    return WaitSubject(kind="ci", name=run.program, text=run.text, place=place)


async def ci_action(tool: str, run: CiRun, context: ToolContext) -> ToolAction:
    """The looks, as they are judged: a command outside the sandbox."""
    line, is_sandboxed = " ".join(run.argv), await context.runner.is_sandboxed()
    return ToolAction(
        tool=tool,
        kind="run",
        acts_as="shell",
        target=f"{line}\n# outside the sandbox, again and again until it has ended",
        escapes=is_sandboxed,
        line=line,
        root=context.workspace.root,
    )


def ci_look(run: CiRun, context: ToolContext) -> WaitLook:
    """A look at it.

    Raises:
        ToolError: the forge cannot be asked.
    """

    async def look(subject: WaitSubject) -> bool:
        is_over, _ = await ci_state(run, context)
        return is_over

    return look


async def ci_state(run: CiRun, context: ToolContext) -> tuple[bool, str]:
    """Whether it has ended, and the word for how it is.

    Raises:
        ToolError: the forge cannot be asked.
    """
    program = context.runner.which(run.program, not_below=context.workspace.root)
    if program is None:
        raise ToolError(f"{run.program} is not installed: it is what says how a CI run is")
    command = ProcessCommand(
        argv=(program, *run.argv[1:]),
        cwd="/",
        timeout_seconds=_LOOK_SECONDS,
        only_reads=True,
        is_unconfined=True,
        errors_apart=True,
    )
    result = await context.runner.run(command)
    if result.exit_code != 0:
        why = " ".join((result.errors or result.output).split())[:300]
        raise ToolError(f"{run.program} cannot say how {run.text} is: {why}")
    try:
        return _state(run, result.output)
    except msgspec.MsgspecError as error:
        raise ToolError(f"{run.program} says nothing of {run.text} that can be read") from error


def _state(run: CiRun, output: str) -> tuple[bool, str]:
    if run.program == GITHUB:
        found = msgspec.json.decode(output, type=_GithubState)
        is_over = found.status == "completed"
        return is_over, (found.conclusion or found.status) if is_over else found.status
    status = msgspec.json.decode(output, type=_GitlabState).status
    return status in _ENDED, status
