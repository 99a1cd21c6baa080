"""Hook process: one hook, run with JSON on its standard input, its exit code and standard output
read.

Exit code 0 is fine, and standard output may hold a JSON object; 2 blocks, and standard error says
why; any other code is an error that blocks nothing.  That is the contract for a hook that works.
One that *breaks* (it hangs and is killed, dies of a signal, cannot be started, answers nonsense)
has said nothing at all, and where it could have said no, that counts as no: a veto fails closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import anyio.to_thread
import msgspec

from weft.errors import ToolError
from weft.hooks.config import HookCommand
from weft.hooks.scripts import UNREADABLE, script_hash
from weft.messages import clean_text
from weft.workspace import ProcessCommand, Runner, RunResult, project_folders

LONGEST_REASON: Final = 4_000
LONGEST_CONTEXT: Final = 20_000
"""Characters that a hook may put before the model."""

_NOT_STARTED: Final = {126: "it may not be executed", 127: "there is no such command"}
_SIGNALLED: Final = 128
"""What a shell adds to the signal that ended its child."""


class PermissionDecision(msgspec.Struct, frozen=True, rename="camel"):
    """A `PermissionRequest` hook's answer, as other agents write it."""

    behavior: Literal["allow", "deny"]
    message: str = ""
    updated_input: dict[str, Any] | None = None
    interrupt: bool = False
    """With `deny`: the turn is to end."""
    updated_permissions: list[Any] | None = None

    @property
    def wants_more(self) -> bool:
        """It allows more than this call, which no hook can."""
        return self.behavior == "allow" and bool(self.updated_permissions)


class HookSpecificOutput(msgspec.Struct, frozen=True, rename="camel"):
    """`hookSpecificOutput`."""

    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    additional_context: str = ""
    decision: PermissionDecision | None = None
    updated_tool_output: Any = msgspec.UNSET
    updated_mcp_tool_output: Any = msgspec.field(name="updatedMCPToolOutput", default=msgspec.UNSET)

    @property
    def replaces_result(self) -> bool:
        """It wants the model to read something else than the tool's own output."""
        given = (self.updated_tool_output, self.updated_mcp_tool_output)
        return any(each is not None and each is not msgspec.UNSET for each in given)


class HookOutput(msgspec.Struct, frozen=True):
    """What a hook may say on its standard output."""

    goes_on: bool = msgspec.field(name="continue", default=True)
    stop_reason: str = msgspec.field(name="stopReason", default="")
    system_message: str = msgspec.field(name="systemMessage", default="")
    decision: Literal["block", "approve", "allow", "deny"] | None = None
    reason: str = ""
    specific: HookSpecificOutput = msgspec.field(
        name="hookSpecificOutput", default=HookSpecificOutput()
    )


class HookResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a hook came to."""

    end: Literal["fine", "blocked", "failed", "broken"]
    """`failed` blocks nothing; `broken` blocks where the hook can veto."""
    reason: str = ""
    output: HookOutput = HookOutput()
    text: str = ""
    """Standard output that is not a JSON object."""


async def run_hook(
    hook: HookCommand, payload: Mapping[str, Any], *, runner: Runner, project: str
) -> HookResult:
    """Run a hook to its end, or to the end of its time.

    A cancel kills it with everything it started.
    """
    # Checked before every run, not once: a pull, or the model, can change a script after the user
    # trusted it.
    if (why := await _changed_script(hook, project)) is not None:
        return HookResult(end="broken", reason=why)
    command = ProcessCommand(
        # Never a `bash` of the project: a PATH with `.` or `node_modules/.bin` in it would let the
        # project choose the program that judges it.
        argv=(runner.which("bash", not_below=project) or "sh", "-c", hook.command),
        cwd=project,
        # Both names: hooks that were written for other agents find their scripts by the second.
        env={"WEFT_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project},
        timeout_seconds=hook.timeout_seconds,
        stdin=msgspec.json.encode(payload),
        # Standard output may be JSON; a warning on standard error must not end up inside it.
        errors_apart=True,
    )
    try:
        result = await runner.run(command)
    except ToolError as error:
        return HookResult(end="broken", reason=f"it could not be started: {error}")
    return judged(hook, result)


def judged(hook: HookCommand, result: RunResult) -> HookResult:
    """What the end of a hook means."""
    errors = _short(result.errors.strip(), LONGEST_REASON)
    code = result.exit_code
    if result.timed_out:
        return HookResult(
            end="broken", reason=f"it took longer than {hook.timeout_seconds:g} s and was killed"
        )
    # Negative where the shell itself was killed, 128 + n where it reports that its child was.
    if code < 0 or code > _SIGNALLED:
        number = -code if code < 0 else code - _SIGNALLED
        return HookResult(end="broken", reason=_joined(f"it died of signal {number}", errors))
    if code in _NOT_STARTED:
        return HookResult(end="broken", reason=_joined(_NOT_STARTED[code], errors))
    if code == 2:
        reason = errors or _short(result.output.strip(), LONGEST_REASON) or "it gave no reason"
        return HookResult(end="blocked", reason=reason)
    if code:
        end: Literal["broken", "failed"] = "broken" if hook.must_succeed else "failed"
        return HookResult(end=end, reason=_joined(f"it ended with exit code {code}", errors))
    return _answer(result)


def _answer(result: RunResult) -> HookResult:
    text = clean_text(result.output.strip())
    if not text.startswith("{"):
        return HookResult(end="fine", text=_short(text, LONGEST_CONTEXT))
    # `output` is cut for display, and JSON that was cut cannot be read.
    whole = result.full_output if result.full_output is not None else text.encode()
    try:
        output = msgspec.json.decode(whole.strip(), type=HookOutput)
        wrong = misspelled(msgspec.json.decode(whole.strip()))
    # msgspec raises `RecursionError`, which is not one of its own, for JSON that is nested too
    # deep.
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return HookResult(end="broken", reason=f"its answer cannot be read: {error}")
    if wrong:
        return HookResult(end="broken", reason=f"its answer cannot be read: {wrong}")
    return HookResult(end="fine", output=short_output(output))


def misspelled(answer: Mapping[str, Any]) -> str:
    """What an answer says in the wrong place or spelling; empty when there is nothing of it.

    Passed over, a `permission_decision` of "deny" would let the call run.  Fields that are unlike
    all that are known are those of other versions, and stay without effect.
    """
    for name in answer:
        if name not in _FIELDS and (meant := _ALIKE.get(_plain(name))):
            return f"{name!r} means nothing there, write {meant}"
    specific = answer.get("hookSpecificOutput")
    for name in specific if isinstance(specific, Mapping) else ():
        if name not in _SPECIFIC and (meant := _ALIKE_SPECIFIC.get(_plain(name))):
            return f"{name!r} means nothing there, write {meant}"
    return ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


_FIELDS: Final = frozenset({field.encode_name for field in msgspec.structs.fields(HookOutput)})
_SPECIFIC: Final = frozenset(
    {field.encode_name for field in msgspec.structs.fields(HookSpecificOutput)}
)
_ALIKE_SPECIFIC: Final = {_plain(name): name for name in _SPECIFIC}
_ALIKE: Final = {
    **{_plain(name): name for name in _FIELDS},
    **{
        _plain(name): f"hookSpecificOutput.{name}"
        for name in ("permissionDecision", "updatedInput")
    },
}


def short_output(output: HookOutput) -> HookOutput:
    """An answer whose words for the model have the length that they may have."""
    specific = output.specific
    context = _short(specific.additional_context, LONGEST_CONTEXT)
    reason = _short(specific.permission_decision_reason, LONGEST_REASON)
    specific = msgspec.structs.replace(
        specific, additional_context=context, permission_decision_reason=reason
    )
    return msgspec.structs.replace(
        output, specific=specific, reason=_short(output.reason, LONGEST_REASON)
    )


def _joined(what: str, errors: str) -> str:
    return f"{what}: {errors}" if errors else what


def _short(text: str, most: int) -> str:
    text = clean_text(text)
    return text if len(text) <= most else f"{text[:most]} […]"


# --- scripts of the project --------------------------------------------------------------


async def _changed_script(hook: HookCommand, project: str) -> str | None:
    """What is wrong with a script of the project; None when all are what the user trusted."""
    if not hook.scripts:
        return None
    return await anyio.to_thread.run_sync(_look_for_change, hook.scripts, project)


def _look_for_change(scripts: Mapping[str, str], project: str) -> str | None:
    folder = project_folders(project)[0]
    for name, trusted in scripts.items():
        if trusted == UNREADABLE:
            return (
                f"{name} could not be read, or is too large to be checked, "
                "when you trusted this folder"
            )
        if script_hash(folder, name)[0] != trusted:
            return (
                f"{name} is not what it was when you trusted this folder; "
                "look at it, and trust the folder again"
            )
    return None
