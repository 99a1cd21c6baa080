"""Hook callback: one hook of the program that drives us, called; its answer is read like that of
any hook.

A callback that works answers with a JSON object, an empty one when it has no opinion.  One that
*breaks* (it takes too long, raises, answers nonsense, or its program has hung up) has said nothing
at all, and where it could have said no, that counts as no.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec

from weft.errors import WeftError
from weft.hooks.config import Callback, HookCommand
from weft.hooks.process import HookOutput, HookResult, misspelled, short_output

_PARTS = ("hookSpecificOutput", "decision")

logger = logging.getLogger(__name__)


async def call_back(
    hook: HookCommand, callback: Callback, payload: Mapping[str, Any]
) -> HookResult:
    """Call a hook, and wait for its answer or the end of its time.  A cancel gives the call up."""
    try:
        with anyio.fail_after(hook.timeout_seconds):
            answer = await callback(payload)
    except TimeoutError:
        return HookResult(end="broken", reason=f"it took longer than {hook.timeout_seconds:g} s")
    except (WeftError, OSError) as error:
        return HookResult(end="broken", reason=str(error))
    except Exception as error:
        # A program's own code may fail in any way; none of them may look like an answer.
        logger.exception("a hook callback failed", extra={"event": hook.event})
        return HookResult(end="broken", reason=f"it failed: {type(error).__name__}")
    return read_answer(answer)


def read_answer(answer: Any) -> HookResult:
    """What a program answered."""
    if not isinstance(answer, Mapping):
        return HookResult(end="broken", reason="it gave no answer")
    try:
        output = msgspec.convert(_without_nulls(answer), HookOutput)
    except msgspec.ValidationError as error:
        return HookResult(end="broken", reason=f"its answer cannot be read: {error}")
    if wrong := misspelled(answer):
        return HookResult(end="broken", reason=f"its answer cannot be read: {wrong}")
    if output.specific.permission_decision == "defer":
        # There it ends the run with the call preserved; here it would be no opinion, and the call
        # would run.
        return HookResult(end="broken", reason="its answer 'defer' is not supported here")
    return HookResult(end="fine", output=short_output(output))


def _without_nulls(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A field that is null was not given; in an input, null may be a value."""
    return {
        name: _without_nulls(value) if name in _PARTS and isinstance(value, Mapping) else value
        for name, value in answer.items()
        if value is not None
    }
