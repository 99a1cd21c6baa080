"""Scripts for the scripted model: answers made of small typed steps, from Python or from JSON.

Only data.  `scripted.py` plays it; `docs/formats/script.md` explains every field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.messages import Usage
from weft.providers.base import ModelInfo, StopReason


class StepBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True):
    """What all steps share: a `do` tag."""


class SayText(StepBase, frozen=True, tag="text"):
    """Stream text: whole, or in pieces of `chunk` characters."""

    text: str
    chunk: int = 0
    tokens: tuple[tuple[str, float, tuple[tuple[str, float], ...]], ...] = ()
    """The tokens of the text: each with its logprob and its alternatives.

    For requests that ask for them; then each comes as a piece of its own.
    """


class Think(StepBase, frozen=True, tag="thinking"):
    """Stream a block of reasoning and close it with its proof."""

    text: str = ""
    signature: str = ""
    redacted: str = ""
    chunk: int = 0


class CallTool(StepBase, frozen=True, tag="call"):
    """Call one tool."""

    name: str
    args: dict[str, Any] = {}
    id: str = ""
    """The vendor's id of the call; made up from its place when empty."""
    signature: str = ""
    chunk: int = 0


class CallRaw(StepBase, frozen=True, tag="raw_call"):
    """Call one tool with arguments that need not be JSON: cut off, doubled, not an object."""

    name: str
    args_text: str
    id: str = ""
    chunk: int = 0


class CallTogether(StepBase, frozen=True, tag="calls"):
    """Several calls at once.

    Their arguments come interleaved, piece by piece, when a call has a `chunk`.
    """

    calls: tuple[CallTool | CallRaw, ...]


class Spend(StepBase, frozen=True, tag="usage"):
    """Report usage; without this step a small made-up one is reported before the end."""

    usage: Usage


class Finish(StepBase, frozen=True, tag="finish"):
    """End the answer; without this step it ends by itself, with the reason its calls imply."""

    reason: StopReason = "stop"
    detail: str = ""


class Pause(StepBase, frozen=True, tag="pause"):
    """Give the event loop a turn, or wait."""

    seconds: float = 0.0


class FaultBase(StepBase, frozen=True):
    """What the steps that inject a fault share."""

    times: int = 0
    """Fail only the first `times` plays of this answer in this process, then pass.

    0 fails always.
    """


class Stall(FaultBase, frozen=True, tag="stall"):
    """Send nothing more until cancelled, or until the gate of this name is opened."""

    gate: str = ""


class Break(FaultBase, frozen=True, tag="break"):
    """The connection breaks here: raise ProviderUnavailable."""

    message: str = "the scripted stream broke off"


class Fail(FaultBase, frozen=True, tag="error"):
    """Raise this ProviderError.

    As the first step it is raised before the stream opens, like an HTTP status.
    """

    error: Literal[
        "RateLimited",
        "ContextTooLong",
        "ProviderUnavailable",
        "AuthFailed",
        "RequestRefused",
        "ProviderError",
    ] = "ProviderUnavailable"
    message: str = "the script asks for this error"
    status: int | None = None
    retry_after_seconds: float | None = None


class EndEarly(FaultBase, frozen=True, tag="eof"):
    """The stream ends here, without having finished."""


class Garbage(StepBase, frozen=True, tag="garbage"):
    """Nonsense of one kind, as models and vendors really send it."""

    kind: Literal[
        "control_text",
        "orphan_args",
        "same_id",
        "unknown_tool",
        "deep_args",
        "not_an_object",
        "empty",
    ] = "control_text"


Step: TypeAlias = (
    SayText
    | Think
    | CallTool
    | CallRaw
    | CallTogether
    | Spend
    | Finish
    | Pause
    | Stall
    | Break
    | Fail
    | EndEarly
    | Garbage
)


# Unknown fields are refused: a misspelt condition would hold for every request and hide it.
class When(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A condition on the request; everything that is given must hold."""

    user_says: str | None = None
    """The newest user text contains this."""
    system_says: str | None = None
    """The system prompt contains this."""
    results: int | None = None
    """This many tool results are in the request."""
    turns: int | None = None
    """This many assistant messages are in the request."""
    since: str | None = None
    """A user text contains this; `rounds` counts after the newest such one."""
    rounds: int | None = None
    """This many tool rounds are in the request (after `since`, where it is given)."""


class ScriptedAnswer(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One answer of the model."""

    steps: tuple[Step, ...]
    when: When | None = None
    """Only for requests that fit.

    Such answers are tried first, in order, and are never used up.
    """


Written: TypeAlias = str | tuple[Step, ...] | ScriptedAnswer
"""An answer as it may be written: a text, a list of steps, or an Answer."""


class Script(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A whole script, as the JSON file holds it."""

    answers: tuple[Written, ...]
    by: Literal["position", "content"] = "position"
    """`position`: the n-th request of this process gets the n-th answer.  `content`: the request
    with n assistant messages gets it, so that another process goes on where this one was killed.
    """
    loop: bool = False
    """Begin again when the answers are used up."""
    pace_seconds: float = 0.0
    """A piece of text, reasoning or arguments comes this long after the one before it was due."""
    info: ModelInfo | None = None
    """What the model says of itself: window, prices, abilities."""


def as_answer(written: Written | Step | Sequence[Step]) -> ScriptedAnswer:
    """The full form of an answer that was written short."""
    if isinstance(written, ScriptedAnswer):
        return written
    if isinstance(written, str):
        return ScriptedAnswer(steps=(SayText(text=written),))
    if isinstance(written, StepBase):
        return ScriptedAnswer(steps=(written,))
    return ScriptedAnswer(steps=tuple(written))


def parse_script(text: bytes | str, *, name: str = "script") -> Script:
    """Read a script from JSON.

    Raises:
        UsageError: it is no script; the message names the place.
    """
    try:
        return msgspec.json.decode(text, type=Script)
    except msgspec.DecodeError as error:
        raise UsageError(f"{name} is not a script: {error}") from error
